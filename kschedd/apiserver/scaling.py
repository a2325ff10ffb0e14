"""The scale subresource: how many pods a workload, or a custom resource, is to have, and how many it has.

Source: Kubernetes v1.34, pkg/registry/apps/*/storage; apiextensions-apiserver/pkg/registry/customresource/etcd.go.
Raises: StatusError and the store's errors.
"""

from collections.abc import Callable
from typing import Any, Final

from kschedd.api.fields import invalid
from kschedd.api.objects import Object
from kschedd.apiserver.bodies import Body, checked_kind, field_validation, media_type
from kschedd.apiserver.negotiation import json_response, wanted_form
from kschedd.apiserver.reading import find
from kschedd.apiserver.requests import Asked
from kschedd.apiserver.services import FaceServices
from kschedd.apiserver.status import StatusError, bad_request, causes, internal_error
from kschedd.apiserver.tables import scale_table
from kschedd.apiserver.writing import (
    APPLY,
    check_options,
    manager_of,
    placed,
    read_apply,
    read_patch,
    received,
    write,
)
from kschedd.http.server import HttpResponse
from kschedd.printing.columns_workloads import selector_text
from kschedd.registry.warnings import update_warnings
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.custom import version_of
from kschedd.store.custom_scale import ScalePaths, integer_at, scale_paths, text_at, with_integer
from kschedd.store.patch_decoding import decode_patched
from kschedd.store.patching import patched
from kschedd.store.updates import check_preconditions, check_resource_version

_BUILT_IN: Final = ScalePaths()
_NOT_SET: Final = -(2**31)  # replicas that a patch has not set where there were none


def scale_of(obj: Object, paths: ScalePaths, unset: int = 0) -> dict[str, Any]:
    """The Scale of an object whose parts are there; `unset` are the replicas it asks for where it does not say.

    Raises ScaleUnreadable.
    """
    meta = {
        field: obj.metadata[field]
        for field in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if field in obj.metadata
    }
    wanted, there = (integer_at(obj.raw, path) for path in (paths.replicas, paths.status_replicas))
    if wanted is None:
        wanted = unset
    selector = text_at(obj.raw, paths.selector)
    if paths is _BUILT_IN and (stated := selector_text(obj.spec.get("selector"))) != "<none>":
        selector = stated
    status = {"replicas": there or 0, **({"selector": selector} if selector else {})}
    shown = {"replicas": wanted} if wanted else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": shown, "status": status}


def _paths(asked: Asked) -> ScalePaths:
    resource = asked.target.resource
    if resource.definition is None:
        return _BUILT_IN
    paths = scale_paths(version_of(resource.definition, resource.api_version))
    assert paths is not None, "a resource without a scale has no such subresource"
    return paths


async def serve_scale(face: FaceServices, asked: Asked) -> HttpResponse:
    target, paths = asked.target, _paths(asked)
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    if target.verb == "get":
        obj = await find(face, asked)
        scale = scale_of(obj, paths)
        if paths is not _BUILT_IN and integer_at(obj.raw, paths.replicas) is None:
            raise internal_error(f'the spec replicas field "{paths.replicas}" does not exist')
        if form.shape == "Table":
            return json_response(scale_table(scale, face.now(), form.version), form=form)
        return json_response(scale, form=form, request_headers=asked.headers)
    if media_type(asked.headers.get("content-type", "")) == APPLY:
        return await _apply_scale(face, asked)
    manager = manager_of(asked)
    given: Any
    if target.verb == "patch":
        patch_type, body = await read_patch(face, asked)
        if patch_type == "strategic":
            patch_type = "merge"  # a Scale has no lists
        given = body.value
    else:
        check_options(asked)
        given = await received(face, asked, "autoscaling/v1", "Scale", "autoscaling")
        if not (given.get("metadata") or {}).get("name"):
            why = f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
            raise bad_request(why)

    def scaled(store: ClusterWriter) -> dict[str, Any]:
        old = store.get(target.resource.stored, target.namespace, target.name)
        if target.verb == "patch":
            scale = scale_of(old, paths, 0 if paths is _BUILT_IN else _NOT_SET)
            whole = patched(scale, body.value, patch_type)
            wanted, told = decode_patched(
                scale, whole, body.value, patch_type, field_validation(asked.query), body.duplicates
            )
        else:
            wanted, told = given, ()
        meta = wanted.get("metadata") or {}
        if meta.get("name") and meta["name"] != target.name:
            raise bad_request(
                f"the name of the object ({meta['name']}) does not match the name on the URL ({target.name})"
            )
        if target.verb == "patch":
            check_resource_version(old, meta)
        else:
            check_preconditions(old, meta)
        replicas = (wanted.get("spec") or {}).get("replicas") or 0
        if replicas == _NOT_SET and paths is not _BUILT_IN:
            raise bad_request(f'the spec replicas field "{paths.replicas}" cannot be empty')
        if replicas < 0 and paths is _BUILT_IN:  # of a custom resource the whole object says so
            raise _invalid_scale(target.name, replicas)
        changed = store.merge_patch(
            old.kind,
            old.namespace,
            old.name,
            with_integer(paths.replicas, replicas),
            subresource="scale",
            dry_run=asked.dry_run,
            manager=manager,
        )
        return {"object": scale_of(changed, paths), "warnings": (*told, *update_warnings(old, changed))}

    return await _scaled(face, asked, scaled, given)


async def _apply_scale(face: FaceServices, asked: Asked) -> HttpResponse:
    """Server-side apply of a Scale: whoever applies one manages the workload's `spec.replicas`, by this subresource."""
    target, paths = asked.target, _paths(asked)
    config, warnings = await read_apply(face, asked)
    scale = checked_kind(Body(asked.http.body, config), "autoscaling/v1", "Scale", "autoscaling")
    config = placed(asked, scale, named=True)
    replicas = (config.get("spec") or {}).get("replicas")
    below = paths is _BUILT_IN and isinstance(replicas, int) and replicas < 0  # a custom resource says so itself
    if below or not (replicas is None or type(replicas) is int):
        raise _invalid_scale(target.name, replicas)
    asked.warnings.extend(warnings)

    def scaled(store: ClusterWriter) -> dict[str, Any]:
        old = store.get(target.resource.stored, target.namespace, target.name)
        changed, _ = store.server_side_apply(
            old.kind,
            old.namespace,
            old.name,
            {
                "apiVersion": old.raw["apiVersion"],
                "kind": old.raw["kind"],
                "metadata": {"name": old.name, "namespace": old.namespace},
                **({"spec": {}} if replicas is None else with_integer(paths.replicas, replicas)),
            },
            asked.query.text("fieldManager"),
            api_version=str(old.raw["apiVersion"]),
            force=asked.query.flag("force"),
            subresource="scale",
            dry_run=asked.dry_run,
        )
        return {"object": scale_of(changed, paths), "warnings": update_warnings(old, changed)}

    return await _scaled(face, asked, scaled, config)


async def _scaled(
    face: FaceServices, asked: Asked, scaled: Callable[[ClusterWriter], dict[str, Any]], given: Any
) -> HttpResponse:
    form = wanted_form(asked.headers.get("accept", ""), single=True)
    answer = await write(face, asked, scaled, given)
    asked.warnings.extend(answer["warnings"])
    return json_response(answer["object"], form=form, request_headers=asked.headers)


def _invalid_scale(name: str, replicas: Any) -> StatusError:
    fault = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
    details = {"name": name, "group": "autoscaling", "kind": "Scale", "causes": causes((fault,))}
    return StatusError(422, "Invalid", f'Scale.autoscaling "{name}" is invalid: {fault}', details)
