"""ControllerRevisions: earlier templates of a DaemonSet or StatefulSet, for rollbacks.

A revision contains the pod template, as a patch, and a number that increases with each change. When an earlier template
is restored, its revision is reused with a new number. Source: Kubernetes v1.34,
controller/history/controller_history.go, controller/daemon/update.go, controller/statefulset/stateful_set_utils.go
(newRevision).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.controllers.running.controller import View
from kschedd.controllers.running.derived import Derived
from kschedd.controllers.templates import canonical_template, controller_reference, safe_encoded
from kschedd.store.errors import AlreadyExists, ApiError
from kschedd.store.writes import Create, Delete, Write, status_of

REVISION_HASH: Final = "controller-revision-hash"  # label of pods and of a DaemonSet's ControllerRevisions
HASH_LABEL: Final = "controller.kubernetes.io/hash"  # label of ControllerRevisions of StatefulSets
_LONGEST_NAME: Final = 223


def number_of(revision: Object) -> int:
    return int(revision.raw.get("revision") or 0)


def in_order(revisions: Iterable[Object]) -> list[Object]:
    """Return revisions sorted by number, lowest first. Revisions with equal numbers are sorted by age, oldest first."""
    return sorted(revisions, key=lambda r: (number_of(r), r.metadata.get("creationTimestamp") or "", r.name))


def revision_data(workload: Object) -> Raw:
    """Return the patch that restores the workload's current template."""
    return {"spec": {"template": {**canonical_template(workload.spec.get("template") or {}), "$patch": "replace"}}}


def template_of(revision: Object) -> Raw:
    found: Any = revision.raw.get("data")  # may have any type, because another program may have written the revision
    for name in ("spec", "template"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return {name: value for name, value in found.items() if name != "$patch"} if isinstance(found, Mapping) else {}


def _present_template(workload: Object) -> Raw:
    return canonical_template(workload.spec.get("template") or {})


def _earlier_template(revision: Object) -> Raw:
    return canonical_template(template_of(revision))


class ComparedTemplates:
    """Pod templates of workloads and revisions, cached in the form used for comparisons."""

    def __init__(self) -> None:
        self._present = Derived(_present_template)
        self._earlier = Derived(_earlier_template, "data")

    def equal_to(self, workload: Object, revisions: Iterable[Object]) -> list[Object]:
        """Return the revisions that contain the workload's current template, in the given order."""
        template = self._present.of(workload)
        return [revision for revision in revisions if self._earlier.of(revision) == template]

    def forget(self, gone: Object) -> None:
        self._present.forget(gone)
        self._earlier.forget(gone)


def data_hash(data: Raw, collisions: int) -> str:
    """Return the hash of a StatefulSet's revision, which is FNV-1 of its data as JSON (HashControllerRevision)."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + str(collisions)
    number = 2166136261
    for byte in text.encode():
        number = (number * 16777619 & 0xFFFFFFFF) ^ byte
    return safe_encoded(number)


def another_hash(write: Create, error: ApiError, view: View) -> list[Write]:
    """Count a hash collision if a new revision was rejected because its name is in use."""
    meta = write.raw["metadata"]
    owner = meta["ownerReferences"][0]
    workload = view.find(owner["kind"], meta["namespace"], owner["name"])
    present = view.find("ControllerRevision", meta["namespace"], meta["name"])
    if workload is None or present is None or not isinstance(error, AlreadyExists):
        return []
    return [status_of(workload, {"collisionCount": (workload.status.get("collisionCount") or 0) + 1})]


def new_revision(workload: Object, number: int, digest: str, hash_label: str) -> dict[str, Any]:
    labels = ((workload.spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    meta: dict[str, Any] = {
        "name": f"{workload.name[:_LONGEST_NAME]}-{digest}",
        "namespace": workload.namespace,
        "labels": {**labels, hash_label: digest},
        "ownerReferences": [controller_reference(workload)],
    }
    if workload.annotations:
        meta["annotations"] = dict(workload.annotations)
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": meta,
        "data": revision_data(workload),
        "revision": number,
    }


def oldest_dead(revisions: Sequence[Object], live: Iterable[str]) -> list[Object]:
    """Return the unused revisions, oldest first; `live` contains the names of the revisions that pods use."""
    kept = frozenset(live)
    return [revision for revision in in_order(revisions) if revision.name not in kept]


def deletion_of(revision: Object) -> Write:
    return Delete(revision.kind, revision.namespace, revision.name, revision.uid)
