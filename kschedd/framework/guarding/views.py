"""Read-only views of the scheduler's tables, objects and state, for out-of-tree plugins.

Each view has the same attributes as its original (`NodeTable`, `SchedulerCache`, `CycleState`, ...). Arrays are
returned as read-only numpy views, API objects as their read-only classes, lists and maps as views. Only requested rows
and raw manifests are copied.

A few calls make the scheduler cache additional data (a label column, a pod counter). Calls that add such data are
allowed only within a call by the scheduler, and while no other code changes the scheduler's state.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.read_only import ReadOnlyPod, read_only
from kschedd.cache.counts import PodCounts, PodMatcher
from kschedd.cache.domain_counter import DomainCounter, TopologyPairCounts
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import LabelColumn, NodeTable, Rows
from kschedd.cache.versions import ChangeLog, Versions
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.faults import shown
from kschedd.framework.guard import PluginGuard, alone, waited_for
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.postfilter import Candidate, DryRun, PostFilterView
from kschedd.framework.status import Code
from kschedd.values import frozen


def array(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array as a view of a read-only buffer, because a plugin could make a plain numpy view writeable."""
    buffer: Any = values  # numpy's stubs declare no Buffer before Python 3.12
    return np.asarray(memoryview(buffer).toreadonly())


class ListView(Sequence[Any]):
    """A read-only list; `_out` converts each returned item."""

    __slots__ = ("_items", "_out")

    def __init__(self, items: Sequence[Any], out: Callable[[Any], Any] | None = None) -> None:
        self._items, self._out = items, out

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, place: Any) -> Any:
        found = self._items[place]
        if self._out is None:
            return tuple(found) if isinstance(place, slice) else found
        return tuple([self._out(item) for item in found]) if isinstance(place, slice) else self._out(found)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items) if self._out is None else map(self._out, self._items)


class MapView(Mapping[Any, Any]):
    """A read-only map; `_out` converts each returned value."""

    __slots__ = ("_items", "_out")

    def __init__(self, items: Mapping[Any, Any], out: Callable[[Any], Any]) -> None:
        self._items, self._out = items, out

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __getitem__(self, key: Any) -> Any:
        return self._out(self._items[key])


def _maybe(obj: Object | None) -> Object | None:
    return None if obj is None else read_only(obj)


def _pods(pods: Sequence[Pod]) -> tuple[Pod, ...]:
    return tuple([read_only(pod) for pod in pods])


