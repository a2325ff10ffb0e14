"""ControllerRevisions that a dump lacks, made up from workloads and pods; `kubectl get all` omits them.

If the ControllerRevision to which the pods of a StatefulSet or DaemonSet refer is missing, the controller treats the
current template as a new revision and replaces all pods. The status identifies the revision of the current template,
provided that the controller has observed the template. The status of a StatefulSet contains the name of the revision.
For a DaemonSet, the revision is the one to which as many pods refer as the status counts as updated. During a rollout,
the template of a StatefulSet's earlier revision is read from a pod that refers to that revision.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.pods import Pod

Raw = dict[str, Any]
Key = tuple[str, str, str]  # kind, namespace, name

POD_HASH: Final = "controller-revision-hash"
_STATEFUL_HASH: Final = "controller.kubernetes.io/hash"
_KIND: Final = "ControllerRevision"


def revisions(
    objects: Sequence[Object],
    pods: Mapping[str, Sequence[Pod]],
    template_of_pod: Callable[[Pod], Raw],
    missing: Callable[[Key], bool],
    made: Callable[..., Raw],
) -> Iterator[Raw]:
    """Yield the missing revisions. `pods`: the pods that each workload controls, by the UID of the workload."""
    highest = _highest(objects)
    for workload in objects:
        if workload.kind not in ("StatefulSet", "DaemonSet") or not is_observed(workload):
            continue
        owned = [pod for pod in pods.get(workload.uid, ()) if not pod.deletion_timestamp]
        number = highest.get(workload.uid, 0)
        for name, label, template in _wanted(workload, owned, template_of_pod):
            if missing((_KIND, workload.namespace, name)):
                number += 1
                yield _revision(workload, name, label, template, number, made)


def is_observed(workload: Object) -> bool:
    """Return whether the status refers to the current spec."""
    observed = workload.status.get("observedGeneration") or 0
    return bool(observed) and observed >= (workload.metadata.get("generation") or 0)


def _highest(objects: Iterable[Object]) -> dict[str, int]:
    """Return the highest revision number of each workload's revisions, by the UID of the workload."""
    found: dict[str, int] = {}
    for obj in objects:
        if obj.kind == _KIND:
            for owner in obj.metadata.get("ownerReferences") or ():
                uid = str(owner.get("uid"))
                found[uid] = max(found.get(uid, 0), obj.raw.get("revision") or 0)
    return found


def _wanted(
    workload: Object, pods: Sequence[Pod], template_of_pod: Callable[[Pod], Raw]
) -> Iterator[tuple[str, str, Raw]]:
    """Yield the name, the label of the hash, and the template of each revision, the earliest first."""
    status, present = workload.status, workload.spec.get("template") or {}
    if workload.kind == "DaemonSet":
        counts = Counter(digest for pod in pods if (digest := pod.labels.get(POD_HASH)))
        updated = [digest for digest, count in counts.items() if count == status.get("updatedNumberScheduled")]
        if len(updated) == 1:
            yield f"{workload.name}-{updated[0]}", POD_HASH, present
        return
    current, update = status.get("currentRevision"), status.get("updateRevision")
    if current and current != update:
        pod = next((pod for pod in pods if pod.labels.get(POD_HASH) == current), None)
        if pod is not None:
            yield current, _STATEFUL_HASH, template_of_pod(pod)
    if update:
        yield update, _STATEFUL_HASH, present


def _revision(workload: Object, name: str, label: str, template: Raw, number: int, made: Callable[..., Raw]) -> Raw:
    labels = (template.get("metadata") or {}).get("labels") or {}
    owner = {
        "apiVersion": "apps/v1",
        "kind": workload.kind,
        "name": workload.name,
        "uid": workload.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    digest = name.removeprefix(f"{workload.name}-")
    return made(
        _KIND,
        workload.namespace,
        name,
        "apps/v1",
        data={"spec": {"template": {**template, "$patch": "replace"}}},
        revision=number,
        metadata={"labels": {**labels, label: digest}, "ownerReferences": [owner]},
    )
