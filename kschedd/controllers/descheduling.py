"""The descheduler as a controller: runs a cycle at the start, and then one in each interval.

A cycle decides by the objects at its begin. It takes several turns, so that other tasks can run and write in between;
each turn examines about `_TURN` objects. The evictions of the cycle are performed in its last turn.

A copy of the controller for a fork does not continue a cycle in progress but begins this cycle again.

Owns: the policy, the time of the next cycle, and the cycle in progress. Source: sigs.k8s.io/descheduler v0.36,
pkg/descheduler/descheduler.go, pkg/descheduler/evictions/evictions.go.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kschedd.api.objects import Object
from kschedd.controllers.object_events import EventRecorder
from kschedd.controllers.running.controller import View
from kschedd.descheduler.cluster import DeschedulingCluster, RefusedEviction, Work, objects_to_read
from kschedd.descheduler.cycle import run_cycle
from kschedd.descheduler.policy import DeschedulerPolicy
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError, MultipleBudgets, TooManyRequests
from kschedd.store.objects.log import WatchEvent
from kschedd.store.writes import Evict, Write

_TURN: Final = 1_000  # number of objects examined in a turn, which takes at most about 10 ms
_MESSAGE: Final = "pod eviction from {} node by sigs.k8s.io/descheduler"
_LIMITS: Final[Mapping[str, str]] = {
    "node limit": "node eviction limit exceeded",
    "namespace limit": "namespace eviction limit exceeded",
    "total limit": "total eviction limit exceeded",
}


class Descheduler:
    name: Final = "descheduler"
    kinds: Final[frozenset[str]] = frozenset()

    def __init__(self, policy: DeschedulerPolicy, interval_s: float) -> None:
        self._policy = policy
        self._interval_s = interval_s
        self._cycle_at = 0.0  # time of the cycle in progress, or of the next one
        self._cycle: Work[DeschedulingCluster] | None = None
        self._strategies: dict[str, str] = {}  # UID of each pod to be evicted -> strategy
        self._events = EventRecorder("sigs.k8s.io.descheduler")
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        return self._cycle_at

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        if self._cycle_at > now:
            return []
        if self._cycle is None:
            self._cycle, self._cycle_at = self._run(view, now), now
        cycle, examined = self._cycle, 0
        try:
            while examined < _TURN:
                examined += next(cycle)
        except StopIteration as end:
            found: DeschedulingCluster = end.value
            self._end_cycle()
        except Exception:  # recorded as a fault by the caller
            self._end_cycle()
            raise
        else:
            return []
        self._strategies = {each.pod.uid: each.strategy for each in found.evicted}
        grace_period_s = self._policy.grace_period_s
        writes: list[Write] = [
            Evict(each.pod.namespace, each.pod.name, each.pod.uid, grace_period_s) for each in found.evicted
        ]
        for refused in found.refused:
            writes += self._failed(refused.pod, _reason(refused, found), now)
        return writes

    def _run(self, view: View, now: float) -> Work[DeschedulingCluster]:
        objects = [*objects_to_read(view)]
        cluster = yield from DeschedulingCluster.of(objects, now, self._policy.limits)
        yield from run_cycle(self._policy, cluster)
        return cluster

    def _end_cycle(self) -> None:
        """Set the time of the next cycle: an interval after the begin of this one, also if that time has passed."""
        self._cycle = None
        self._cycle_at += self._interval_s

    def on_performed(self, write: Write, pod: Object, view: View, now: float) -> list[Write]:
        strategy = self._strategies.pop(pod.uid, None)
        if strategy is None:
            return []
        return self._events.event(pod, strategy, _MESSAGE.format(_node_of(pod)), now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        assert isinstance(write, Evict), "the descheduler only evicts"
        self._strategies.pop(write.uid, None)
        pod = view.find("Pod", write.namespace, write.name)
        if pod is None or pod.uid != write.uid:
            return []
        return self._failed(pod, f'error when evicting pod "{pod.name}": {error}', now)

    def _failed(self, pod: Object, why: str, now: float) -> list[Write]:
        if not self._policy.failure_events:
            return []
        message = f"{_MESSAGE.format(_node_of(pod))} failed: {why}"
        return self._events.event(pod, "EvictionFailed", message, now, warning=True)


def _reason(refused: RefusedEviction, cluster: DeschedulingCluster) -> str:
    limits = {"node limit": cluster.limits.node, "namespace limit": cluster.limits.namespace}
    if refused.why in _LIMITS:
        return f"{_LIMITS[refused.why]} ({limits.get(refused.why, cluster.limits.total)})"
    if refused.why == "PDB":
        why: ApiError = TooManyRequests(refused.pod.namespace, "")
    elif refused.why == "MultiplePDBs":
        why = MultipleBudgets(())
    else:
        return f'pod not found when evicting "{refused.pod.name}"'
    return f'error when evicting pod (ignoring) "{refused.pod.name}": {why}'


def _node_of(pod: Object) -> str:
    return str(pod.spec.get("nodeName") or "")
