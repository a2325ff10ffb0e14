"""managedFields in the store: field managers of writes, schemas of objects, and the result of a server-side apply.

A write with a field manager is recorded in managedFields; other writes leave the managedFields unchanged. For created
pods, and for statuses written by parts of the daemon (`Component`), only a note without the list of fields is stored
(see `kschedd.managed_fields.noted`). Raises: BadPatch, ApplyConflict, ApplySchemaError.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.check import schema_for, without_nulls
from kschedd.api.schemas.codec import encoded_object
from kschedd.api.schemas.schema import Fields
from kschedd.managed_fields.entries import conflict_causes, conflict_message, without_times
from kschedd.managed_fields.field_manager import ApplyRefused, FieldWrite, after_applying, after_write
from kschedd.managed_fields.noted import LIMITED, note, with_note, with_resolved
from kschedd.managed_fields.reset_fields import kept_fields
from kschedd.managed_fields.structural import structural_schema
from kschedd.managed_fields.updater import Conflicted
from kschedd.registry.strategy import TEMPLATE_GENERATION
from kschedd.store.custom_resources.kinds import version_of
from kschedd.store.custom_resources.scale import ScalePaths, scale_paths, steps_of
from kschedd.store.errors import ApplyConflict, ApplySchemaError, BadPatch, Conflict
from kschedd.store.identity import check_path

MANAGED: Final = "managedFields"


class Component(str):
    """The name of a part of the daemon as a field manager.

    Its status writes are stored as notes, which are expanded when a client reads the managedFields.
    """

    __slots__ = ()


@attrs.frozen
class Managing:
    """The field manager of a write ("": not recorded), and the managedFields if they are already computed."""

    manager: str = ""
    entries: list[Any] | None = None


NOBODY: Final = Managing()
_FROM_STRATEGY: Final[Mapping[str, str]] = {"Service": "clusterIPs", "Namespace": "finalizers"}


def field_write(
    manager: str, raw: Raw, definition: Object | None, subresource: str, at: str, stored: str = ""
) -> FieldWrite:
    """Return the FieldWrite for a write of this object.

    `definition` is the definition of a custom resource; `stored` is the store's name for the kind.
    """
    api_version = str(raw.get("apiVersion") or "v1")
    kind = str(raw.get("kind") or "")
    schema = schema_for(dict(raw))
    if schema is not None:
        return FieldWrite(manager, kind, schema, api_version, subresource, at, kept_fields(kind, subresource))
    version = {} if definition is None else version_of(definition, api_version)
    has_status = "status" in (version.get("subresources") or {})
    paths = scale_paths(version) or ScalePaths()
    kept = kept_fields(stored or kind, subresource, status=has_status, replicas=steps_of(paths.replicas))
    return FieldWrite(manager, kind, _custom_schema(version), api_version, subresource, at, kept)


def _custom_schema(version: Raw) -> Fields:
    return structural_schema((version.get("schema") or {}).get("openAPIV3Schema"))


def as_stated(defaulted: dict[str, Any], raw: Raw) -> dict[str, Any]:
    """Return a new object with its defaults, without fields that the API server's strategy for the kind sets.

    Kube-apiserver decodes a DaemonSet into a type with the template generation as a field, and encodes the field as an
    annotation. The annotation is then owned by the field manager of the write.
    """
    if defaulted.get("kind") == "DaemonSet" and defaulted.get("apiVersion") == "apps/v1":
        meta = defaulted.get("metadata") or {}
        annotations = {TEMPLATE_GENERATION: "0", **(meta.get("annotations") or {})}
        return {**defaulted, "metadata": {**meta, "annotations": annotations}}
    field = _FROM_STRATEGY.get(str(defaulted.get("kind"))) if defaulted.get("apiVersion") == "v1" else None
    spec = {} if field is None else defaulted.get("spec") or {}
    if field not in spec or (raw.get("spec") or {}).get(field):
        return defaulted
    return {**defaulted, "spec": {name: value for name, value in spec.items() if name != field}}


def entries_of_new(new: Raw, write: FieldWrite) -> list[dict[str, Any]]:
    """Return the managedFields of a new object; `new` has defaults, but no changes by admission."""
    try:
        return after_write(None, new, write)
    except ValueError:  # duplicate items, for which upstream stores no managedFields
        return []


def new_pod_entries(managing: Managing, meta: Raw, stated_spec: Raw | None, node_name: str) -> list[Any]:
    """Return the managedFields of a new pod.

    The result is a note (`noted`), unless an apply has computed managedFields or admission made changes that a note
    cannot express. In the latter case, `stated_spec` is the spec before admission.
    """
    if managing.entries is not None:
        return managing.entries
    at = meta["creationTimestamp"]
    if stated_spec is None:
        return [note(managing.manager, "v1", at, on_node=bool(node_name))]
    annotations = {name: text for name, text in (meta.get("annotations") or {}).items() if name != LIMITED}
    stated_meta = {**meta, "annotations": annotations} if annotations else dict(meta)
    if not annotations:
        stated_meta.pop("annotations", None)
    spec = dict(stated_spec)
    if node_name:
        spec["nodeName"] = node_name
    stated = {"apiVersion": "v1", "kind": "Pod", "metadata": stated_meta, "spec": spec}
    return entries_of_new(stated, field_write(managing.manager, stated, None, "", at))


def with_resolved_entries(raw: Raw) -> Raw:
    """Return the object with its notes expanded, for clients that request managedFields."""
    if not (raw.get("metadata") or {}).get(MANAGED):
        return raw
    schema = schema_for(dict(raw))
    return raw if schema is None else with_resolved(raw, schema)


def without_entries(raw: Raw) -> Raw:
    """Return the object without managedFields, for clients that do not request them."""
    meta = raw.get("metadata")
    if not meta or MANAGED not in meta:
        return raw
    return {**raw, "metadata": {name: value for name, value in meta.items() if name != MANAGED}}


def entries_after(old: Object, new: Raw, write: FieldWrite) -> list[Any]:
    """Return the managedFields after an update; `new` may contain managedFields of its own.

    An object without managedFields stays without them.
    """
    if not old.metadata.get(MANAGED) and not (new.get("metadata") or {}).get(MANAGED):
        return []
    try:
        return after_write(_whole(old, write), new, write)
    except ValueError:
        return []


def _whole(old: Object, write: FieldWrite) -> Raw:
    """Return the object as kube-apiserver encodes it; kschedd's components omit null fields."""
    return encoded_object(dict(with_resolved(old.raw, write.schema)))


