"""Writing objects: create, update, patch, delete one or a collection. The store has the rules; here is what HTTP adds.

An answer goes out when the write is kept: requests to the store wait for that.
Source: Kubernetes v1.34, apiserver/pkg/endpoints/handlers (create.go, update.go, patch.go, delete.go).
Raises: StatusError and the store's errors.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs

from kschedd.api.decoding import duplicate_field
from kschedd.api.fields import FieldError, invalid, unsupported
from kschedd.api.objects import Object, Raw
from kschedd.apiserver.bodies import (
    Body,
    checked_kind,
    field_validation,
    field_validation_faults,
    is_yaml,
    media_type,
    read_body,
    read_delete_options,
    read_json,
)
from kschedd.apiserver.negotiation import json_response, wanted_form
from kschedd.apiserver.options import read_options
from kschedd.apiserver.reading import list_response, object_response, read_page
from kschedd.apiserver.requests import Asked
from kschedd.apiserver.resources import Resource
from kschedd.apiserver.services import FaceServices
from kschedd.apiserver.status import StatusError, bad_request, invalid_options, method_not_allowed, success
from kschedd.errors import KscheddError
from kschedd.http.server import HttpResponse
from kschedd.managed_fields.field_manager import UNKNOWN
from kschedd.registry.warnings import creation_warnings, update_warnings
from kschedd.service.execution import change
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.custom import definition_of
from kschedd.store.deletion import Propagation
from kschedd.store.errors import NotFound
from kschedd.store.field_validation import submitted
from kschedd.store.patching import PatchType, manager_faults, patch_faults, read_configuration
from kschedd.store.updates import Subresource

T = TypeVar("T")

LARGE_BODY: Final = 64 << 10  # bytes: such a request is worked on beside the loop
_LARGE_YAML: Final = 8 << 10  # bytes: YAML takes ten times as long as JSON to read
_IN_ONE_GO: Final = 100  # objects deleted in one request to the store

_AGENT_ENDS: Final = "/"
_LONGEST_AGENT: Final = 128

PATCHES: Final[Mapping[str, PatchType]] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}

APPLY: Final = "application/apply-patch+yaml"

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


def on_behalf_of(asked: Asked, request: Callable[[ClusterWriter], T]) -> Callable[[ClusterWriter], T]:
    """The request to the store, made in the user's name; the answer has what the user is to be warned of.

    Who is refused is warned, too.
    """
    user = UserInfo(asked.user.name, asked.user.groups)

    def asked_for(store: ClusterWriter) -> T:
        with store.on_behalf_of(user) as told:
            try:
                answer = request(store)
            except KscheddError:
                asked.warnings.extend(text for text in told if text not in asked.warnings)
                raise
        if told and isinstance(answer, dict):
            answer["warnings"] = (*answer.get("warnings", ()), *told)
        return answer

    return asked_for


async def write(
    face: FaceServices,
    asked: Asked,
    request: Callable[[ClusterWriter], T],
    given: Any,
    about: Callable[[ClusterWriter], Object | None] | None = None,
) -> T:
    """Run a write on the store, or on a fork if the body, the value `given` in it, or the object is large."""
    request = on_behalf_of(asked, request)
    size = len(asked.http.body)
    call = face.call(asked.target.verb, asked.client, size if size > LARGE_BODY else 0)
    return await change(face.cluster, call, request, about, given)


async def read_aside(face: FaceServices, asked: Asked, read: Callable[[], T], at_once: int = LARGE_BODY) -> T:
    """Read the body by `read`, in a thread if it has more than `at_once` bytes."""
    if len(asked.http.body) <= at_once:
        return read()
    return await face.workers.run(asked.client, lambda given_up: read())


def _about(asked: Asked) -> Callable[[ClusterWriter], Object | None]:
    target = asked.target
    return lambda store: store.find(target.resource.stored, target.namespace, target.name)


async def received(
    face: FaceServices, asked: Asked, api_version: str = "", kind: str = "", group: str = ""
) -> dict[str, Any]:
    """The object in the body as it is decoded: of the kind and version of the path unless another one is named.

    What is told of unknown fields goes to the request's warnings.
    """
    resource = asked.target.resource
    if not kind:
        api_version, kind, group = resource.api_version, resource.kind, resource.group
    content_type, data = asked.headers.get("content-type", ""), asked.http.body
    validation = field_validation(asked.query)

    def read() -> tuple[dict[str, Any], tuple[str, ...]]:
        body = read_body(data, content_type, kind)
        raw = checked_kind(body, api_version, kind, group)
        twice = tuple(map(duplicate_field, body.duplicates))
        return submitted(raw, validation, twice, face.served.rules, resource.definition)

    raw, told = await read_aside(face, asked, read, 0 if is_yaml(content_type) else LARGE_BODY)
    asked.warnings.extend(told)
    return raw


def placed(asked: Asked, raw: dict[str, Any], *, named: bool) -> dict[str, Any]:
    """The object where the path says it is; one that says otherwise is refused."""
    target = asked.target
    meta = dict(raw.get("metadata") or {})
    if target.resource.namespaced and target.namespace:
        if meta.get("namespace") and meta["namespace"] != target.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        meta["namespace"] = target.namespace
    if named:
        if not meta.get("name"):
            why = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
            raise bad_request(why)
        if meta["name"] != target.name:
            given = str(meta["name"])[:253]
            raise bad_request(
                f"the name of the object ({given}) does not match the name on the URL ({target.name[:253]})"
            )
    if owners := meta.get("ownerReferences"):
        _drop_repeated(asked, meta, owners)
    return {**raw, "metadata": meta}


def _drop_repeated(asked: Asked, meta: dict[str, Any], owners: Sequence[Raw]) -> None:
    """Keep the first of several references to one owner."""
    kept: dict[Any, Raw] = {}
    repeated = []
    for owner in owners:
        uid = (owner or {}).get("uid")
        if uid in kept:
            repeated.append(str(uid))
        kept.setdefault(uid, owner)
    if repeated:
        meta["ownerReferences"] = list(kept.values())
        asked.warnings.append(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and "
            "may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            + ", ".join(repeated)
        )


async def create(face: FaceServices, asked: Asked) -> HttpResponse:
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    check_options(asked)
    raw = placed(asked, await received(face, asked), named=False)
    dry_run, manager = asked.dry_run, manager_of(asked)

    def made(store: ClusterWriter) -> dict[str, Any]:
        _check_creatable(store, asked.target.resource, raw)
        if raw["metadata"].get("resourceVersion") and not dry_run:
            store.create(raw, dry_run=True)  # whatever else is wrong with it comes first
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        obj = store.create(raw, dry_run=dry_run, manager=manager)
        return {"object": obj.raw, "warnings": creation_warnings(obj)}

    answer = await write(face, asked, made, raw)
    asked.warnings.extend(answer["warnings"])
    shown = without_version(answer["object"]) if dry_run else answer["object"]
    return await object_response(face, asked, shown, 201, form)


def _check_creatable(store: ClusterWriter, resource: Resource, raw: Raw) -> None:
    """Refuse a new custom resource whose definition waits for the last one to go."""
    if resource.definition is None:
        return
    definition = definition_of(store, raw)
    if definition is not None and definition.deleting:
        why = "create not allowed while custom resource definition is terminating"
        raise StatusError(405, "MethodNotAllowed", why, {"group": resource.group, "kind": resource.name})


def without_version(raw: Raw) -> Raw:
    """A new object that was tried only: no version is its own."""
    kept = {field: value for field, value in raw["metadata"].items() if field != "resourceVersion"}
    return {**raw, "metadata": kept}


async def update(face: FaceServices, asked: Asked, subresource: Subresource = "") -> HttpResponse:
    resource = asked.target.resource
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    check_options(asked)
    raw = placed(asked, await received(face, asked), named=True)
    manager = manager_of(asked)

    def made(store: ClusterWriter) -> dict[str, Any]:
        meta = raw["metadata"]
        there = store.find(resource.stored, meta.get("namespace") or "", meta["name"])
        if there is None and not subresource and resource.stored in _MADE_BY_UPDATE:
            obj = store.create(raw, dry_run=asked.dry_run, manager=manager)
            return {"object": obj.raw, "status": 201, "warnings": creation_warnings(obj)}
        changed = store.update(raw, subresource=subresource, dry_run=asked.dry_run, as_client=True, manager=manager)
        told = update_warnings(there, changed) if there is not None and not subresource else ()
        return {"object": changed.raw, "status": 200, "warnings": told}

    answer = await write(face, asked, made, raw, _about(asked))
    asked.warnings.extend(answer["warnings"])
    return await object_response(face, asked, answer["object"], answer["status"], form)


async def patch(face: FaceServices, asked: Asked, subresource: Subresource = "") -> HttpResponse:
    target = asked.target
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    if media_type(asked.headers.get("content-type", "")) == APPLY:
        return await _apply(face, asked, subresource)
    patch_type, body = await read_patch(face, asked)
    validation = field_validation(asked.query)
    manager = manager_of(asked)

    def made(store: ClusterWriter) -> dict[str, Any]:
        there = store.find(target.resource.stored, target.namespace, target.name)
        changed, warnings = store.patch(
            target.resource.stored,
            target.namespace,
            target.name,
            body.value,
            patch_type,
            subresource=subresource,
            validation=validation,
            dry_run=asked.dry_run,
            manager=manager,
            duplicates=body.duplicates,
        )
        told = update_warnings(there, changed) if there is not None and not subresource else ()
        return {"object": changed.raw, "warnings": (*warnings, *told)}

    answer = await write(face, asked, made, body.value, _about(asked))
    asked.warnings.extend(answer["warnings"])
    return await object_response(face, asked, answer["object"], 200, form)


async def _apply(face: FaceServices, asked: Asked, subresource: Subresource) -> HttpResponse:
    """Server-side apply: makes the object, too, if it is not there."""
    target = asked.target
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    config, warnings = await read_apply(face, asked)

    def made(store: ClusterWriter) -> dict[str, Any]:
        there = store.find(target.resource.stored, target.namespace, target.name)
        changed, what = store.server_side_apply(
            target.resource.stored,
            target.namespace,
            target.name,
            config,
            asked.query.text("fieldManager"),
            api_version=target.resource.api_version,
            force=asked.query.flag("force"),
            subresource=subresource,
            dry_run=asked.dry_run,
        )
        told: Sequence[str] = ()
        if not subresource:
            told = creation_warnings(changed) if there is None else update_warnings(there, changed)
        return {"object": changed.raw, "status": 201 if what == "created" else 200, "warnings": told}

    answer = await write(face, asked, made, config, _about(asked))
    asked.warnings.extend((*warnings, *answer["warnings"]))
    shown = answer["object"]
    if asked.dry_run and answer["status"] == 201:
        shown = without_version(shown)
    return await object_response(face, asked, shown, answer["status"], form)


async def read_apply(face: FaceServices, asked: Asked) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the configuration of a server-side apply, and warnings."""
    check_options(asked, applied=True)
    validation = field_validation(asked.query)
    try:
        text = asked.http.body.decode("utf-8")
    except UnicodeDecodeError:
        why = "yaml: invalid leading UTF-8 octet"
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {why}") from None
    return await read_aside(face, asked, lambda: read_configuration(text, validation), _LARGE_YAML)


