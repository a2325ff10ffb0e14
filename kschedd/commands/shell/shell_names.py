"""Names for shell completion, requested from the daemon each time: each completion is a new process without a cache.

If there is no daemon, or if it does not answer immediately, no names are returned. There is also no error message,
because completion must not write to the terminal.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import attrs

from kschedd.api.schemas.kinds import KINDS
from kschedd.errors import KscheddError
from kschedd.verbs.command_line.grammar import LiveState
from kschedd.verbs.command_line.session import DaemonClient

T = TypeVar("T")
TIMEOUT_S = 2.0
_NO_OBJECTS: dict[str, list[dict[str, Any]]] = {"items": []}


@attrs.define(eq=False, slots=False)
class ShellNames:
    """`connect` raises KscheddError if there is no daemon."""

    connect: Callable[[], DaemonClient]

    @property
    def kinds(self) -> Sequence[str]:
        return sorted({*(kind.plural for kind in KINDS), *(str(kind.get("plural")) for kind in self._kinds)})

    @property
    def namespaces(self) -> Sequence[str]:
        return self.of("Namespace", "")

    @property
    def label_keys(self) -> Mapping[str, Sequence[str]]:
        return _OfKind(lambda kind: sorted({key for labels in self._labels(kind) for key in labels}))

    @property
    def labels(self) -> Mapping[str, Sequence[str]]:
        return _OfKind(
            lambda kind: sorted({f"{key}={value}" for labels in self._labels(kind) for key, value in labels.items()})
        )

    @property
    def profiles(self) -> Sequence[str]:
        return list(dict.fromkeys(row[0] for row in self._weights))

    @property
    def plugins(self) -> Sequence[str]:
        return list(dict.fromkeys(row[1] for row in self._weights))

    @property
    def counts(self) -> Sequence[tuple[str, int]]:
        return [(str(kind["name"]), int(kind.get("count") or 0)) for kind in self._kinds]

    @property
    def plugins_on(self) -> Mapping[str, bool]:
        from kschedd.printing.reports.scheduling import profiles_of

        config: dict[str, Any] = self._call("scheduler.config", {})
        points = [(profile.get("plugins") or {}).values() for _, profile in (profiles_of(config) if config else ())]
        enabled = {str(plugin["name"]) for each in points for plugins in each for plugin in plugins}
        none: list[dict[str, Any]] = []
        loaded = {str(plugin["name"]) for plugin in self._call("plugins.list", none)}
        return {name: name in enabled for name in sorted({*enabled, *loaded})}

    @property
    def taints(self) -> Mapping[str, Sequence[str]]:
        found = {}
        for node in self._nodes:
            taints = [f"{taint['key']}:{taint['effect']}" for taint in (node.get("spec") or {}).get("taints") or ()]
            if taints:
                found[str(node["metadata"]["name"])] = taints
        return found

    def live(self, state: LiveState, namespace: str) -> Sequence[str]:
        match state:
            case LiveState.PENDING | LiveState.BOUND:
                return [
                    str(meta["name"]) for meta in self._pods("=" if state == LiveState.PENDING else "!=", namespace)
                ]
            case LiveState.WAITING:
                none: list[dict[str, Any]] = []
                keys = [str(pod["pod"]).partition("/") for pod in self._call("waiting.list", none)]
                return [name for space, _, name in keys if space == namespace]
            case LiveState.CORDONED | LiveState.UNCORDONED:
                wanted = state == LiveState.CORDONED
                return [
                    str(node["metadata"]["name"])
                    for node in self._nodes
                    if bool((node.get("spec") or {}).get("unschedulable")) is wanted
                ]
            case _:
                return ()

    def pending_elsewhere(self, namespace: str) -> Sequence[str]:
        found = self._pods("=", None)
        return [f"{meta['namespace']}/{meta['name']}" for meta in found if meta["namespace"] != namespace]

    def of(self, kind: str, namespace: str) -> Sequence[str]:
        found = [item["metadata"] for item in self._objects(kind)]
        return sorted(str(meta["name"]) for meta in found if meta.get("namespace") in (None, "", namespace))

    def _pods(self, sign: str, namespace: str | None) -> list[Mapping[str, Any]]:
        """Return the metadata of the pods that have a node (sign "!=") or have no node ("=")."""
        named = {"namespace": namespace, "field_selector": f"spec.nodeName{sign}"}
        pods = self._call("objects.list", _NO_OBJECTS, kind="Pod", metadata_only=True, **named)
        return [pod["metadata"] for pod in pods["items"]]

    # -- calls to the daemon --------------------------------------------------------------------------------------

    @cached_property
    def _daemon(self) -> DaemonClient | None:
        try:
            return self.connect()
        except KscheddError:
            return None

    def _call(self, method: str, absent: T, **named: Any) -> T:
        if self._daemon is None:
            return absent
        try:
            answer: T = self._daemon.call(method, **named)
        except KscheddError:
            return absent
        return answer

    @cached_property
    def _kinds(self) -> list[dict[str, Any]]:
        return self._call("objects.kinds", [])

    @cached_property
    def _weights(self) -> Sequence[tuple[str, ...]]:
        from kschedd.printing.reports.scheduling import weights_table

        config: dict[str, Any] = self._call("scheduler.config", {})
        return weights_table(config).rows if config else ()

    @cached_property
    def _nodes(self) -> list[dict[str, Any]]:
        fields = ["spec.unschedulable", "spec.taints"]
        return self._call("objects.list", _NO_OBJECTS, kind="Node", fields=fields)["items"]

    def _objects(self, kind: str) -> list[dict[str, Any]]:
        found: dict[str, Any] = self._call("objects.list", {"items": []}, kind=kind, metadata_only=True) if kind else {}
        return found.get("items") or []

    def _labels(self, kind: str) -> list[Mapping[str, str]]:
        return [item["metadata"].get("labels") or {} for item in self._objects(kind)]


class _OfKind(dict[str, Sequence[str]]):
    """A mapping whose values are computed when they are read."""

    def __init__(self, work_out: Callable[[str], Sequence[str]]) -> None:
        super().__init__()
        self._work_out = work_out

    def get(self, kind: str, default: Any = None) -> Sequence[str]:
        return self._work_out(kind) if kind else default
