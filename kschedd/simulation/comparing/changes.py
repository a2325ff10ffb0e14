"""The changes of a fork since it was created: pods moved, pending, evicted or placed, nodes, objects, utilization.

If a controller replaced a pod, both pods are reported as one moved pod; deleted and new pods of a workload are matched
in order. Objects that controllers own (ReplicaSets of Deployments), Events and Leases are omitted.

`ForkStart` is the state of the fork at its creation; changes are computed on demand, from the fork's store events and
log.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.table import CPU, MEMORY, NodeTable
from kschedd.log.log import Log
from kschedd.scheduling.records import AttemptRecord
from kschedd.simulation.engine import Engine
from kschedd.simulation.pending import pods_without_node
from kschedd.simulation.placements import PlacementSummary, PodPlacement, summarized, workload_name, zone_of
from kschedd.store.eviction import covers
from kschedd.store.objects.log import DELETED, WatchEvent

_LEFT_OUT: Final = frozenset(("Pod", "Node", "Event", "Lease", "CSINode", "ControllerRevision"))
_MOST_FIELDS: Final = 8
_LONGEST: Final = 60

Text = Annotated[str, "text"]


@attrs.frozen(kw_only=True)
class PodChange:
    """A pod that differs from its state at the start of the fork.

    `sign`: +, - or ~, as printed. `node` is the node at the start, or "". `why`: kube-scheduler's message if the
    pod is pending, otherwise the cause of its removal; `cause`: the cause of the removal of a pod whose replacement is
    pending.
    """

    sign: str
    change: Annotated[
        str,
        "moved (its workload has another pod in its place), placed, pending, gone, ended or orphaned (its node was "
        "deleted, and it not yet)",
    ]
    namespace: str
    name: str
    node: str = ""
    to: Annotated[str, "the node that it, or the pod in its place, has now"] = ""
    successor: Annotated[str, "the pod in its place, if that has another name"] = ""
    why: str = ""
    cause: str = ""
    placement: Annotated[str, "how the node was chosen"] = ""
    margin: Annotated[int | None, "by how much it was ahead (null: no other)"] = None
    workload: Annotated[str, "the kind and name of its controller, empty: none"] = ""
    new: Annotated[bool, "whether the pod was created in the fork"] = False


@attrs.frozen
class NodeChange:
    """A node that differs. `sign`: +, - or ~, as printed; `what`: the changes, such as new, gone or cordoned."""

    sign: str
    name: str
    what: Sequence[Text]


@attrs.frozen
class ObjectChange:
    """An object other than a pod or a node that differs.

    `sign`: +, - or ~, as printed; `what`: the fields that changed.
    """

    sign: str
    kind: str
    namespace: str
    name: str
    what: Sequence[Text]


@attrs.frozen
class UsageChange:
    """The share of all nodes' allocatable amount of a resource that is requested, from 0 to 1, before and after."""

    resource: str
    before: float
    after: float


@attrs.frozen
class BlockingBudget:
    """A PodDisruptionBudget that prevents evictions from cordoned nodes."""

    namespace: str
    name: str
    pods: Sequence[Annotated[str, "pod"]]


@attrs.frozen
class DiffAnswer:
    """The differences between a fork and its start."""

    pods: Sequence[PodChange]
    nodes: Sequence[NodeChange]
    objects: Annotated[Sequence[ObjectChange], "objects that controllers own are omitted"]
    config: Annotated[Sequence[Text], "descriptions of the configuration changes"]
    usage: Annotated[Sequence[UsageChange], "the share of the nodes' resources that is requested"]
    budgets: Annotated[
        Sequence[BlockingBudget], "PodDisruptionBudgets that keep these pods on nodes cordoned in the fork"
    ]
    elapsed_s: float
    pending: Annotated[int, "pods of the whole cluster that have no node now"]
    summary: Annotated[PlacementSummary, "counts of the pods in `pods`, before and after"]


