"""A golden trace through the daemon's actors: its operations are applied to the API server with which they work.

The actors are those of `cluster_actors`: store, scheduling, queue, binding, filter workers, log. The trace's
environment replaces the objects of the embedded store, because a trace has its own rules for writes; the clock is the
trace's. Barriers define the order: the scheduler may make one attempt at a time, and the next operation follows when
all actors are idle.
"""

import builtins
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any

import attrs
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.api.objects import Object
from kschedd.config.loading.load import config_from_raw
from kschedd.config.versions.kube_versions import V1_34_1, KubernetesVersion
from kschedd.conformance.compare import differences
from kschedd.conformance.environment import T0_S, TraceEnvironment
from kschedd.conformance.records import GoldenRecord
from kschedd.conformance.traces import RecordedChoice, best_nodes, reconsidered, step_of, tell_outcome, trace_config
from kschedd.daemon import cluster_actors
from kschedd.framework.writes import Bind, Create, Delete, MergePatch, Update, Write
from kschedd.queue.entry import SECOND, QueuedPod
from kschedd.scheduling.attempt.outcome import Attempt, FitError, ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.inputs import BeginAttempt, CompleteAttempt, Input, Observe
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.store.awaited import WebhookAnswers
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import Cursor, EventLog, WatchEvent

Raw = Mapping[str, Any]
Made = dict[str, Any]

_TICK_MS = 1000


@attrs.define(eq=False)
class Refused(ApiError):
    why: str

    def __str__(self) -> str:
        return self.why


@attrs.define(eq=False)
class TraceStore:
    """The environment of a trace with the interface of the store's actor."""

    environment: TraceEnvironment
    log: EventLog = attrs.field(factory=EventLog)

    @property
    def version(self) -> int:
        return self.log.version

    @property
    def shown(self) -> int:
        return self.log.shown

    def calling_webhooks(self, answers: WebhookAnswers) -> AbstractContextManager[None]:
        """Do nothing: no policies or webhooks judge the writes of a trace."""
        return nullcontext()

    def watch(self, kinds: Iterable[str] | None = None, since_version: int | None = None) -> Cursor:
        return self.log.watch(kinds, self.version if since_version is None else since_version)

    def kinds(self) -> list[str]:
        return sorted({kind for kind, _ in self.environment.objects})

    def list(self, kind: str) -> list[Object]:
        return [obj for (its, _), obj in self.environment.objects.items() if its == kind]

    def present(self, kind: str) -> builtins.list[builtins.list[Object]]:
        return [self.list(kind)]

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        return self.environment.objects.get((kind, f"{namespace}/{name}" if namespace else name))

    def apply(self, op: Raw) -> None:
        """Apply an operation of the trace."""
        self.environment.apply(op)
        self._log()

    def create(self, raw: Raw, *, manager: str = "") -> None:
        self._write(Create(raw))

    def update(self, raw: Raw, *, subresource: str = "", manager: str = "") -> None:
        self._write(Update(raw))

    def bind(self, namespace: str, name: str, node_name: str, *, uid: str = "") -> None:
        self._write(Bind(namespace, name, uid, node_name))

    def bind_many(self, bindings: Iterable[Bind]) -> builtins.list[Exception | None]:
        failures: builtins.list[Exception | None] = []
        for wanted in bindings:
            try:
                self._write(wanted)
                failures.append(None)
            except ApiError as refusal:
                failures.append(refusal)
        return failures

    def merge_patch(
        self, kind: str, namespace: str, name: str, patch: Raw, *, subresource: str = "", manager: str = ""
    ) -> None:
        self._write(MergePatch(kind, namespace, name, patch, subresource))

    def delete(self, kind: str, namespace: str, name: str, *, uid: str = "", **options: Any) -> None:
        self._write(Delete(kind, namespace, name, uid))

    def _write(self, write: Write) -> None:
        refusal = self.environment.write(write)
        self._log()
        if refusal is not None:
            raise Refused(refusal.message)

    def _log(self) -> None:
        for event in self.environment.take_events():
            self.log.append(event)


@attrs.define(eq=False)
class TraceClock(Clock):
    """The clock of the trace; deadlines pass when Trio's mock clock is moved with it."""

    environment: TraceEnvironment

    def now(self) -> float:
        return self.environment.now_s

    def now_ns(self) -> int:
        return T0_S * SECOND + self.environment.now_ns


