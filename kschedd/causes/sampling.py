"""Samples of very large workloads: their pods are alike, so some of them are enough to find the cause.

If a cluster is loaded for a diagnosis, only the pods of the sample are created. An annotation stores the wanted number
of pods, so that the answer counts all pods.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kschedd.causes.workload import WANTED, workload_of
from kschedd.store.cluster_api import ClusterWriter

MOST_PODS: Final = 2_000  # maximum number of pods to create for a workload, in addition to existing pods
_COUNTS: Final[Mapping[str, str]] = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
}


def sample(store: ClusterWriter) -> Iterator[str]:
    """Limit each workload to a sample of its pods. Yield a sentence for each workload with more pods."""
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
    """Return a workload's manifest with the sample's number of pods; return any other manifest unchanged."""
    spec, meta = raw.get("spec"), raw.get("metadata")
    field = _COUNTS.get(str(raw.get("kind")))
    count = spec.get(field) if field and isinstance(spec, Mapping) else None
    if not isinstance(count, int) or count <= MOST_PODS or not isinstance(meta, Mapping):
        return raw
    notes = {**(meta.get("annotations") or {}), WANTED: str(count)}
    return {**raw, "metadata": {**meta, "annotations": notes}, "spec": {**raw["spec"], field: MOST_PODS}}
