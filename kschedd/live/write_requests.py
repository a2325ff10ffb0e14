"""Writes as requests to a real API server.

A write to an existing object is sent as a strategic merge patch with only the changes, as in kube-scheduler. Fields
that kschedd does not know, and list entries that others have added meanwhile, are therefore preserved. Resource
versions of local copies are assigned by this daemon and never sent. If a write depends on a version, the caller
provides the server's version.

Pure.
Source: Kubernetes v1.34, the REST API; apimachinery/pkg/util/strategicpatch for `$patch`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.kinds import BY_NAME, lookup
from kschedd.api.schemas.schema import ANY, NO_STRATEGY, PatchStrategy, Schema, field_of, item_of, schema_of
from kschedd.live.api_server import ServedResource
from kschedd.live.connection import ServerRequest
from kschedd.store.leases import LEASE
from kschedd.store.trial import Key
from kschedd.store.writes import (
    Bind,
    Create,
    Delete,
    Evict,
    FinalizeNamespace,
    Patch,
    RenewLease,
    Update,
    Write,
)

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
_OWN_META: Final = ("resourceVersion", "managedFields", "generation")  # fields that only the server sets
_POD: Final = ServedResource("Pod", "v1", "pods")


def key_written(write: Write) -> Key:
    """Return the key of the object that is written."""
    match write:
        case Create(raw) | Update(raw, _):
            meta = raw.get("metadata") or {}
            return raw["kind"], meta.get("namespace") or "", meta.get("name") or ""
        case Bind(namespace, name) | Evict(namespace, name):
            return "Pod", namespace, name
        case Patch(kind, namespace, name) | Delete(kind, namespace, name):
            return kind, namespace, name
        case FinalizeNamespace(name):
            return "Namespace", "", name
        case RenewLease(namespace, name):
            return LEASE, namespace, name
        case _:
            assert_never(write)


def made_from(write: Write) -> str:
    """Return the version in the mirror from which the write was computed, or "" if any version is allowed."""
    match write:
        case Update(raw) | Patch(patch=raw) if version := (raw.get("metadata") or {}).get("resourceVersion"):
            return str(version)
        case Patch(seen=Object() as seen, guarded=True):
            return str(seen.resource_version)
        case _:
            return ""


def request_of(write: Write, held: Object | None, version: str = "") -> ServerRequest:
    """Return the request for this write.

    `held` is the local copy of the object, if any; `version` is the server's version that the object must have, or "".
    """
    match write:
        case Create(raw):
            kind, namespace, _ = key_written(write)
            return ServerRequest("POST", _resource(kind, raw.get("apiVersion")).path_in(namespace), body=dict(raw))
        case Bind(namespace, name, uid, node_name):
            body = {
                **_head("v1", "Binding", namespace, name, uid),
                "target": {"apiVersion": "v1", "kind": "Node", "name": node_name},
            }
            return ServerRequest("POST", _POD.path_of(namespace, name, "binding"), body=body)
        case Evict(namespace, name, uid, grace):
            body = {
                **_head("policy/v1", "Eviction", namespace, name),
                "deleteOptions": _delete_options(uid, grace),
            }
            return ServerRequest("POST", _POD.path_of(namespace, name, "eviction"), body=body)
        case Delete(kind, namespace, name, uid, grace, propagation):
            options = _delete_options(uid, grace)
            if kind != "Pod":
                options["propagationPolicy"] = propagation
            return ServerRequest("DELETE", _path(kind, namespace, name, held), body=options)
        case Patch():
            return _patch(write, held, version)
        case Update(raw, subresource):
            kind, namespace, name = key_written(write)
            if held is None:
                body = _sendable(raw, kind)
                return ServerRequest("PUT", _path(kind, namespace, name, held, subresource), body=body)
            patch = _difference(_sendable(held.raw, kind), _sendable(raw, kind))
            patch = {**patch, "metadata": {"uid": held.uid, **patch.get("metadata", {})}}
            return _patch(Patch(kind, namespace, name, patch, subresource, held), held, version)
        case FinalizeNamespace(name):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}}
            return ServerRequest("PUT", _path("Namespace", "", name, held, "finalize"), body=body)
        case RenewLease():
            raise AssertionError("in a real cluster, the kubelets renew their own Leases")
        case _:
            assert_never(write)


def read_request(key: Key, held: Object | None) -> ServerRequest:
    return ServerRequest("GET", _path(*key, held))


def _patch(write: Patch, held: Object | None, version: str) -> ServerRequest:
    patch, seen = write.patch, write.seen
    meta = {field: value for field, value in (patch.get("metadata") or {}).items() if field != "resourceVersion"}
    body: dict[str, Any] = {**patch, "metadata": {**meta, **({"resourceVersion": version} if version else {})}}
    resource = _resource(write.kind, _api_version(held or seen))
    path = resource.path_of(write.namespace, write.name, write.subresource)
    schema = schema_of(resource.api_version, write.kind)
    if schema is None:  # a custom kind
        return ServerRequest("PATCH", path, body=body, media_type=MERGE)
    body = as_strategic(body, {} if seen is None else seen.raw, schema)
    return ServerRequest("PATCH", path, body=body, media_type=STRATEGIC)


def as_strategic(patch: Any, held: Any, schema: Schema = ANY, strategy: PatchStrategy = NO_STRATEGY) -> Any:
    """Return the strategic merge patch with the same effect on `held` as this RFC 7386 patch.

    In lists whose entries have keys, unchanged entries are omitted.
    """
    if isinstance(patch, Mapping):
        before = held if isinstance(held, Mapping) else {}
        whole: dict[str, Any] = {}
        for name, value in patch.items():
            inner, how = field_of(schema, name)
            if how.merge and not how.merge_key and isinstance(value, list | None):
                whole |= _changed_values(name, value, before.get(name))
            else:
                whole[name] = as_strategic(value, before.get(name), inner, how)
        return whole
    if not strategy.merge_key or not isinstance(patch, list | None) or not (patch or held):
        return patch
    return _changed_entries(patch or [], held if isinstance(held, list) else [], strategy.merge_key, item_of(schema))


def _changed_values(name: str, wanted: Sequence[Any] | None, held: Any) -> dict[str, Any]:
    """Return the changes of a list of plain values, such as finalizers."""
    there = held if isinstance(held, list) else []
    changed: dict[str, Any] = {}
    if wanted is not None:
        changed[name] = [value for value in wanted if value not in there]
    if gone := [value for value in there if value not in (wanted or ())]:
        changed[f"$deleteFromPrimitiveList/{name}"] = gone
    return changed


def _changed_entries(wanted: Sequence[Any], there: Sequence[Any], key: str, item: Schema) -> list[Any]:
    if not all(isinstance(entry, Mapping) for entry in wanted):
        return list(wanted)  # the server will report the error
    by_key = {entry.get(key): entry for entry in there if isinstance(entry, Mapping)}
    changed: list[Any] = []
    for entry in wanted:
        before = by_key.pop(entry.get(key), None)
        if before is None:
            changed.append(entry)
        elif entry != before:
            changed.append({**as_strategic(_difference(before, entry), before, item), key: entry.get(key)})
    return changed + [{"$patch": "delete", key: gone} for gone in by_key]


def _difference(old: Any, new: Any) -> Any:
    """Return the RFC 7386 patch that changes `old` to `new`."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    changed = {name: None for name in old if name not in new}
    return changed | {
        name: _difference(old.get(name), value) for name, value in new.items() if name not in old or old[name] != value
    }