class WatchedDriver(SchedulingDriver):
    """A driver that records the result of the last attempt, and applies the trace's events during it."""

    def __init__(self, machine: SchedulingMachine, store: TraceStore) -> None:
        super().__init__(machine, current_pod=store.environment.current_pod)
        self.store = store
        self.popped.attempts_allowed = 0
        self.allow_one(())
        self.popped.attempts_allowed = 0
        self._observed = 0  # version up to which events were applied

    def allow_one(self, during: Sequence[Raw]) -> None:
        self.popped.attempts_allowed = 1
        self.during = during
        self.ended = trio.Event()
        self.entry: QueuedPod | None = None
        self.result: ScheduleResult | FitError | None = None
        self.best: list[str] | None = None
        self.failed: FailedAttempt | None = None

    def step(self, given: Input, now: float = 0.0) -> Any:
        match given:
            case Observe(events):
                return self._observe_new(events, now)
            case BeginAttempt(entry):
                return self._begin_watched(entry, now)
            case CompleteAttempt(entry, result, took_s):
                return self._complete_watched(entry, result, took_s)
            case _:
                return super().step(given, now)

    def _observe_new(self, events: Sequence[WatchEvent], now: float) -> None:
        new = [event for event in events if event.version > self._observed]
        if new:
            self._observed = max(event.version for event in new)
            super().step(Observe(new), now)

    def _begin_watched(self, entry: QueuedPod, now: float) -> Attempt | None:
        self.entry = entry
        # The caches lack the write, but API requests of PostFilter return the state after it.
        if self.popped.skips(entry):
            self.during = ()
        for op in self.during:
            self.store.apply(op)
        attempt: Attempt | None = super().step(BeginAttempt(entry), now)
        if attempt is None:
            self._observe_during()
            self.ended.set()
        return attempt

    def _complete_watched(
        self, entry: QueuedPod, result: ScheduleResult | FitError, took_s: float
    ) -> AssumedPod | FailedAttempt:
        world = self.store.environment
        if self.during:
            result = reconsidered(result, self, world)
        self.result = result
        if isinstance(result, ScheduleResult):
            self.best = best_nodes(result, self.machine.cluster.table.names)
        self._observe_during()
        outcome: AssumedPod | FailedAttempt = super().step(CompleteAttempt(entry, result, took_s), world.now_s)
        self.ended.set()
        return outcome

    def _observe_during(self) -> None:
        """Apply the events that arrived during the attempt while its pod is in flight.

        The actor would otherwise apply them later.
        """
        if self.during:
            self.store.environment.now_ms += len(self.during) + 1
            self._observe_new(self.store.log.after(self._observed), 0.0)

    def take_effects(self) -> Effects:
        effects = super().take_effects()
        for failed in effects.failures:
            self.failed = failed
        return effects


@attrs.define(eq=False)
class ActorsLockstep:
    autorun: bool
    environment: TraceEnvironment
    store: TraceStore
    driver: WatchedDriver
    choice: RecordedChoice
    cluster: LiveCluster
    mock_clock: MockClock
    _want: list[Raw] = attrs.field(factory=list, init=False)
    _made: list[Made] = attrs.field(factory=list, init=False)

    async def step(self, op: Raw, want: Sequence[Raw]) -> Made:
        """Apply one operation; `want` contains the recorded attempts. Returns the step in the format of the record."""
        world = self.environment
        self._want, self._made = list(want), []
        world.begin_step()
        world.now_ms += 1
        match op["op"]:
            case "run":
                await self._run(op.get("cycles") or 0, op.get("during") or ())
            case "advance":
                await self._advance(round(op["seconds"] * 1000))
            case _:
                await self.cluster.store.do(lambda store: self.store.apply(op))
                await wait_all_tasks_blocked()
        if self.autorun and op["op"] != "run":
            await self._run()
        nominator = self.driver.nominator
        return await self.cluster.queue.query(
            lambda owner: step_of(self._made, world, owner.queue, nominator, T0_S * SECOND)
        )

    async def _advance(self, span: int) -> None:
        world = self.environment
        target = world.now_ms + span
        while (second := (world.now_ms // _TICK_MS + 1) * _TICK_MS) <= target:
            world.now_ms = second
            self.mock_clock.jump(second / 1000 - trio.current_time())
            await wait_all_tasks_blocked()
            if self.autorun:
                await self._run()
        world.now_ms = max(world.now_ms, target)

    async def _run(self, most: int = 0, during: Sequence[Raw] = ()) -> None:
        done = 0
        while (not most or done < most) and await self.cluster.queue.query(lambda owner: owner.queue.ready):
            await self._cycle(during)
            if self.driver.during:
                during = ()
            done += 1

    async def _cycle(self, during: Sequence[Raw]) -> None:
        world, driver = self.environment, self.driver
        made: Made = {"at_ms": world.now_ms}
        recorded = self._want.pop(0) if self._want else {}
        self.choice.node = recorded.get("node") or ""
        before, world.deleted = world.deleted, []
        await self.cluster.scheduler.query(lambda owner: driver.allow_one(during))
        await driver.ended.wait()
        await wait_all_tasks_blocked()
        deleted = sorted(world.deleted)
        world.deleted = before + deleted
        assert driver.entry is not None
        made["pod"], made["attempt"] = driver.entry.key, driver.entry.attempts
        self._made.append(made)
        if driver.result is None:
            made["result"] = "skipped"
        else:
            assert not driver.bindings.cycles, "a cycle is expected to be complete before anything else happens"
            tell_outcome(made, driver.result, driver.best, driver.failed, deleted)
        world.now_ms += 1


@asynccontextmanager
async def actors_lockstep(
    record: GoldenRecord, mock_clock: MockClock, version: KubernetesVersion = V1_34_1
) -> AsyncIterator[ActorsLockstep]:
    raw = record.raw
    choice = RecordedChoice()
    config = trace_config(config_from_raw(record.config, version=version, feature_gates=raw["feature_gates"]))
    environment = TraceEnvironment(raw["graceful_deletion"], config.rules)
    store = TraceStore(environment)
    driver = WatchedDriver(SchedulingMachine(config, choose=choice), store)
    environment.load(record.objects)
    for event in environment.take_events():
        store.log.append(event)
    clock = TraceClock(float(T0_S), trio.current_time(), environment)
    async with cluster_actors(config, clock=clock, store=store, driver=driver) as cluster:
        await wait_all_tasks_blocked()
        yield ActorsLockstep(raw["autorun"], environment, store, driver, choice, cluster, mock_clock)


async def actors_differences(
    record: GoldenRecord, mock_clock: MockClock, version: KubernetesVersion = V1_34_1
) -> list[str]:
    """Return the differences in the first step that differs; empty if the whole trace agrees."""
    async with actors_lockstep(record, mock_clock, version) as run:
        for number, (op, want) in enumerate(zip(record.raw["ops"], record.want["steps"], strict=True)):
            found = list(differences(want, await run.step(op, want["attempts"]), f"steps[{number}]"))
            if found:
                return found
    return []