class _View:
    """The base class of views; rejects the original's mutating methods."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{type(self).__name__.removesuffix('View')} has no {name} for plugins, which have read-only access"
        )


class LabelColumnView(_View):
    __slots__ = ("__weakref__", "ids", "key", "numbers", "values")

    def __init__(self, column: LabelColumn) -> None:
        self.key = column.key
        self.ids = array(column.ids)
        self.numbers = MappingProxyType(column.numbers)
        self.values = ListView(column.values)


class ChangesView(_View):
    __slots__ = ("_log",)

    def __init__(self, log: ChangeLog[int]) -> None:
        self._log = log

    @property
    def at(self) -> int:
        return self._log.at

    def since(self, stamp: int) -> list[int] | None:
        return self._log.since(stamp)


class VersionsView(_View):
    """A view of a `Versions`."""

    __slots__ = ("_versions",)

    def __init__(self, versions: Versions) -> None:
        self._versions = versions

    @property
    def now(self) -> int:
        return self._versions.now

    @property
    def nodes(self) -> ChangesView:
        return ChangesView(self._versions.nodes)

    @property
    def pods(self) -> ChangesView:
        return ChangesView(self._versions.pods)

    @property
    def pod_updates(self) -> ChangesView:
        return ChangesView(self._versions.pod_updates)

    @property
    def objects_at(self) -> int:
        return self._versions.objects_at

    @property
    def row_pods_at(self) -> npt.NDArray[Any]:
        return array(self._versions.row_pods_at)

    def latest(self, *parts: str) -> int:
        return self._versions.latest(*parts)

    def changed(self, stamp: int, *parts: str) -> bool:
        return self._versions.changed(stamp, *parts)


_ARRAYS: Final = (
    *("alive", "allocatable", "requested", "nonzero", "allowed_pods", "pod_count", "unschedulable", "taints"),
    "order",
)
_PLAIN: Final = ("capacity", "node_count")
_MAPS: Final = ("row_of", "resources")


class TableView(_View):
    """A view of a `NodeTable`."""

    __slots__ = ("_table",)

    def __init__(self, table: NodeTable) -> None:
        self._table = table

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableView) and other._table is self._table

    def __hash__(self) -> int:
        return hash(self._table)

    @property
    def names(self) -> Sequence[str]:
        return ListView(self._table.names)

    @property
    def nodes(self) -> Sequence[Any]:
        return ListView(self._table.nodes, _maybe)

    @property
    def pods(self) -> Sequence[Sequence[Pod]]:
        return ListView(self._table.pods, _pods)

    @property
    def taint_sets(self) -> Sequence[Any]:
        return ListView(self._table.taint_sets)

    @property
    def ports(self) -> Mapping[int, frozenset[tuple[str, str, int]]]:
        return MapView(self._table.ports, frozenset)

    @property
    def claims(self) -> Mapping[str, Mapping[int, int]]:
        return MapView(self._table.claims, MappingProxyType)

    @property
    def images(self) -> Mapping[str, Any]:
        return MapView(self._table.images, lambda image: ImageView(image.size, frozenset(image.rows)))

    @property
    def versions(self) -> VersionsView:
        return VersionsView(self._table.versions)

    def label(self, key: str) -> LabelColumnView:
        key = _text("label", key)
        with waited_for():
            return LabelColumnView(self._table.label(key))

    def resource(self, name: str) -> int:
        name = _text("resource", name)
        known = self._table.resources.get(name)
        if known is not None:
            return known
        with waited_for():
            return self._table.resource(name)

    def __iter__(self) -> Iterator[int]:
        return iter(self._table)


@attrs.frozen
class ImageView:
    size: int
    rows: frozenset[int]


def _reads(name: str, out: Callable[[Any], Any] | None = None) -> property:
    if out is None:
        return property(lambda self: getattr(self._table, name))
    return property(lambda self: out(getattr(self._table, name)))


for _names, _out in ((_ARRAYS, array), (_PLAIN, None), (_MAPS, MappingProxyType)):
    for _name in _names:
        setattr(TableView, _name, _reads(_name, _out))


class DomainsView(_View):
    __slots__ = ("_domains",)

    def __init__(self, domains: TopologyPairCounts) -> None:
        self._domains = domains

    @property
    def column(self) -> LabelColumnView:
        return LabelColumnView(self._domains.column)

    @property
    def counts(self) -> npt.NDArray[Any]:
        return array(self._domains.counts)

    @property
    def total(self) -> int:
        return self._domains.total

    def least(self, values: Any) -> int:
        with waited_for():
            return self._domains.least(values)


class CounterView(_View):
    __slots__ = ("_counter",)

    def __init__(self, counter: DomainCounter) -> None:
        self._counter = counter

    @property
    def by_row(self) -> Mapping[int, int]:
        return MappingProxyType(self._counter.by_row)

    def rows(self) -> npt.NDArray[Any]:
        with waited_for():
            return array(self._counter.rows())

    def by_domain(self, key: str) -> DomainsView:
        with waited_for():
            return DomainsView(self._counter.by_domain(_text("by_domain", key)))


class CountsView(_View):
    __slots__ = ("_counts",)

    def __init__(self, counts: PodCounts) -> None:
        self._counts = counts

    @property
    def namespaces(self) -> Mapping[str, Any]:
        return MapView(self._counts.namespaces, frozen)

    def matching(self, kind: PodMatcher) -> CounterView:
        if not isinstance(kind, PodMatcher):
            raise TypeError(f"matching({shown(kind)}): a PodMatcher from `pod_matcher` or `spread_matcher` is expected")
        with waited_for():
            return CounterView(self._counts.matching(kind))


class ClusterView(_View):
    """A view of a `SchedulerCache`."""

    __slots__ = ("_cluster",)

    def __init__(self, cluster: SchedulerCache) -> None:
        self._cluster = cluster

    @property
    def table(self) -> TableView:
        return TableView(self._cluster.table)

    @property
    def counts(self) -> CountsView:
        return CountsView(self._cluster.counts)

    @property
    def versions(self) -> VersionsView:
        return VersionsView(self._cluster.versions)

    @property
    def pod_count(self) -> int:
        return self._cluster.pod_count

    def of_kind(self, kind: str) -> Mapping[str, Object]:
        return MapView(self._cluster.of_kind(kind), read_only)

    def get(self, kind: str, key: str) -> Object | None:
        return _maybe(self._cluster.get(kind, key))

    def pod(self, uid: str) -> Pod | None:
        found = self._cluster.pod(uid)
        return None if found is None else read_only(found)

    def assumed_pods(self) -> list[Pod]:
        return [read_only(pod) for pod in self._cluster.assumed_pods()]

    def is_assumed(self, pod: Pod) -> bool:
        return self._cluster.is_assumed(pod)

    def is_marked_deleted(self, uid: str) -> bool:
        return self._cluster.is_marked_deleted(uid)


# -- the state of an attempt ---------------------------------------------------------------------------------------


class PluginData:
    """Out-of-tree plugins' entries in one attempt's CycleState: a value and the plugin's name for each key."""

    __slots__ = ("values",)
    KEY: Final = "out-of-tree plugins"

    def __init__(self, values: dict[str, tuple[PluginGuard, Any]] | None = None) -> None:
        self.values = {} if values is None else values

    def clone(self) -> "PluginData":
        """Return a clone for a what-if evaluation. Raises PluginError if the `clone` method of a value raises."""
        return PluginData(
            {
                key: (guard, guard.call("clone", value.clone) if clones else value)
                for key, (guard, value) in self.values.items()
                for clones in (getattr(type(value), "clone", None) is not None,)
            }
        )


