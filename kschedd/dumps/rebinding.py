"""Claims whose uid was removed: the cluster gives them another uid, so they are bound to their volumes again.

A claim would be Lost if it had the annotation of a complete binding and another uid than its volume states.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from kschedd.dumps.sources import DumpedObject

Raw = Mapping[str, Any]
_BOUND: Final = "pv.kubernetes.io/bind-completed"


def claims_without_uid(manifests: Iterable[DumpedObject]) -> set[tuple[str, str]]:
    """Return namespace and name of the claims among these manifests, which have no uid."""
    metas = (found.raw["metadata"] for found in manifests if found.raw["kind"] == "PersistentVolumeClaim")
    return {(meta.get("namespace") or "default", meta.get("name") or "") for meta in metas}


def to_bind(found: DumpedObject, claims: set[tuple[str, str]]) -> DumpedObject:
    """Return a claim without its mark of a complete binding, and a volume that names its claim without the uid."""
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
