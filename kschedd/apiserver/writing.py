"""Writing objects: create, update, patch, delete one or a collection. The store has the rules; here is what HTTP adds.

An answer goes out when the write is kept: requests to the store wait for that.
Source: Kubernetes v1.34, apiserver/pkg/endpoints/handlers (create.go, update.go, patch.go, delete.go).
Raises: StatusError and the store's errors.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs

from kschedd.api.fields import FieldError, forbidden, invalid, required
from kschedd.api.objects import Object, Raw
from kschedd.apiserver.bodies import (
    Body,
    checked_kind,
    duplicates_told,
    field_validation,
    media_type,
    meta_of,
    read_body,
    read_json,
    warning_headers,
)
from kschedd.apiserver.negotiation import json_response, wanted_form
from kschedd.apiserver.options import read_options
from kschedd.apiserver.reading import list_response, object_response, read_page
from kschedd.apiserver.requests import Asked
from kschedd.apiserver.resources import Resource
from kschedd.apiserver.services import FaceServices
from kschedd.apiserver.status import StatusError, bad_request, invalid_options, method_not_allowed, success
from kschedd.http.server import HttpResponse
from kschedd.rpc.aside import change
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.deletion import Propagation
from kschedd.store.errors import NotFound
from kschedd.store.field_validation import known_fields
from kschedd.store.patching import PatchType
from kschedd.store.updates import Subresource

T = TypeVar("T")

LARGE_BODY: Final = 64 << 10  # bytes: such a request is worked on beside the loop
_IN_ONE_GO: Final = 100  # objects deleted in one request to the store

PATCHES: Final[Mapping[str, PatchType]] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}

_APPLY: Final = "application/apply-patch+yaml"

#: Kinds of which a PUT makes one that is missing.
_MADE_BY_UPDATE: Final = frozenset(
    "Lease Endpoints Event LimitRange Service Role RoleBinding ClusterRole ClusterRoleBinding".split()
)
#: Kinds whose deletion is answered with the object.
_ANSWERED_WITH_OBJECT: Final = frozenset(
    "Pod PersistentVolumeClaim PersistentVolume Namespace ServiceAccount ResourceQuota StorageClass CSINode"
    " ResourceClaim ResourceClaimTemplate ResourceSlice DeviceClass PodTemplate Service VolumeAttachment".split()
)
_PROPAGATION: Final[Mapping[str, Propagation]] = {
    "Background": "Background",
    "Foreground": "Foreground",
    "Orphan": "Orphan",
}


async def write(
    face: FaceServices,
    asked: Asked,
    request: Callable[[ClusterWriter], T],
    about: Callable[[ClusterWriter], Object | None] | None = None,
) -> T:
    """Run a write on the store, or beside it where what is sent, or what it is about, is large."""
    size = len(asked.http.body)
    call = face.call(asked.target.verb, asked.client, size if size > LARGE_BODY else 0)
    return await change(face.cluster, call, request, about)


def _about(asked: Asked) -> Callable[[ClusterWriter], Object | None]:
    target = asked.target
    return lambda store: store.find(target.resource.stored, target.namespace, target.name)


async def received(face: FaceServices, asked: Asked, resource: Resource) -> tuple[dict[str, Any], Body]:
    """The object in the body, of the kind and version of the path."""
    content_type = asked.headers.get("content-type", "")
    data = asked.http.body

    def read() -> tuple[dict[str, Any], Body]:
        body = read_body(data, content_type, resource.kind)
        return checked_kind(body, resource.api_version, resource.kind, resource.group), body

    if len(data) > LARGE_BODY:
        return await face.workers.run(asked.client, lambda given_up: read())
    return read()


def placed(asked: Asked, raw: dict[str, Any], *, named: bool) -> dict[str, Any]:
    """The object where the path says it is; one that says otherwise is refused."""
    target = asked.target
    meta = meta_of(raw)
    if target.resource.namespaced and target.namespace:
        if meta.get("namespace") and meta["namespace"] != target.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        meta["namespace"] = target.namespace
    if named:
        if not meta.get("name"):
            meta["name"] = target.name
        elif meta["name"] != target.name:
            given = str(meta["name"])[:253]
            raise bad_request(
                f"the name of the object ({given}) does not match the name on the URL ({target.name[:253]})"
            )
    return {**raw, "metadata": meta}


async def create(face: FaceServices, asked: Asked) -> HttpResponse:
    resource = asked.target.resource
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    validation = field_validation(asked.query)
    raw, body = await received(face, asked, resource)
    told = duplicates_told(body, validation, resource.kind, resource.api_version)
    raw = placed(asked, raw, named=False)
    if raw["metadata"].get("resourceVersion"):
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")

    dry_run = asked.dry_run

    def made(store: ClusterWriter) -> dict[str, Any]:
        known, warnings = known_fields(raw, validation)
        return {"object": store.create(known, dry_run=dry_run).raw, "warnings": warnings}

    answer = await write(face, asked, made)
    shown = without_version(answer["object"]) if dry_run else answer["object"]
    return object_response(face, asked, shown, 201, form, warning_headers((*told, *answer["warnings"])))


def without_version(raw: Raw) -> Raw:
    """A new object that was tried only: no version is its own."""
    kept = {field: value for field, value in raw["metadata"].items() if field != "resourceVersion"}
    return {**raw, "metadata": kept}


async def update(face: FaceServices, asked: Asked, subresource: Subresource = "") -> HttpResponse:
    resource = asked.target.resource
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    validation = field_validation(asked.query)
    raw, body = await received(face, asked, resource)
    told = duplicates_told(body, validation, resource.kind, resource.api_version)
    raw = placed(asked, raw, named=True)
    version = raw["metadata"].get("resourceVersion")
    if isinstance(version, str) and version and not version.isdigit():
        raise StatusError(500, "", f'strconv.ParseUint: parsing "{version[:100]}": invalid syntax')

    def made(store: ClusterWriter) -> dict[str, Any]:
        known, warnings = known_fields(raw, validation)
        meta = known["metadata"]
        there = store.find(resource.stored, meta.get("namespace") or "", meta["name"])
        if there is None and not subresource and resource.stored in _MADE_BY_UPDATE:
            return {"object": store.create(known, dry_run=asked.dry_run).raw, "warnings": warnings, "status": 201}
        changed = store.update(known, subresource=subresource, dry_run=asked.dry_run, as_client=True)
        return {"object": changed.raw, "warnings": warnings, "status": 200}

    answer = await write(face, asked, made, _about(asked))
    headers = warning_headers((*told, *answer["warnings"]))
    return object_response(face, asked, answer["object"], answer["status"], form, headers)


async def patch(face: FaceServices, asked: Asked, subresource: Subresource = "") -> HttpResponse:
    target = asked.target
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    patch_type, value = read_patch(asked)
    validation = field_validation(asked.query)

    def made(store: ClusterWriter) -> dict[str, Any]:
        changed, warnings = store.patch(
            target.resource.stored,
            target.namespace,
            target.name,
            value,
            patch_type,
            subresource=subresource,
            validation=validation,
            dry_run=asked.dry_run,
        )
        return {"object": changed.raw, "warnings": warnings}

    answer = await write(face, asked, made, _about(asked))
    return object_response(face, asked, answer["object"], 200, form, warning_headers(tuple(answer["warnings"])))


def _check_patch_options(asked: Asked, *, applied: bool) -> None:
    faults = []
    if applied and not asked.query.text("fieldManager"):
        faults.append(required("fieldManager", "is required for apply patch"))
    if not applied and asked.query.flag("force"):
        faults.append(forbidden("force", "may not be specified for non-apply patch"))
    if faults:
        raise invalid_options("PatchOptions", faults)


def read_patch(asked: Asked) -> tuple[PatchType, Any]:
    media = media_type(asked.headers.get("content-type", ""))
    _check_patch_options(asked, applied=media == _APPLY)
    patch_type = PATCHES.get(media)
    if patch_type is None or (patch_type == "strategic" and asked.target.resource.definition is not None):
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    return patch_type, read_json(asked.http.body).value


# Deletion


@attrs.frozen
class DeleteOptions:
    grace_period_s: int | None = None
    propagation: Propagation = "Background"
    uid: str = ""
    resource_version: int | None = None
    dry_run: bool = False


def delete_options(asked: Asked) -> DeleteOptions:
    """From the body, or from the query where there is none."""
    query, body = asked.query, asked.http.body
    given: dict[str, Any] = {}
    if body:
        value = read_body(body, asked.headers.get("content-type", ""), "DeleteOptions").value
        if isinstance(value, Mapping):
            given = dict(value)
    else:
        if (grace := query.integer("gracePeriodSeconds")) is not None:
            given["gracePeriodSeconds"] = grace
        if query.text("propagationPolicy"):
            given["propagationPolicy"] = query.text("propagationPolicy")
        if query.text("orphanDependents"):
            given["orphanDependents"] = query.flag("orphanDependents")
    return options_of(given, asked.dry_run)


def options_of(given: Mapping[str, Any], dry_run: bool = False) -> DeleteOptions:
    """DeleteOptions as an object. Raises StatusError."""
    grace = given.get("gracePeriodSeconds")
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise bad_request("gracePeriodSeconds is no integer")
    asked = given.get("propagationPolicy")
    if asked is not None and given.get("orphanDependents") is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        raise invalid_options("DeleteOptions", (invalid("propagationPolicy", asked, why),))
    if asked is None:
        asked = "Orphan" if given.get("orphanDependents") else "Background"
    propagation = _PROPAGATION.get(asked) if isinstance(asked, str) else None
    if propagation is None:
        supported = '"Foreground", "Background", "Orphan", "nil"'
        why = f'Unsupported value: "{str(asked)[:100]}": supported values: {supported}'
        raise invalid_options("DeleteOptions", (FieldError("propagationPolicy", asked, why),))
    preconditions = given.get("preconditions") or {}
    version = str(preconditions.get("resourceVersion") or "")
    return DeleteOptions(
        grace,
        propagation,
        str(preconditions.get("uid") or ""),
        int(version) if version.isdigit() else None,
        dry_run or "All" in (given.get("dryRun") or ()),
    )


async def delete(face: FaceServices, asked: Asked) -> HttpResponse:
    target = asked.target
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    options = delete_options(asked)

    def gone(store: ClusterWriter) -> tuple[Object, bool]:
        last = _delete(store, target.resource, target.namespace, target.name, options)
        still = store.find(target.resource.stored, target.namespace, target.name) is not None
        return last, still

    last, still = await face.cluster.store.do(gone)
    stored = target.resource.stored
    if stored in _ANSWERED_WITH_OBJECT or (still and not options.dry_run):
        return object_response(face, asked, last.raw, 200, form)
    details = {"name": target.name}
    if target.resource.group:
        details["group"] = target.resource.group
    details |= {"kind": target.resource.name, "uid": last.uid}
    return json_response(success(details=details), form=form)


def _delete(store: ClusterWriter, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Object:
    return store.delete(
        resource.stored,
        namespace,
        name,
        grace_period_s=options.grace_period_s,
        uid=options.uid,
        resource_version=options.resource_version,
        propagation=options.propagation,
        dry_run=options.dry_run,
    )


async def delete_collection(face: FaceServices, asked: Asked) -> HttpResponse:
    """Delete all that is selected; answered with the objects as they were."""
    target = asked.target
    form = wanted_form(asked.headers.get("accept", ""), single=False)
    options = delete_options(asked)
    if target.resource.stored == "Namespace":
        raise method_not_allowed()
    page = await read_page(face, asked, read_options(asked.query, watch=False))
    if target.resource.stored == "Event":  # those of the scheduler are nobody's to delete
        page = attrs.evolve(page, objects=[obj for obj in page.objects if obj.resource_version])
    for start in range(0, len(page.objects), _IN_ONE_GO):
        part = page.objects[start : start + _IN_ONE_GO]

        def all_of(store: ClusterWriter, part: Sequence[Object] = part) -> None:
            for obj in part:
                try:
                    _delete(store, target.resource, obj.namespace, obj.name, options)
                except NotFound:
                    continue

        await face.cluster.store.do(all_of)
    return await list_response(face, asked, page, form)
