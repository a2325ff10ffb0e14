"""Trials of remedies: commands are run on a fork of the cluster, and its virtual time advances.

A trial succeeds if all wanted replicas have a node within 300 s and the same pods still have one 120 s later. No other
pod may lose its node or remain pending because of the remedy. The `baseline`, a fork without changes, shows which pods
would lose their nodes if no command was run.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import KIND as POD_GROUP
from kschedd.causes.findings import FoundCause
from kschedd.causes.node import pods_to_move
from kschedd.causes.steps import RemedyStep
from kschedd.causes.workload import ExaminedWorkload, workload_of
from kschedd.clusters.virtual import MethodsOf, VirtualCluster, VirtualDaemon
from kschedd.service.errors import RpcError
from kschedd.simulation.engine import Engine

PATIENCE_S: Final = 300.0  # of virtual time
_PODS: Final = frozenset(("Pod",))
_LONGEST: Final = 200  # of a refusal
_STAYS_S: Final = 120.0  # further virtual seconds during which no pod may lose its node


@attrs.frozen(eq=False)
class TrialOutcome:
    """`wanted` and `scheduled` are numbers of pods of the workload.

    `refused` is the message of a rejected command, or "".
    """

    wanted: int
    scheduled: int
    stays: bool  # True if the same pods had nodes at the start and at the end of the second period
    pending: int = 0
    displaced: Sequence[str] = ()
    refused: str = ""
    changed: Mapping[str, str] = attrs.field(factory=dict)  # by changed pod: its node at the end, or ""
    waiting: Collection[str] = ()  # changed pods of other workloads that have no node at the end

    @property
    def solves(self) -> bool:
        return (
            not self.refused
            and self.stays
            and not self.pending
            and 0 < self.wanted <= self.scheduled
            and not self.displaced
        )

    @property
    def why_not(self) -> str:
        if self.refused:
            first = self.refused.splitlines()[0]
            return f"refused: {first[:_LONGEST]}{'...' if len(first) > _LONGEST else ''}"
        if self.scheduled < self.wanted or self.pending:
            return f"{self.scheduled} of {self.wanted} pods were scheduled, {self.pending} pending"
        if not self.stays:
            return "the pods did not stay: they were replaced again"
        return f"{len(self.displaced)} other pods lost their node or got none"


def _node_of(pod: Object | None) -> str:
    return pod.node_name if isinstance(pod, Pod) and not pod.finished else ""


class Trials:
    """Runs trials for one cluster. Each trial has its own fork, which is deleted afterwards.

    `moving` contains the uids of pods that may move, and `leaving` is the node that they should leave."""

    def __init__(
        self,
        engine: Engine,
        workload: ExaminedWorkload,
        methods: MethodsOf,
        check: Callable[[], None],
        moving: Collection[str] = (),
        leaving: str = "",
    ) -> None:
        self._engine = engine
        self._workload = workload
        self._methods = methods
        self._check = check
        self._moving = moving
        self._leaving = leaving

    @cached_property
    def baseline(self) -> TrialOutcome:
        """Return the result of a trial without any command."""
        return self._run(())

    def run(self, steps: Sequence[RemedyStep]) -> TrialOutcome:
        outcome = self._run(steps)
        if not outcome.solves:
            return outcome
        # a comparison with the baseline takes time, so it is made only if the remedy works
        return attrs.evolve(outcome, displaced=sorted({*self._lost(outcome.changed), *self._left_waiting(outcome)}))

    def _left_waiting(self, outcome: TrialOutcome) -> Iterator[str]:
        """Yield pods of other workloads that the trial created and left pending, such as a DaemonSet's pods."""
        for key in set(outcome.waiting) - set(self.baseline.waiting):
            if self._engine.store.find("Pod", *key.split("/", 1)) is None:
                yield key

    def _lost(self, changed: Mapping[str, str]) -> Iterator[str]:
        """Yield the pods of other workloads that lost their node because of the remedy."""
        mine = {pod.uid for pod in self._workload.pods} | set(self._moving)
        kept = self.baseline.changed
        for key in changed.keys() | kept.keys():
            pod = self._engine.store.find("Pod", *key.split("/", 1))
            if pod is None or pod.uid in mine:
                continue
            node = kept.get(key, _node_of(pod))
            if node and changed.get(key, _node_of(pod)) != node:
                yield key

    def has_lower(self, priority: int) -> bool:
        """Return whether a pod with a node has a lower priority."""
        return any(
            isinstance(pod, Pod) and _node_of(pod) and pod.priority < priority for pod in self._engine.store.list("Pod")
        )

    def lower(self, keys: Iterable[str], priority: int) -> list[str]:
        """Return the keys of existing pods that have a lower priority."""
        found = ((key, self._engine.store.find("Pod", *key.split("/", 1))) for key in keys)
        return [key for key, pod in found if isinstance(pod, Pod) and pod.priority < priority]

    def created(self, keys: Iterable[str]) -> list[str]:
        """Return the keys of pods that exist only in the trial, such as the successors of preempted pods."""
        return [key for key in keys if self._engine.store.find("Pod", *key.split("/", 1)) is None]

    def left_after(
        self, steps: Sequence[RemedyStep], examine: Callable[[Engine, Object], list[FoundCause]]
    ) -> list[FoundCause]:
        """Return the causes that are found after the steps. `examine` finds them."""
        found: list[FoundCause] = []

        def look(engine: Engine) -> None:
            obj = self._workload.obj
            now = engine.store.find(obj.kind, obj.namespace, obj.name)
            if now is not None:
                found.extend(examine(engine, now))

        self._run(steps, look)
        return found

    def _run(self, steps: Sequence[RemedyStep], at_end: Callable[[Engine], None] = lambda engine: None) -> TrialOutcome:
        cluster = VirtualCluster(resumed=self._engine.snapshot())
        try:
            daemon = VirtualDaemon(cluster, self._methods)
            written = cluster.engine.store.watch(_PODS)
            for step in steps:
                try:
                    step.run(daemon.perform)
                    if step.then_s:
                        cluster.engine.advance(cluster.engine.now + step.then_s, self._check)
                except RpcError as refusal:
                    return TrialOutcome(self._workload.wanted, 0, False, refused=str(refusal))
            engine = cluster.engine
            began = engine.now
            engine.run_to_rest(PATIENCE_S, self._check)
            before = {pod.uid for pod in self._now(cluster).scheduled}
            engine.advance(max(engine.now, began + PATIENCE_S) + _STAYS_S, self._check)
            now = self._now(cluster)
            keys = {event.new.key for event in written.take()}
            changed = {key: _node_of(engine.store.find("Pod", *key.split("/", 1))) for key in keys}
            after = {pod.uid for pod in now.scheduled}
            at_end(engine)
            # for a PodGroup, its minimum number of pods is enough
            left = 0 if now.kind == POD_GROUP else len(now.pending) + now.outdated
            left += len(pods_to_move(engine, self._leaving)) if self._leaving else 0
            waiting = self._waiting(engine, [key for key, node in changed.items() if not node], now)
            stays = before <= after if now.kind == "CronJob" else after <= before  # new Jobs add pods
            return TrialOutcome(now.wanted, len(after), stays, left, changed=changed, waiting=waiting)
        finally:
            cluster.engine.close()

    def _waiting(self, engine: Engine, keys: Iterable[str], own: ExaminedWorkload) -> list[str]:
        """Return the pending pods among these that do not belong to the workload."""
        found = (engine.store.find("Pod", *key.split("/", 1)) for key in keys)
        mine = {pod.uid for pod in own.pods}
        return [
            pod.key
            for pod in found
            if isinstance(pod, Pod) and not (pod.finished or pod.deleting or pod.node_name or pod.uid in mine)
        ]

    def _now(self, cluster: VirtualCluster) -> ExaminedWorkload:
        obj = self._workload.obj
        found = cluster.engine.store.find(obj.kind, obj.namespace, obj.name)
        if found is None:
            return ExaminedWorkload(obj, ())
        return workload_of(cluster.engine.store, found)
