"""Annotations that configure the behavior of simulated pods and nodes: run times, exit codes, resource usage.

    of a pod                      meaning                                                          default
    kschedd.io/startup-seconds    time to create its containers                                    0
    kschedd.io/run-seconds        time until a container exits                                     forever
    kschedd.io/exit-code          its exit code then                                               0
    kschedd.io/out-of-memory      true: it then exits because it is out of memory (137, OOMKilled)  false
    kschedd.io/image-pull         fails: its image cannot be pulled                                 succeeds
    kschedd.io/readiness          fails: its readiness probe fails, so that it is never ready       succeeds
    kschedd.io/liveness           fails: its liveness probe fails, so that it is restarted          succeeds
    kschedd.io/termination-seconds  time to end after a stop request (preStop included), or never  the grace period
    kschedd.io/logs               text that `kubectl logs` prints                                   nothing
    kschedd.io/memory-usage       memory usage; likewise storage-usage and cpu-usage               its request
    kschedd.io/pids               number of processes                                              1
    kschedd.io/image-size         size of its image                                                as nodes report it

    of a node
    kschedd.io/pressure           memory, disk, pid: resources that are short, whatever its pods use
    kschedd.io/system-memory      usage besides the pods; likewise system-storage                  0
    kschedd.io/max-pids           maximum number of processes                                      32768
    kschedd.io/eviction-hard, eviction-soft, eviction-soft-grace-period, eviction-minimum-reclaim,
    eviction-pressure-transition-period, eviction-max-pod-grace-period: the kubelet's flags of these names

All annotations of a pod except the first may name a container, for example `kschedd.io/run-seconds.app`. An annotation
without a container name applies to all containers except init containers and ephemeral containers. An init container
without an annotation succeeds immediately. A pod whose termination takes forever ends only if it is deleted without a
grace period. An invalid annotation is ignored, and the client gets a warning when it submits the object.

Units: seconds; bytes; counts.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeVar

import attrs

from kschedd.api.simulation.eviction_thresholds import (
    DEFAULT_HARD,
    EvictionConfig,
    Threshold,
    ThresholdValue,
    graces_of,
    reclaims_of,
    thresholds_of,
)
from kschedd.api.simulation.values import (
    AnnotationError,
    bytes_of,
    count_of,
    duration_of,
    failing_of,
    millicores_of,
    seconds_of,
    seconds_or_never,
    true_of,
)
from kschedd.api.text.similar import allowed_names

T = TypeVar("T")

PREFIX: Final = "kschedd.io/"
LOGS: Final = PREFIX + "logs"
PRESSURES: Final = ("memory", "disk", "pid")
PRESSURE: Final = PREFIX + "pressure"
SYSTEM_MEMORY: Final = PREFIX + "system-memory"
SYSTEM_STORAGE: Final = PREFIX + "system-storage"
MAX_PIDS: Final = PREFIX + "max-pids"
DEFAULT_MAX_PIDS: Final = 32_768
HIGHEST_EXIT_CODE: Final = 255

EVICTION_HARD: Final = PREFIX + "eviction-hard"
EVICTION_SOFT: Final = PREFIX + "eviction-soft"
EVICTION_SOFT_GRACE: Final = PREFIX + "eviction-soft-grace-period"
EVICTION_MINIMUM_RECLAIM: Final = PREFIX + "eviction-minimum-reclaim"
EVICTION_TRANSITION: Final = PREFIX + "eviction-pressure-transition-period"
EVICTION_MAX_GRACE: Final = PREFIX + "eviction-max-pod-grace-period"


def pressures_of(text: str) -> tuple[str, ...]:
    """Return the resources with a simulated shortage on the node. Raises AnnotationError."""
    named = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not set(named) <= set(PRESSURES):
        raise AnnotationError(f"allowed are {', '.join(PRESSURES)}, separated by commas")
    return named


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    EVICTION_HARD: thresholds_of,
    EVICTION_SOFT: thresholds_of,
    EVICTION_SOFT_GRACE: graces_of,
    EVICTION_MINIMUM_RECLAIM: reclaims_of,
    EVICTION_TRANSITION: duration_of,
    EVICTION_MAX_GRACE: count_of,
    PRESSURE: pressures_of,
    SYSTEM_MEMORY: bytes_of,
    SYSTEM_STORAGE: bytes_of,
    MAX_PIDS: count_of,
}
_OF_POD: Final[Mapping[str, Callable[[str], float | int]]] = {
    "startup-seconds": seconds_of,
    "run-seconds": seconds_of,
    "exit-code": lambda text: count_of(text, HIGHEST_EXIT_CODE),
    "out-of-memory": true_of,
    "image-pull": failing_of,
    "readiness": failing_of,
    "liveness": failing_of,
    "termination-seconds": seconds_or_never,
    "cpu-usage": millicores_of,
    "memory-usage": bytes_of,
    "storage-usage": bytes_of,
    "pids": count_of,
    "image-size": bytes_of,
    "logs": lambda text: len(text),  # the text itself is read with the logs (`log_text`)
}
OF_PODS_ONLY: Final = frozenset(("startup-seconds",))
"""Settings that cannot name a container."""
POD_SETTINGS: Final = frozenset(_OF_POD)
_OF_RUN: Final = frozenset(
    ("startup-seconds", "run-seconds", "exit-code", "out-of-memory", "image-pull", "readiness", "liveness")
)


_OF_OTHERS: Final = (
    *("kubelet", "cloud-provider", "cloud-init-seconds", "cloud-zone", "cloud-region", "cloud-instance-type"),
    *("made-up", "dumped-condition", "wanted-pods"),
)
"""Annotations of pods and nodes that other modules read."""


@attrs.frozen
class NodeSettings:
    """The settings in a node's annotations."""

    eviction: EvictionConfig
    pressures: tuple[str, ...] = ()
    system_memory: int = 0
    system_storage: int = 0
    max_pids: int = DEFAULT_MAX_PIDS

    @property
    def short(self) -> bool:
        """True if the settings contain a shortage, or usage in addition to that of the node's pods."""
        return bool(self.pressures or self.system_memory or self.system_storage)


