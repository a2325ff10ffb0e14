"""A whole cluster in virtual time: one loop drives store, controllers, queue and scheduler, without real waiting.

Virtual time is constant while work is pending, and then advances to the next deadline: the end of a backoff, a pod that
completes, a Permit timeout, a claim that is provisioned. Two runs with the same seed make the same decisions in the
same order.

The engine contains the state machines that the daemon's actors run. An engine works only while one of its methods is
called.
Units: `now` is seconds since the Unix epoch in virtual time; the queue counts integer nanoseconds of the same clock.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from kschedd.api.pods import Pod
from kschedd.config.changing.changes import with_version
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import default_config
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import KubernetesVersion
from kschedd.controllers.kubelets.state import stop_silent
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.workloads.backoff import LONGEST_RETRY_S
from kschedd.errors import KscheddError
from kschedd.framework.registry import Registry
from kschedd.framework.status import Status, error
from kschedd.framework.writes import Write
from kschedd.garbage_collection import collection_postponed
from kschedd.queue.entry import SECOND, QueuedPod, SubQueue
from kschedd.queue.operations import FlushBackoff, FlushLeftover
from kschedd.queue.scheduling_queue import LEFTOVER_FLUSH, Recorder, SchedulingQueue
from kschedd.queue.snapshot import EntryCopies
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.ties import Choose
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.inputs import PodsPopped, Tick
from kschedd.scheduling.loop import SchedulingLoop
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.popped import MOST_POPPED
from kschedd.scheduling.records import AttemptRecord, Happened
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot, earliest
from kschedd.scheduling.snapshots.fork import DriverSnapshot
from kschedd.simulation.observing import RunObserver, both
from kschedd.store.admission.chain import Admission
from kschedd.store.cluster_api import perform
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import WatchEvent
from kschedd.store.store import Store
from kschedd.values import run_steps

if TYPE_CHECKING:
    from kschedd.controllers.runner import ControllerRunner, ControllerState
    from kschedd.explain.audit import Auditor

EPOCH = 1_735_689_600.0  # 2025-01-01T00:00:00Z: the start of simulated time


# maximum number of attempts at one point in virtual time; more are treated as a livelock
_FEWEST_AT_ONCE = 5_000
_TIMES_EACH = 20


@attrs.define(eq=False)
class LivelockError(KscheddError):
    """The error if pods requeue each other endlessly while virtual time is constant.

    Only out-of-tree plugins cause a livelock.
    """

    elapsed_s: float
    pod: str

    def __str__(self) -> str:
        return (
            f"at {self.elapsed_s:g} s of virtual time pods are tried again and again ({self.pod} among them): "
            "a plugin wakes a pod that it has just rejected"
        )


@attrs.frozen(eq=False)
class LoggedAttempt:
    """One scheduling attempt, for the decision log."""

    time_s: float  # seconds of virtual time since the start of the run
    pod: str
    attempt: int
    node: str  # "" if the attempt failed
    feasible: int
    visited: int
    ties: int
    score: int | None
    message: str
    nominated: str = ""

    @classmethod
    def of(cls, record: AttemptRecord, start_s: float) -> Self:
        return cls(record.at_s - start_s, *record.outcome)

    def line(self) -> dict[str, object]:
        """Return the values, in the order of the fields."""
        return {name: getattr(self, name) for name in _LOGGED}


_LOGGED: Final = tuple(field.name for field in attrs.fields(LoggedAttempt))


def _leaves_none_pending(event: WatchEvent) -> bool:
    """Return False if the event's object is a pod without a node."""
    return not isinstance(event.new, Pod) or event.new.node_name != ""


def _admission(registry: Registry | None) -> Admission | None:
    return None if registry is None or not registry.validating else Admission(others=registry.validating_plugins())


def _runner_of(
    store: Store, controllers: Sequence[Controller] = (), states: "Sequence[ControllerState]" = ()
) -> "ControllerRunner | None":
    if not controllers and not states:
        return None
    from kschedd.controllers.runner import ControllerRunner  # a trace has none

    return ControllerRunner(store, controllers, states=states)


