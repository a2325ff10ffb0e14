"""A Deployment and its ReplicaSets: the new ReplicaSet, and the sizes, annotations and revisions.

Source: Kubernetes v1.34, controller/deployment/util/deployment_util.go and sync.go (getNewReplicaSet).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.controllers.templates import (
    TEMPLATE_HASH,
    canonical_template,
    controller_reference,
    template_hash,
    without_hash,
)
from kschedd.controllers.workloads.rollout import Replicas, fenceposts

REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED: Final = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        REVISION_HISTORY,
        DESIRED,
        MAX_REPLICAS,
        "deprecated.deployment.rollback.to",
    )
)


@attrs.frozen(eq=False)
class Rollout:
    """A Deployment, its ReplicaSets (oldest first), and their sizes in pods."""

    deployment: Object
    new: Object | None
    old: Sequence[Object]
    wanted: int
    surge: int
    unavailable: int
    recreate: bool

    @property
    def all(self) -> list[Object]:
        return [*self.old, *([self.new] if self.new is not None else [])]

    @property
    def revision(self) -> int:
        """The minimum revision of the new ReplicaSet."""
        return max((annotated_int(rs, REVISION) for rs in self.old), default=0) + 1


def compared_template(workload: Object) -> Raw:
    """Return the template of a Deployment or ReplicaSet in the form used for comparisons."""
    return canonical_template(without_hash(workload.spec.get("template") or {}))


def rollout_of(
    deployment: Object, owned: Iterable[Object], compared: Callable[[Object], Raw] = compared_template
) -> Rollout:
    template = compared(deployment)
    sets = sorted(owned, key=lambda rs: (rs.metadata.get("creationTimestamp") or "", rs.name))
    new = next((rs for rs in sets if compared(rs) == template), None)
    strategy = deployment.spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    wanted = int(deployment.spec.get("replicas", 1))
    recreate = strategy.get("type") == "Recreate"
    surge, unavailable = fenceposts(rolling.get("maxSurge", "25%"), rolling.get("maxUnavailable", "25%"), wanted)
    if recreate:
        surge, unavailable = 0, 0
    return Rollout(deployment, new, [rs for rs in sets if rs is not new], wanted, surge, unavailable, recreate)


def annotated_int(obj: Object, name: str) -> int:
    try:
        return int(obj.annotations.get(name) or 0)
    except ValueError:
        return 0


def size_of(replica_set: Object) -> int:
    return int(replica_set.spec.get("replicas", 1))


def status_int(obj: Object, name: str) -> int:
    return int(obj.status.get(name) or 0)


def replicas_of(replica_set: Object) -> Replicas:
    return Replicas(
        replica_set.name,
        size_of(replica_set),
        status_int(replica_set, "availableReplicas"),
        replica_set.metadata.get("creationTimestamp") or "",
        annotated_int(replica_set, MAX_REPLICAS),
    )


def size_annotations(rollout: Rollout) -> dict[str, str]:
    """Return the annotations that record the Deployment's size on a ReplicaSet when it is scaled."""
    return {DESIRED: str(rollout.wanted), MAX_REPLICAS: str(rollout.wanted + rollout.surge)}


def new_set_annotations(rollout: Rollout) -> dict[str, str]:
    """Return the changed annotations of the new ReplicaSet, except those that record the Deployment's size."""
    deployment, new = rollout.deployment, rollout.new
    present: Mapping[str, str] = new.annotations if new is not None else {}
    wanted = {n: v for n, v in deployment.annotations.items() if n not in _NOT_COPIED and present.get(n) != v}
    before = annotated_int(new, REVISION) if new is not None else 0
    if before < rollout.revision:
        wanted[REVISION] = str(rollout.revision)
        if REVISION in present:  # after a rollback, the annotation lists the ReplicaSet's earlier revisions
            earlier = present.get(REVISION_HISTORY)
            wanted[REVISION_HISTORY] = f"{earlier},{present[REVISION]}" if earlier else present[REVISION]
    return wanted


def new_replica_set(rollout: Rollout, size: int) -> dict[str, Any]:
    """Return the manifest of the ReplicaSet for the Deployment's current template."""
    deployment = rollout.deployment
    template: Raw = deployment.spec.get("template") or {}
    digest = template_hash(template, status_int(deployment, "collisionCount"))
    meta = template.get("metadata") or {}
    labels = {**(meta.get("labels") or {}), TEMPLATE_HASH: digest}
    selector = deployment.spec.get("selector") or {}
    match = {**(selector.get("matchLabels") or {}), TEMPLATE_HASH: digest}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{deployment.name}-{digest}",
            "namespace": deployment.namespace,
            "labels": labels,
            "annotations": {**new_set_annotations(rollout), **size_annotations(rollout)},
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": deployment.spec.get("minReadySeconds") or 0,
            "selector": {**selector, "matchLabels": match},
            "template": {**template, "metadata": {**meta, "labels": labels}},
        },
    }
