"""The default behavior of simulated pods, and SimulatedBehavior objects that select pods by labels, images, namespaces.

The default behavior and the SimulatedBehavior objects are applied once, when a pod is created: they add annotations
(`kschedd.api.simulation.annotations`) that the pod does not have yet. An annotation in the pod's manifest takes
precedence over the objects, which are applied in the order of their names, and the objects take precedence over the
cluster's default. Pods that are loaded, restored or mirrored keep their annotations.

Units: seconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import PodSpec
from kschedd.api.selecting.selectors import parse_label_selector
from kschedd.api.simulation.annotations import OF_PODS_ONLY, PREFIX
from kschedd.api.text.durations import DurationError, parse_duration, show_duration

Raw = Mapping[str, Any]

BEHAVIOR: Final = "SimulatedBehavior"
API_VERSION: Final = "kschedd.io/v1alpha1"
NONE: Final = "none"
_HELM_HOOK: Final = "helm.sh/hook"
_DEFAULT_GRACE_S: Final = 30
_FIELDS: Final = {
    "finish-jobs": "finish_jobs_s",
    "finish-pods": "finish_pods_s",
    "start": "start_s",
    "terminate": "terminate_s",
}
_RUN: Final = ("run-seconds", "exit-code", "out-of-memory", "image-pull")
_NOTHING: Final[Mapping[str, str]] = {}


@attrs.frozen
class PodBehavior:
    """The cluster's default behavior of new pods; None means that nothing is added.

    `finish_jobs_s`: time in seconds after which a container succeeds if its pod belongs to a Job, is a Helm hook, or
    reads its standard input once. `start_s`: time to create a pod's containers. `terminate_s`: time in which a pod with
    the default grace period and without preStop hooks ends. `finish_pods_s`: time in seconds after which the containers
    of other pods succeed, if the pod has no controller and is not restarted.
    """

    finish_jobs_s: float | None = None
    start_s: float | None = None
    terminate_s: float | None = None
    finish_pods_s: float | None = None
    waits_for_configuration: bool = False  # whether containers wait for the ConfigMaps and Secrets to which they refer

    @classmethod
    def parse(cls, text: str) -> "PodBehavior":
        """Parse the value of `--pod-behavior`. Raises ValueError with the reason."""
        if text == NONE:
            return cls()
        found: dict[str, Any] = {}
        for part in text.split(","):
            name, _, value = part.strip().partition("=")
            if name not in _FIELDS:
                raise ValueError(f'must be "{NONE}" or a list of {"=5s, ".join(_FIELDS)}=5s')
            try:
                found[_FIELDS[name]] = parse_duration(value)
            except DurationError:
                raise ValueError(f"{name} must be a duration, such as {name}=5s") from None
            if found[_FIELDS[name]] < 0:
                raise ValueError(f"{name} must not be negative")
        return cls(**found)

    def run_s(self, meta: Raw, spec: PodSpec) -> float | None:
        """Return the time after which the containers of this pod succeed, or None."""
        controller = next((each for each in meta.get("ownerReferences") or () if each.get("controller")), None)
        if controller is not None:
            return self.finish_jobs_s if controller.get("kind") == "Job" else None
        if spec.raw.get("restartPolicy") not in ("Never", "OnFailure"):
            return None
        # like the pods of Jobs, hooks and tests of a chart and the pods of `kubectl run -i` complete
        if _HELM_HOOK in (meta.get("annotations") or _NOTHING) or _reads_input_once(spec):
            return self.finish_jobs_s
        return self.finish_pods_s

    def of_copy(self) -> "PodBehavior":
        """Return the behavior of pods in a cluster that contains a dump.

        Pods do not complete, because a what-if analysis must not free capacity by itself. Pods do not wait for Secrets,
        because a dump often lacks them.
        """
        finish_jobs_s = None if self.finish_jobs_s == DEFAULT.finish_jobs_s else self.finish_jobs_s
        return attrs.evolve(self, finish_jobs_s=finish_jobs_s, waits_for_configuration=False)

    def __str__(self) -> str:
        stated = [(name, getattr(self, field)) for name, field in _FIELDS.items()]
        return ",".join(f"{name}={show_duration(value)}" for name, value in stated if value is not None) or NONE


DEFAULT: Final = PodBehavior(finish_jobs_s=5.0)
"""The behavior of a daemon that starts without a dump or a mirrored cluster."""


def added_annotations(
    default: PodBehavior, behaviors: Sequence[Object], meta: Raw, labels: Mapping[str, str], spec: PodSpec
) -> Mapping[str, str]:
    """Return the annotations to add to a new pod with this metadata."""
    if not behaviors and not default.start_s and default.terminate_s is None and default.run_s(meta, spec) is None:
        return _NOTHING  # most pods
    added: dict[str, str] = {}
    own = meta.get("annotations") or _NOTHING
    stated = {key.removeprefix(PREFIX) for key in own if key.startswith(PREFIX)}
    for behavior in behaviors:
        found = _selected(behavior.spec, meta["namespace"], labels, spec.raw)
        if found:
            taken = {setting.partition(".")[0] for setting in stated}
            new = {setting: text for setting, text in found.items() if setting.partition(".")[0] not in taken}
            added.update(new)
            stated.update(new)
    added.update(_default(default, stated, meta, spec))
    return {PREFIX + setting: text for setting, text in added.items()}


def _default(default: PodBehavior, stated: Iterable[str], meta: Raw, spec: PodSpec) -> Mapping[str, str]:
    settings = {setting.partition(".")[0] for setting in stated}
    added: dict[str, str] = {}
    if default.start_s and "startup-seconds" not in settings:
        added["startup-seconds"] = _seconds(default.start_s)
    if settings.isdisjoint(_RUN) and (run_s := default.run_s(meta, spec)) is not None:
        added["run-seconds"] = _seconds(run_s)
    if default.terminate_s is not None and "termination-seconds" not in settings and _ends_by_default(spec):
        added["termination-seconds"] = _seconds(default.terminate_s)
    return added


def _reads_input_once(spec: PodSpec) -> bool:
    """Return whether a container of the pod ends at the end of its standard input, as for `kubectl run -i`."""
    return any(container.get("stdinOnce") for container in spec.raw.get("containers") or ())


def _seconds(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


@lru_cache(256)
def _ends_by_default(spec: PodSpec) -> bool:
    """Return whether the pod has the default grace period and no preStop hooks."""
    raw = spec.raw
    grace = raw.get("terminationGracePeriodSeconds")
    every = (*(raw.get("containers") or ()), *(raw.get("initContainers") or ()))
    return grace in (None, _DEFAULT_GRACE_S) and not any((each.get("lifecycle") or {}).get("preStop") for each in every)


def text_of(value: Any) -> str:
    """Return the annotation's text for the value of a setting."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _selected(spec: Raw, namespace: str, labels: Mapping[str, str], pod_spec: Raw) -> dict[str, str]:
    """Return the settings that a SimulatedBehavior with this spec has for a pod; empty if it does not select it."""
    namespaces = spec.get("namespaces")
    if namespaces and namespace not in namespaces:
        return {}
    if not parse_label_selector(spec.get("selector") or {}).matches(labels):
        return {}
    settings = {name: text_of(value) for name, value in (spec.get("settings") or {}).items()}
    images = spec.get("images")
    if not images:
        return settings
    every = (*(pod_spec.get("initContainers") or ()), *(pod_spec.get("containers") or ()))
    names = [each["name"] for each in every if any(fnmatchcase(each.get("image") or "", one) for one in images)]
    found: dict[str, str] = {}
    for setting, text in settings.items() if names else ():
        whole = "." in setting or setting in OF_PODS_ONLY
        found.update({setting: text} if whole else {f"{setting}.{name}": text for name in names})
    return found
