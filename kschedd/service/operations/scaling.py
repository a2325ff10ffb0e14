"""The scale subresource: the desired and current number of pods of a workload or a custom resource.

Source: Kubernetes v1.34, pkg/registry/apps/*/storage;
apiextensions-apiserver/pkg/registry/customresource/etcd.go.
Raises: ApiError.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.objects import Raw
from kschedd.api.schemas.fields import invalid
from kschedd.service.operations.writing import check_name, decoded, placed
from kschedd.service.request import PatchBody, Request, Response
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.creating.scales import BUILT_IN, paths_of, scale_of
from kschedd.store.creating.updates import check_preconditions, check_resource_version
from kschedd.store.custom_resources.scale import ScalePaths, with_integer
from kschedd.store.errors import BadRequest, InvalidScale
from kschedd.store.patch_decoding import decode_patched
from kschedd.store.patches.patching import check_patch_options, patched

_NOT_SET: Final = -(2**31)  # value of replicas that a patch does not set


def scale(store: ClusterWriter, request: Request, warnings: list[str]) -> Response:
    """Write the replicas of a Scale to its workload; `request.kind` is the kind of the workload."""
    if request.verb == "apply":
        return _apply(store, request, warnings)
    given: Raw = {}
    if request.verb == "update":
        given = decoded(store, request, warnings)
        check_name(given.get("metadata") or {}, "Scale", request.name)
    old = store.get(request.kind, request.namespace, request.name)
    paths = paths_of(store, old, request.api_version)
    if request.verb == "patch":
        given = _patched(request, scale_of(old, paths, 0 if paths is BUILT_IN else _NOT_SET), warnings)
    meta = given.get("metadata") or {}
    if meta.get("name"):
        check_name(meta, "Scale", request.name)
    (check_resource_version if request.verb == "patch" else check_preconditions)(old, meta)
    replicas = (given.get("spec") or {}).get("replicas") or 0
    if replicas == _NOT_SET and paths is not BUILT_IN:
        raise BadRequest("Scale", request.name, f'the spec replicas field "{paths.replicas}" cannot be empty')
    _check_replicas(request.name, replicas, paths)
    changed = store.merge_patch(
        old.kind,
        old.namespace,
        old.name,
        with_integer(paths.replicas, replicas),
        subresource="scale",
        dry_run=request.options.dry_run,
        manager=request.options.manager,
    )
    return Response(changed, old)


def _patched(request: Request, scale: Raw, warnings: list[str]) -> Mapping[str, Any]:
    patch = request.body
    assert isinstance(patch, PatchBody), "a request to patch has a patch"
    patch_type = "merge" if patch.type == "strategic" else patch.type  # a Scale has no lists
    whole, warned = decode_patched(
        scale,
        patched(scale, patch.value, patch_type),
        patch.value,
        patch_type,
        request.options.validation,
        request.duplicates,
    )
    warnings += warned
    return whole


def _apply(store: ClusterWriter, request: Request, warnings: list[str]) -> Response:
    """Apply a Scale server-side; its field manager then owns the workload's `spec.replicas` for this subresource."""
    options = request.options
    check_patch_options(options.manager, options.force, applied=True)
    config = placed(store, request, request.body, warnings)
    replicas = (config.get("spec") or {}).get("replicas")
    if not (replicas is None or type(replicas) is int):
        raise InvalidScale(request.name, (_below_zero(replicas),))
    old = store.get(request.kind, request.namespace, request.name)
    paths = paths_of(store, old, request.api_version)
    _check_replicas(request.name, replicas or 0, paths)
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
        options.manager,
        api_version=str(old.raw["apiVersion"]),
        force=options.force,
        subresource="scale",
        dry_run=options.dry_run,
    )
    return Response(changed, old)


def _check_replicas(name: str, replicas: int, paths: ScalePaths) -> None:
    """Raise InvalidScale for a negative number.

    For a custom resource, the validation of the object also checks the number.
    """
    if replicas < 0 and paths is BUILT_IN:
        raise InvalidScale(name, (_below_zero(replicas),))


def _below_zero(replicas: Any) -> Any:
    return invalid("spec.replicas", replicas, "must be greater than or equal to 0")
