"""The scheduler as one pure machine: it knows the cluster, decides about one pod at a time, and sees decisions through.

    observe(events)            the watch told of these changes
    begin(entry) → generator   one attempt; its result goes to `settle`
    settle(...) → Reserved     the pod is assumed on its node; `binding(...)` is the rest of its way
                → Rejected     what to write and which plugins to blame; the entry goes back to the queue
    binding(...) → generator   permit, pre-bind, bind; says what to wait for and what to write, gets the answers
    undo(...)                  a binding failed: unreserve, forget, and what goes back to the queue

Whoever drives it owns the queue, the clock and the connection to the API server: the scheduling actor in the daemon, a
loop in a simulation. It calls these one after the other, so the cluster never changes within an attempt.

Source: Kubernetes v1.34, scheduler/schedule_one.go (schedulingCycle, bindingCycle, handleSchedulingFailure).
"""

from collections.abc import Generator, Iterable, Sequence
from random import Random
from typing import Any

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.config.model import Config
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import hint_map
from kschedd.framework.handle import Handle
from kschedd.framework.registry import Registry
from kschedd.framework.status import Code, Status, error, fault_text
from kschedd.framework.writes import MergePatch, Plan, Write
from kschedd.queue.entry import NO_PLUGINS, QueuedPod
from kschedd.queue.gating import PreEnqueue
from kschedd.queue.hints import Registrations
from kschedd.scheduling.nominated import Nominated
from kschedd.scheduling.profile import start_profile
from kschedd.scheduling.scheduler import AtRandom, Attempt, Choose, Failed, Placed, Scheduler, StartNode
from kschedd.scheduling.waiting import MOST_WAIT_S, WaitingPod, WaitingPods
from kschedd.store.log import DELETED, WatchEvent
from kschedd.store.times import stamp
from kschedd.values import value

PREEMPTION = "DefaultPreemption"  # who rejects a waiting victim, if no plugin says so itself


@value(eq=False)
class Reserved:
    """The pod is assumed on `placed.node_name`; `waiting` is set if Permit plugins keep it."""

    entry: QueuedPod
    pod: Pod  # as assumed: with its node
    placed: Placed
    waiting: WaitingPod | None


@attrs.frozen(eq=False)
class Rejected:
    """An attempt, or a binding, that failed. `reason` is the condition's: Unschedulable or SchedulerError."""

    entry: QueuedPod
    reason: str
    message: str
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str]
    nominated_node: str | None  # None leaves the nomination as it is, "" clears it
    writes: tuple[Write, ...] = ()  # of PostFilter: nominations cleared, victims evicted
    victims: tuple[Pod, ...] = ()  # those evicted now; one that is terminating already is not evicted again
    evicts: bool = False  # the pod is kept out of the active queue until `evicted` is called


@attrs.frozen(eq=False)
class AwaitPermit:
    """The binding goes on when the waiting pod is decided."""

    waiting: WaitingPod


@attrs.frozen(eq=False)
class Unqueue:
    """From here on a failure is no longer the queue's in-flight matter: `done` is due. Answered with None."""


@value(eq=False)
class Carry:
    """Carry out a plan; answered with None, or the Status of what failed."""

    plan: Plan
    plugin: str
    binds: bool


Need = AwaitPermit | Unqueue | Carry
Binding = Generator[Need, Status | None, Status | None]