def check_options(asked: Asked, *, applied: bool = False) -> None:
    """Refuse options of a write that are wrong, all at once: before what is in the body."""
    query = asked.query
    manager = query.text("fieldManager")
    if asked.target.verb == "patch":
        faults = patch_faults(manager, query.optional_flag("force"), applied=applied)
    else:
        faults = manager_faults(manager)
    if faults := [*faults, *asked.dry_run_faults, *field_validation_faults(query)]:
        raise invalid_options(asked.options, faults)


def manager_of(asked: Asked) -> str:
    """Who writes: as the request says, or as the client calls itself."""
    if given := asked.query.text("fieldManager"):
        return given
    agent = asked.headers.get("user-agent", "").partition(_AGENT_ENDS)[0]
    return "".join(filter(str.isprintable, agent))[:_LONGEST_AGENT] or UNKNOWN


async def read_patch(face: FaceServices, asked: Asked) -> tuple[PatchType, Body]:
    """Return a JSON patch, merge patch or strategic merge patch, as it was sent."""
    patch_type = PATCHES.get(media_type(asked.headers.get("content-type", "")))
    if patch_type is None or (patch_type == "strategic" and asked.target.resource.definition is not None):
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    check_options(asked)
    try:
        return patch_type, await read_aside(face, asked, lambda: read_json(asked.http.body))
    except StatusError as refused:
        if patch_type == "strategic":
            raise
        if field_validation(asked.query) != "Ignore":
            raise bad_request(f"error decoding patch: {refused.message}") from None
        raise bad_request("Invalid JSON Patch" if patch_type == "merge" else refused.message) from None