def _auditor_of(queue: SchedulingQueue, driver: SchedulingDriver) -> "Auditor":
    from kschedd.explain.audit import Auditor  # most runs have none

    return Auditor(queue, driver)


class Engine:
    """A whole cluster in virtual time.

    `on_decision` is called with every attempt. `on_happened` is called with every entry of the log except queue moves;
    `recorder` is called with queue moves. `on_result` is called with the result of every attempt before it takes
    effect. `observe` adds an observer with the same methods.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        seed: int = 0,
        choose: Choose | None = None,
        registry: Registry | None = None,
        store: Store | None = None,
        controllers: Sequence[Controller] = (),
        on_decision: Callable[[LoggedAttempt], None] | None = None,
        on_happened: Callable[[Sequence[Happened]], None] | None = None,
        recorder: Recorder | None = None,
        audit: bool = False,  # dry-run all unschedulable pods whenever the cluster is idle (`auditor.missed`)
        on_result: Callable[[QueuedPod, ScheduleResult | FitError], None] | None = None,
        start_s: float = EPOCH,
        resumed: ClusterSnapshot | None = None,  # initial state; replaces the arguments from `config` to `controllers`
    ) -> None:
        self._on_decision = on_decision
        self._on_happened = on_happened
        self._on_result = on_result
        self._on_idle: Callable[[], None] | None = None  # called when all work at one point in virtual time is done
        self._on_events: Callable[[Sequence[WatchEvent]], None] | None = None  # called before the events are delivered
        self.decisions = 0
        self._stopped: Iterator[StopPoint] | None = None  # scheduling cycle that the debugger has stopped
        if resumed is None:
            self.start_s = start_s
            self._set_time(start_s)
            config = config or default_config()
            self.store = store or Store(
                now=lambda: self.now_s, seed=seed, admission=_admission(registry), rules=config.rules
            )
            machine = SchedulingMachine(config, registry=registry, seed=seed, choose=choose)
            self.loop = SchedulingLoop(machine, self, recorder=recorder, on_effects=self._applied)
            self._runner = _runner_of(self.store, controllers)
            self._cursor = self.store.watch(None, 0)
            self._next_leftover = start_s + LEFTOVER_FLUSH / SECOND
        else:
            self.start_s = resumed.start_s
            self._set_time(resumed.now_s)
            assert isinstance(resumed.store, Store), "an embedded store is expected"
            self.store = resumed.store
            self.store.set_clock(lambda: self.now_s)
            self.loop = self._resumed_loop(resumed, recorder)
            if resumed.fresh:  # a fork of a mirror
                stop_silent(self.store)
            self._runner = _runner_of(self.store, resumed.fresh, resumed.controllers)
            self._cursor = self.store.watch(None, resumed.driver.observed)
            self._next_leftover = resumed.next_leftover_s
        self.driver = self.loop.driver
        self.machine = self.driver.machine
        self.config = self.machine.config
        self.queue = self.loop.queue
        self.auditor = _auditor_of(self.queue, self.driver) if audit else None
        if resumed is not None:
            self.loop.apply_effects()  # apply the effects of binding cycles that have continued
            reconciled(self.driver, self.queue, self.now_ns)
            if self.driver.debugger.reentry is not None:
                repeated = self.loop.pop()
                assert repeated is not None, "the stopped attempt's pod is popped"
                self.cycle(repeated)

    def observe(self, observer: RunObserver) -> None:
        """Add an observer; it is called after the existing observers."""
        self._on_result = both(self._on_result, observer.attempted)
        self._on_happened = both(self._on_happened, observer.happened)
        self._on_idle = both(self._on_idle, observer.idle)
        self.queue.recorder = both(self.queue.recorder, observer.moved)

    @collection_postponed()
    def _resumed_loop(self, snapshot: ClusterSnapshot, recorder: Recorder | None) -> SchedulingLoop:
        copies = EntryCopies(snapshot.driver.states, snapshot.queue.states)
        driver = snapshot.driver.restored(
            copies,
            self.current_pod,
            self._is_bound,
            self.now_s,
            reading=snapshot.reading,
            stopped=snapshot.stopped,
        )
        loop = SchedulingLoop(driver.machine, self, recorder=recorder, on_effects=self._applied, driver=driver)
        loop.queue.restore(snapshot.queue, copies)
        return loop

    def _is_bound(self, pod: Pod) -> bool:
        stored = self.current_pod(pod.key)
        return stored is not None and stored.uid == pod.uid and stored.node_name == pod.node_name

    @collection_postponed()
    def snapshot(self) -> ClusterSnapshot:
        """Return a state from which another engine can continue; no other method may be running."""
        driver = DriverSnapshot.of(self.driver)
        controllers = [] if self._runner is None else self._runner.states()
        return ClusterSnapshot(
            driver,
            self.queue.snapshot(),
            controllers,
            run_steps(self.store.forking(earliest(driver, controllers))),
            self.now_s,
            self.start_s,
            self._next_leftover,
        )

    def config_by(
        self, config: Config, version: KubernetesVersion, feature_gates: Mapping[str, bool] | None = None
    ) -> Config:
        """Return the configuration as this Kubernetes version interprets it, with the available plugins.

        Raises ConfigErrors.
        """
        return with_version(config, version, IN_TREE | self.machine.registry.catalogue(), feature_gates)

    def close(self) -> None:
        """Release memory immediately; the engine's parts refer to each other, and garbage collection runs rarely."""
        for part in (self.loop, self.driver, self.driver.bindings, self.machine, self.queue, self.store, self):
            vars(part).clear()

    # -- time -------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds since the Unix epoch."""
        return self.now_s

    @property
    def elapsed(self) -> float:
        """Virtual seconds since the start of the run."""
        return self.now_s - self.start_s

    def _set_time(self, now_s: float) -> None:
        self.now_s, self.now_ns = now_s, round(now_s * SECOND)

    def next_moment(self, *, retries: bool = True, cron_jobs: bool = True) -> float | None:
        """Return the next deadline; None if there is none.

        `retries`: include the periodic retry of unschedulable pods. `cron_jobs`: include the times of CronJobs.
        """
        driver = self.driver
        moments = list(driver.bindings.deadlines()) if driver.bindings.cycles else []
        until = driver.debugger.until
        if until is not None and until.time_s is not None:
            moments.append(until.time_s)
        flush = self.queue.next_flush()
        if flush is not None:
            moments.append(flush / SECOND)
        due = self.queue.next_leftover() if retries else None
        if due is not None:
            # Unschedulable pods are flushed only every 30 s, by kube-scheduler's flushUnschedulablePodsLeftover.
            steps = max(0, -(-(due / SECOND - self._next_leftover) // (LEFTOVER_FLUSH / SECOND)))
            moments.append(self._next_leftover + steps * (LEFTOVER_FLUSH / SECOND))
        if self._runner is not None:
            deadline = self._runner.next_deadline if cron_jobs else self._runner.next_work
            if deadline is not None:
                moments.append(deadline)
        return min(moments, default=None)

    def advance(self, until_s: float, check: Callable[[], None] = lambda: None) -> None:
        """Advance virtual time to `until_s` (seconds since the epoch), processing every deadline on the way.

        Time stops where the debugger stops scheduling, or where `check` raises. `check` is called between two points in
        virtual time, and after each decision.
        """
        self.run_until_idle(check)
        stops = self.driver.debugger.stops
        while True:
            check()
            moment = self.next_moment()
            if moment is None or moment > until_s:
                break
            self._set_time(max(self.now_s, moment))
            self._ring()
            self.run_until_idle(check)
            if self.driver.debugger.stops != stops:
                return
        self._set_time(max(self.now_s, until_s))
        self.run_until_idle(check)

    def move_to(self, at_s: float) -> None:
        """Move virtual time forward to the time of a loaded dump in one step; deadlines before that time are due then.

        `start_s` moves by the same amount, so that the elapsed time stays the same.
        """
        self.start_s += max(0.0, at_s - self.now_s)
        self._set_time(max(self.now_s, at_s))
        late_s = self.now_s - self._next_leftover
        if late_s > 0:
            self._next_leftover += late_s // (LEFTOVER_FLUSH / SECOND) * (LEFTOVER_FLUSH / SECOND)

    def run_to_rest(
        self, limit_s: float = 3600.0, check: Callable[[], None] = lambda: None, *, cron_jobs: bool = False
    ) -> bool:
        """Advance until only periodic retries and times of CronJobs remain.

        Unschedulable pods are not retried, because an attempt in the same state of the cluster would fail again.
        Rejected creations, such as those that exceed a quota, are each retried once after all other work. `cron_jobs`:
        process the times of CronJobs as well. Returns False if the work takes more than `limit_s` virtual seconds.
        `check` is called between two points in virtual time, and after each decision.
        """
        end = self.now_s + limit_s
        self.run_until_idle(check)
        rejected: frozenset[Any] = frozenset()  # workloads with rejected creations
        retried_at = math.inf  # time at which each of them has been retried, if there is no other work until then
        while True:
            check()
            busy = self.next_moment(retries=False, cron_jobs=cron_jobs)
            if self.driver.debugger.stop is not None:
                return False
            before, rejected = rejected, self._rejected_creations() if busy is None else frozenset()
            if rejected != before:
                retried_at = self.now_s + LONGEST_RETRY_S
            if busy is None and (not rejected or self.now_s >= retried_at):
                return True
            moment = self.next_moment()
            if moment is None or moment > end:
                return False
            self._set_time(max(self.now_s, moment))
            self._ring()
            self.run_until_idle(check)

    def _rejected_creations(self) -> frozenset[Any]:
        return frozenset() if self._runner is None else self._runner.rejected_creations()

    def _ring(self) -> None:
        """Process the deadlines that are due: backoffs, the retry of unschedulable pods, Permit timeouts."""
        now = self.now_ns
        self.loop.operations.step(FlushBackoff(), now)
        while self._next_leftover <= self.now_s:
            self._next_leftover += LEFTOVER_FLUSH / SECOND
            self.loop.operations.step(FlushLeftover(), now)
        self.driver.step(Tick(), self.now_s)

    # -- the loop ---------------------------------------------------------------------------------------------

    def run_controllers(self) -> None:
        """Run the controllers until they have no work left, without scheduling."""
        if self._runner is not None:
            self._runner.run_until_idle()

    def run_until_idle(self, check: Callable[[], None] = lambda: None) -> None:
        """Process all pending work without advancing time. Raises LivelockError.

        `check` is called after each decision.
        """
        before = self.decisions
        while True:
            if self._stopped is not None:
                # The cluster does not change within a cycle, because the scheduler observes events after it.
                if self._go_on() or (self._runner is not None and self._runner.run_until_idle()):
                    continue
                if self.driver.bindings.cycles and self.loop.resume_bindings():
                    continue
                return
            self._deliver()
            if self._runner is not None and self._runner.run_until_idle():
                continue
            if self.driver.bindings.cycles and self.loop.resume_bindings():
                continue
            entry = self.loop.pop()
            if entry is not None:
                self._cycles(entry, check)
                many = self.decisions - before - _FEWEST_AT_ONCE
                if many > 0 and many > _TIMES_EACH * self.store.count("Pod"):  # controllers create pods
                    raise LivelockError(self.elapsed, entry.key)
            elif not self._cursor.behind:
                break
        if self.auditor is not None:
            self.auditor.audit()
        if self._on_idle is not None:
            self._on_idle()

    def _deliver(self) -> None:
        """Deliver new store events to the scheduler cache and the queue."""
        events = self._cursor.take()
        if self._on_events is not None:
            self._on_events(events)
        at = 0
        while at < len(events):
            many = 0
            if not self.queue.heeds_events:  # the queue currently ignores events about other objects than pending pods
                many = sum(1 for _ in takewhile(_leaves_none_pending, islice(events, at, None)))
            self.loop.observe_all(events[at : at + max(1, many)])
            at += max(1, many)
        self.driver.observed = self._cursor.version

    def _cycles(self, entry: QueuedPod, check: Callable[[], None]) -> None:
        """Run the scheduling cycles of the popped pod and the next active pods, as the daemon would pop them.

        `check` is called after each cycle. Controllers and watches run once for all these pods, after the last cycle.
        The sequence ends at a pod that gets no node or whose binding must wait.
        """
        for left in reversed(range(MOST_POPPED)):
            placed = self.cycle(entry)
            check()
            following = self.loop.pop() if placed and left and not self.driver.bindings.cycles else None
            if following is None:
                return
            entry = following

    def cycle(self, entry: QueuedPod) -> bool:
        """Run the scheduling cycle of a popped pod, or of its PodGroup, and apply its result.

        Return whether the pod was assumed on a node in one step; False for a pod of a PodGroup.
        """
        if self.driver.popped.in_group(entry):
            if self.driver.debugger.engaged:
                self._stopped = self.loop.stepped_group(entry, self._attempted)
                self._go_on()
            else:
                self.loop.group_cycle(entry, self._attempted)
            return False
        if self.driver.debugger.engaged:
            self._stopped = self.loop.stepped_cycle(entry, partial(self._attempted, entry))
            self._go_on()
            return False
        result = self.loop.decide(entry)
        if result is None:
            return True
        self._attempted(entry, result)
        return isinstance(self.loop.complete(entry, result), AssumedPod)

    def _attempted(self, entry: QueuedPod, result: ScheduleResult | FitError) -> None:
        self.decisions += 1
        if self._on_result is not None:
            self._on_result(entry, result)

    def _go_on(self) -> bool:
        """Continue the stopped cycle up to the next stop or its end.

        Return False if the debugger keeps the cycle stopped.
        """
        debugger = self.driver.debugger
        if debugger.stop is not None or self._stopped is None:
            return False
        debugger.now_s = self.now_s
        if next(self._stopped, None) is None:
            self._stopped = None
        return True

    # -- callbacks of the scheduling loop ---------------------------------------------------------------------

    def write(self, write: Write) -> Status | None:
        try:
            perform(self.store, write)
        except ApiError as refusal:
            return error(str(refusal))
        return None

    def current_pod(self, key: str) -> Pod | None:
        namespace, _, name = key.partition("/")
        found = self.store.find("Pod", namespace, name)
        return found if isinstance(found, Pod) else None

    def _applied(self, effects: Effects) -> None:
        happened = effects.happened
        if not happened:
            return
        if self._on_happened is not None:
            self._on_happened(happened)
        if self._on_decision is not None:
            for entry in happened:
                if isinstance(entry, AttemptRecord) and not entry.of_binding:
                    self._on_decision(LoggedAttempt.of(entry, self.start_s))


def reconciled(driver: SchedulingDriver, queue: SchedulingQueue, now_ns: int) -> None:
    """Put each pending pod in exactly one place, after the parts of a fork's snapshot are joined.

    A snapshot has these parts: driver, queue, controllers, store. Each part may be slightly newer than the part before
    it. The driver and each controller continue from the last store version that they had observed. A pod that was being
    moved from one part to another is put at its destination. If the cluster was idle, the fork makes the same decisions
    as the cluster. The parts of an engine's own snapshot always belong to the same time.
    """
    attempted = {entry.uid for entry in driver.popped.entries}
    for entry in driver.popped.entries:
        queued = queue.entry(entry.key)
        if queued is not None and queued.uid == entry.uid and queued.place is not SubQueue.IN_FLIGHT:
            driver.popped.hand_back(entry.uid)
    popped = [
        entry
        for entry in queue.in_flight_pods()
        if entry.uid not in attempted and entry.uid not in driver.bindings.cycles
    ]
    if popped:
        driver.step(PodsPopped(popped))
    held = {entry.uid for entry in (*queue.entries(), *queue.in_flight_pods(), *driver.popped.entries)}
    for pod in driver.pending.waiting_for_queue(held):
        if driver.machine.responsible(pod.scheduler_name) and not driver.machine.cluster.is_assumed(pod):
            queue.add(pod, now_ns)
