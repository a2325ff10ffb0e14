"""Entries without fields: frequent writes by the daemon record only the field manager; fields are computed on demand.

Computing a set of fields takes some hundred microseconds, longer than the time from a pod's creation to its binding.
The entry of a new pod, and the entries of statuses that kubelets and controllers write, are therefore stored without
`fieldsV1`:

* The entry of a pod's creation owns the fields of the pod that were not added by admission, by the binding or by later
  writers. The entry also records whether the node's name was set at creation.
* The entries of statuses own the status fields that no other field manager owns: kube-scheduler owns the condition
  PodScheduled and the nominated node, and the last writer owns all other fields.

`resolved` returns all entries with their fields. The function is called at a client's write, which stores the entries
with these fields.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from kschedd.api.schemas.codec import encoded
from kschedd.api.schemas.schema import Schema
from kschedd.api.token_volumes import without_tokens
from kschedd.managed_fields.comparing import compare
from kschedd.managed_fields.entries import UPDATE
from kschedd.managed_fields.field_set import (
    FieldSet,
    difference,
    fields_v1,
    only_below,
    read_fields_v1,
    recursive_difference,
    set_of,
    union,
    union_of,
)
from kschedd.managed_fields.reset_fields import kept_fields
from kschedd.managed_fields.typed import ABSENT

Raw = Mapping[str, Any]
Entries = Sequence[Mapping[str, Any]]

KUBE_SCHEDULER: Final = "kube-scheduler"
_FIELDS_TYPE: Final = "FieldsV1"
_ON_NODE: Final = "onNode"
_OF_META: Final = ("annotations", "finalizers", "generateName", "labels", "ownerReferences")
_OF_SCHEDULER: Final = (
    ("f:status", "f:conditions", 'k:{"type":"PodScheduled"}'),
    ("f:status", "f:nominatedNodeName"),
)
# Fields of a pod's spec that admission or the binding adds.
_ADMITTED: Final = ("priority", "preemptionPolicy", "overhead", "nodeName")
LIMITED: Final = "kubernetes.io/limit-ranger"
_OF_DELETION: Final = frozenset(("orphan", "foregroundDeletion"))
_NOT_READY: Final = frozenset(("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"))


@lru_cache(1 << 10)
def note(manager: str, api_version: str, at: str, subresource: str = "", *, on_node: bool = False) -> Mapping[str, Any]:
    """Return an entry without fields; all objects that this field manager writes in the same second share it.

    `on_node` is true if the pod was created with a node's name.
    """
    entry: dict[str, Any] = {"manager": manager, "operation": UPDATE, "apiVersion": api_version, "time": at}
    if subresource:
        entry["subresource"] = subresource
    return {**entry, _ON_NODE: True} if on_node else entry


def with_note(entries: Entries, manager: str, api_version: str, at: str, subresource: str) -> list[Any]:
    """Return the entries after another write by this field manager, without computing its fields."""
    kept = [
        entry
        for entry in entries
        if "fieldsV1" in entry or entry["manager"] != manager or entry.get("subresource", "") != subresource
    ]
    return [*kept, note(manager, api_version, at, subresource)]


def all_resolved(entries: Entries) -> bool:
    return all("fieldsV1" in entry for entry in entries)


def resolved(raw: Raw, schema: Schema) -> list[Any]:
    """Return the entries of an object with their fields; entries that own no fields are omitted."""
    entries = raw["metadata"].get("managedFields") or []
    if all_resolved(entries):
        return list(entries)
    stated = [read_fields_v1(entry["fieldsV1"]) for entry in entries if "fieldsV1" in entry]
    taken = union_of([FieldSet(), *stated])
    found = []
    for entry in reversed(entries):
        if "fieldsV1" in entry:
            found.append(entry)
            continue
        part = "status" if entry.get("subresource") == "status" else ""
        try:
            if part:
                fields = _status_fields(raw, schema, entry["manager"])
            else:
                fields = _new_pod_fields(raw, schema, _ON_NODE in entry)
        except ValueError:  # items without unique keys, for which upstream records no owners
            continue
        fields = difference(fields, taken)
        taken = union(taken, fields)
        if fields:
            known = {name: value for name, value in entry.items() if name != _ON_NODE}
            found.append({**known, "fieldsType": _FIELDS_TYPE, "fieldsV1": fields_v1(fields)})
    return found[::-1]


def with_resolved(raw: Raw, schema: Schema) -> Raw:
    """Return the object with the fields of all its entries, or the same object if its entries already have them."""
    meta = raw.get("metadata") or {}
    entries = meta.get("managedFields")
    if not entries or all_resolved(entries):
        return raw
    return {**raw, "metadata": {**meta, "managedFields": resolved(raw, schema)}}


def _status_fields(raw: Raw, schema: Schema, manager: str) -> FieldSet:
    born = {}
    if raw.get("kind") == "Pod":
        status = raw.get("status") or {}
        born = {"phase": "Pending", **({"qosClass": status["qosClass"]} if "qosClass" in status else {})}
    fields = schema.get("status") if isinstance(schema, Mapping) else None
    if fields is None:
        return FieldSet()
    changed = compare(encoded(born, fields), raw.get("status") or {}, fields).taken
    whole = FieldSet(False, {"f:status": FieldSet(False, changed.children)}) if changed else FieldSet()
    if raw.get("kind") != "Pod":
        return whole
    of_scheduler = only_below(whole, _OF_SCHEDULER)
    return of_scheduler if manager == KUBE_SCHEDULER else recursive_difference(whole, set_of(*_OF_SCHEDULER))


def _new_pod_fields(raw: Raw, schema: Schema, on_node: bool) -> FieldSet:
    if raw.get("kind") != "Pod":
        return FieldSet()
    meta = {name: raw["metadata"][name] for name in _OF_META if name in raw["metadata"]}
    spec = {name: value for name, value in raw["spec"].items() if name not in _ADMITTED}
    if on_node and "nodeName" in raw["spec"]:
        spec["nodeName"] = raw["spec"]["nodeName"]
    if _only_admitted(spec.get("tolerations")):
        del spec["tolerations"]
    spec = _without_token(spec)
    if LIMITED in (meta.get("annotations") or {}):
        left = {name: text for name, text in meta["annotations"].items() if name != LIMITED}
        meta["annotations"] = left if left else ABSENT
    if _OF_DELETION & {*(meta.get("finalizers") or ())}:
        meta["finalizers"] = [name for name in meta["finalizers"] if name not in _OF_DELETION] or ABSENT
    meta = {name: value for name, value in meta.items() if value is not ABSENT}
    stated = {"apiVersion": raw["apiVersion"], "kind": "Pod", "metadata": meta, "spec": spec}
    added = compare(encoded({}, schema), {**encoded({}, schema), **stated}, schema).taken
    found = kept_fields("Pod", "")(added)
    return difference(found, set_of(("f:apiVersion",), ("f:kind",), ("f:metadata",)))


def _without_token(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec without the token's volume and the account `default` that admission adds."""
    volumes = without_tokens(spec.get("volumes"))
    if len(volumes) == len(spec.get("volumes") or ()):
        return spec
    found = {**spec, "volumes": volumes}
    if not volumes:
        del found["volumes"]
    if found.get("serviceAccountName") == "default":
        del found["serviceAccountName"]
        found.pop("serviceAccount", None)
    for field in ("initContainers", "containers"):
        if field in found:
            found[field] = [_without_token_mount(container) for container in found[field]]
    return found


def _without_token_mount(container: Raw) -> Raw:
    mounts = container.get("volumeMounts") or ()
    left = without_tokens(mounts)
    if len(left) == len(mounts):
        return container
    others = {name: value for name, value in container.items() if name != "volumeMounts"}
    return {**others, "volumeMounts": left} if left else others


def _only_admitted(tolerations: Any) -> bool:
    """Return whether all these tolerations are those that admission adds to every pod."""
    return bool(tolerations) and all(
        each.get("key") in _NOT_READY
        and each.get("operator") == "Exists"
        and each.get("effect") == "NoExecute"
        and each.get("tolerationSeconds") == 300
        for each in tolerations
    )
