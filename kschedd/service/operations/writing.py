"""The operations that write an object: create, update, patch and server-side apply.

Source: Kubernetes v1.34, apiserver/pkg/endpoints/handlers (create.go, update.go, patch.go).
Raises: ApiError.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from kschedd.api.objects import Raw
from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.decoding import duplicate_field
from kschedd.service.request import PatchBody, Request, Response
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.creating.updates import Subresource
from kschedd.store.custom_resources.kinds import definition_of
from kschedd.store.errors import BadRequest, DefinitionTerminating, Refused
from kschedd.store.field_validation import known_fields, submitted
from kschedd.store.patches.patching import check_patch_options

#: kinds whose objects an update creates if they are missing
_MADE_BY_UPDATE: Final = frozenset(
    "Lease Endpoints Event LimitRange Service Role RoleBinding ClusterRole ClusterRoleBinding".split()
)


def create(store: ClusterWriter, request: Request, warnings: list[str]) -> Response:
    raw = placed(store, request, decoded(store, request, warnings), warnings)
    definition = definition_of(store, raw) if request.kind and schema_for(raw) is None else None
    if definition is not None and definition.deleting:
        kind = store.kind_of(raw)
        raise DefinitionTerminating(kind.group, kind.plural)
    options = request.options
    meta = raw.get("metadata")
    if isinstance(meta, Mapping) and meta.get("resourceVersion") not in (None, "", "0") and not options.dry_run:
        store.create(raw, dry_run=True, as_client=True)  # upstream reports other errors before this one
        raise Refused("resourceVersion should not be set on objects to be created")
    return _created(store, raw, request)


def _created(store: ClusterWriter, raw: Raw, request: Request) -> Response:
    options = request.options
    made = store.create(raw, dry_run=options.dry_run, as_client=True, manager=options.manager)
    return Response(made, action="created")


def update(store: ClusterWriter, request: Request, warnings: list[str]) -> Response:
    raw = placed(store, request, decoded(store, request, warnings), warnings)
    options, subresource = request.options, _part(request)
    meta = raw.get("metadata") or {}
    there = None
    if isinstance(meta, Mapping) and isinstance(name := meta.get("name"), str):
        kind = store.kind_of(raw)
        namespace = str(meta.get("namespace") or "default") if kind.namespaced else ""
        there = store.find(kind.name, namespace, name)
        if there is None and not subresource and kind.name in _MADE_BY_UPDATE:
            return _created(store, raw, request)
    changed = store.update(
        raw, subresource=subresource, dry_run=options.dry_run, as_client=True, manager=options.manager
    )
    return Response(changed, there, "unchanged" if changed is there else "configured")


def patch(store: ClusterWriter, request: Request, warnings: list[str]) -> Response:
    wanted, options = request.body, request.options
    assert isinstance(wanted, PatchBody), "a request to patch has a patch"
    there = store.find(request.kind, request.namespace, request.name)
    changed, warned = store.patch(
        request.kind,
        request.namespace,
        request.name,
        wanted.value,
        wanted.type,
        subresource=_part(request),
        validation=options.validation,
        dry_run=options.dry_run,
        manager=options.manager,
        duplicates=request.duplicates,
    )
    warnings += warned
    return Response(changed, there, "unchanged" if changed is there else "configured")


def apply(store: ClusterWriter, request: Request, warnings: list[str]) -> Response:
    """Create the object or merge the configuration into it."""
    options = request.options
    if not options.server_side:
        raw = placed(store, request, decoded(store, request, warnings), warnings)
        written, action = store.apply(raw, dry_run=options.dry_run, as_client=True, manager=options.manager)
        return Response(written, action=action)
    check_patch_options(options.manager, options.force, applied=True)
    there = store.find(request.kind, request.namespace, request.name)
    written, action = store.server_side_apply(
        request.kind,
        request.namespace,
        request.name,
        request.body,
        options.manager,
        api_version=request.api_version,
        force=options.force,
        subresource=_part(request),
        dry_run=options.dry_run,
    )
    return Response(written, there, action)


def _part(request: Request) -> Subresource:
    assert request.subresource not in ("binding", "eviction"), "these have operations of their own"
    return cast(Subresource, request.subresource)


def decoded(store: ClusterWriter, request: Request, warnings: list[str]) -> dict[str, Any]:
    """Return the object in the request without unknown fields; fieldValidation rejects or reports them."""
    raw, options = request.body, request.options
    if options.by_field:
        known, warned = known_fields(raw, options.validation, store)
    else:
        twice = tuple(map(duplicate_field, request.duplicates))
        definition = definition_of(store, raw) if schema_for(raw) is None else None
        known, warned = submitted(raw, options.validation, twice, store.features, definition)
    warnings += warned
    return known


def placed(store: ClusterWriter, request: Request, raw: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    """Return the object in the request's namespace. Raises BadRequest if the object has another namespace or name."""
    given = raw.get("metadata") or {}
    if not isinstance(given, Mapping):
        return raw  # validation reports this error later
    if not (request.namespace or request.name or given.get("ownerReferences")):
        return raw
    meta = dict(given)
    kind = str(raw.get("kind"))
    if request.namespace and store.kind_of(raw).namespaced:
        if meta.get("namespace") and meta["namespace"] != request.namespace:
            why = "the namespace of the provided object does not match the namespace sent on the request"
            raise BadRequest(kind, request.name, why)
        meta["namespace"] = request.namespace
    if request.name:
        check_name(meta, kind, request.name)
    owners = meta.get("ownerReferences")
    if owners and isinstance(owners, Sequence):
        _drop_repeated(meta, owners, warnings)
    return {**raw, "metadata": meta}


def check_name(meta: Raw, kind: str, name: str) -> None:
    """Raise BadRequest if the name in an object's metadata differs from the name in the request."""
    if not meta.get("name"):
        why = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise BadRequest(kind, name, why)
    if meta["name"] != name:
        given = str(meta["name"])[:253]
        why = f"the name of the object ({given}) does not match the name on the URL ({name[:253]})"
        raise BadRequest(kind, name, why)


def _drop_repeated(meta: dict[str, Any], owners: Sequence[Any], warnings: list[str]) -> None:
    """Remove duplicate references to an owner, except the first."""
    kept: dict[Any, Any] = {}
    repeated = []
    for owner in owners:
        if not isinstance(owner or {}, Mapping):
            return  # validation reports this error later
        uid = str((owner or {}).get("uid"))
        if uid in kept:
            repeated.append(uid)
        kept.setdefault(uid, owner)
    if repeated:
        meta["ownerReferences"] = list(kept.values())
        warnings.append(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and "
            "may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            + ", ".join(repeated)
        )
