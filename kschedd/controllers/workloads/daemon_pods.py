"""The pods of a DaemonSet: nodes that need a pod, manifests of new pods, and pods to delete.

Source: The functions of this module only read objects; `daemonsets` performs the writes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.node_fit import node_matches
from kschedd.api.nodes import Node
from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod, PodSpec, intern_spec
from kschedd.api.selecting.selectors import NODE_NAME, SelectorError
from kschedd.api.selecting.terms import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration, parse_toleration
from kschedd.controllers.templates import pod_from_template
from kschedd.controllers.workloads.pod_state import available, ready
from kschedd.controllers.workloads.revisions import REVISION_HASH
from kschedd.controllers.workloads.rollout import resolved

TEMPLATE_GENERATION: Final = "pod-template-generation"
_GENERATION: Final = "deprecated.daemonset.template.generation"
_NOTHING: Mapping[str, Any] = {}

_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_TOLERATED_ON_HOST_NETWORK: Final = (("node.kubernetes.io/network-unavailable", NO_SCHEDULE),)


def daemon_tolerations(spec: Raw) -> list[Raw]:
    """Return the tolerations of a daemon pod: its template's and the default tolerations, without tolerationSeconds."""
    wanted = [*_TOLERATED, *(_TOLERATED_ON_HOST_NETWORK if spec.get("hostNetwork") else ())]
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    tolerations: list[Raw] = []
    for stated in spec.get("tolerations") or ():
        same = next((each for each in added if _same_match(each, stated)), None)
        if same is None:
            tolerations.append(stated)
        elif same not in tolerations:
            tolerations.append(same)
    return tolerations + [each for each in added if each not in tolerations]


def _same_match(first: Raw, second: Raw) -> bool:
    return all((first.get(name) or "") == (second.get(name) or "") for name in ("key", "operator", "effect", "value"))


@attrs.frozen(eq=False)
class DaemonTemplate:
    """The parts of a DaemonSet that determine where its pods run."""

    spec: PodSpec
    node_name: str  # "" unless the template names a node
    tolerations: tuple[Toleration, ...]

    @classmethod
    def of(cls, daemon_set: Object) -> "DaemonTemplate":
        raw = (daemon_set.spec.get("template") or _NOTHING).get("spec") or _NOTHING
        tolerations = tuple(parse_toleration(each) for each in daemon_tolerations(raw))
        return cls(intern_spec(dict(raw)), raw.get("nodeName") or "", tolerations)

    def should_run(self, node: Node) -> tuple[bool, bool]:
        """Return whether a daemon pod should be created on the node, and whether an existing pod should stay."""
        if self.node_name not in ("", node.name):
            return False, False
        try:
            if not node_matches(self.spec, node):
                return False, False
        except SelectorError:
            return False, False
        refused = [
            taint for taint in node.taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not self._tolerates(taint)
        ]
        return not refused, not any(taint.effect == NO_EXECUTE for taint in refused)

    def _tolerates(self, taint: Taint) -> bool:
        return any(toleration.tolerates(taint) for toleration in self.tolerations)


def target_node(pod: Pod) -> str:
    """Return the node of a daemon pod: the node to which it is bound or for which it was created; "" if unknown."""
    return pod.node_name or pod.pod_spec.required_node or ""


def template_generation(daemon_set: Object) -> str:
    """Return the generation of the template from an annotation of the deprecated API, or ""."""
    text = daemon_set.annotations.get(_GENERATION) or ""
    return text if text.lstrip("-").isdigit() else ""