def _sendable(raw: Raw, kind: str) -> dict[str, Any]:
    """Return the object without local resource versions."""
    meta = {field: value for field, value in raw["metadata"].items() if field not in _OWN_META}
    sendable: dict[str, Any] = {**raw, "metadata": meta}
    claim = (raw.get("spec") or {}).get("claimRef") if kind == "PersistentVolume" else None
    if isinstance(claim, Mapping):
        named = {field: value for field, value in claim.items() if field != "resourceVersion"}
        sendable["spec"] = {**raw["spec"], "claimRef": named}
    return sendable


def _resource(kind: str, api_version: str | None) -> ServedResource:
    known = BY_NAME.get(kind) or lookup(kind)
    return ServedResource(kind, api_version or known.api_version, known.plural)


def _path(kind: str, namespace: str, name: str, held: Object | None, subresource: str = "") -> str:
    return _resource(kind, _api_version(held)).path_of(namespace, name, subresource)


def _api_version(obj: Object | None) -> str | None:
    """Return the apiVersion of the object on the server."""
    return None if obj is None else obj.raw.get("apiVersion")


def _head(api_version: str, kind: str, namespace: str, name: str, uid: str = "") -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, **({"uid": uid} if uid else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}


def _delete_options(uid: str, grace_s: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid:
        options["preconditions"] = {"uid": uid}
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    return options
