"""Writes of objects over HTTP: create, update, patch, delete one object or a collection. The store has the rules.

An answer is sent when the write is durable, because a request to the store returns only then.

Source: Kubernetes v1.34, apiserver/pkg/endpoints/handlers (create.go, update.go, patch.go, delete.go). Raises:
StatusError, and the errors of the store.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from kschedd.api.objects import Raw
from kschedd.api.schemas.decoding import duplicate_field
from kschedd.api.schemas.fields import FieldError, invalid, unsupported
from kschedd.api.unsupported import grouped, ignored
from kschedd.apiserver.codec.bodies import (
    UNKNOWN_FORMAT,
    checked_kind,
    is_yaml,
    media_type,
    read_body,
    read_delete_options,
    read_json,
)
from kschedd.apiserver.codec.negotiation import Form, json_response, wanted_form
from kschedd.apiserver.codec.status import StatusError, bad_request, invalid_options, method_not_allowed, success
from kschedd.apiserver.handlers.options import reading_request
from kschedd.apiserver.handlers.reading import list_response, object_response, read_page
from kschedd.apiserver.requests import ApiCall, field_validation, field_validation_faults
from kschedd.apiserver.services import LARGE_BODY, FaceServices
from kschedd.errors import KscheddError
from kschedd.http.server import HttpResponse
from kschedd.managed_fields.field_manager import UNKNOWN
from kschedd.service.operations.deletion import deletion_warnings
from kschedd.service.operations.recorded_events import EVENT, delete_recorded, recorded_event
from kschedd.service.request import DeleteOptions, PatchBody, Request, Response, Verb, WriteOptions
from kschedd.store.creating.updates import Subresource
from kschedd.store.custom_resources.rule_kinds import rule_kind
from kschedd.store.deletion import Propagation
from kschedd.store.errors import NotFound
from kschedd.store.field_validation import submitted
from kschedd.store.patches.patching import PatchType, manager_faults, patch_faults, read_configuration

T = TypeVar("T")

_LARGE_YAML: Final = 8 << 10  # bytes: YAML takes ten times as long to parse as JSON

_AGENT_ENDS: Final = "/"
_LONGEST_AGENT: Final = 128

PATCHES: Final[Mapping[str, PatchType]] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}

APPLY: Final = "application/apply-patch+yaml"
_CUSTOM_PATCHES: Final = ("application/json-patch+json", "application/merge-patch+json", APPLY)

#: Kinds whose deletion returns the object.
_ANSWERED_WITH_OBJECT: Final = frozenset(
    "Pod PersistentVolumeClaim PersistentVolume Namespace ServiceAccount ResourceQuota StorageClass CSINode"
    " ResourceClaim ResourceClaimTemplate ResourceSlice DeviceClass PodTemplate Service VolumeAttachment".split()
)
_PROPAGATION: Final[Mapping[str, Propagation]] = {
    "Background": "Background",
    "Foreground": "Foreground",
    "Orphan": "Orphan",
}


def request_of(
    call: ApiCall,
    verb: Verb,
    body: Any = None,
    subresource: Any = "",
    duplicates: Sequence[str] = (),
    deletion: DeleteOptions | None = None,
) -> Request:
    """Return the client's request. Raises StatusError for invalid options."""
    target, query = call.target, call.query
    options = WriteOptions(call.dry_run, manager_of(call), field_validation(query), query.flag("force"))
    return Request(
        verb,
        target.resource.stored,
        target.namespace,
        target.name,
        subresource,
        body,
        options,
        deletion or DeleteOptions(),
        api_version=target.resource.api_version,
        duplicates=duplicates,
        authorized=verb != "apply",  # which may create an object, with another permission than that of its verb
    )


async def serve(face: FaceServices, call: ApiCall, request: Request) -> Response:
    """Serve a request. Add the warnings and audit annotations of the request, or of its error, to `call`."""
    try:
        response = await face.executor(call).serve(request)
    except KscheddError as refusal:
        call.warnings.extend(refusal.request_warnings)
        call.annotate(refusal.audit_annotations)
        raise
    call.warnings.extend(response.warnings)
    call.annotate(response.audit_annotations)
    return response


async def read_aside(face: FaceServices, call: ApiCall, read: Callable[[], T], at_once: int = LARGE_BODY) -> T:
    """Parse the body with `read`, in a thread if the body has more than `at_once` bytes."""
    if len(call.http.body) <= at_once:
        return read()
    return await face.shares.workers.run(call.client, lambda given_up: read())


