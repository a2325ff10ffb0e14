"""Claims whose UID was removed: the cluster gives them another UID, so they must be bound to their volumes again.

A claim gets the phase Lost if its annotation shows a complete binding but its volume contains another UID.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from kschedd.dumps.sources import DumpedObject

Raw = Mapping[str, Any]
_BOUND: Final = "pv.kubernetes.io/bind-completed"


def claims_without_uid(manifests: Iterable[DumpedObject]) -> set[tuple[str, str]]:
    """Return the namespaces and names of the claims without a UID among these manifests."""
    metas = (found.raw["metadata"] for found in manifests if found.raw["kind"] == "PersistentVolumeClaim")
    return {(meta.get("namespace") or "default", meta.get("name") or "") for meta in metas}


def to_bind(found: DumpedObject, claims: set[tuple[str, str]]) -> DumpedObject:
    """Return a claim without the annotation of a complete binding, or a volume without the UID of its claim."""
    raw = found.raw
    meta = raw["metadata"]
    if raw["kind"] == "PersistentVolumeClaim" and not meta.get("uid") and _BOUND in (meta.get("annotations") or {}):
        left = {key: value for key, value in meta["annotations"].items() if key != _BOUND}
        return attrs.evolve(found, raw={**raw, "metadata": {**meta, "annotations": left}})
    spec = raw.get("spec")
    reference = spec.get("claimRef") if raw["kind"] == "PersistentVolume" and isinstance(spec, dict) else None
    if isinstance(reference, dict) and reference.get("uid") and _claim(reference) in claims:
        named = {key: value for key, value in reference.items() if key not in ("uid", "resourceVersion")}
        return attrs.evolve(found, raw={**raw, "spec": {**raw["spec"], "claimRef": named}})
    return found


def _claim(reference: Raw) -> tuple[str, str]:
    return str(reference.get("namespace")), str(reference.get("name"))