# Deletion


@attrs.frozen
class DeleteOptions:
    grace_period_s: int | None = None
    propagation: Propagation = ""
    orphan: bool | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


async def delete_options(face: FaceServices, asked: Asked) -> DeleteOptions:
    """Return the options in the body, or those of the query if there is no body."""
    query, body = asked.query, asked.http.body
    given: dict[str, Any] = {}
    if body:
        try:
            media = asked.headers.get("content-type", "")
            at_once = _LARGE_YAML if is_yaml(media) else LARGE_BODY
            given = await read_aside(face, asked, lambda: read_delete_options(body, media), at_once)
        except StatusError as refusal:
            if refusal.code == 400 and face.served.minor < 35:
                raise StatusError(500, "", refusal.message) from None  # upstream's: mended in 1.35
            raise
    else:
        if (grace := query.integer("gracePeriodSeconds")) is not None:
            given["gracePeriodSeconds"] = grace
        if query.text("propagationPolicy"):
            given["propagationPolicy"] = query.text("propagationPolicy")
        if query.text("orphanDependents"):
            given["orphanDependents"] = query.flag("orphanDependents")
        if query.text("dryRun"):
            given["dryRun"] = [query.text("dryRun")]
    return options_of(given)


def options_of(given: Mapping[str, Any]) -> DeleteOptions:
    """DeleteOptions, whose fields have their types, as an object. Raises StatusError."""
    if faults := _delete_faults(given):
        raise invalid_options("DeleteOptions", faults)
    asked, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    propagation: Propagation = "" if orphan is None else "Orphan" if orphan else "Background"
    if asked is not None:
        propagation = _PROPAGATION[asked]
    preconditions = given.get("preconditions") or {}
    return DeleteOptions(
        given.get("gracePeriodSeconds"),
        propagation,
        orphan,
        preconditions.get("uid"),
        preconditions.get("resourceVersion"),
        "All" in (given.get("dryRun") or ()),
    )