async def read_object(
    face: FaceServices, call: ApiCall, api_version: str = "", kind: str = "", group: str = ""
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the object in the body, with the paths of repeated fields.

    The object has the kind and version of the path, unless other ones are passed.
    """
    resource = call.target.resource
    if not kind:
        api_version, kind, group = resource.api_version, resource.kind, resource.group
    content_type, data = call.headers.get("content-type", ""), call.http.body

    def read() -> tuple[dict[str, Any], tuple[str, ...]]:
        body = read_body(data, content_type, kind)
        return checked_kind(body, api_version, kind, group), body.duplicates

    return await read_aside(face, call, read, 0 if is_yaml(content_type) else LARGE_BODY)


async def received(
    face: FaceServices, call: ApiCall, api_version: str = "", kind: str = "", group: str = ""
) -> dict[str, Any]:
    """Return the decoded object in the body of a request that does not write an object.

    Warnings about unknown fields are added to the request's warnings.
    """
    raw, duplicates = await read_object(face, call, api_version, kind, group)
    twice = tuple(map(duplicate_field, duplicates))
    raw, warned = submitted(raw, field_validation(call.query), twice, face.served.rules)
    call.warnings.extend(warned)
    return raw


async def create(face: FaceServices, call: ApiCall) -> HttpResponse:
    form = wanted_form(call.headers.get("accept", ""), single=True)
    check_options(call)
    raw, duplicates = await read_object(face, call)
    response = await serve(face, call, request_of(call, "create", raw, duplicates=duplicates))
    return await _written(face, call, response, form)


async def _written(face: FaceServices, call: ApiCall, response: Response, form: Form) -> HttpResponse:
    created = response.action == "created"
    shown = response.object.raw
    call.warnings.extend(without_effect(response))
    if created and call.dry_run and call.target.verb != "update":
        shown = without_version(shown)
    return await object_response(face, call, shown, 201 if created else 200, form)


def without_effect(response: Response) -> list[str]:
    """Return warnings about features of the written object that have no effect, if they are new."""
    found = ignored(response.object.raw)
    if found and response.before is not None:
        old = ignored(response.before.raw)
        found = [each for each in found if each not in old]
    return grouped(found)


def without_version(raw: Raw) -> Raw:
    """Return the new object of a dry run, without a resourceVersion."""
    kept = {field: value for field, value in raw["metadata"].items() if field != "resourceVersion"}
    return {**raw, "metadata": kept}


async def update(face: FaceServices, call: ApiCall, subresource: Subresource = "") -> HttpResponse:
    form = wanted_form(call.headers.get("accept", ""), single=True)
    check_options(call)
    raw, duplicates = await read_object(face, call)
    response = await serve(face, call, request_of(call, "update", raw, subresource, duplicates))
    return await _written(face, call, response, form)


async def patch(face: FaceServices, call: ApiCall, subresource: Subresource = "") -> HttpResponse:
    form = wanted_form(call.headers.get("accept", ""), single=True)
    response = await serve(face, call, await patch_request(face, call, subresource))
    return await _written(face, call, response, form)


async def patch_request(face: FaceServices, call: ApiCall, subresource: Subresource) -> Request:
    """Return the request to patch or to apply server-side; the media type determines which."""
    if media_type(call.headers.get("content-type", "")) == APPLY:
        config, warnings = await read_apply(face, call)
        call.warnings.extend(warnings)
        return request_of(call, "apply", config, subresource)
    wanted, duplicates = await read_patch(face, call)
    return request_of(call, "patch", wanted, subresource, duplicates)


async def read_apply(face: FaceServices, call: ApiCall) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the configuration of a server-side apply, with warnings."""
    check_options(call, applied=True)
    validation = field_validation(call.query)
    try:
        text = call.http.body.decode("utf-8")
    except UnicodeDecodeError:
        why = "yaml: invalid leading UTF-8 octet"
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {why}") from None
    return await read_aside(face, call, lambda: read_configuration(text, validation), _LARGE_YAML)


def check_options(call: ApiCall, *, applied: bool = False) -> None:
    """Reject invalid options of a write, all in one error and before the body is read."""
    query = call.query
    manager = query.text("fieldManager")
    if call.target.verb == "patch":
        faults = patch_faults(manager, query.optional_flag("force"), applied=applied)
    else:
        faults = manager_faults(manager)
    if faults := [*faults, *call.dry_run_faults, *field_validation_faults(query)]:
        raise invalid_options(call.options, faults)


def manager_of(call: ApiCall) -> str:
    """Return the field manager of the request; by default one derived from the User-Agent."""
    if given := call.query.text("fieldManager"):
        return given
    agent = call.headers.get("user-agent", "").partition(_AGENT_ENDS)[0]
    return "".join(filter(str.isprintable, agent))[:_LONGEST_AGENT] or UNKNOWN


async def read_patch(face: FaceServices, call: ApiCall) -> tuple[PatchBody, tuple[str, ...]]:
    """Return a JSON patch, merge patch or strategic merge patch, with the paths of repeated fields."""
    patch_type = PATCHES.get(media_type(call.headers.get("content-type", "")))
    definition = call.target.resource.definition
    custom = definition is not None and rule_kind(definition) is None
    if custom and patch_type in (None, "strategic"):
        raise StatusError(415, "UnsupportedMediaType", UNKNOWN_FORMAT + ", ".join(_CUSTOM_PATCHES))
    if patch_type is None:  # the routes of built-in kinds reject it
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    check_options(call)
    try:
        body = await read_aside(face, call, lambda: read_json(call.http.body))
        return PatchBody(patch_type, body.value), body.duplicates
    except StatusError as refused:
        if patch_type == "strategic":
            raise
        if field_validation(call.query) != "Ignore":
            raise bad_request(f"error decoding patch: {refused.message}") from None
        raise bad_request("Invalid JSON Patch" if patch_type == "merge" else refused.message) from None


# Deletion


async def delete_options(face: FaceServices, call: ApiCall) -> DeleteOptions:
    """Return the options in the body; if there is no body, the options in the query."""
    query, body = call.query, call.http.body
    given: dict[str, Any] = {}
    if body:
        try:
            media = call.headers.get("content-type", "")
            at_once = _LARGE_YAML if is_yaml(media) else LARGE_BODY
            given = await read_aside(face, call, lambda: read_delete_options(body, media), at_once)
        except StatusError as refusal:
            if refusal.code == 400 and face.served.minor < 35:
                raise StatusError(500, "", refusal.message) from None  # upstream's bug, fixed in 1.35
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
    """Return DeleteOptions as an object, after a check of its fields' types. Raises StatusError."""
    if faults := _delete_faults(given):
        raise invalid_options("DeleteOptions", faults)
    call, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    propagation: Propagation = "" if orphan is None else "Orphan" if orphan else "Background"
    if call is not None:
        propagation = _PROPAGATION[call]
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
    call, tried = given.get("propagationPolicy"), given.get("dryRun") or ()
    if call is not None and given.get("orphanDependents") is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        faults.append(invalid("propagationPolicy", call, why))
    if call is not None and call not in _PROPAGATION:
        faults.append(unsupported("propagationPolicy", call[:100], ("Foreground", "Background", "Orphan", "nil")))
    if any(each != "All" for each in tried):
        faults.append(unsupported("dryRun", tried, ("All",)))
    return faults


async def delete(face: FaceServices, call: ApiCall) -> HttpResponse:
    target = call.target
    form = wanted_form(call.headers.get("accept", ""), single=True)
    options = await delete_options(face, call)
    try:
        response = await serve(face, call, request_of(call, "delete", deletion=options))
    except NotFound:
        event = (
            await recorded_event(face.cluster, target.namespace, target.name)
            if target.resource.stored == EVENT
            else None
        )
        if event is None:
            raise
        if not options.dry_run:
            await delete_recorded(face.cluster, (event,))
        response = Response(event, gone=True)
    last = response.object
    still = last.deleting if options.dry_run else not response.gone
    if target.resource.stored in _ANSWERED_WITH_OBJECT or still:
        # Only a client that used the deprecated orphanDependents gets the status code for a pending deletion.
        code = 202 if still and options.orphan is False else 200
        return await object_response(face, call, last.raw, code, form)
    details = {"name": target.name}
    if target.resource.group:
        details["group"] = target.resource.group
    details |= {"kind": target.resource.name, "uid": last.uid}
    return json_response(success(details=details), form=form)


async def delete_collection(face: FaceServices, call: ApiCall) -> HttpResponse:
    """Delete all selected objects, and answer with the objects before their deletion."""
    target = call.target
    form = wanted_form(call.headers.get("accept", ""), single=False)
    request = request_of(call, "delete", deletion=await delete_options(face, call))
    if target.resource.stored == "Namespace":
        raise method_not_allowed()
    call.warnings.extend(deletion_warnings(request))
    page = await read_page(face, call, await reading_request(face, call))
    stored = page.objects
    if target.resource.stored == EVENT:
        stored = [obj for obj in page.objects if obj.resource_version]
        if not request.deletion.dry_run:
            await delete_recorded(face.cluster, (obj for obj in page.objects if not obj.resource_version))
    for response in await face.executor(call).serve_each(request, stored):
        call.warnings.extend(text for text in response.warnings if text not in call.warnings)
        call.annotate(response.audit_annotations)
    return await list_response(face, call, page, form)