class ForkStart:
    """The state of a fork at its creation."""

    def __init__(self, engine: Engine) -> None:
        engine.driver.record_leads()
        self.version = engine.store.version
        self._pin = engine.store.watch(None, self.version)  # the watch makes the store keep all later events
        self.usage: Mapping[str, float] = usage(engine.machine.cluster.table)


def usage(table: NodeTable) -> dict[str, float]:
    """Return the requested share of the nodes' allocatable amounts, from 0 to 1, for each resource."""
    alive = table.alive
    requested = {
        "cpu": (table.requested[CPU], table.allocatable[CPU]),
        "memory": (table.requested[MEMORY], table.allocatable[MEMORY]),
        "pods": (table.pod_count, table.allowed_pods),
    }
    return {
        name: float(used[alive].sum()) / total if (total := float(there[alive].sum())) else 0.0
        for name, (used, there) in requested.items()
    }


def changes(engine: Engine, start: ForkStart, log: Log) -> DiffAnswer:
    """Return all differences between the fork and its start."""
    events = engine.store.written_after(start.version)
    of_nodes = [event for event in events if event.new.kind == "Node"]
    pods = _pod_changes(engine, log, [event for event in events if event.new.kind == "Pod"], _gone_nodes(of_nodes))
    nodes = _node_changes(of_nodes)
    now = usage(engine.machine.cluster.table)
    return DiffAnswer(
        pods,
        nodes,
        _object_changes(events),
        [change.what for change in engine.driver.config_changes.made],
        [UsageChange(name, before, now[name]) for name, before in start.usage.items()],
        _blocking_budgets(engine, {change.name for change in nodes}),
        engine.elapsed,
        len(pods_without_node(engine)),
        _summary(engine, pods, of_nodes),
    )


def _summary(engine: Engine, pods: Sequence[PodChange], of_nodes: Sequence[WatchEvent]) -> PlacementSummary:
    zones = {event.old.name: zone_of(event.old) for event in of_nodes if isinstance(event.old, Node)}
    zones |= {node.name: zone_of(node) for node in engine.store.list("Node") if isinstance(node, Node)}
    found = []
    for pod in pods:
        before = None if pod.new else pod.node
        after = None if pod.change in ("gone", "ended") else pod.node if pod.change == "orphaned" else pod.to
        places = zones.get(pod.node, ""), zones.get(after or "", "")
        found.append(PodPlacement(f"{pod.namespace}/{pod.name}", pod.workload, (before, after), places, changed=True))
    return summarized(found)


# -- pods -------------------------------------------------------------------------------------------------------


@attrs.define
class _PodFate:
    """A pod: its state at the fork's creation (None: no pod), its last state, and whether it was deleted."""

    before: Pod | None
    last: Pod
    gone: bool = False


def _pod_changes(engine: Engine, log: Log, events: Sequence[WatchEvent], gone_nodes: Sequence[str]) -> list[PodChange]:
    fates: dict[str, _PodFate] = {}
    for event in events:
        assert isinstance(event.new, Pod), "an event of a pod is expected"
        fate = fates.get(event.new.uid)
        if fate is None:
            before = event.old if isinstance(event.old, Pod) else None
            fate = fates[event.new.uid] = _PodFate(before, event.new)
        fate.last, fate.gone = event.new, event.type == DELETED
    gone: list[Pod] = []
    successors: dict[str, list[Pod]] = {}
    found: list[PodChange] = []
    last_of: dict[str, Pod] = {}
    for uid, fate in fates.items():
        before, last = fate.before, fate.last
        if fate.gone or last.deletion_timestamp:
            if before is not None and not before.finished and not before.deletion_timestamp:
                gone.append(before)
                last_of[uid] = last
        elif before is None:
            successors.setdefault(_workload(engine, last), []).append(last)
        elif not before.node_name and last.node_name:
            found.append(_change("+", "placed", last, log, to=last.node_name))
        elif before.node_name and last.finished and not before.finished:
            found.append(_change("-", "ended", last, log, node=before.node_name, why=_ended(last)))
    for pod in gone:
        heirs = successors.get(_workload(engine, pod))
        why = _why_gone(last_of[pod.uid])
        heir = heirs.pop(0) if heirs else None
        named = "" if heir is None or heir.name == pod.name else heir.name
        if heir is None:
            found.append(_change("-", "gone", pod, log, node=pod.node_name, why=why))
        elif heir.node_name:
            moved = _change("~", "moved", pod, log, heir, node=pod.node_name, to=heir.node_name, why=why)
            found.append(attrs.evolve(moved, successor=named))
        elif pod.node_name:
            pending = _change("-", "pending", pod, log, node=pod.node_name, why=_why_pending(heir), cause=why)
            found.append(attrs.evolve(pending, successor=named))
    for pods in successors.values():
        for pod in pods:
            if pod.node_name:
                change = _change("+", "placed", pod, log, to=pod.node_name)
            else:
                change = _change("+", "pending", pod, log, why=_why_pending(pod))
            found.append(attrs.evolve(change, new=True))
    found += _orphans(engine, log, gone_nodes)
    return sorted(found, key=lambda change: (change.namespace, change.name))


