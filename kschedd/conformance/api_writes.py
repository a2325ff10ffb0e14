"""The scheduler's writes in the format of a golden trace: verb, object, and the changes that a patch of a pod makes.

Source of the format: the README beside the records ("Traces").
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.cache.pod_groups import KIND as POD_GROUP
from kschedd.framework.writes import Bind, Create, Delete, MergePatch, Update, Write
from kschedd.store.patches.merging import merge_patch

Raw = Mapping[str, Any]

_NONE: Final[Raw] = {}


def verb_of(write: Write, before: Object | None) -> str:
    """Return the verb of the request that upstream sends for a write. `before` is the object's last state.

    Upstream updates claims, but patches them to remove reservations. kschedd writes only the changed fields of a claim,
    so the recorded verb is derived from the change.
    """
    match write:
        case MergePatch("ResourceClaim") if not _gives_up(write.patch, before):
            return "update"
        case Create():
            return "create"
        case Update():
            return "update"
        case Bind():
            return "bind"
        case MergePatch():
            return "patch"
        case Delete():
            return "delete"
    raise AssertionError(f"no trace has a write like {write}")


def target_of(write: Write) -> tuple[str, str]:
    """Return the kind and the key of the object that is written."""
    match write:
        case Create(raw) | Update(raw):
            return raw["kind"], _key(raw["metadata"].get("namespace"), raw["metadata"]["name"])
        case Bind(namespace, name):
            return "Pod", _key(namespace, name)
        case MergePatch(kind, namespace, name) | Delete(kind, namespace, name):
            return kind, _key(namespace, name)
    raise AssertionError(f"no trace has a write like {write}")


def trace_entry(write: Write, before: Object | None, code: int) -> dict[str, Any] | None:
    """Return a write in the format of a trace. Return None for a patch without effect, which upstream does not send.

    `before` is the last state of the object that the scheduler observed. `code` is the error code; 0 if the write
    succeeded.
    """
    kind, key = target_of(write)
    entry: dict[str, Any] = {"verb": verb_of(write, before), "object": f"{kind.partition('.')[0]} {key}"}
    if isinstance(write, Bind):
        entry["what"] = [write.node_name]
    if isinstance(write, MergePatch) and kind in ("Pod", POD_GROUP):
        entry["what"] = list(_changes(write.seen or before, write.patch))
        if not entry["what"]:
            return None
    return {**entry, "code": code} if code else entry


def _changes(before: Object | None, patch: Raw) -> Iterator[str]:
    """Yield each condition that a patch of a pod's status changes, with its changed fields; then the nomination."""
    old: Raw = _NONE if before is None else before.raw.get("status") or _NONE
    new: Raw = merge_patch({"status": dict(old)}, {"status": patch.get("status") or {}}).get("status") or _NONE
    known = {one["type"]: one for one in old.get("conditions") or ()}
    for condition in new.get("conditions") or ():
        there = known.get(condition["type"], _NONE)
        if condition != there:
            changed = [_changed(there, condition, field) for field in ("status", "reason")]
            yield f"{condition['type']} {' '.join(changed)}".rstrip()
    nominated = new.get("nominatedNodeName") or ""
    if nominated != (old.get("nominatedNodeName") or ""):
        yield f"nominatedNodeName {nominated or '-'}"


def _gives_up(patch: Raw, before: Object | None) -> bool:
    """Return whether a patch of a claim only removes reservations."""
    known = [] if before is None else before.status.get("reservedFor") or []
    status = patch.get("status") or _NONE
    return set(status) == {"reservedFor"} and all(one in known for one in status["reservedFor"] or ())


def _changed(before: Raw, after: Raw, field: str) -> str:
    value = after.get(field) or ""
    return "" if value == (before.get(field) or "") else str(value)


def _key(namespace: str | None, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
