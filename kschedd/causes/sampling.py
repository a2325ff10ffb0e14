"""Samples of very large workloads: their pods are alike, so a part of them tells the cause, in bounded time.

A cluster that is loaded to be examined has no more pods made than the sample. The number that is wanted stays in an
annotation, so the answer counts all of them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kschedd.causes.workload import WANTED, workload_of
from kschedd.store.cluster_api import ClusterWriter

MOST_PODS: Final = 2_000  # of one workload, besides those that are there
_COUNTS: Final[Mapping[str, str]] = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
}


def sample(store: ClusterWriter) -> Iterator[str]:
    """Limit each workload to a sample of its pods; yield a sentence for each that wants more."""
    for kind, field in _COUNTS.items():
        for obj in store.list(kind):
            count = obj.spec.get(field)
            if not isinstance(count, int) or count <= MOST_PODS:
                continue
            most = MOST_PODS + len(workload_of(store, obj).pods)
            if count <= most:
                continue
            notes = {"annotations": {WANTED: str(count)}}
            store.merge_patch(kind, obj.namespace, obj.name, {"metadata": notes, "spec": {field: most}})
            if obj.owner is None:
                yield f"{kind} {obj.namespace}/{obj.name}: {most:,} of its {count:,} pods are examined, which are alike"


def sampled(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the manifest of a workload with the number of pods of a sample; any other manifest unchanged."""
    spec, meta = raw.get("spec"), raw.get("metadata")
    field = _COUNTS.get(str(raw.get("kind")))
    count = spec.get(field) if field and isinstance(spec, Mapping) else None
    if not isinstance(count, int) or count <= MOST_PODS or not isinstance(meta, Mapping):
        return raw
    notes = {**(meta.get("annotations") or {}), WANTED: str(count)}
    return {**raw, "metadata": {**meta, "annotations": notes}, "spec": {**raw["spec"], field: MOST_PODS}}