class DataView(MutableMapping[str, Any]):
    """`CycleState.data` for one plugin: its own entries, and the entries of other out-of-tree plugins.

    Keys are strings.
    """

    __slots__ = ("_guard", "_state")

    def __init__(self, state: CycleState, guard: PluginGuard) -> None:
        self._state, self._guard = state, guard

    def _values(self) -> dict[str, tuple[PluginGuard, Any]]:
        found = self._state.data.get(PluginData.KEY)
        if found is None:
            found = self._state.data[PluginData.KEY] = PluginData()
        values: dict[str, tuple[PluginGuard, Any]] = found.values
        return values

    def __getitem__(self, key: str) -> Any:
        return self._values()[key][1]

    def __setitem__(self, key: str, value: Any) -> None:
        if type(key) is not str:
            raise TypeError(f"state.data[{shown(key)}]: a key must be a string, such as the plugin's name")
        self._values()[key] = (self._guard, value)

    def __delitem__(self, key: str) -> None:
        del self._values()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())


def data_of(state: CycleState, guard: PluginGuard) -> dict[str, Any]:
    """Return this plugin's entries of `state.data`."""
    found = state.data.get(PluginData.KEY)
    values: dict[str, tuple[PluginGuard, Any]] = {} if found is None else found.values
    return {key: value for key, (owner, value) in values.items() if owner is guard}


class StateView(_View):
    """A view of a `CycleState`."""

    __slots__ = ("_state", "data")

    def __init__(self, state: CycleState, guard: PluginGuard) -> None:
        self._state = state
        self.data = DataView(state, guard)

    @property
    def skip_filter(self) -> frozenset[str]:
        return frozenset(self._state.skip_filter)

    @property
    def skip_score(self) -> frozenset[str]:
        return frozenset(self._state.skip_score)

    def clone(self) -> "StateView":
        return StateView(self._state.clone(), self.data._guard)


# -- the handle, and PostFilter's view -------------------------------------------------------------------------------