_Items = tuple[tuple[str, str], ...]


@lru_cache(1 << 10)
def _node_settings(items: _Items) -> NodeSettings:
    annotations = dict(items)

    def read(name: str, reader: Callable[[str], T], default: T) -> T:
        try:
            return reader(annotations[name]) if name in annotations else default
        except AnnotationError:  # ignore the error, because `annotation_faults` warns the client
            return default

    no_values: dict[str, ThresholdValue] = {}
    no_graces: dict[str, float] = {}
    no_pressures: tuple[str, ...] = ()
    hard = read(EVICTION_HARD, thresholds_of, thresholds_of(DEFAULT_HARD))
    soft = read(EVICTION_SOFT, thresholds_of, no_values)
    graces = read(EVICTION_SOFT_GRACE, graces_of, no_graces)
    reclaims = read(EVICTION_MINIMUM_RECLAIM, reclaims_of, no_values)
    thresholds = [Threshold(signal, value, 0.0, reclaims.get(signal)) for signal, value in hard.items()]
    thresholds += [
        Threshold(signal, value, graces[signal], reclaims.get(signal))
        for signal, value in soft.items()
        if signal in graces  # a kubelet does not start if a soft threshold lacks a grace period
    ]
    transition = read(EVICTION_TRANSITION, duration_of, EvictionConfig.DEFAULT_TRANSITION_S)
    return NodeSettings(
        EvictionConfig(tuple(thresholds), transition, read(EVICTION_MAX_GRACE, count_of, 0)),
        read(PRESSURE, pressures_of, no_pressures),
        read(SYSTEM_MEMORY, bytes_of, 0),
        read(SYSTEM_STORAGE, bytes_of, 0),
        read(MAX_PIDS, count_of, DEFAULT_MAX_PIDS),
    )


def node_settings(annotations: Mapping[str, str]) -> NodeSettings:
    return _node_settings(_ours(annotations))


def _ours(annotations: Mapping[str, str]) -> _Items:
    return tuple((key, text) for key, text in annotations.items() if key.startswith(PREFIX))


