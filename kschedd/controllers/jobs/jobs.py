"""The Job controller: creates, counts and deletes the pods of Jobs, and writes the status of each Job.

A sync (`kschedd.controllers.jobs.sync`) examines only the Job's tally. A sync of a Job with 10,000 finished pods
therefore costs no more than that of a new Job. A pod loses its tracking finalizer if it has no controller, or if its
Job is deleted or finished.

The controller stores the tallies, the back-off of each Job's pods (lost at a restart, as in Kubernetes), and the times
of later syncs. Source: Kubernetes v1.34, pkg/controller/job/job_controller.go.
"""

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.controllers.jobs.adoption import Adoption, job_reference
from kschedd.controllers.jobs.job_pods import TRACKING, is_tracked, untracked
from kschedd.controllers.jobs.job_tally import JobTally, JobTerms
from kschedd.controllers.jobs.pod_backoff import PodBackoff
from kschedd.controllers.jobs.sync import JobSync, is_finished, syncing
from kschedd.controllers.object_events import EventRecorder
from kschedd.controllers.running.controller import InSteps, Reconciling, View, of_each
from kschedd.controllers.running.derived import Derived
from kschedd.controllers.running.timers import Timers
from kschedd.controllers.templates import controller_of, controller_reference, controller_uid
from kschedd.controllers.workloads.backoff import CreateBackoff
from kschedd.controllers.workloads.ownership import Key, selector_of
from kschedd.controllers.workloads.tallies import Tallies
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError, NotFound
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Create, Delete, Write, patch_of, status_of
from kschedd.values import in_parts

COMPONENT: Final = "job-controller"
_PART: Final = 500  # number of pods processed between two pauses, in about 1 ms
MANAGED_BY: Final = "kubernetes.io/job-controller"


