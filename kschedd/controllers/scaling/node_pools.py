"""Node pools as a controller: launches nodes for pending pods, and removes nodes, as the autoscaler of the pools would.

Karpenter plans a batch of pods after 1 s without another unschedulable pod, at the latest after 10 s. It looks for a
disruption every 10 s, waits 15 s, validates its command, launches the replacement, and then drains and deletes the
nodes. Cluster Autoscaler decides every 10 s: one scale-up, or else the removal of nodes that have been unneeded for
10 minutes. A loop without changes since the last one is skipped.

The cloud provider is simulated: a node registers after half of the boot time, and is ready, without startup taints,
after all of it. A share of the launches fails. A decision takes several turns, so that other tasks can run and write in
between. A copy of the controller for a fork begins an unfinished decision again.

Owns: the pools, starting and leaving nodes, the times of the next decisions, the decision in progress, and the totals.
Source: the files that `kschedd.pools` names.
"""

import random
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.running.controller import Controller, View
from kschedd.controllers.scaling.launches import (
    INTERRUPTED,
    RETRY_S,
    LeavingNode,
    StartingNode,
    is_leaving,
    tainted,
    untainted,
)
from kschedd.controllers.scaling.totals import ScalingTotals
from kschedd.object_faults import FaultLedger
from kschedd.pools.cluster import READ_KINDS, NodeLaunch, PooledCluster, ScaleUp, is_unschedulable
from kschedd.pools.decisions import autoscaler, karpenter
from kschedd.pools.decisions.loops import RemovalLoop
from kschedd.pools.karpenter.provisioning import UNREGISTERED
from kschedd.pools.reading import Pools, pool_name
from kschedd.pools.settings import KARPENTER, Interruption
from kschedd.pools.trials import PlacementTrials
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import ADDED, DELETED, WatchEvent
from kschedd.store.writes import Create, Evict, Write

TrialsOf = Callable[[Iterable[Object]], Generator[None, None, PlacementTrials]]
"""A function that builds a copy of a cluster in steps (`kschedd.scheduling.trial_cluster`)."""
Decision = Generator[None, None, list[Write]]

STEPS: Final = 2  # steps of a decision in a turn; a step takes up to 10 ms in a cluster of 1,000 nodes
_ABORT_S: Final = 120.0  # Cluster Autoscaler gives up a drain after this time
_BACKOFF_S: Final = (300.0, 1800.0)  # first and longest backoff of a group after a failed launch
_RECHECK_S: Final = 300.0


