"""Adoption of pods by Jobs: a Job adopts matching pods that have no controller.

The selector of most Jobs contains the Job's own uid. A pod that matches a Job's generated selector belonged to this Job
before; it has a label with the Job's name. Only a Job with a user-defined selector (manualSelector) may match other
pods of its namespace. Pods without a controller are therefore tracked only in namespaces that have a Job with
manualSelector.

Source: Kubernetes v1.34, controller/controller_ref_manager.go (ClaimObject).
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
    """Return the reference to the Job that controls the pod; None if no Job does."""
    reference = controller_of(pod)
    return reference if reference is not None and reference["kind"] == "Job" else None


class Adoption:
    def __init__(self) -> None:
        # Namespace -> name -> selector of Jobs with manualSelector.
        self._manual: dict[str, dict[str, LabelSelector]] = {}
        # namespace with a Job in `_manual` -> names of pods without a controller
        self._orphans: dict[str, dict[str, None]] = {}
        self._former: dict[Key, dict[str, None]] = {}  # Job -> pods that once belonged to it

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
        """Return whether a Job may adopt the pod, given the pod's namespace and labels."""
        return pod.namespace in self._orphans or CONTROLLER_UID in pod.labels

    def observe_pod(self, event: WatchEvent, pod: Pod) -> Iterable[Key]:
        """Record a pod event. Return the Jobs that may adopt the pod."""
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
        """Yield the pods without a controller that match the Job's selector."""
        names = self._former.pop((job.kind, job.namespace, job.name), {})
        if job.spec.get("manualSelector"):
            names = {**names, **self._orphans.get(job.namespace, {})}
        for name in sorted(names):
            pod = view.find("Pod", job.namespace, name)
            # the index may be older than the stored pods
            if isinstance(pod, Pod) and not pod.deleting and not controller_uid(pod) and selector.matches(pod.labels):
                yield pod
