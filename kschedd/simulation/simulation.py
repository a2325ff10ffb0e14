"""A simulation run with a summary: the engine in virtual time, and statistics.

load(manifests)   apply the initial objects
play(arrivals)    create and delete the pods of a trace, or of a generated workload, at their times
finish(...)       advance until the cluster is idle, or until a given time; then the summary

"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from kschedd.api.manifests import ManifestReading
from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.schemas.decoding import FieldValidation
from kschedd.config.model import Config
from kschedd.controllers.running.controller import Controller
from kschedd.framework.registry import Registry
from kschedd.scheduling.attempt.ties import Choose
from kschedd.scheduling.records import Happened, PodPreempted
from kschedd.simulation.engine import EPOCH, Engine, LoggedAttempt
from kschedd.simulation.inputs import Applied, apply_all
from kschedd.simulation.observing import both
from kschedd.simulation.placements import PlacementSummary, PodPlacement, summarized, workload_name, zone_of
from kschedd.simulation.summary import Audit, Pending, Summary, Use, Utilisation
from kschedd.simulation.workloads.trace import Raw, TraceEvent
from kschedd.store.errors import ApiError, NotFound
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.values import run_steps

if TYPE_CHECKING:
    from kschedd.dumps.loading import Prepared

LONGEST_REST_S: Final = 86_400.0
_WORKLOADS: Final = ("ReplicationController", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job")
_NEVER: Final = "deleted before a scheduling attempt was made"

Progress = Callable[[float, int, int], None]
"""A function called now and then with the share done (0 to 1), the pods placed and the pods pending."""


class Arrivals(Protocol):
    """Pods with the times of their creation and end: a trace, or a generated workload."""

    @property
    def objects(self) -> Sequence[Raw]:
        """Return the objects that exist at the start."""

    @property
    def event_count(self) -> int: ...

    def events(self) -> Iterable[TraceEvent]:
        """Yield the arrivals in order of time. Arrivals may be created on demand and are not stored."""


class Simulation(Engine):
    """A simulation run with statistics; the arguments of its constructor are those of Engine."""

    def __init__(
        self,
        config: Config,
        *,
        seed: int,
        choose: Choose | None = None,
        registry: Registry,
        controllers: Sequence[Controller],
        on_decision: Callable[[LoggedAttempt], None] | None = None,
        audit: bool = False,
        start_s: float = EPOCH,
    ) -> None:
        super().__init__(
            config,
            seed=seed,
            choose=choose,
            registry=registry,
            controllers=controllers,
            on_decision=on_decision,
            on_happened=self._count_preempted,
            audit=audit,
            start_s=start_s,
        )
        self.seed = seed
        self.applied = Applied()
        self.placed = 0  # pods scheduled in this run
        self.preempted = 0
        self._on_events = self._count_pods
        self._gone: list[Pending] = []
        self._utilisation = Utilisation(self.machine.cluster.table)

    def run_until_idle(self, check: Callable[[], None] = lambda: None) -> None:
        super().run_until_idle(check)
        self._utilisation.sample(self.now_s - self.start_s)

    def hear(self, decided: Callable[[LoggedAttempt], None]) -> None:
        """Call `decided` with every scheduling attempt."""
        self._on_decision = both(self._on_decision, decided)

    def watch(self, follow: Callable[[Sequence[WatchEvent]], None]) -> None:
        """Call `follow` with the store's events before the scheduler receives them."""
        self._on_events = both(self._on_events, follow)

    def _count_pods(self, events: Sequence[WatchEvent]) -> None:
        for event in events:
            pod, old = event.new, event.old
            if not isinstance(pod, Pod):
                continue
            if event.type == DELETED:
                if not pod.node_name and not pod.finished:
                    self._gone.append(Pending(pod.key, _pod_text(pod) or _NEVER, gone=True))
            elif old is not None and pod.node_name and not (isinstance(old, Pod) and old.node_name):
                self.placed += 1

    def _count_preempted(self, happened: Sequence[Happened]) -> None:
        self.preempted += sum([isinstance(entry, PodPreempted) for entry in happened])

    # -- running ------------------------------------------------------------------------------------------------

    def load(self, reading: ManifestReading, validation: FieldValidation = "Strict") -> Applied:
        applied = apply_all(self.store, reading, validation=validation, run_controllers=self.run_controllers)
        self.applied.done += applied.done
        self.applied.errors += applied.errors
        self.applied.warnings += applied.warnings
        return self.applied

    def take(self, prepared: "Prepared") -> Applied:
        """Load a dump unchanged; its objects change only in `finish`."""
        from kschedd.dumps.loading import take_dump  # most runs have none

        taken = run_steps(take_dump(self.store, prepared))
        self.applied = Applied(errors=taken.errors, warnings=prepared.assumptions.texts())
        return self.applied

    def play(self, arrivals: Arrivals, until_s: float | None = None, progress: Progress | None = None) -> None:
        """Create the objects immediately, and each pod at its time.

        All work that an event causes is done before the next event, even if both have the same time.
        """
        with self.store.one_request():  # one request, because nodes and pods can then share equal parts
            for raw in arrivals.objects:
                self._put(raw)
            self.run_until_idle()
            self._play(arrivals, until_s, progress)

    def _play(self, arrivals: Arrivals, until_s: float | None, progress: Progress | None) -> None:
        count = arrivals.event_count
        for number, event in enumerate(arrivals.events()):
            time_s = event.time_s
            if until_s is not None and time_s > until_s:
                break
            if time_s > self.now_s - self.start_s:
                self._skip_to(self.start_s + time_s)
            if event.raw is None:
                self._delete(event)
            elif event.action == "apply":
                self._put(event.raw)
            else:
                self._create(event.raw)
            self.run_until_idle()
            if progress is not None:
                progress(number / count, self.placed, self._waiting)

    def _delete(self, event: TraceEvent) -> None:
        namespace, _, name = event.key.partition("/")
        with suppress(NotFound):  # the pod may have been rejected or preempted
            self.store.delete(event.kind, namespace, name, grace_period_s=0)

    def _skip_to(self, until_s: float) -> None:
        """Advance the time of an idle cluster; without a deadline in the interval, there is no work to do."""
        moment = self.next_moment()
        if self.auditor is None and (moment is None or moment > until_s):
            self._set_time(until_s)
        else:
            self.advance(until_s)

    def _put(self, raw: Raw) -> None:
        """Create the object, or apply the manifest to the existing object."""
        meta = raw["metadata"]
        there = self.store.find(raw["kind"], meta.get("namespace") or "", meta["name"])
        if there is None:
            self._create(raw)
            return
        try:
            self.store.apply(raw, annotated=False)
        except ApiError as refusal:
            self._refused(refusal)

    def _create(self, raw: Raw) -> None:
        try:
            self.store.create(raw)
        except ApiError as refusal:
            self._refused(refusal)

    def _refused(self, refusal: ApiError) -> None:
        self.applied.errors.append(f"trace: {refusal}")

    def finish(self, until_s: float | None = None) -> bool:
        """Advance virtual time to the given time (None: until the cluster is idle).

        Returns whether the cluster is idle.
        """
        if until_s is None:
            return self.run_to_rest(LONGEST_REST_S, cron_jobs=True)
        self.advance(self.start_s + until_s)
        self._utilisation.sample(self.elapsed)
        return self.next_moment(retries=False) is None

    # -- results ------------------------------------------------------------------------------------------------

    @property
    def utilisation(self) -> dict[str, Use]:
        """Return the utilization of each resource so far."""
        return self._utilisation.by_resource()

    @property
    def _waiting(self) -> int:
        return sum(self.queue.counts().values())

    def summary(self, wall_s: float, *, at_rest: bool = True) -> Summary:
        placements = {
            pod.key: pod.node_name for pod in self.store.list("Pod") if isinstance(pod, Pod) and pod.node_name
        }
        return Summary(
            seed=self.seed,
            nodes=self.store.count("Node"),
            placed=self.placed,
            pending=[*self._gone, *self._pending(), *self._short()],
            utilisation=self.utilisation,
            decisions=self.decisions,
            wall_s=wall_s,
            virtual_s=self.elapsed,
            preempted=self.preempted,
            placements=placements,
            errors=self.applied.errors,
            warnings=[*map(str, self.config.warnings), *self.applied.warnings],
            at_rest=at_rest,
            audit=None if self.auditor is None else Audit.of(self.auditor),
            groups=self._groups(),
        )

    def _groups(self) -> PlacementSummary:
        zones = {node.name: zone_of(node) for node in self.store.list("Node") if isinstance(node, Node)}
        return summarized(
            PodPlacement(pod.key, workload_name(pod), (None, pod.node_name), ("", zones.get(pod.node_name, "")))
            for pod in self.store.list("Pod")
            if isinstance(pod, Pod) and not pod.finished and not pod.deletion_timestamp
        )

    def _pending(self) -> list[Pending]:
        found = []
        for pod in self.store.list("Pod"):
            assert isinstance(pod, Pod)
            if not pod.node_name and not pod.finished and not pod.deletion_timestamp:
                found.append(Pending(pod.key, _pod_text(pod) or self._why(pod)))
        return found

    def _why(self, pod: Pod) -> str:
        """Return the reason why a pod is pending if its condition PodScheduled has no message."""
        if not self.machine.responsible(pod.scheduler_name):
            return f'requests scheduler "{pod.scheduler_name}", which no profile has'
        entry = self.queue.entry(pod.key)
        if entry is not None and entry.gating_status is not None:
            return f"{entry.gating_plugin}: {entry.gating_status.message}"
        waiting = self.machine.waiting.pods.get(pod.uid)
        if waiting is not None:
            return f"has a place on {waiting.node_name}, and waits for {', '.join(sorted(waiting.pending))} at Permit"
        if pod.uid in self.driver.bindings.cycles:
            return "has a place, and its binding is under way"
        return "waits for its turn"

    def _short(self) -> list[Pending]:
        """Yield the workloads that need pods but have none, and those with a ReplicaFailure condition."""
        found = []
        for kind in _WORKLOADS:
            for workload in self.store.list(kind):
                for condition in workload.status.get("conditions") or ():
                    if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
                        found.append(Pending(workload.key, condition.get("message") or "FailedCreate", kind))
                        break
                else:
                    if _wanted(workload) and workload.owner is None and not self.store.owned_by(workload.uid):
                        if kind != "DaemonSet":
                            found.append(Pending(workload.key, "no pods were made for it", kind))
        return found


def _wanted(workload: Object) -> bool:
    spec = workload.spec
    if workload.kind == "Job":
        from kschedd.controllers.jobs.sync import is_finished  # imported here, because most traces have no Jobs

        if spec.get("suspend") or is_finished(workload):
            return False
    replicas = spec.get("replicas", spec.get("parallelism", 1))
    return replicas is None or replicas > 0


def _pod_text(pod: Pod) -> str:
    for condition in pod.status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("message") or condition.get("reason") or "")
    return ""
