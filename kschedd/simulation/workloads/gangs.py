"""Gangs in a trace: the pods of a job form a PodGroup, which is scheduled as a whole or not at all.

A job consists of the pods with the same label `job`. PodGroups exist from the start, as if a job controller had created
them.
"""

from typing import Any, Final

import attrs

from kschedd.config.model import Config
from kschedd.errors import KscheddError
from kschedd.simulation.workloads.trace import NAMESPACE, Trace, TracePod

JOB: Final = "job"
Raw = dict[str, Any]


@attrs.define(eq=False)
class GangsError(KscheddError):
    why: str


def in_gangs(trace: Trace, config: Config) -> Trace:
    """Return the trace with a PodGroup for each job of two or more pods.

    Raises GangsError if the configuration's release and feature gates have no gang scheduling, or no job has several
    pods.
    """
    if not config.rules.gang_scheduling:
        raise GangsError(
            f"gangs: Kubernetes {config.version.name} schedules no gangs with these feature gates; 1.37 requires "
            "GenericWorkload=true, and 1.36 also GangScheduling=true"
        )
    jobs: dict[str, list[TracePod]] = {}
    for pod in trace.pods:
        if job := _job(pod):
            jobs.setdefault(job, []).append(pod)
    several = {job: members for job, members in jobs.items() if len(members) > 1}
    if not several:
        raise GangsError("gangs: no two pods of the trace have the same label job")
    specs: dict[tuple[int, str], Raw] = {}  # equal specs of a job's pods share one spec
    pods = tuple(_member(pod, specs) if _job(pod) in several else pod for pod in trace.pods)
    prioritized = config.rules.groups_of_v1beta1
    return attrs.evolve(trace, pods=pods, groups=tuple(_group(job, several[job], prioritized) for job in several))


def _job(pod: TracePod) -> str:
    labels: Raw = pod.raw["metadata"].get("labels") or {}
    return str(labels.get(JOB, ""))


def _member(pod: TracePod, specs: dict[tuple[int, str], Raw]) -> TracePod:
    spec, job = pod.raw["spec"], _job(pod)
    known = specs.get((id(spec), job))
    if known is None:
        known = specs[id(spec), job] = {**spec, "schedulingGroup": {"podGroupName": job}}
    return attrs.evolve(pod, raw={**pod.raw, "spec": known})


def _group(job: str, members: list[TracePod], prioritized: bool) -> Raw:
    """Return the PodGroup of a job.

    With `prioritized`, set the priority class of the job's pods, which v1beta1 requires.
    """
    spec: Raw = {"schedulingPolicy": {"gang": {"minCount": len(members)}}}
    if prioritized and (priority := members[0].raw["spec"].get("priorityClassName")):
        spec["priorityClassName"] = priority
    return {
        "apiVersion": f"scheduling.k8s.io/{'v1beta1' if prioritized else 'v1alpha2'}",
        "kind": "PodGroup",
        "metadata": {"name": job, "namespace": NAMESPACE},
        "spec": spec,
    }