class NodePools:
    name: Final = "node-pools"
    kinds: Final = frozenset(("Node", "Pod", "PodDisruptionBudget"))

    @staticmethod
    def among(controllers: Iterable[Controller]) -> "NodePools | None":
        """Return the controller of node pools, or None if there are no node pools."""
        return next((each for each in controllers if isinstance(each, NodePools)), None)

    def __init__(self, pools: Pools, trials: TrialsOf, seed: int = 0) -> None:
        self.pools = pools
        self._trials = trials
        self._seed = seed
        self._draws = 0  # random choices so far
        self._pending: set[str] = set()  # keys of unschedulable pods
        self._starting: dict[str, StartingNode] = {}
        self._leaving: dict[str, LeavingNode] = {}
        self._removals = RemovalLoop(pools)
        self._batch_from: float | None = None
        self._provision_at: float | None = None
        self._removal_at: float | None = None
        self._recheck_at: float | None = None  # next look for a removal, although nothing has changed
        self._backoff: dict[str, tuple[float, float]] = {}  # group -> end and length of its backoff
        self._began_s: float | None = None
        self._interrupted = 0  # number of interruptions so far
        self._decision: Decision | None = None
        self.totals = ScalingTotals()
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    # -- deadlines ----------------------------------------------------------------------------------------------

    @property
    def next_deadline(self) -> float | None:
        found = [at for at in (self.next_work, self._recheck_at, self._interruption_at) if at is not None]
        return min(found, default=None)

    @property
    def _interruption_at(self) -> float | None:
        """The time of the next interruption."""
        left = self.pools.settings.interruptions[self._interrupted :]
        return left[0].at_s + self._began_s if left and self._began_s is not None else None

    @property
    def next_work(self) -> float | None:
        """The next deadline of work that ends: without it, the cluster is idle."""
        if self._decision is not None:
            return 0.0
        times = [at for at in (self._provision_at, self._removal_at) if at is not None]
        times += [each.due for each in self._starting.values()]
        times += [each.next_try for each in self._leaving.values() if each.next_try is not None]
        times += [each.forced_at for each in self._leaving.values() if each.forced_at is not None]
        return min(times, default=None)

    @property
    def starting(self) -> int:
        """The number of nodes that are being launched."""
        return len(self._starting)

    def starting_for(self, key: str) -> StartingNode | None:
        """Return the node that is being launched for a pending pod (namespace/name)."""
        if key not in self._pending:
            return None
        found = self._starting.values()
        return next((each for each in found if any(pod.key == key for pod in each.launch.pods)), None)

    @property
    def leaving(self) -> int:
        """The number of nodes that are being drained."""
        return len(self._leaving)

    # -- events -------------------------------------------------------------------------------------------------

    def concerns(self, event: WatchEvent) -> bool:
        """Return False for events that change neither the nodes, nor which pods run where or are unschedulable."""
        new, old = event.new, event.old
        if event.type in (ADDED, DELETED) or old is None:
            return not isinstance(new, Pod) or bool(new.node_name) or is_unschedulable(new)
        if isinstance(new, Pod) and isinstance(old, Pod):
            if new.node_name != old.node_name or new.finished != old.finished:
                return True
            return is_unschedulable(new) != is_unschedulable(old)
        if isinstance(new, Node) and isinstance(old, Node):
            return (new.taints, new.labels, new.unschedulable) != (old.taints, old.labels, old.unschedulable)
        return new.status.get("disruptionsAllowed") != old.status.get("disruptionsAllowed")

    def _note(self, event: WatchEvent, now: float) -> None:
        new = event.new
        if isinstance(new, Node):
            if event.type == DELETED:
                self._removals.forget(new.name)
                left = self._leaving.pop(new.name, None)
                if left is not None:
                    self.totals.remove(new.name, left.reason)
                if self._pending:
                    self._wake_provisioning(now)
            elif event.type == ADDED and self._pending and new.name not in self._starting:
                self._wake_provisioning(now)
            self._wake_removal(now)
            return
        if not isinstance(new, Pod):
            self._wake_removal(now)
            return
        gone = event.type == DELETED or new.finished
        if not gone and is_unschedulable(new):
            if new.key not in self._pending:
                self._pending.add(new.key)
                self._wake_provisioning(now)
            return
        self._pending.discard(new.key)
        if new.node_name:
            self._removals.changed(new.node_name, now)
            leaving = self._leaving.get(new.node_name)
            if leaving is not None and gone:
                self._leaving[new.node_name] = attrs.evolve(leaving, next_try=now)
            self._wake_removal(now)
            if gone and self._pending:
                self._wake_provisioning(now)

    def _wake_provisioning(self, now: float) -> None:
        settings = self.pools.settings
        if self.pools.autoscaler != KARPENTER:
            self._provision_at = self._provision_at or next_multiple(now, settings.scan_s)
            return
        self._batch_from = now if self._batch_from is None else self._batch_from
        self._provision_at = min(self._batch_from + settings.batch_max_s, now + settings.batch_idle_s)

    def _wake_removal(self, now: float) -> None:
        settings = self.pools.settings
        if settings.scale_down and self._removal_at is None:
            period = settings.disruption_poll_s if self.pools.autoscaler == KARPENTER else settings.scan_s
            self._removal_at = next_multiple(now, period)

    # -- turns --------------------------------------------------------------------------------------------------

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        writes: list[Write] = []
        for event in events:
            self._note(event, now)
            if event.type == ADDED and isinstance(event.new, Node):
                writes += self._resumed(event.new, now)
        if self._recheck_at is not None and self._recheck_at <= now:
            self._recheck_at = None
            self._wake_removal(now)
        if self._began_s is None:
            self._began_s = now
        writes += self._boot(view, now)
        while self._interruption_at is not None and self._interruption_at <= now:
            writes += self._interrupt(self.pools.settings.interruptions[self._interrupted], view, now)
            self._interrupted += 1
        writes += self._drain(view, now)
        if self._decision is None:
            self._decision = self._begin(view, now)
        if self._decision is not None:
            writes += self._decide()
        return writes

    def _begin(self, view: View, now: float) -> Decision | None:
        if self._provision_at is not None and self._provision_at <= now:
            self._provision_at = self._batch_from = None
            return self._provision(view, now)
        if self._removal_at is not None and self._removal_at <= now:
            self._removal_at = None
            return self._remove(view, now)
        return None

    def _decide(self) -> list[Write]:
        assert self._decision is not None, "a decision has begun"
        try:
            for _ in range(STEPS):
                next(self._decision)
        except StopIteration as end:
            self._decision = None
            writes: list[Write] = end.value
            return writes
        except Exception:  # recorded as a fault by the caller
            self._decision = None
            raise
        return []

    def _cluster(self, view: View, now: float) -> Generator[None, None, tuple[PooledCluster, list[Object]]]:
        """Return the cluster with the nodes that are being launched, with pauses."""
        found: list[Object] = []
        for kind in sorted(READ_KINDS):
            for space in view.present(kind):
                found += space
        there = {node.name for node in found if isinstance(node, Node)}
        found += [
            Node.from_raw(each.first)
            for each in self._starting.values()
            if not each.fails and each.launch.name not in there
        ]
        self.totals.most_nodes = max(self.totals.most_nodes, len(there))
        cluster = yield from PooledCluster.in_steps(found, now)
        return cluster, found

    def _rng(self) -> random.Random:
        self._draws += 1
        return random.Random(f"{self._seed}/{self._draws}")

    # -- launches -----------------------------------------------------------------------------------------------

    def _provision(self, view: View, now: float) -> Decision:
        cluster, objects = yield from self._cluster(view, now)
        if not cluster.pending:
            return []
        if self.pools.autoscaler == KARPENTER:
            plan = yield from karpenter.launching(cluster, self.pools, self._rng().choice)
        else:
            plan = yield from self._scale_up(cluster, objects, now)
        for launch in plan.launches:
            self._start(launch, now)
        return []

    def _scale_up(
        self, cluster: PooledCluster, objects: Sequence[Object], now: float
    ) -> Generator[None, None, ScaleUp]:
        trials = yield from self._trials(objects)
        ready = [
            group
            for group in autoscaler.sized_groups(cluster, self.pools)
            if self._backoff.get(group.name, (0.0, 0.0))[0] <= now
        ]
        plan = yield from autoscaler.launching(cluster, self.pools, trials, self._rng(), loops=1, groups=ready)
        if plan.launches:
            self._removals.added(now)
            self._provision_at = next_multiple(now, self.pools.settings.scan_s)
        elif len(ready) < len(self.pools.groups):
            self._provision_at = next_multiple(min(end for end, _ in self._backoff.values() if end > now), 1.0)
        return plan

    def _start(self, launch: NodeLaunch, now: float, replaces: Sequence[str] = (), reason: str = "") -> None:
        settings = self.pools.settings
        first = launch.raw
        if self.pools.autoscaler == KARPENTER:
            pool = next((pool for pool in self.pools.node_pools if pool.name == launch.pool), None)
            first = karpenter.starting(launch, () if pool is None else pool.startup_taints)
        fails = settings.launch_failures > 0 and self._rng().random() < settings.launch_failures
        ready_at = now + settings.boot_s
        register_at = now + settings.boot_s / 2 if first is not launch.raw else ready_at
        self._starting[launch.name] = StartingNode(
            launch, first, register_at, ready_at, fails, replaces=replaces, reason=reason
        )

    def _resumed(self, node: Node, now: float) -> list[Write]:
        """Continue after a restart: starting nodes become ready, and nodes that were drained are decided again."""
        if node.name in self._starting or pool_name(node) not in self.pools.names:
            return []
        if UNREGISTERED in node.taints:
            startup = next((each.startup_taints for each in self.pools.node_pools if each.name == pool_name(node)), ())
            ready_at = now + self.pools.settings.boot_s / 2
            launch = karpenter.resumed_launch(node, startup)
            self._starting[node.name] = StartingNode(launch, node.raw, now, ready_at, registered=True)
            return []
        return [untainted(node)] if self._began_s is None and is_leaving(node) else []

    def _boot(self, view: View, now: float) -> list[Write]:
        """Return the writes of the simulated cloud provider."""
        writes: list[Write] = []
        for name, each in list(self._starting.items()):
            if each.due > now:
                continue
            if each.fails:
                del self._starting[name]
                writes += self._failed(each, view, now)
            elif not each.registered:
                writes.append(Create(each.first))
                self._starting[name] = attrs.evolve(each, registered=True)
            else:
                del self._starting[name]
                writes += self._ready(each, view, now)
        return writes

    def _failed(self, each: StartingNode, view: View, now: float) -> list[Write]:
        self.totals.failed += 1
        _, before = self._backoff.get(each.launch.pool, (0.0, 0.0))
        wait_s = min(2 * before, _BACKOFF_S[1]) or _BACKOFF_S[0]
        self._backoff[each.launch.pool] = now + wait_s, wait_s
        if self._pending:
            self._wake_provisioning(now)
        kept = (view.find("Node", "", name) for name in each.replaces)
        self._wake_removal(now)
        return [untainted(node) for node in kept if isinstance(node, Node)]

    def _ready(self, each: StartingNode, view: View, now: float) -> list[Write]:
        node = view.find("Node", "", each.launch.name)
        if not isinstance(node, Node):
            return []
        self.totals.launched += 1
        self._backoff.pop(each.launch.pool, None)
        for name in each.replaces:
            self._leave(name, each.reason, view, now)
        return [*each.ready(node)]

    # -- removals -----------------------------------------------------------------------------------------------

    def _remove(self, view: View, now: float) -> Decision:
        cluster, objects = yield from self._cluster(view, now)
        leaving = frozenset(self._leaving) | {name for each in self._starting.values() for name in each.replaces}
        trials = None if self.pools.autoscaler == KARPENTER else (yield from self._trials(objects))
        found = yield from self._removals.step(cluster, trials, leaving)
        if found.next_s is not None:
            self._removal_at = found.next_s
        self._recheck_at = now + _RECHECK_S if found.blocked else self._recheck_at
        removal = found.removal
        if removal is None:
            return []
        writes: list[Write] = []
        for name in removal.nodes:
            node = view.find("Node", "", name)
            if isinstance(node, Node):
                writes.append(tainted(node, self.pools.autoscaler, now))
                if removal.replacement is None:
                    self._leave(name, removal.reason, view, now)
        if removal.replacement is not None:
            self._start(removal.replacement, now, removal.nodes, removal.reason)
        return writes

    def _interrupt(self, each: Interruption, view: View, now: float) -> list[Write]:
        """Drain nodes that the cloud provider takes back after its warning."""
        nodes = [node for space in view.present("Node") for node in space if isinstance(node, Node)]
        matching = sorted(
            (node for node in nodes if node.name not in self._leaving and each.matches(node.labels, pool_name(node))),
            key=lambda node: node.name,
        )
        writes = []
        for node in self._rng().sample(matching, each.number_of(len(matching))):
            self._leaving[node.name] = LeavingNode(INTERRUPTED, now, now, now + each.warning_s)
            writes.append(tainted(node, self.pools.autoscaler, now))
        return writes

    def _leave(self, name: str, reason: str, view: View, now: float) -> None:
        node = view.find("Node", "", name)
        pool = pool_name(node) if isinstance(node, Node) else ""
        grace = next((each.termination_grace_s for each in self.pools.node_pools if each.name == pool), None)
        self._leaving[name] = LeavingNode(reason, now, now, None if grace is None else now + grace)

    def _drain(self, view: View, now: float) -> list[Write]:
        writes: list[Write] = []
        for name, each in list(self._leaving.items()):
            due = [at for at in (each.next_try, each.forced_at) if at is not None and at <= now]
            if not due:
                continue
            node = view.find("Node", "", name)
            if not isinstance(node, Node):
                del self._leaving[name]
                continue
            drains = self.pools.autoscaler != KARPENTER and each.reason != INTERRUPTED
            if drains and each.refused and now - each.since_s >= _ABORT_S:
                del self._leaving[name]
                self._removals.failed(name, now)
                writes.append(untainted(node))
                continue
            self._leaving[name] = attrs.evolve(each, next_try=None, refused=False)
            writes += each.writes(name, view.pods_on(name), now)
            if each.forced_at is not None and each.forced_at <= now:
                self._leaving[name] = attrs.evolve(self._leaving[name], forced_at=None)
        return writes

    def on_performed(self, write: Write, obj: Object, view: View, now: float) -> list[Write]:
        self.totals.evicted += isinstance(write, Evict)
        return []

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Retry an eviction later; a node that cannot be created counts as a failed launch."""
        if isinstance(write, Evict):
            pod = view.find("Pod", write.namespace, write.name)
            name = pod.node_name if isinstance(pod, Pod) else ""
            if name in self._leaving:
                self.totals.refused += 1
                self._leaving[name] = attrs.evolve(self._leaving[name], next_try=now + RETRY_S, refused=True)
        elif isinstance(write, Create):
            meta: Any = write.raw["metadata"]
            gone = self._starting.pop(meta["name"], None)
            return [] if gone is None else self._failed(gone, view, now)
        return []


def next_multiple(now: float, period: float) -> float:
    """Return the next time of a loop with this period, after `now`."""
    return (now // period + 1) * period