class SchedulingMachine:
    """See the module. `seed` decides ties; `choose` replaces that by a rule."""

    def __init__(
        self,
        config: Config,
        *,
        registry: Registry | None = None,
        cluster: Cluster | None = None,
        seed: int = 0,
        choose: Choose | None = None,
        remember: bool = True,
    ) -> None:
        self.registry = registry or Registry()
        self.cluster = cluster or Cluster()
        self.seed = seed
        self.start = StartNode()
        self.waiting = WaitingPods()
        self.handle = Handle(self.cluster, config.feature_gates, seed)
        self.handle.allow = self.waiting.allow
        self.handle.reject = self.waiting.reject
        self.handle.waiting_pods = self._waiting_pods
        self._evicting: set[str] = set()  # uids of pods whose victims are being evicted
        self.handle.evicting = self._evicting.__contains__
        self._choose = choose or AtRandom(Random(seed))
        self._remember = remember
        self.config = config
        self.schedulers: dict[str, Scheduler] = {}
        self.reconfigure(config)

    def reconfigure(self, config: Config) -> None:
        """Run by this configuration from the next attempt on. Plugins are made anew."""
        self.config = config
        self.schedulers = {
            profile.scheduler_name: Scheduler(
                start_profile(config, profile, self.registry, self.handle),
                self.cluster,
                self._choose,
                self.start,
                self._remember,
            )
            for profile in config.profiles
        }

    # -- what the queue needs to know -------------------------------------------------------------------------

    def responsible(self, scheduler_name: str) -> bool:
        return scheduler_name in self.schedulers

    def pre_enqueue(self) -> PreEnqueue:
        return {
            name: {plugin.name: plugin.pre_enqueue for plugin in scheduler.profile.at("pre_enqueue")}
            for name, scheduler in self.schedulers.items()
        }

    def registrations(self) -> Registrations:
        """What every plugin that may reject a pod waits for, by profile."""
        points = ("pre_enqueue", "pre_filter", "filter", "reserve", "permit")
        found: dict[str, Any] = {}
        for name, scheduler in self.schedulers.items():
            profile = scheduler.profile
            rejecting = {plugin.name: plugin for point in points for plugin in profile.at(point)}
            for filter_ in profile.filters:
                rejecting[filter_.name] = filter_.plugin
            found[name] = hint_map(list(rejecting.values()))
        return found

    def sort_key(self) -> Any:
        scheduler = next(iter(self.schedulers.values()))
        return scheduler.profile.at("queue_sort")[0].sort_key

    def _waiting_pods(self) -> Sequence[tuple[Pod, str]]:
        return [(waiting.pod, waiting.node_name) for waiting in self.waiting.pods.values()]

    # -- the cluster ------------------------------------------------------------------------------------------

    def observe(self, events: Iterable[WatchEvent]) -> None:
        for event in events:
            if event.type == DELETED:
                self.forget_object(event.new)
            else:
                self.cluster.put(event.new)

    def forget_object(self, obj: Object) -> None:
        if isinstance(obj, Pod) and not obj.node_name and self.cluster.is_assumed(obj):
            self.cluster.vanish(obj)  # its binding is under way; that will fail, and forget it
            return
        self.cluster.remove(obj)

    # -- attempts ---------------------------------------------------------------------------------------------

    def skips(self, pod: Pod) -> bool:
        """Whether the pod is not to be scheduled at all now: it is being deleted, or on its way to a node already."""
        return bool(pod.deletion_timestamp) or self.cluster.is_assumed(pod)

    def begin(self, pod: Pod, nominated: Nominated) -> Attempt:
        return self.schedulers[pod.scheduler_name].attempt(pod, nominated)

    def settle(self, entry: QueuedPod, result: Placed | Failed, now: float) -> Reserved | Rejected:
        """What an attempt comes to: the pod assumed, reserved and permitted (or kept waiting), or rejected."""
        if isinstance(result, Failed):
            return self._reject(entry, result, now)
        profile = self.schedulers[entry.pod.scheduler_name].profile
        state, node_name = result.state, result.node_name
        assumed = self.cluster.assume(entry.pod, node_name)
        for plugin in profile.at("reserve"):
            status = _contained(plugin, plugin.reserve, state, assumed, node_name)
            if status is not None and status.code != Code.SUCCESS:
                if not status.rejected:
                    status = error(f'running Reserve plugin "{plugin.name}": {status.message}')
                return self._take_back(entry, assumed, state, node_name, status.by(plugin.name))
        waits: dict[str, float] = {}
        for plugin in profile.at("permit"):
            status, wait_s = _permit(plugin, state, assumed, node_name)
            if status is None or status.code == Code.SUCCESS:
                continue
            if status.code == Code.WAIT:
                waits[plugin.name] = min(wait_s, MOST_WAIT_S)
            else:
                if not status.rejected:
                    status = error(f'running Permit plugin "{plugin.name}": {status.message}')
                return self._take_back(entry, assumed, state, node_name, status.by(plugin.name))
        waiting = None
        if waits:
            pending = {plugin: now + wait for plugin, wait in waits.items()}
            waiting = self.waiting.pods[assumed.uid] = WaitingPod(assumed, node_name, pending, waits)
        return Reserved(entry, assumed, result, waiting)

    def _reject(self, entry: QueuedPod, failed: Failed, now: float) -> Rejected:
        diagnosis = failed.diagnosis
        post = failed.post_filter
        if failed.status.code == Code.ERROR:
            return _errored(entry, failed.message)
        evicts = False
        if post is not None:
            for victim in post.rejected:
                self.waiting.reject(victim.uid, post.status.plugin or PREEMPTION, "preempted")
            evicts = bool(post.victims and (post.writes or post.rejected))
            if evicts:
                self._evicting.add(entry.uid)
        return Rejected(
            entry,
            "Unschedulable",
            failed.message,
            frozenset(diagnosis.unschedulable_plugins),
            frozenset(diagnosis.pending_plugins),
            failed.nominated_node,
            () if post is None else stamped(post.writes, stamp(now)),
            () if post is None else tuple(victim for victim in post.victims if not victim.deletion_timestamp),
            evicts,
        )

    def evicted(self, rejected: Rejected) -> None:
        """Its victims are evicted, or will be at once: the pod may come back to the active queue.

        To be called before the queue can hear of the last victim's deletion, or nothing would wake the pod. Where a
        write failed, the caller has the queue activate the pod.
        """
        self._evicting.discard(rejected.entry.uid)

    def _take_back(self, entry: QueuedPod, assumed: Pod, state: CycleState, node_name: str, status: Status) -> Rejected:
        writes = self._unreserve(assumed, state, node_name)
        self.cluster.forget(assumed)
        return attrs.evolve(_rejected_on_one_node(entry, status), writes=writes)

    def _unreserve(self, pod: Pod, state: CycleState, node_name: str) -> tuple[Write, ...]:
        """Let every plugin take its reservation back, the last one first; returns what they want written for it."""
        profile = self.schedulers[pod.scheduler_name].profile
        writes: tuple[Write, ...] = ()
        for plugin in reversed(profile.at("reserve")):
            unreserve = getattr(plugin, "unreserve", None)
            if unreserve is not None:
                said = _contained(plugin, unreserve, state, pod, node_name)
                if isinstance(said, Plan):
                    writes += said.writes
        return writes

    # -- bindings ---------------------------------------------------------------------------------------------

    def binding(self, reserved: Reserved) -> Binding:
        """The rest of the pod's way. Ends with None when it is bound, else with the Status of what failed."""
        pod, state, node_name = reserved.pod, reserved.placed.state, reserved.placed.node_name
        profile = self.schedulers[pod.scheduler_name].profile
        if reserved.waiting is not None:
            yield AwaitPermit(reserved.waiting)
            self.waiting.pods.pop(pod.uid, None)
            if reserved.waiting.rejection is not None:
                return reserved.waiting.rejection
        yield Unqueue()
        for plugin in profile.at("pre_bind"):
            said = _contained(plugin, plugin.pre_bind, state, pod, node_name)
            if isinstance(said, Plan):
                said = yield Carry(said, plugin.name, False)
            if said is not None and said.code not in (Code.SUCCESS, Code.SKIP):
                return error(f'running PreBind plugin "{plugin.name}": {said.message}').by(plugin.name)
        for plugin in profile.at("bind"):
            said = _contained(plugin, plugin.bind, state, pod, node_name)
            if isinstance(said, Plan):
                said = yield Carry(said, plugin.name, True)
            if said is not None and said.code == Code.SKIP:
                continue
            if said is not None and said.code != Code.SUCCESS:
                return error(f'running Bind plugin "{plugin.name}": {said.message}').by(plugin.name)
            break
        else:
            return error("no Bind plugin bound the pod")
        for plugin in profile.at("post_bind"):
            _contained(plugin, plugin.post_bind, state, pod, node_name)
        return None

    def undo(self, reserved: Reserved, status: Status) -> Rejected:
        """A binding failed: take everything back. The caller also tells the queue that the assumed pod is gone."""
        pod = reserved.pod
        writes = self._unreserve(pod, reserved.placed.state, reserved.placed.node_name)
        self.cluster.forget(pod)
        return attrs.evolve(_rejected_on_one_node(reserved.entry, status), writes=writes)