def _delete_faults(given: Mapping[str, Any]) -> list[FieldError]:
    faults = []
    asked, tried = given.get("propagationPolicy"), given.get("dryRun") or ()
    if asked is not None and given.get("orphanDependents") is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        faults.append(invalid("propagationPolicy", asked, why))
    if asked is not None and asked not in _PROPAGATION:
        faults.append(unsupported("propagationPolicy", asked[:100], ("Foreground", "Background", "Orphan", "nil")))
    if any(each != "All" for each in tried):
        faults.append(unsupported("dryRun", tried, ("All",)))
    return faults


async def delete(face: FaceServices, asked: Asked) -> HttpResponse:
    target = asked.target
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    options = await delete_options(face, asked)

    def gone(store: ClusterWriter) -> dict[str, Any]:
        last = _delete(store, target.resource, target.namespace, target.name, options)
        is_there = store.find(target.resource.stored, target.namespace, target.name) is not None
        return {"last": last, "still": last.deleting if options.dry_run else is_there}

    _warn_of_orphans(asked, options)
    answer = await face.cluster.store.do(on_behalf_of(asked, gone))
    last, still = answer["last"], answer["still"]
    stored = target.resource.stored
    if stored in _ANSWERED_WITH_OBJECT or still:
        # Only who asked for the dependents to go, too, in the old way, is told that it takes a while.
        code = 202 if still and options.orphan is False else 200
        return await object_response(face, asked, last.raw, code, form)
    details = {"name": target.name}
    if target.resource.group:
        details["group"] = target.resource.group
    details |= {"kind": target.resource.name, "uid": last.uid}
    return json_response(success(details=details), form=form)


def _warn_of_orphans(asked: Asked, options: DeleteOptions) -> None:
    if asked.target.resource.stored == "Job" and not options.propagation:
        asked.warnings.append(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove "
            "them or set propagationPolicy=Orphan to suppress this warning"
        )


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
    options = await delete_options(face, asked)
    if target.resource.stored == "Namespace":
        raise method_not_allowed()
    _warn_of_orphans(asked, options)
    options_of_list = await read_options(face, asked, watch=False, api_version=target.resource.api_version)
    page = await read_page(face, asked, options_of_list)
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

        await face.cluster.store.do(on_behalf_of(asked, all_of))
    return await list_response(face, asked, page, form)