def _gone_nodes(events: Sequence[WatchEvent]) -> list[str]:
    return [name for (_, _, name), (before, after) in _ends(events).items() if before is not None and after is None]


def _orphans(engine: Engine, log: Log, gone_nodes: Sequence[str]) -> Iterator[PodChange]:
    """Yield the pods that are still bound to deleted nodes."""
    for name in gone_nodes:
        for pod in engine.store.pods_on(name):
            if not pod.finished and not pod.deletion_timestamp:
                why = "its node was deleted; the pod garbage collector deletes it as time passes"
                yield _change("-", "orphaned", pod, log, node=name, why=why)


def _change(sign: str, change: str, pod: Pod, log: Log, placed: Pod | None = None, **more: Any) -> PodChange:
    """Describe the change of a pod; `placed` is a scheduled pod that replaced it, if any."""
    placement = _placement(placed or pod, log)
    return PodChange(
        sign=sign,
        change=change,
        namespace=pod.namespace,
        name=pod.name,
        workload=workload_name(pod),
        placement="" if placement is None or not more.get("to") else _placement_text(placement),
        margin=None if placement is None or placement.lead is None else placement.lead.margin,
        **more,
    )


def _placement(pod: Pod, log: Log) -> AttemptRecord | None:
    """Return the pod's last attempt if it found a node."""
    attempts = [entry for entry in log.attempts(pod.key) if entry.uid == pod.uid and not entry.of_binding]
    return attempts[-1] if attempts and attempts[-1].node else None


def _placement_text(placement: AttemptRecord) -> str:
    lead, feasible = placement.lead, placement.feasible
    if lead is None:
        return "the only feasible node that was found"
    if lead.margin == 0:
        return f"score {placement.score}, as {lead.runner_up} has: one of the best of {feasible}"
    return f"score {placement.score}, {lead.margin} ahead of {lead.runner_up}, the next of {feasible}"


def _workload(engine: Engine, pod: Pod) -> str:
    """Return the UID of the pod's controller (for a ReplicaSet, of its Deployment), or else the pod's own UID."""
    owner = _controller(pod)
    if owner is None:
        return pod.uid
    if owner.get("kind") == "ReplicaSet":
        replica_set = engine.store.find("ReplicaSet", pod.namespace, str(owner.get("name")))
        above = None if replica_set is None else _controller(replica_set)
        if above is not None:
            return str(above.get("uid"))
    return str(owner.get("uid"))


def _controller(obj: Object) -> Mapping[str, Any] | None:
    owners = obj.metadata.get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


def _condition(pod: Pod, kind: str) -> Mapping[str, Any]:
    return next((each for each in pod.status.get("conditions") or () if each.get("type") == kind), {})


def _why_gone(pod: Pod) -> str:
    target = _condition(pod, "DisruptionTarget")
    return str(target.get("message") or target.get("reason") or "deleted")


def _why_pending(pod: Pod) -> str:
    return str(_condition(pod, "PodScheduled").get("message") or "not tried yet")


def _ended(pod: Pod) -> str:
    return str(pod.status.get("message") or pod.status.get("reason") or pod.phase)