def _contained(plugin: Any, method: Any, state: CycleState, pod: Pod, node_name: str) -> Any:
    """Call a plugin; its fault is an Error status that names it."""
    try:
        return method(state, pod, node_name)
    except Exception as fault:  # a plugin's fault ends here, not in the daemon
        return error(fault_text(fault)).by(plugin.name)


def _permit(plugin: Any, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
    said = _contained(plugin, plugin.permit, state, pod, node_name)
    if said is None or isinstance(said, Status):
        return said, 0.0
    try:
        status, wait_s = said
        return status, float(wait_s)
    except (TypeError, ValueError):
        return error(f"permit returned {said!r}; None, a Status, or (Status, seconds) is expected"), 0.0


def _errored(entry: QueuedPod, message: str) -> Rejected:
    return Rejected(entry, "SchedulerError", message, NO_PLUGINS, NO_PLUGINS, "")


def _rejected_on_one_node(entry: QueuedPod, status: Status) -> Rejected:
    """A plugin refused the chosen node after the filters had passed."""
    if not status.rejected:
        return _errored(entry, status.message)
    reasons = ", ".join(sorted(f"1 {reason}" for reason in status.reasons))
    blamed = frozenset({status.plugin}) if status.plugin else NO_PLUGINS
    pending = status.code == Code.PENDING
    return Rejected(
        entry,
        "Unschedulable",
        f"0/1 nodes are available: {reasons}." if reasons else "0/1 nodes are available:",
        NO_PLUGINS if pending else blamed,
        blamed if pending else NO_PLUGINS,
        "",
    )


def stamped(writes: Iterable[Write], at: str) -> tuple[Write, ...]:
    """The writes with the time (RFC 3339) in conditions that state none: plugins do not know it."""
    return tuple(_stamped(write, at) if isinstance(write, MergePatch) else write for write in writes)


def _stamped(patch: MergePatch, at: str) -> MergePatch:
    status = patch.patch.get("status") or {}
    conditions = status.get("conditions")
    if not conditions:
        return patch
    dated = [{"lastTransitionTime": at, **condition} for condition in conditions]
    return attrs.evolve(patch, patch={**patch.patch, "status": {**status, "conditions": dated}})


def failure_status(pod: Pod, rejected: Rejected, at: str) -> MergePatch | None:
    """The write that tells the pod why it is not scheduled; None if it says so already.

    `at` is the time of the transition, RFC 3339. Source: schedule_one.go, updatePod.
    """
    conditions = list(pod.status.get("conditions") or ())
    wanted = {
        "type": "PodScheduled",
        "status": "False",
        "reason": rejected.reason,
        "message": rejected.message,
    }
    place = next((n for n, c in enumerate(conditions) if c.get("type") == "PodScheduled"), None)
    changed: dict[str, Any] = {}
    if place is None:
        changed["conditions"] = [*conditions, {**wanted, "lastProbeTime": None, "lastTransitionTime": at}]
    elif any(conditions[place].get(field) != value for field, value in wanted.items()):
        since = conditions[place].get("lastTransitionTime") if conditions[place].get("status") == "False" else at
        conditions[place] = {**conditions[place], **wanted, "lastTransitionTime": since or at}
        changed["conditions"] = conditions
    if rejected.nominated_node is not None and rejected.nominated_node != pod.nominated_node_name:
        changed["nominatedNodeName"] = rejected.nominated_node or None
    if not changed:
        return None
    patch = {"metadata": {"uid": pod.uid}, "status": changed}
    return MergePatch("Pod", pod.namespace, pod.name, patch, "status")
