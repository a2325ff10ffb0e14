"""The Scale of an object: the view of its replicas that the scale subresource reads and writes.

Source: Kubernetes v1.34, pkg/registry/apps/*/storage; apiextensions-apiserver/pkg/registry/customresource/etcd.go.
Raises: NoScale, ScaleUnreadable.
"""

from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.kinds import kind_of
from kschedd.printing.columns.workloads import selector_text
from kschedd.store.custom_resources.kinds import DefiningCluster, definition_of, version_of
from kschedd.store.custom_resources.scale import (
    SCALABLE,
    NoScale,
    ScalePaths,
    integer_at,
    scale_paths,
    text_at,
)

BUILT_IN: Final = ScalePaths()


def paths_of(store: DefiningCluster, obj: Object, api_version: str = "") -> ScalePaths:
    """Return the field paths of an object's scale.

    Raises NoScale if the kind, or its definition, has no scale subresource.
    """
    if kind_of(obj.raw).known:
        if obj.kind not in SCALABLE:
            raise NoScale(obj.kind)
        return BUILT_IN
    definition = definition_of(store, obj.raw)
    version = api_version or str(obj.raw.get("apiVersion"))
    paths = None if definition is None else scale_paths(version_of(definition, version))
    if paths is None:
        raise NoScale(obj.kind)
    return paths


def scale_of(obj: Object, paths: ScalePaths, unset: int = 0) -> dict[str, Any]:
    """Return the Scale of an object, as `scale_of_raw`."""
    return scale_of_raw(obj.raw, paths, unset)


def scale_of_raw(raw: Raw, paths: ScalePaths, unset: int = 0) -> dict[str, Any]:
    """Return the Scale of an object; `unset` is the number of replicas if the object has no such field.

    Raises ScaleUnreadable.
    """
    metadata = raw["metadata"]
    meta = {
        field: metadata[field]
        for field in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if field in metadata
    }
    wanted, there = (integer_at(raw, path) for path in (paths.replicas, paths.status_replicas))
    if wanted is None:
        wanted = unset
    selector = text_at(raw, paths.selector)
    if paths is BUILT_IN and (stated := selector_text((raw.get("spec") or {}).get("selector"))) != "<none>":
        selector = stated
    status = {"replicas": there or 0, **({"selector": selector} if selector else {})}
    shown = {"replicas": wanted} if wanted else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": shown, "status": status}