# -- the rest ---------------------------------------------------------------------------------------------------


def _ends(events: Sequence[WatchEvent]) -> dict[tuple[str, str, str], tuple[Object | None, Object | None]]:
    """Return each object with its states before the first and after the last of these events."""
    ends: dict[tuple[str, str, str], tuple[Object | None, Object | None]] = {}
    for event in events:
        key = event.new.kind, event.new.namespace, event.new.name
        before = ends[key][0] if key in ends else event.old
        ends[key] = before, None if event.type == DELETED else event.new
    return ends


def _node_changes(events: Sequence[WatchEvent]) -> list[NodeChange]:
    found: list[NodeChange] = []
    for (_, _, name), (before, after) in sorted(_ends(events).items()):
        if after is None:
            if before is not None:
                found.append(NodeChange("-", name, ["gone"]))
        elif before is None:
            found.append(NodeChange("+", name, ["new"]))
        else:
            what = _node_words(before, after)
            if what:
                found.append(NodeChange("~", name, what))
    return found


def _node_words(before: Object, after: Object) -> list[str]:
    assert isinstance(before, Node), "a node is expected"
    assert isinstance(after, Node), "a node is expected"
    what: list[str] = []
    if before.unschedulable != after.unschedulable:
        what.append("cordoned" if after.unschedulable else "uncordoned")
    old, new = {taint.shown for taint in before.taints}, {taint.shown for taint in after.taints}
    if old != new and before.unschedulable == after.unschedulable:
        what += [f"taint {taint}" for taint in sorted(new - old)] + [f"no taint {taint}" for taint in sorted(old - new)]
    if before.allocatable != after.allocatable:
        what.append("other allocatable resources")
    if before.labels != after.labels:
        what.append("other labels")
    return what


def _object_changes(events: Sequence[WatchEvent]) -> list[ObjectChange]:
    found: list[ObjectChange] = []
    chosen = [event for event in events if event.new.kind not in _LEFT_OUT and _controller(event.new) is None]
    for (kind, namespace, name), (before, after) in sorted(_ends(chosen).items()):
        named = kind, namespace, name
        if after is None:
            if before is not None:
                found.append(ObjectChange("-", *named, []))
        elif before is None:
            found.append(ObjectChange("+", *named, []))
        else:
            old = {field: value for field, value in before.raw.items() if field not in ("status", "metadata")}
            new = {field: value for field, value in after.raw.items() if field not in ("status", "metadata")}
            what = _differing(old, new)
            if what:
                found.append(ObjectChange("~", *named, what))
    return found


def _differing(old: Any, new: Any, path: str = "") -> list[str]:
    """Return the fields that differ; short values are included."""
    if old == new:
        return []
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        found: list[str] = []
        for name in sorted({*old, *new}):
            found += _differing(old.get(name), new.get(name), f"{path}.{name}" if path else name)
        return found if len(found) <= _MOST_FIELDS else [f"{path or 'the object'} differs in {len(found)} fields"]
    short = all(value is None or isinstance(value, str | int | float | bool) for value in (old, new))
    return [f"{path} {_word(old)} → {_word(new)}" if short else path]


def _word(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _blocking_budgets(engine: Engine, nodes: set[str]) -> list[BlockingBudget]:
    """Return the budgets that prevent evictions from nodes which this fork made unschedulable."""
    found: list[BlockingBudget] = []
    budgets = [each for each in engine.store.list("PodDisruptionBudget") if each.status.get("disruptionsAllowed") == 0]
    if not budgets:
        return found
    kept: list[Pod] = []
    for name in sorted(nodes):
        node = engine.store.find("Node", "", name)
        if isinstance(node, Node) and node.unschedulable:
            kept += [pod for pod in engine.store.pods_on(name) if not pod.finished and not pod.deletion_timestamp]
    for budget in budgets:
        covered = [pod.name for pod in kept if pod.namespace == budget.namespace and covers(budget, pod)]
        if covered:
            found.append(BlockingBudget(budget.namespace, budget.name, covered))
    return found
