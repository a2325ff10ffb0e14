"""Rules about KubeSchedulerConfigurations, and the flags of components in the pods that run them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kschedd.config.loading.releases import RELEASES, RENAMED, V1
from kschedd.config.versions.gate_history import gates_gone_in
from kschedd.config.versions.kube_releases import Release
from kschedd.lint.rules import PODS, Hit, Level, RuleSet
from kschedd.lint.subjects import KnownObjects, LintedObject, PodPart, Raw, Steps, at, entries, items, text_of
from kschedd.values import as_map

RULES: Final = RuleSet()
CONFIGURATION: Final = "KubeSchedulerConfiguration"
_WITHOUT_PLUGINS: Final = RELEASES["v1beta3"].removed
#: plugins that were removed after v1beta3, and plugins that were removed before v1beta3
_LIMITS: Final = V1.removed - _WITHOUT_PLUGINS
_OLD: Final = _WITHOUT_PLUGINS | RENAMED.keys()
#: the first release that cannot read a version of the configuration; older versions and Policies ended together with
# v1beta1
_GONE_FORMATS: Final = {"v1beta3": "1.29", "v1beta2": "1.28"}


def _profiles(found: LintedObject) -> Iterator[tuple[Steps, Raw]]:
    return entries(found.raw, "profiles")


def _plugins(found: LintedObject) -> Iterator[tuple[Steps, str]]:
    """Yield the names of plugins that profiles enable or configure, each with its path.

    kube-scheduler does not check plugin names that appear only under `disabled`.
    """
    for path, profile in _profiles(found):
        for point, listed in as_map(profile.get("plugins")).items():
            for inside, plugin in entries(listed, "enabled"):
                yield (*path, "plugins", point, *inside, "name"), text_of(plugin.get("name"))
        for inside, config in entries(profile, "pluginConfig"):
            yield (*path, *inside, "name"), text_of(config.get("name"))


def _extenders(found: LintedObject) -> Iterator[tuple[Steps, Raw]]:
    return entries(found.raw, "extenders")


@RULES.add(
    "volumebinding-shape",
    CONFIGURATION,
    (
        "",
        "error",
        "the scheduler does not start with a shape of VolumeBinding, unless the feature gate "
        "VolumeCapacityPriority is on",
    ),
    (
        "1.33",
        "error",
        "the scheduler does not start with a shape of VolumeBinding, unless the feature gate "
        "StorageCapacityScoring is on",
    ),
    ("1.37", "fine", "the shape is used"),
    fix="Remove the shape, or enable the feature gate.",
    source="validation_pluginargs.go",
)
def volumebinding_shape(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, profile in _profiles(found):
        for inside, config in entries(profile, "pluginConfig"):
            if config.get("name") == "VolumeBinding" and at(config, "args", "shape"):
                yield Hit((*path, *inside, "args", "shape"))


@RULES.add(
    "balanced-evenness",
    CONFIGURATION,
    ("", "fine", "NodeResourcesBalancedAllocation prefers nodes that are even after the pod is placed"),
    (
        "1.36",
        "fine",
        "NodeResourcesBalancedAllocation prefers nodes that the pod makes more even; a node that is even "
        "already has no advantage",
    ),
    fix="Compare placements with `kschedd compare --kube-version`, and adjust the weight.",
    source="notes of 1.36",
)
def balanced_evenness(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, name in _plugins(found):
        if name == "NodeResourcesBalancedAllocation":
            yield Hit(path)


@RULES.add(
    "nonmatching-limits-plugins",
    CONFIGURATION,
    ("", "note", "the plugin {} is deprecated"),
    ("1.32", "error", "the plugin {} is gone: the scheduler does not start"),
    fix="Remove it: NodeVolumeLimits counts all volumes.",
    source="kubernetes#124500",
)
def nonmatching_limits_plugins(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, name in _plugins(found):
        if name in _LIMITS:
            yield Hit(path, name)


@RULES.add(
    "old-plugins",
    CONFIGURATION,
    ("", "error", "the plugin {} is gone since 1.24: the scheduler does not start"),
    fix="Remove the plugin: PodTopologySpread, NodeAffinity and NodeResourcesFit replace it.",
    source="notes of 1.23, notes of 1.24",
)
def old_plugins(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, name in _plugins(found):
        if name in _OLD:
            yield Hit(path, name)


@RULES.add(
    "config-v1beta3",
    (CONFIGURATION, "Policy"),
    ("", "error", "{}: the scheduler does not start"),
    fix="Write kubescheduler.config.k8s.io/v1. `kschedd config convert -f FILE` does so without out-of-tree plugins.",
    source="notes of 1.29",
)
def config_v1beta3(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    group, _, version = found.api_version.partition("/")
    if group == "kubescheduler.config.k8s.io" and version != "v1":
        same = version in ("v1beta2", "v1beta3")  # formats with the fields of v1
        fix = "Write apiVersion: kubescheduler.config.k8s.io/v1. The other fields keep their names." if same else ""
        since = _GONE_FORMATS.get(version, "1.23")
        yield Hit(("apiVersion",), f"{found.api_version} is not read since {since}", fix=fix)
    elif found.kind == "Policy" and (
        found.raw.get("predicates") is not None or found.raw.get("priorities") is not None
    ):
        yield Hit(("kind",), "a Policy is not read since 1.23")


@RULES.add(
    "extender-empty-victims",
    CONFIGURATION,
    ("", "fine", "an extender that preempts gets the nodes on which pods would be preempted"),
    ("1.38", "fine", "an extender that preempts also gets nodes without victims"),
    fix="Change the extender so that it accepts empty lists of victims.",
    source="kubernetes#135486",
)
def extender_empty_victims(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, extender in _extenders(found):
        if extender.get("preemptVerb"):
            yield Hit((*path, "preemptVerb"))


@RULES.add(
    "extender-ignorable",
    CONFIGURATION,
    ("", "fine", "`ignorable` ignores errors of filtering only"),
    ("1.30", "fine", "`ignorable` also ignores errors of binding"),
    fix="Set `ignorable: false` if the extender must bind.",
    source="kubernetes#122503",
)
def extender_ignorable(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for path, extender in _extenders(found):
        if extender.get("ignorable") is True and extender.get("bindVerb"):
            yield Hit((*path, "ignorable"))


# -- feature gates ---------------------------------------------------------------------------------------------------

# The first release in which each feature gate is unknown.
_GONE_GATES: Final[Mapping[str, Sequence[str]]] = {
    "1.31": ("CSINodeExpandSecret",),
    "1.32": ("MinDomainsInPodTopologySpread", "HPAContainerMetrics"),
    "1.33": ("PDBUnhealthyPodEvictionPolicy", "PersistentVolumeLastPhaseTransitionTime"),
    "1.34": ("PodDisruptionConditions",),
    **{str(release): gates_gone_in(release) for release in (Release(35), Release(36), Release(37))},
    "1.38": (
        "PodSchedulingReadiness",
        "MatchLabelKeysInPodAffinity",
        "DynamicResourceAllocation",
        "SeparateTaintEvictionController",
    ),
}
_GATES_FIX: Final = "Remove the gate from the flag, or from featureGates, before the upgrade."


def _flags(found: "LintedObject | PodPart") -> Iterator[tuple[Steps, str]]:
    """Yield the texts that may be flags of a Kubernetes component, each with its path.

    Flags are in the command and the arguments of containers, and in the extraArgs of kubeadm's configuration.
    """
    if isinstance(found, PodPart):
        yield from found.component_words
        return
    for component in ("scheduler", "apiServer", "controllerManager", "nodeRegistration"):
        extra = at(found.raw, component, "extraArgs") or at(found.raw, component, "kubeletExtraArgs")
        for name, value in as_map(extra).items():
            yield (component, "extraArgs", name), f"--{name}={value}"
        for place, one in enumerate(items(extra)):
            yield (component, "extraArgs", place), f"--{as_map(one).get('name')}={as_map(one).get('value')}"


def gates_of(found: "LintedObject | PodPart") -> Iterator[tuple[Steps, str, bool | None]]:
    """Yield the feature gates that an object sets: path, name and value (None: neither true nor false)."""
    for path, word in _flags(found):
        if word.startswith("--feature-gates="):
            for part in word.removeprefix("--feature-gates=").strip("\"'").split(","):
                name, _, value = part.partition("=")
                yield path, name.strip(), {"true": True, "false": False}.get(value.strip().lower())
    if isinstance(found, LintedObject):
        for name, state in as_map(found.raw.get("featureGates")).items():
            yield ("featureGates", name), str(name), state if isinstance(state, bool) else None


_WITH_FLAGS: Final = (
    PODS,
    CONFIGURATION,
    "KubeletConfiguration",
    "KubeProxyConfiguration",
    "ClusterConfiguration",
    "InitConfiguration",
    "JoinConfiguration",
)


def _gate_rule(code: str, gone: Mapping[str, str], eras: tuple[tuple[str, Level, str], ...], source: str) -> None:
    def check(found: LintedObject | PodPart, known: KnownObjects) -> Iterator[Hit]:
        for path, name, _ in gates_of(found):
            if name in gone:
                yield Hit(path, f"{name} is gone since {gone[name]}" if len(set(gone.values())) > 1 else name)

    RULES.add(code, _WITH_FLAGS, *eras, fix=_GATES_FIX, source=source)(check)


for _code, _since, _source in (
    ("gates-gone-138", "1.38", "kubernetes#141741, kubernetes#141744, kubernetes#141946"),
    ("gates-gone-137", "1.37", "kubernetes#139520, kubernetes#137755"),
    ("gates-gone-136", "1.36", "kube_features.go"),
    ("gates-gone-135", "1.35", "kube_features.go"),
    ("gates-gone-134", "1.34", "kubernetes#129501"),
    ("gates-gone-133", "1.33", "kubernetes#129500, kubernetes#129295"),
    ("gates-gone-132", "1.32", "kubernetes#126863, kubernetes#126862"),
    ("gates-gone-131", "1.31", "kubernetes#124462"),
):
    _gate_rule(
        _code,
        dict.fromkeys(_GONE_GATES[_since], _since),
        (
            ("", "fine", "the feature gate {} is known"),
            (_since, "error", "the feature gate {} is unknown: the component does not start"),
        ),
        _source,
    )
_gate_rule(
    "capacity-priority-inverted",
    {"VolumeCapacityPriority": "1.33"},
    (
        ("", "fine", "VolumeCapacityPriority prefers the node with the least free capacity"),
        (
            "1.33",
            "error",
            "the feature gate VolumeCapacityPriority is unknown: the component does not start; its follower "
            "StorageCapacityScoring prefers the most free capacity, unless VolumeBinding has a shape",
        ),
    ),
    "kubernetes#128184",
)


@RULES.add(
    "gates-locked-138",
    _WITH_FLAGS,
    ("", "fine", "the feature gate {} may be turned off"),
    ("1.38", "error", "the feature gate {} is locked: the component does not start with it turned off"),
    fix="Remove the gate from the flag.",
    source="kubernetes#140256",
)
def gates_locked_138(found: LintedObject | PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, name, state in gates_of(found):
        if name == "DRADeviceTaintRules" and state is False:
            yield Hit(path, name)


# -- other flags -----------------------------------------------------------------------------------------------------


def _flag_rule(code: str, flag: str, *eras: tuple[str, Level, str], fix: str, source: str, value: str = "") -> None:
    def check(found: LintedObject | PodPart, known: KnownObjects) -> Iterator[Hit]:
        for path, word in _flags(found):
            name, _, given = word.partition("=")
            if name == flag and (not value or value in given.split(",")):
                yield Hit(path)

    RULES.add(code, _WITH_FLAGS, *eras, fix=fix, source=source)(check)


_flag_rule(
    "register-schedulable",
    "--register-schedulable",
    ("", "note", "the flag --register-schedulable is deprecated"),
    ("1.34", "error", "the flag --register-schedulable is gone: the kubelet does not start"),
    fix="Use --register-with-taints.",
    source="kubernetes#122384",
)
_flag_rule(
    "unschedulable-flag",
    "--pod-max-in-unschedulable-pods-duration",
    ("", "note", "the flag --pod-max-in-unschedulable-pods-duration is deprecated"),
    fix="Keep the flag only if some pods stay unschedulable because no event requeues them.",
    source="notes of 1.30",
)
_flag_rule(
    "pv-label-plugin",
    "--enable-admission-plugins",
    ("", "note", "the admission plugin PersistentVolumeLabel is deprecated"),
    ("1.31", "error", "the admission plugin PersistentVolumeLabel is gone: the API server does not start"),
    fix="Remove it from the flag.",
    source="kubernetes#124505",
    value="PersistentVolumeLabel",
)
