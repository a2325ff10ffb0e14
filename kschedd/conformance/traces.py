"""One golden trace in lockstep: after each recorded operation, the scheduler runs until idle in virtual time.

The scheduler's actions are returned in the record's format, step by step. If kube-scheduler selected one of several
nodes with the highest score, the same node is selected if it is among the best nodes here; the sets of best nodes are
also compared. The run ends at the first step that differs, because this difference may cause all later ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import topology_key
from kschedd.cache.table import Ints, Rows
from kschedd.config.loading.load import config_from_raw
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import V1_34_1, KubernetesVersion
from kschedd.conformance.compare import differences
from kschedd.conformance.environment import MILLISECOND, TraceEnvironment
from kschedd.conformance.records import GoldenRecord
from kschedd.framework.status import Code
from kschedd.queue.entry import NO_PLUGINS, QueuedPod, SubQueue
from kschedd.queue.groups import order_in_group
from kschedd.queue.operations import FlushBackoff, FlushLeftover
from kschedd.queue.scheduling_queue import Recorder, SchedulingQueue
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.loop import SchedulingLoop
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.nominations.nominator import Nominator

Raw = Mapping[str, Any]
Actual = dict[str, Any]

_TICK_MS = 1000
_LEFTOVER_MS = 30_000
_WAITING = (SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF)
_SHOWN = (SubQueue.ACTIVE, SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF, SubQueue.UNSCHEDULABLE, SubQueue.GATED)
_SHOWN_IF_ANY = (SubQueue.PENDING_GROUP, SubQueue.INCOMPLETE_GROUP)


def trace_differences(
    record: GoldenRecord, version: KubernetesVersion = V1_34_1, *, remember: bool = True
) -> Iterator[str]:
    """Yield the differences of the first step that differs; none if the whole trace is equal."""
    run = Lockstep(record, version, remember=remember)
    for number, (op, want) in enumerate(zip(record.raw["ops"], record.want["steps"], strict=True)):
        hinted = record.want["hints"][number] if "hints" in record.want else ()
        found = list(differences(want, run.step(op, want["attempts"], hinted), f"steps[{number}]"))
        for name, made in (("writes", run.environment.writes), ("hints", run.hints)):
            if name in record.want:
                found += differences(record.want[name][number], made, f"{name}[{number}]")
        if found:
            yield from found
            return


@attrs.define(eq=False)
class RecordedChoice:
    """Selects the node that upstream recorded if it is among the best nodes, else the first best node by name."""

    node: str = ""
    hint: str = ""  # node that upstream tried first, or ""

    def __call__(self, rows: Rows, names: Sequence[str], places: Ints | None = None) -> int:
        for recorded in filter(None, (self.hint, self.node)):
            for row in rows.tolist():
                if names[row] == recorded:
                    return int(row)
        return by_name(rows, names)


class Lockstep:
    """The run of one trace. `loop` and `environment` may be read between steps."""

    def __init__(
        self,
        record: GoldenRecord,
        version: KubernetesVersion = V1_34_1,
        *,
        remember: bool = True,
        recorder: Recorder | None = None,
    ) -> None:
        raw = record.raw
        self.autorun: bool = raw["autorun"]
        self._choose = RecordedChoice()
        config = trace_config(config_from_raw(record.config, version=version, feature_gates=raw["feature_gates"]))
        self.environment = TraceEnvironment(raw["graceful_deletion"], config.rules)
        machine = SchedulingMachine(config, choose=self._choose, remember=remember)
        self.loop = SchedulingLoop(machine, self.environment, recorder=recorder, on_effects=self._applied)
        self.loop.one_by_one = True
        self._want: list[Raw] = []  # attempts recorded for this step that have not been made yet
        self._made: list[Actual] = []
        self._failures: dict[str, FailedAttempt] = {}  # failures in the current cycle, by pod uid
        self.hints: list[list[str]] = []  # [pod, node] pairs of the hints used in this step
        self._hinted: list[Sequence[str]] = []  # hints recorded for this step that have not been used yet
        self.environment.load(record.objects)
        self._deliver()

    def step(self, op: Raw, want: Sequence[Raw], hinted: Sequence[Sequence[str]] = ()) -> Actual:
        """Apply one operation and return a step in the record's format.

        `want` contains the attempts recorded for the step; `hinted` contains pods, each with the node that
        upstream tried first for it.
        """
        world = self.environment
        self._hinted = list(hinted)
        self._want, self._made, self.hints = list(want), [], []
        world.begin_step()
        world.now_ms += 1
        match op["op"]:
            case "run":
                self.loop.held = [] if op.get("hold") else None
                self._run(op.get("cycles") or 0, op.get("during") or ())
                self._release()
            case "advance":
                self._advance(round(op["seconds"] * 1000))
            case _:
                world.apply(op)
                self._deliver()
        if self.autorun and op["op"] != "run":
            self._run()
        return self._step()

    # -- time -------------------------------------------------------------------------------------------------

    def _advance(self, span: int) -> None:
        world, queue = self.environment, self.loop.operations
        target = world.now_ms + span
        while (second := (world.now_ms // _TICK_MS + 1) * _TICK_MS) <= target:
            world.now_ms = second
            queue.step(FlushBackoff(), world.now_ns)
            self._run_if_auto()
            if second % _LEFTOVER_MS == 0:
                queue.step(FlushLeftover(), world.now_ns)
                self._run_if_auto()
        world.now_ms = max(world.now_ms, target)

    def _run_if_auto(self) -> None:
        if self.autorun:
            self._run()

    # -- cycles -----------------------------------------------------------------------------------------------

    def _run(self, most: int = 0, during: Sequence[Raw] = ()) -> None:
        done = 0
        while not most or done < most:
            entry = self.loop.pop()
            if entry is None:
                return
            if self.loop.driver.popped.in_group(entry):
                self._group_cycle(entry)
            elif self.loop.driver.popped.skips(entry):
                self._cycle(entry, ())
            else:
                self._cycle(entry, during)
                during = ()
            done += 1

    def _cycle(self, entry: QueuedPod, during: Sequence[Raw]) -> None:
        world = self.environment
        made: Actual = {"pod": entry.key, "at_ms": world.now_ms, "attempt": entry.attempts}
        self._made.append(made)
        recorded = self._want.pop(0) if self._want else {}
        self._choose.node, self._choose.hint = recorded.get("node") or "", ""
        if self._hinted and self._hinted[0][0] == entry.key:
            self._choose.hint = self._hinted.pop(0)[1]
        # Filter, Score and dry runs use the cluster as of the pop. PostFilter, however, reads the pod from the API and
        # the nominated pods from the queue, both after these operations.
        meanwhile = []
        for op in during:
            world.apply(op)
            meanwhile.append(world.take_events())
        result = self.loop.decide(entry)
        if hinted := self.loop.machine.batches.of(entry.pod.scheduler_name).hinted:
            self.hints.append([entry.key, hinted])
        if during and result is not None:
            result = reconsidered(result, self.loop.driver, world)
        names = self.loop.machine.cluster.table.names
        best = best_nodes(result, names) if isinstance(result, ScheduleResult) else None
        for events in meanwhile:
            world.now_ms += 1
            for event in events:
                self.loop.observe(event)
        world.now_ms += 1 if during else 0
        if result is None:
            made["result"] = "skipped"
        else:
            self._complete(entry, result, made, best)
        self._deliver()
        world.now_ms += 1

    def _complete(
        self, entry: QueuedPod, result: ScheduleResult | FitError, made: Actual, best: list[str] | None
    ) -> None:
        deleted = self._deleted_by(lambda: self.loop.complete(entry, result))
        idle = self.loop.held is not None or not self.loop.driver.bindings.cycles
        assert idle, "a cycle of a trace is expected to be complete before anything else happens"
        tell_outcome(made, result, best, self._failures.get(entry.uid), deleted)

    def _deleted_by(self, end: Callable[[], object]) -> list[str]:
        """End a cycle and return the pods that the scheduler deletes for it."""
        self._failures, world = {}, self.environment
        before, world.deleted = world.deleted, []
        end()
        deleted = sorted(world.deleted)
        world.deleted = before + deleted
        return deleted

    def _group_cycle(self, first: QueuedPod) -> None:
        """Run the cycle of a PodGroup.

        Among equally good nodes the first one by name is selected, as in the records.
        """
        loop, world, key = self.loop, self.environment, first.pod.pod_group
        entries = [first, *(entry for entry in loop.driver.popped.entries if entry.pod.pod_group == key)]
        attempt, results = loop.queue.groups.in_cycle[key].attempts, dict[str, ScheduleResult | FitError]()
        made: list[Actual] = [
            {"pod": entry.key, "at_ms": world.now_ms, "attempt": attempt, "result": "skipped", "group": key}
            for entry in sorted(entries, key=order_in_group)
        ]
        self._made += made
        del self._want[: len(made)]
        self._choose.node = self._choose.hint = ""
        names = loop.machine.cluster.table.names
        deleted = self._deleted_by(
            lambda: loop.group_cycle(first, lambda one, result: results.update({one.key: result}))
        )
        loop.resume_bindings()
        tried = loop.driver.groups.latest
        group = loop.machine.groups.object(key)
        in_domains = group is not None and topology_key(group) and loop.machine.handle.rules.groups_in_domains
        # An error leaves the Score result unchanged; it is not recorded for a group that is tried in several domains.
        if tried is not None and tried.status.code is Code.ERROR and not in_domains:
            results |= {member.entry.key: member.result for member in tried.members}
        for outcome in made:
            result = results.get(outcome["pod"])
            if result is not None:
                best = best_nodes(result, names) if isinstance(result, ScheduleResult) else None
                tell_outcome(outcome, result, best, self._failures.get(result.pod.uid), ())
        if deleted:
            made[-1]["deleted"] = deleted
        self._deliver()
        world.now_ms += 1

    def _release(self) -> None:
        """Continue the bindings that an operation has held."""
        if self.loop.held is not None:
            before, self.environment.deleted = self.environment.deleted, []
            self.loop.release()
            self.environment.deleted = before + sorted(self.environment.deleted)
            self._deliver()

    def _applied(self, effects: Effects) -> None:
        for failed in effects.failures:
            self._failures[failed.entry.uid] = failed

    def _deliver(self) -> None:
        for event in self.environment.take_events():
            self.loop.observe(event)

    def _step(self) -> Actual:
        return step_of(self._made, self.environment, self.loop.queue, self.loop.driver.nominator)


def reconsidered(
    result: ScheduleResult | FitError, driver: SchedulingDriver, world: TraceEnvironment
) -> ScheduleResult | FitError:
    """Return the result of an attempt during which operations took place.

    PostFilter runs again with the present nominated pods. The nominated pods are those that the API stores; the queue
    has not received their events yet.
    """
    if not isinstance(result, FitError) or not driver.nominator:
        return result
    nominated: dict[str, list[Pod]] = {}
    for node, pods in driver.nominator.nodes.items():
        for pod in pods.values():
            stored = world.current_pod(pod.key)
            if stored is not None and stored.uid == pod.uid and not stored.node_name:
                # An entry of the nominator that has only a name and no spec is kept unchanged.
                nominated.setdefault(node, []).append(stored if pod.raw["spec"] else pod)
    return driver.machine.schedulers[result.pod.scheduler_name].post_filters.reconsider(result, nominated)


# -- steps in the record's format -------------------------------------------------------------------------------


def tell_outcome(
    made: Actual, result: ScheduleResult | FitError, best: list[str] | None, failed: FailedAttempt | None, deleted: Any
) -> None:
    """Append the outcome of an attempt to `made`.

    `best` contains the nodes with the highest total, if a node was found. `failed` is the failure of the attempt or of
    its binding. `deleted` contains the pods that the scheduler deleted for the pod.
    """
    if best is not None:
        made["best"] = best
    if failed is None:
        assert isinstance(result, ScheduleResult)
        made["result"], made["node"] = "scheduled", result.node_name
        return
    made["result"] = "unschedulable" if failed.reason == "Unschedulable" else "error"
    made["message"] = failed.message
    # The plugins of the queue entry include, for example, a gating PreEnqueue plugin. For a PodGroup, the entry is
    # ignored.
    queued = NO_PLUGINS if "group" in made else failed.entry.unschedulable_plugins
    if plugins := failed.unschedulable_plugins | queued:
        made["unschedulable_plugins"] = sorted(plugins)
    if failed.pending_plugins:
        made["pending_plugins"] = sorted(failed.pending_plugins)
    if failed.nominated_node is not None:
        made["nominated_node"] = failed.nominated_node
    details = result.post_filter.details if isinstance(result, FitError) and result.post_filter else None
    if details is not None and len(details.ties) > 1:
        made["nominated_ties"] = list(details.ties)
    if deleted:
        made["deleted"] = deleted


def best_nodes(result: ScheduleResult, names: Sequence[str]) -> list[str]:
    """Return the nodes with the highest total score; `names` contains the node names of all rows."""
    rows = result.feasible
    if result.totals is not None:
        rows = rows[result.totals == result.totals.max()]
    return sorted(names[row] for row in rows.tolist())


def step_of(
    made: list[Actual], world: TraceEnvironment, queue: SchedulingQueue, nominator: Nominator, zero_ns: int = 0
) -> Actual:
    """Return a step in the record's format.

    `zero_ns` is the start of the trace on the queue's clock, in nanoseconds.
    """
    return {
        "attempts": made,
        "bound": world.bound,
        "deleted": world.deleted,
        "queues": {
            place.value: sorted(entry.key for entry in queue.entries(place))
            for place in (*_SHOWN, *_SHOWN_IF_ANY)
            if place in _SHOWN or queue.entries(place)
        },
        "backoff_until_ms": {
            entry.key: (queue.backoff_until(entry) - zero_ns) // MILLISECOND
            for place in _WAITING
            for entry in queue.entries(place)
        },
        "nominated": {node: sorted(pod.key for pod in pods.values()) for node, pods in nominator.nodes.items()},
        "conditions": world.conditions,
        "now_ms": world.now_ms,
    }


def trace_config(config: Config) -> Config:
    """Return the configuration with which the traces were recorded: percentageOfNodesToScore is 100."""
    profiles = tuple(attrs.evolve(profile, percentage_of_nodes_to_score=100) for profile in config.profiles)
    return attrs.evolve(config, profiles=profiles, percentage_of_nodes_to_score=100)
