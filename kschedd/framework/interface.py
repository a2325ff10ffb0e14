"""The extension points, as methods a plugin may have. Having the method is taking part; nothing is registered twice.

A plugin comes in one of two styles, or both at once for different points:

* **One node at a time**, in plain Python: `filter(state, pod, node)` returns a Status or None, and
  `score(state, pod, node)` returns an int from 0 to 100, or a Status that says what went wrong. `node` is a
  `NodeInfo`, a view of one row.
* **All nodes at once**, as columns: `filter_rows(state, pod, table, rows)` returns an int64 array of codes, one a row
  of `rows`, in which 0 passes and any other number is the plugin's own; `code_status(state, pod, code)` puts a code
  into words and is called only when somebody reads them. `score_rows(state, pod, table, rows)` returns int64 scores.

A plugin is made by its class method `from_args(args, handle)`: `args` is its typed arguments (`kschedd.config.args`),
or the raw mapping wrapped in `RawArgs` for a plugin from elsewhere; `handle` is a `kschedd.framework.handle.Handle`.

A column plugin says with `reads` what its verdict on a row depends on besides the pod's shape:
`frozenset({"node"})`: on that row's Node object only; with `"requested"` also on what the pods on that very node take
of it (resources, ports, their number); with `"pods"` on anything of these pods. Its verdicts are then remembered per
shape and only rows that changed are judged again. Without `reads` (None) it is asked anew each time.
 What `pre_filter` or `pre_score` worked out is kept in `state.data[name]` (any object; with a `clone` method if
add_pod/remove_pod change it). A remembered verdict skips them, so a plugin with `reads` works out the same from the
pod alone if its entry is absent.

Optional, and only for speed:

* `idle_for(shape)`: PreFilter would say SKIP to every pod of that shape, whatever the cluster; it is then not asked.
* `indifferent(pod)`: its filter lets this pod pass on every node, whatever the cluster.
* `pre_score_by_shape = True`: `pre_score` says the same to every pod of a shape and leaves nothing in `state`.
* `epoch(cluster)`: a hashable that names everything else its verdict depends on; when it changes, what is remembered
  is dropped.

All other points have one form:

    pre_enqueue(pod) -> Status | None                       keeps a pod out of the active queue
    sort_key(entry) -> comparable                            the one QueueSort
    events_to_register() -> sequence of ClusterEventWithHint
    pre_filter(state, pod, cluster) -> Status | Narrowing | None       Status SKIP: its filter is not run
    add_pod(state, pod, other, node) / remove_pod(...)       on what-if runs, keep `state` in step
    post_filter(state, pod, cluster, view) -> PostFilterResult      `view`: a `postfilter.PostFilterView`
    pre_score(state, pod, cluster, rows) -> Status | None    Status SKIP: its score is not run
    normalize(state, pod, scores) -> scores                  int64 array of all feasible nodes, 0..100 out
    reserve(state, pod, node_name) -> Status | None;  unreserve(state, pod, node_name) -> Plan | None
    permit(state, pod, node_name) -> (Status | None, timeout_s)
    pre_bind_pre_flight(state, pod, node_name) -> Status | None     Status SKIP: its pre_bind has nothing to do
    pre_bind(state, pod, node_name) -> Plan | Status | None  what is to be written and waited for (`writes.Plan`)
    bind(state, pod, node_name) -> Plan | Status | None      Status SKIP: the next binder is asked
    post_bind(state, pod, node_name) -> None

Source: Kubernetes v1.34, kube-scheduler/framework/interface.go.
"""

from typing import Any, ClassVar, Protocol

import attrs

from kschedd.framework.status import Status

MAX_NODE_SCORE = 100

# Extension point -> the methods of which a plugin that takes part has at least one.
POINTS: dict[str, tuple[str, ...]] = {
    "pre_enqueue": ("pre_enqueue",),
    "queue_sort": ("sort_key",),
    "pre_filter": ("pre_filter",),
    "filter": ("filter", "filter_rows"),
    "post_filter": ("post_filter",),
    "pre_score": ("pre_score",),
    "score": ("score", "score_rows"),
    "reserve": ("reserve",),
    "permit": ("permit",),
    "pre_bind": ("pre_bind",),
    "bind": ("bind",),
    "post_bind": ("post_bind",),
}


class Plugin(Protocol):
    """Anything with a name; what else it has decides where it takes part."""

    name: ClassVar[str]


def takes_part(plugin: Any, point: str) -> bool:
    return any(callable(getattr(plugin, method, None)) for method in POINTS[point])


def extension_points(plugin: Any) -> frozenset[str]:
    """Every extension point the plugin (or plugin class) takes part in."""
    return frozenset(point for point in POINTS if takes_part(plugin, point))


@attrs.frozen
class Narrowing:
    """PreFilter's word that only these nodes can do; they need not exist.

    `settles`: as far as the plugin's own filter goes, the pod may run on each of them.
    """

    node_names: frozenset[str]
    settles: bool = False


@attrs.frozen
class PostFilterResult:
    """What PostFilter decided. `nominated_node`: None leaves the pod's nomination as it is, "" clears it."""

    status: Status
    nominated_node: str | None = None
    victims: tuple[Any, ...] = ()  # pods that have to go, the most important first; terminating ones among them
    writes: tuple[Any, ...] = ()  # what is to be written for it, in order
    rejected: tuple[Any, ...] = ()  # victims that still wait at Permit: they are rejected ("preempted"), not deleted
    details: Any = None  # what `explain` and `verify` show of it