def noted_after(old: Object, manager: str, at: str) -> list[Any]:
    """Return the managedFields after a part of the daemon has written the status."""
    entries = old.metadata.get(MANAGED)
    return with_note(entries, str(manager), old.raw["apiVersion"], at, "status") if entries else []


def with_entries(raw: Mapping[str, Any], entries: list[Any]) -> dict[str, Any]:
    """Return the object with these managedFields."""
    meta = {name: value for name, value in raw["metadata"].items() if name != MANAGED}
    if entries:
        meta[MANAGED] = entries
    return {**raw, "metadata": meta}


def unless_times_only(old: Object, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the object with its old managedFields if only the timestamps of the new ones differ."""
    before, after = old.metadata.get(MANAGED), wanted["metadata"].get(MANAGED)
    known = (with_resolved_entries(old.raw).get("metadata") or {}).get(MANAGED)
    if before is after or without_times(known) != without_times(after):
        return wanted
    managed = with_entries(wanted, before or [])
    left_out = (MANAGED, "resourceVersion")
    meta, was = (
        {name: value for name, value in each.items() if name not in left_out}
        for each in (managed["metadata"], old.metadata)
    )
    parts = (managed.keys() | old.raw.keys()) - {"metadata"}
    return managed if meta == was and all(managed.get(p) == old.raw.get(p) for p in parts) else wanted


def applied_by(old: Object | None, config: Raw, write: FieldWrite, *, force: bool) -> dict[str, Any]:
    """Return the object and its managedFields after its field manager applied this configuration."""
    live = None if old is None else _whole(old, write)
    try:
        made, entries = after_applying(live, config, write, force=force)
    except ApplyRefused as refused:
        raise (BadPatch(refused.why) if refused.code == 400 else ApplySchemaError(refused.why)) from None
    except Conflicted as conflicted:
        causes = tuple(conflict_causes(conflicted.conflicts))
        raise ApplyConflict(conflict_message(conflicted.conflicts), causes) from None
    except ValueError as wrong:
        raise ApplySchemaError(f"failed to merge config: {wrong}") from None
    whole = made if made is not None else dict(live or config)
    whole.setdefault("metadata", {})
    return with_entries({**whole, "metadata": whole["metadata"] or {}}, entries)


def created_by(
    kind: str, namespace: str, name: str, config: Raw, write: FieldWrite
) -> tuple[dict[str, Any], list[Any]]:
    """Return the new object that an apply creates, and its managedFields.

    Raises BadRequest, Conflict and ApplySchemaError.
    """
    whole = applied_by(None, config, write, force=True)
    meta = whole["metadata"]
    if meta.get("uid"):
        why = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was found"
        raise Conflict(kind, name, why)
    check_path(kind, namespace, name, whole)
    if meta.get("resourceVersion") not in (None, "", "0"):
        raise ApplySchemaError("resourceVersion should not be set on objects to be created")
    raw = without_nulls({**config, "metadata": {**(config.get("metadata") or {}), "namespace": namespace}})
    return raw, meta.get(MANAGED) or []
