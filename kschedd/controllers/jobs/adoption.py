"""Which pods without a controller a Job may adopt: those that its selector matches.

The selector of most Jobs names the Job's own uid, so a pod that it matches was that Job's before, and names it by
label. Only a Job with a selector of its user's (manualSelector) may match any pod of its namespace; so pods without a
controller are kept account of in the namespaces only where there is such a Job.

Owns the names of those Jobs and pods. Source: Kubernetes v1.34, controller/controller_ref_manager.go (ClaimObject).
"""

from collections.abc import Iterable

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.controllers.running.controller import View
from kschedd.controllers.templates import controller_of, controller_uid
from kschedd.controllers.workloads.ownership import Key, selector_of
from kschedd.store.creating.job_selector import CONTROLLER_UID, JOB_NAME
from kschedd.store.objects.log import DELETED, WatchEvent


def job_reference(pod: Pod) -> Raw | None:
    """The reference to the Job that controls the pod; None if no Job does."""
    reference = controller_of(pod)
    return reference if reference is not None and reference["kind"] == "Job" else None


class Adoption:
    def __init__(self) -> None:
        self._manual: dict[str, dict[str, LabelSelector]] = {}  # by namespace and name: Jobs with their own selector
        self._orphans: dict[str, dict[str, None]] = {}  # by namespace with such a Job: names of pods
        self._former: dict[Key, dict[str, None]] = {}  # by Job: pods that were its own before

    def observe_job(self, event: WatchEvent, view: View) -> None:
        job = event.new
        if event.type == DELETED:
            self._former.pop((job.kind, job.namespace, job.name), None)
        selector = selector_of(job) if job.spec.get("manualSelector") and event.type != DELETED else None
        jobs = self._manual.get(job.namespace)
        if selector is None:
            if jobs is not None and jobs.pop(job.name, None) is not None and not jobs:
                del self._manual[job.namespace], self._orphans[job.namespace]
            return
        if jobs is None:
            jobs = self._manual[job.namespace] = {}
            found = [pod for pods in view.present("Pod", job.namespace) for pod in pods if not controller_uid(pod)]
            self._orphans[job.namespace] = dict.fromkeys(pod.name for pod in found)
        jobs[job.name] = selector

    def concerns(self, pod: Pod) -> bool:
        """Whether a Job may want to adopt the pod, as far as its namespace and labels tell."""
        return pod.namespace in self._orphans or CONTROLLER_UID in pod.labels

    def observe_pod(self, event: WatchEvent, pod: Pod) -> Iterable[Key]:
        """Take in an event of a pod; returns the Jobs that may adopt it."""
        orphans = self._orphans.get(pod.namespace)
        former = pod.labels.get(JOB_NAME) if CONTROLLER_UID in pod.labels else None
        if orphans is None and former is None:
            return ()
        keys: list[Key] = []
        orphaned = event.type != DELETED and not controller_uid(pod)
        if orphans is not None:
            if not orphaned:
                orphans.pop(pod.name, None)
            else:
                orphans[pod.name] = None
                jobs = self._manual[pod.namespace].items()
                keys = [("Job", pod.namespace, name) for name, selector in jobs if selector.matches(pod.labels)]
        if former is not None and orphaned:
            key = ("Job", pod.namespace, former)
            self._former.setdefault(key, {})[pod.name] = None
            keys.append(key)
        return keys

    def adoptable(self, job: Object, selector: LabelSelector, view: View) -> Iterable[Pod]:
        """The pods without a controller that the selector, the Job's own, matches."""
        names = self._former.pop((job.kind, job.namespace, job.name), {})
        if job.spec.get("manualSelector"):
            names = {**names, **self._orphans.get(job.namespace, {})}
        for name in sorted(names):
            pod = view.find("Pod", job.namespace, name)
            # The index may be behind what is there.
            if isinstance(pod, Pod) and not pod.deleting and not controller_uid(pod) and selector.matches(pod.labels):
                yield pod