def daemon_pod(daemon_set: Object, node_name: str, digest: str) -> dict[str, Any]:
    """Return the manifest of a new daemon pod for the node, with a required node affinity for the scheduler."""
    raw = pod_from_template(daemon_set, daemon_set.spec.get("template") or _NOTHING)
    labels = dict(raw["metadata"].get("labels") or {})
    if generation := template_generation(daemon_set):
        labels[TEMPLATE_GENERATION] = generation
    labels[REVISION_HASH] = digest
    raw["metadata"]["labels"] = labels
    affinity = raw["spec"].get("affinity") or _NOTHING
    terms = [{"matchFields": [{"key": NODE_NAME, "operator": "In", "values": [node_name]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    node_affinity = {**(affinity.get("nodeAffinity") or _NOTHING), **required}
    raw["spec"] = {
        **raw["spec"],
        "affinity": {**affinity, "nodeAffinity": node_affinity},
        "tolerations": daemon_tolerations(raw["spec"]),
    }
    return raw


@attrs.frozen
class UpdateLimits:
    """Limits of a rolling update: the number of additional new pods, and the number of unavailable pods.

    If both limits are 0, one pod may be unavailable.
    """

    surge: int
    unavailable: int

    @classmethod
    def of(cls, daemon_set: Object, desired: int) -> "UpdateLimits":
        rolling = (daemon_set.spec.get("updateStrategy") or _NOTHING).get("rollingUpdate") or _NOTHING
        surge = resolved(rolling.get("maxSurge", 0), desired, up=True)
        unavailable = resolved(rolling.get("maxUnavailable", 1), desired, up=True)
        return cls(surge, 1 if not surge and not unavailable else unavailable)


def allows_surge(daemon_set: Object) -> bool:
    update = daemon_set.spec.get("updateStrategy") or _NOTHING
    rolling = update.get("rollingUpdate") or _NOTHING
    return update.get("type") == "RollingUpdate" and resolved(rolling.get("maxSurge", 0), 100, up=True) > 0


@attrs.frozen(eq=False)
class Revision:
    """The current revision, and the time from which its pods are available."""

    digest: str
    generation: str
    min_ready_s: int
    now: float

    def is_updated(self, pod: Pod) -> bool:
        labels = pod.labels
        return labels.get(REVISION_HASH) == self.digest or (
            self.generation != "" and labels.get(TEMPLATE_GENERATION) == self.generation
        )

    def is_available(self, pod: Pod) -> bool:
        return available(pod, self.min_ready_s, self.now)

    def is_ready(self, pod: Pod) -> bool:
        return ready(pod)


def oldest_first(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods sorted: scheduled pods first, then by age."""
    return sorted(pods, key=lambda p: (not p.node_name, p.metadata.get("creationTimestamp") or "", p.name))


def surplus_on_node(running: Sequence[Pod], surges: bool, revision: Revision) -> list[Pod]:
    """Return the surplus among the running daemon pods of a node.

    One pod may run. During a surging rolling update, a new pod may run beside the old pod until the new pod is
    available.
    """
    if len(running) <= 1:
        return []
    ordered = oldest_first(running)
    if not surges:
        return ordered[1:]
    new = next((pod for pod in ordered if pod.labels.get(REVISION_HASH) == revision.digest), None)
    old = next((pod for pod in ordered if pod.labels.get(REVISION_HASH) != revision.digest), None)
    gone = [pod for pod in ordered if pod is not new and pod is not old]
    if new is not None and old is not None and (not revision.is_ready(old) or revision.is_available(new)):
        gone.append(old)
    return gone


def updated_and_old(pods: Iterable[Pod], revision: Revision) -> tuple[Pod | None, Pod | None] | None:
    """Return the up-to-date and the old pod on a node; None if there are several of either (`surplus_on_node`)."""
    new: Pod | None = None
    old: Pod | None = None
    for pod in pods:
        if pod.deletion_timestamp:
            continue
        if revision.is_updated(pod):
            if new is not None:
                return None
            new = pod
        else:
            if old is not None:
                return None
            old = pod
    return new, old


@attrs.frozen(eq=False)
class UpdateStep:
    """The next step of a rolling update."""

    delete: list[Pod]
    create_on: list[str]  # node names


def replace_in_place(
    by_node: Mapping[str, Sequence[Pod]], revision: Revision, limits: UpdateLimits, unavailable: int = 0
) -> UpdateStep:
    """Delete old pods for an update without surge: all unavailable pods, and as many available pods as allowed.

    `unavailable` is the number of other nodes without an available pod.
    """
    replaced: list[Pod] = []
    candidates: list[Pod] = []
    for pods in by_node.values():
        pair = updated_and_old(pods, revision)
        if pair is None or (pair[0] is None) == (pair[1] is None):
            unavailable += 1  # the node has no pod or too many pods, which another step changes
            continue
        new, old = pair
        if new is not None:
            unavailable += not revision.is_available(new)
        elif old is not None:
            (candidates if revision.is_available(old) else replaced).append(old)
    return UpdateStep(replaced + candidates[: max(0, limits.unavailable - unavailable)], [])


def replace_by_surge(
    by_node: Mapping[str, Sequence[Pod]],
    should_run: Mapping[str, bool],
    revision: Revision,
    limits: UpdateLimits,
    desired: int,
    available_now: int = 0,
) -> UpdateStep:
    """Update with surge: create new pods beside old pods, and delete each old pod when its new pod is available.

    `available_now` is the number of other nodes with an available pod.
    """
    surging = 0
    gone: list[Pod] = []
    unwanted: list[Pod] = []
    candidates: list[str] = []
    allowed: list[str] = []
    for node_name, pods in by_node.items():
        pair = updated_and_old(pods, revision)
        if pair is None:
            surging += 1
            continue
        new, old = pair
        counted = old if old is not None else new
        available_now += counted is not None and revision.is_available(counted)
        if old is None:
            continue
        if new is not None:
            if revision.is_available(new):
                gone.append(old)
            else:
                surging += 1
            continue
        runs = should_run.get(node_name, False)
        if revision.is_available(old):
            if runs:
                candidates.append(node_name)
            else:
                unwanted.append(old)
        elif runs:
            allowed.append(node_name)
        else:
            gone.append(old)
    gone += unwanted[: max(0, available_now - desired)]
    return UpdateStep(gone, allowed + candidates[: max(0, limits.surge - surging)])
