"""`kubectl apply` as a function of what is live, what was applied last and what is to be applied now."""

import json
from collections.abc import Mapping
from typing import Any

from kschedd.api.objects import Object, Raw
from kschedd.api.schema import ANY
from kschedd.api.shapes import schema_for
from kschedd.store.patches import LAST_APPLIED, three_way

# What a live object says of itself, in a manifest that was printed from one: not to be applied.
_NOT_APPLIED = ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink")


def _noted(raw: Raw) -> dict[str, Any]:
    """The manifest with itself, as text, in kubectl's annotation; what cannot have one is for others to refuse."""
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


def first_applied(raw: Raw) -> dict[str, Any]:
    return _noted(raw)


def applied(live: Object, raw: Raw) -> dict[str, Any]:
    """What the live object becomes when `raw` is applied to it."""
    try:
        last = json.loads(live.annotations.get(LAST_APPLIED) or "{}")
    except ValueError:
        last = {}
    if not isinstance(last, Mapping):
        last = {}
    meta = {name: value for name, value in (raw.get("metadata") or {}).items() if name not in _NOT_APPLIED}
    merged = three_way(last, _noted({**raw, "metadata": meta}), live.raw, schema_for(dict(live.raw)) or ANY)
    result: dict[str, Any] = {**merged, "metadata": {**merged["metadata"]}}
    result["metadata"].pop("resourceVersion", None)
    return result