@attrs.frozen(eq=False)
class PodSettings:
    """The settings in a pod's annotations, by setting and container ("" for all containers)."""

    _found: Mapping[tuple[str, str], float]

    @property
    def startup_s(self) -> float:
        return self._found.get(("startup-seconds", ""), 0.0)

    def of(self, setting: str, container: str, *, named_only: bool = False) -> float | None:
        """Return the setting of a container, or (unless `named_only`) the pod's setting."""
        own = self._found.get((setting, container))
        return own if own is not None or named_only else self._found.get((setting, ""))

    @property
    def states_usage(self) -> bool:
        return any(self.states(setting) for setting in ("memory-usage", "storage-usage", "pids"))

    def states(self, setting: str) -> bool:
        """Return whether a container has this setting."""
        return any(stated == setting for stated, _ in self._found)

    @property
    def states_run(self) -> bool:
        """False if the pod starts immediately and runs forever."""
        return any(stated in _OF_RUN for stated, _ in self._found)

    @property
    def is_stuck(self) -> bool:
        """True if a container never ends after a stop request."""
        return any(stated == "termination-seconds" and value == math.inf for (stated, _), value in self._found.items())

    def __bool__(self) -> bool:
        return bool(self._found)


_NO_SETTINGS: Final = PodSettings({})


def pod_settings(annotations: Mapping[str, str]) -> PodSettings:
    if not annotations:
        return _NO_SETTINGS
    ours = _ours(annotations)
    return _pod_settings(ours) if ours else _NO_SETTINGS


@lru_cache(1 << 12)
def _pod_settings(items: _Items) -> PodSettings:
    found: dict[tuple[str, str], float] = {}
    for key, text in items:
        setting, _, container = key.removeprefix(PREFIX).partition(".")
        if setting in _OF_POD and not (setting in OF_PODS_ONLY and container):
            try:
                found[setting, container] = _OF_POD[setting](text)
            except AnnotationError:
                continue  # ignore the error, because `annotation_faults` warns the client
    return PodSettings(found)


def log_text(annotations: Mapping[str, str], container: str) -> str:
    """Return the text that a container has written, according to the pod's annotations."""
    return annotations.get(f"{LOGS}.{container}", annotations.get(LOGS, ""))


def setting_fault(setting: str, text: str) -> str | None:
    """Return the error in the value of a setting of pods, or None. `setting` may name a container."""
    reader = _OF_POD.get(setting.partition(".")[0])
    if reader is None:
        return f"supported settings: {', '.join(sorted(_OF_POD))}"
    return _fault(reader, text)


def is_setting(key: str, text: str) -> bool:
    """Return whether the annotation is a valid setting of a pod or a node."""
    if (of_node := _READERS.get(key)) is not None:
        return _fault(of_node, text) is None
    return setting_fault(key.removeprefix(PREFIX), text) is None


def _fault(reader: Callable[[str], object], text: str) -> str | None:
    try:
        reader(text)
    except AnnotationError as wrong:
        return str(wrong)
    return None


def annotation_faults(kind: str, annotations: Mapping[str, str], containers: Iterable[str] = ()) -> list[str]:
    """Return the errors in the annotations of a Pod (or pod template) or Node with these containers."""
    faults = []
    for key, text in _ours(annotations):
        reader: Callable[[str], object] | None = _READERS.get(key) if kind == "Node" else None
        if kind == "Pod":
            setting, _, container = key.removeprefix(PREFIX).partition(".")
            reader = _OF_POD.get(setting)
            named = tuple(containers)
            if reader is not None and container and container not in named:
                faults.append(f"annotation {key} is ignored: it has no container {container}, but {', '.join(named)}")
                continue
        if reader is None:
            faults += _unknown(kind, key)
            continue
        if (wrong := _fault(reader, text)) is not None:
            faults.append(f'annotation {key}: "{text[:80]}" is ignored: {wrong}')
    if kind == "Node":
        faults += _graceless(annotations)
    return faults


def _unknown(kind: str, key: str) -> list[str]:
    """Return the error message for an annotation without a meaning for this kind."""
    word = key.removeprefix(PREFIX)
    word = word.partition(".")[0] if kind == "Pod" else word
    if word in _OF_OTHERS:
        return []
    known = _OF_POD if kind == "Pod" else [*(each.removeprefix(PREFIX) for each in _READERS), *_OF_OTHERS]
    return [f"annotation {key} is ignored: it is unknown{allowed_names(word, known)}"]


def _graceless(annotations: Mapping[str, str]) -> list[str]:
    try:
        soft = thresholds_of(annotations.get(EVICTION_SOFT, ""))
        graces = graces_of(annotations.get(EVICTION_SOFT_GRACE, ""))
    except AnnotationError:
        return []  # reported above
    why = f"annotation {EVICTION_SOFT}: %s is ignored: grace period must be specified for the soft eviction threshold"
    return [f"{why % signal} {signal} ({EVICTION_SOFT_GRACE})" for signal in soft if signal not in graces]