class HandleView(_View):
    """A view of a `Handle`. The view checks arguments, because some methods change the scheduler's state.

    `allow`, `reject`, `activate`, `waiting_pods` and `nominated_pods` may be called from any thread, at any time.
    """

    __slots__ = ("_handle", "feature_gates", "seed")

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.feature_gates = frozen(handle.feature_gates)
        self.seed = handle.seed

    @property
    def cluster(self) -> ClusterView:
        return ClusterView(self._handle.cluster)

    def nominated_pods(self, node_name: str) -> Sequence[Pod]:
        node_name = _text("nominated_pods", node_name)
        with alone(self._handle.lock):
            return _pods(self._handle.nominated_pods(node_name))

    def allow(self, uid: str, plugin: str) -> bool:
        uid, plugin = _text("allow", uid), _text("allow", plugin)
        with self._changing():
            return self._handle.allow(uid, plugin)

    def reject(self, uid: str, plugin: str, reason: str) -> bool:
        uid, plugin, reason = _text("reject", uid), _text("reject", plugin), _text("reject", reason)
        with self._changing():
            return self._handle.reject(uid, plugin, reason)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with alone(self._handle.lock):
            yield
        self._handle.changed()

    def waiting_pods(self) -> Sequence[tuple[Pod, str]]:
        with alone(self._handle.lock):
            return [(read_only(pod), node_name) for pod, node_name in self._handle.waiting_pods()]

    def evicting(self, uid: str) -> bool:
        return self._handle.evicting(_text("evicting", uid))

    @property
    def current_pod(self) -> Callable[[str], Pod | None] | None:
        current = self._handle.current_pod
        if current is None:
            return None
        return lambda key: None if (found := current(_text("current_pod", key))) is None else read_only(found)

    def activate(self, pods: Sequence[Pod]) -> None:
        given = list(pods)
        for pod in given:
            if not isinstance(pod, ReadOnlyPod):
                raise TypeError(f"activate: {shown(pod)} is not a pod that was passed to the plugin")
        with self._changing():
            self._handle.activate(given)


def _text(method: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{method}: {shown(value)}: a text is expected")
    return str.encode(value, "utf-8", "backslashreplace").decode()


class PostFilterViewView(_View):
    """A view of a `PostFilterView` for the attempt of `pod`."""

    __slots__ = ("_pod", "_view")

    def __init__(self, view: PostFilterView, pod: Pod) -> None:
        self._view, self._pod = view, pod

    def code_on(self, node_name: str) -> Code:
        return self._view.code_on(_text("code_on", node_name))

    def rows_with(self, code: Code) -> Rows:
        return array(self._view.rows_with(Code(code)))

    def nominated_on(self, node_name: str) -> Sequence[Pod]:
        return _pods(self._view.nominated_on(_text("nominated_on", node_name)))

    def dry_run(self, state: StateView, pod: Pod, rows: Rows, offset: int, wanted: int) -> DryRun:
        if not isinstance(state, StateView) or not isinstance(pod, ReadOnlyPod):
            raise TypeError("dry_run: a state and a pod that were passed to the plugin are expected")
        requested = np.array(rows, dtype=np.int64)
        if requested.ndim != 1 or not np.isin(requested, self._view.rows_with(Code.UNSCHEDULABLE)).all():
            raise ValueError("dry_run: rows that were rejected as Unschedulable are expected (`rows_with`)")
        real = self._pod if pod.uid == self._pod.uid else pod
        with waited_for():
            pass  # an abandoned call makes no further dry runs
        found = self._view.dry_run(state._state, real, requested, int(offset) % max(len(requested), 1), int(wanted))
        return attrs.evolve(
            found,
            candidates=tuple(_candidate(candidate) for candidate in found.candidates),
            best=None if found.best is None else _candidate(found.best),
        )


def _candidate(candidate: Candidate) -> Candidate:
    return attrs.evolve(candidate, victims=_pods(candidate.victims))


def node_info(info: NodeInfo) -> NodeInfo:
    # A TableView has the readable attributes of a NodeTable.
    return NodeInfo(TableView(info.table), info.row)  # type: ignore[arg-type]
