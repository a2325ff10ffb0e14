"""`kubectl apply` as a function of the live object, the last applied manifest and the manifest to apply."""

import json
from collections.abc import Mapping
from typing import Any

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.schema import ANY
from kschedd.api.text.json_text import json_value
from kschedd.store.patches.merging import LAST_APPLIED, three_way

# metadata that the server sets a manifest printed from a live object contains these fields, which must not be applied
_NOT_APPLIED = ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink")


def _noted(raw: Raw) -> dict[str, Any]:
    """Return the manifest with a last-applied annotation that contains its own text.

    If this is impossible, return the manifest unchanged; validation rejects it later.
    """
    meta = raw.get("metadata") or {}
    annotations = meta.get("annotations") or {}
    if not isinstance(annotations, Mapping):
        return dict(raw)
    annotations = {name: value for name, value in annotations.items() if name != LAST_APPLIED}
    bare = {**raw, "metadata": {**meta, "annotations": annotations}}
    try:
        note = json.dumps(bare, separators=(",", ":"), sort_keys=True) + "\n"
    except (TypeError, ValueError, RecursionError):
        return dict(raw)
    return {**raw, "metadata": {**meta, "annotations": {**annotations, LAST_APPLIED: note}}}


def first_applied(raw: Raw, *, annotated: bool = True) -> dict[str, Any]:
    """Return the object that the first apply of a manifest creates; `annotated` adds the last-applied annotation."""
    return _noted(raw) if annotated else dict(raw)


def applied(live: Object, raw: Raw, *, annotated: bool = True) -> dict[str, Any]:
    """Return the live object with `raw` applied to it; `annotated` adds the last-applied annotation."""
    try:
        last = json_value(live.annotations.get(LAST_APPLIED) or "{}")
    except (ValueError, TypeError):
        last = {}
    if not isinstance(last, Mapping):
        last = {}
    meta = {name: value for name, value in (raw.get("metadata") or {}).items() if name not in _NOT_APPLIED}
    merged = three_way(
        last, first_applied({**raw, "metadata": meta}, annotated=annotated), live.raw, schema_for(dict(live.raw)) or ANY
    )
    result: dict[str, Any] = {**merged, "metadata": {**merged["metadata"]}}
    result["metadata"].pop("resourceVersion", None)
    return result