class Jobs(InSteps):
    name: Final = "jobs"
    kinds: Final = frozenset(("Job", "Pod"))

    def __init__(self, *, detailed_events: bool = False) -> None:
        self._later: Timers[Key] = Timers()
        self._retry: Timers[Key] = Timers()  # retries of rejected pods
        self.creations = CreateBackoff(self._retry)
        self._adoption = Adoption()
        self._selectors = Derived(_selector)
        self._tallies: Tallies[JobTally] = Tallies(("Job",))
        self._backoff: dict[str, PodBackoff] = {}  # by uid of the Job
        self._events = EventRecorder(COMPONENT, detailed=detailed_events)
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    @property
    def next_deadline(self) -> float | None:
        times = [at for at in (self._later.next, self._retry.next) if at is not None]
        return min(times, default=None)

    @property
    def next_work(self) -> float | None:
        return self._later.next

    def concerns(self, event: WatchEvent) -> bool:
        new, old = event.new, event.old
        if not isinstance(new, Pod) or job_reference(new) is not None:
            return True
        if isinstance(old, Pod) and job_reference(old) is not None:
            return True
        return "finalizers" in new.metadata or self._adoption.concerns(new)

    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling:
        changed: dict[Key, None] = {}
        orphans: dict[tuple[str, str], None] = {}
        running: dict[str, bool] = {}  # uid of a Job -> True if the Job exists and has not ended
        for event in events:
            new = event.new
            if isinstance(new, Pod):
                self._observe_pod(event, new, changed, orphans, running, view)
                continue
            changed[new.kind, new.namespace, new.name] = None
            self._adoption.observe_job(event, view)
            if event.type == DELETED:
                self._forget(new)
                orphans.update({(pod.namespace, pod.name): None for pod in (yield from _pods_of(new, view))})
        changed.update(dict.fromkeys(self._later.due(now)))
        changed.update(dict.fromkeys(self._retry.due(now)))
        yield from self._tallies.catching_up(view, now)
        writes = yield from self.faults.each_in_parts("Pod", orphans, partial(self._release, view), now)
        keys = [(namespace, name) for _, namespace, name in changed]
        return writes + (yield from self.faults.each_in_steps("Job", keys, partial(self._look_at, view), now))

    # -- events -----------------------------------------------------------------------------------------------------

    def _observe_pod(
        self,
        event: WatchEvent,
        pod: Pod,
        changed: dict[Key, None],
        orphans: dict[tuple[str, str], None],
        running: dict[str, bool],
        view: View,
    ) -> None:
        owner = job_reference(pod)
        old = event.old
        if isinstance(old, Pod) and (before := job_reference(old)) is not None and before != owner:
            changed["Job", pod.namespace, before["name"]] = None
        if owner is None:
            changed.update(dict.fromkeys(self._adoption.observe_pod(event, pod)))
            if event.type != DELETED and is_tracked(pod):
                orphans[pod.namespace, pod.name] = None
            return
        uid, name = owner["uid"], owner["name"]
        changed["Job", pod.namespace, name] = None
        if event.type == DELETED or not is_tracked(pod):
            return
        if uid not in running:
            job = view.find("Job", pod.namespace, name)
            running[uid] = job is not None and job.uid == uid and not is_finished(job)
        if not running[uid]:
            orphans[pod.namespace, pod.name] = None

    def _forget(self, job: Object) -> None:
        key = (job.kind, job.namespace, job.name)
        self._later.clear(key)
        self._retry.clear(key)
        self.creations.clear(key)
        self._backoff.pop(job.uid, None)
        self._selectors.forget(job)

    def _release(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        pod = view.find("Pod", namespace, name)
        return [untracked(pod)] if isinstance(pod, Pod) and is_tracked(pod) and _is_orphan(pod, view) else []

    # -- a Job ------------------------------------------------------------------------------------------------------

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> Reconciling:
        job = view.find("Job", namespace, name)
        if job is None or not _is_ours(job):
            return []
        key = ("Job", namespace, name)
        finished = is_finished(job)
        selector = None if finished or job.deleting else self._selectors.of(job)
        adoptions = self._adoptions(job, selector, view)
        pods, releases = yield from self._pods_of(job, selector, view, now)
        if finished:
            self._backoff.pop(job.uid, None)
            self._later.clear(key)
            return (yield from of_each(pods.items.values(), _uncounted))
        if adoptions or releases:
            return adoptions + releases  # the events of these writes trigger the next sync
        waits = self.creations.waits(key, now)
        record = self._backoff.get(job.uid, PodBackoff())
        done = yield from syncing(job, pods, record, now, may_create=not waits)
        if not waits and not done.create:
            self.creations.clear(key)
        if done.again_at is None:
            self._later.clear(key)
        else:
            self._later.set(key, max(now, done.again_at))
        if done.listed is not None or done.flushed is not None:
            self._backoff[job.uid] = done.backoff
        writes = yield from _writes(job, done)
        for warning, reason, message in done.events:
            writes += self._events.event(job, reason, message, now, warning=warning)
        return writes

    def _pods_of(
        self, job: Object, selector: LabelSelector | None, view: View, now: float
    ) -> Generator[None, None, tuple[JobTally, list[Write]]]:
        """Return the Job's tally, and the writes that release pods which no longer match the selector."""
        empty = JobTally(JobTerms(selector, job.spec.get("completionMode") == "Indexed"))
        known = self._tallies.known(job, empty.terms)
        if known is not None:
            return known, []
        pods = [pod for pod in (yield from _pods_of(job, view)) if empty.counts(pod)]
        releases = [_release(job, pod) for pod in pods if selector is not None and not selector.matches(pod.labels)]
        yield from self._tallies.making(job, empty, pods, now, stays=not releases)
        return empty, releases

    def _adoptions(self, job: Object, selector: LabelSelector | None, view: View) -> list[Write]:
        """Return the writes that adopt pods matching the selector."""
        writes: list[Write] = []
        for obj in self._adoption.adoptable(job, selector, view) if selector is not None else ():
            meta = obj.metadata
            owners = [*(meta.get("ownerReferences") or ()), controller_reference(job)]
            finalizers = [*(each for each in meta.get("finalizers") or () if each != TRACKING), TRACKING]
            adoption = {"metadata": {"ownerReferences": owners, "finalizers": finalizers}}
            writes.append(patch_of(obj, adoption, exactly=True))
        return writes

    def on_performed(self, write: Write, obj: Object, view: View, now: float) -> Sequence[Write]:
        """Record the creation or deletion of a pod."""
        return self._events.of_pod(write, obj, view, now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Write an event if a pod was rejected, and retry with exponential backoff."""
        if not isinstance(write, Create) or isinstance(error, NotFound) or write.raw.get("kind") != "Pod":
            return []
        meta = write.raw["metadata"]
        key = ("Job", meta["namespace"], meta["ownerReferences"][-1]["name"])
        self._later.set(key, now)  # the next sync counts the active pods again
        self.creations.refused(key, now)
        job = view.find(*key)
        if job is None:
            return []
        return self._events.failure(job, error, now, "FailedCreate", f"Error creating: {error}")


def _selector(job: Object) -> LabelSelector | None:
    """Return the selector for adoption and release, or None if the Job neither adopts nor releases pods.

    A Job with a selector that does not match its own pods would create and release pods forever.
    """
    selector = selector_of(job)
    template = (job.spec.get("template") or {}).get("metadata") or {}
    return selector if selector is not None and selector.matches(template.get("labels") or {}) else None


def _pods_of(job: Object, view: View) -> Generator[None, None, list[Pod]]:
    """Return the pods that the Job controls, step by step."""
    pods: list[Pod] = []
    for some in in_parts(view.owned_by(job.uid), _PART):
        pods += (pod for pod in some if isinstance(pod, Pod) and controller_uid(pod) == job.uid)
        yield
    return pods


def _is_orphan(pod: Pod, view: View) -> bool:
    """Return whether the pod has no controller, or its controller is a Job that has ended."""
    reference = controller_of(pod)
    if reference is None or reference["kind"] != "Job":
        return reference is None
    job = view.find("Job", pod.namespace, reference["name"])
    return job is None or job.uid != reference["uid"] or (_is_ours(job) and is_finished(job))


def _is_ours(job: Object) -> bool:
    return (job.spec.get("managedBy") or MANAGED_BY) == MANAGED_BY


def _release(job: Object, pod: Pod) -> Write:
    references = pod.metadata.get("ownerReferences") or ()
    kept = [each for each in references if each.get("uid") != job.uid]
    left = [each for each in pod.metadata.get("finalizers") or () if each != TRACKING]
    return patch_of(pod, {"metadata": {"ownerReferences": kept or None, "finalizers": left or None}}, exactly=True)


def _uncounted(pod: Pod) -> list[Write]:
    return [untracked(pod)] if is_tracked(pod) else []


def _deletion(pod: Pod) -> list[Write]:
    return [Delete("Pod", pod.namespace, pod.name, pod.uid)]


def _writes(job: Object, done: JobSync) -> Reconciling:
    """Return the writes of a sync in upstream's order.

    The order is: pods, first status, finalizers of counted pods, second status.
    """
    writes = yield from of_each(done.delete, _deletion)
    writes += yield from of_each(done.forget, lambda pod: [untracked(pod), *_deletion(pod)])
    writes += [Create(raw) for raw in done.create]
    if done.listed is not None:
        writes.append(status_of(job, status_change(job.status, done.listed)))
    writes += yield from of_each(done.counted, lambda pod: [untracked(pod)])
    if done.flushed is not None:
        writes.append(status_of(job, status_change(done.listed or job.status, done.flushed)))
    return writes


def status_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch from one status to the other."""
    change = {name: value for name, value in after.items() if before.get(name) != value or name not in before}
    change |= {name: None for name in before if name not in after}
    uncounted = change.get("uncountedTerminatedPods")
    if uncounted is not None:
        gone = before.get("uncountedTerminatedPods") or {}
        change["uncountedTerminatedPods"] = {**dict.fromkeys(gone), **uncounted}
    return change
