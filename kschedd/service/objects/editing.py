"""Small changes to objects that are there: patch, scale, label, annotate, cordon, taint, delete.

Plain functions over a store, each one request; they raise RpcError or what the store raises, in kubectl's words
where it has some. Each answers with the object as it is now and what changed in it.
"""

import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.decoding import FieldValidation
from kschedd.api.field_labels import check_field_selector
from kschedd.api.fields import child
from kschedd.api.kinds import Kind
from kschedd.api.objects import Object
from kschedd.api.selector_text import FieldSelector
from kschedd.api.selectors import LabelSelector
from kschedd.api.unsupported import newly_unsupported
from kschedd.service.errors import RpcError
from kschedd.service.objects.kinds import find_kind, resolve_namespace
from kschedd.store.cluster_api import ClusterReader, ClusterWriter
from kschedd.store.custom import definition_of, version_of
from kschedd.store.custom_scale import ScalePaths, integer_at, scale_paths, with_integer
from kschedd.store.deletion import Propagation
from kschedd.store.errors import NotFound
from kschedd.store.listing import in_order
from kschedd.store.managing import without_entries
from kschedd.store.patching import PatchType
from kschedd.store.updates import Subresource

Raw = Mapping[str, Any]

SCALABLE: Final = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NOT_NEWS: Final = frozenset(("metadata.resourceVersion", "metadata.generation"))
_TAINT: Final = re.compile(r"(?P<key>[^=:\s]+?)(?:=(?P<value>[^:\s]*))?(?::(?P<effect>[A-Za-z]+))?(?P<away>-)?")


def changed_paths(old: Any, new: Any, path: str = "") -> list[str]:
    """The paths of the fields that differ, the deepest that can be named."""
    if old is new or old == new:
        return []
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = [*old, *(name for name in new if name not in old)]
        found = [p for name in names for p in changed_paths(old.get(name), new.get(name), child(path, name))]
        return [p for p in found if p not in _NOT_NEWS]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [p for at, (before, after) in pairs for p in changed_paths(before, after, f"{path}[{at}]")]
    return [path]


def change_result(old: Object, new: Object, warnings: Sequence[str] = ()) -> dict[str, Any]:
    """The answer to a change: the object, what changed, and what there is to warn of."""
    return {
        "object": without_entries(new.raw),
        "changed": changed_paths(without_entries(old.raw), without_entries(new.raw)),
        "warnings": list(warnings),
        "unsupported": [attrs.asdict(each) for each in newly_unsupported(old.raw, new.raw)],
    }


def patch(
    store: ClusterWriter,
    kind: Kind,
    name: str,
    namespace: str | None,
    wanted: Any,
    patch_type: PatchType,
    subresource: Subresource,
    validation: FieldValidation,
    dry_run: bool,
) -> dict[str, Any]:
    space = resolve_namespace(kind, namespace)
    old = store.get(kind.name, space, name)
    new, warnings = store.patch(
        kind.name,
        space,
        name,
        wanted,
        patch_type,
        subresource=subresource,
        validation=validation,
        dry_run=dry_run,
        manager="kubectl-patch",
    )
    return change_result(old, new, warnings)


def scale(
    store: ClusterWriter, kind: Kind, name: str, namespace: str | None, replicas: int, current: int | None = None
) -> dict[str, Any]:
    if kind.known and kind.name not in SCALABLE:
        raise _not_scalable(kind)
    if replicas < 0:
        raise RpcError("invalid", f"replicas: {replicas}: must be 0 or more", {"replicas": replicas})
    space = resolve_namespace(kind, namespace)
    old = store.get(kind.name, space, name)
    path = _replicas_path(store, kind, old)
    before = integer_at(old.raw, path)
    if before is None:
        before = 1 if kind.known else 0
    if current not in (None, before):
        raise RpcError("conflict", f"Expected replicas to be {current}, was {before}", {"replicas": before})
    new = store.merge_patch(kind.name, space, name, with_integer(path, replicas), manager="kubectl")
    return {"object": without_entries(new.raw), "before": before, "after": integer_at(new.raw, path)}


def _replicas_path(store: ClusterWriter, kind: Kind, obj: Object) -> str:
    """Where its replicas are. Raises RpcError if its definition gives it no scale."""
    if kind.known:
        return ScalePaths().replicas
    definition = definition_of(store, obj.raw)
    paths = None if definition is None else scale_paths(version_of(definition, str(obj.raw.get("apiVersion"))))
    if paths is None:
        raise _not_scalable(kind)
    return paths.replicas


def _not_scalable(kind: Kind) -> RpcError:
    allowed = f"{', '.join(SCALABLE)}, custom resources whose definition has the subresource scale"
    return RpcError("invalid", f"cannot scale a {kind.name}; allowed: {allowed}", {"kind": kind.name})


def set_metadata(
    store: ClusterWriter,
    field: str,
    kind: Kind,
    name: str,
    namespace: str | None,
    wanted: Mapping[str, Any],
    remove: Sequence[str],
    overwrite: bool,
) -> dict[str, Any]:
    """Set and take away labels or annotations (`field`)."""
    space = resolve_namespace(kind, namespace)
    old = store.get(kind.name, space, name)
    present = old.metadata.get(field) or {}
    both = sorted(set(wanted) & set(remove))
    if both:
        raise RpcError("invalid", f"cannot both set and remove {', '.join(both)}", {"keys": both})
    for key, value in wanted.items():
        if not isinstance(value, str):
            raise RpcError("invalid", f"{field}[{key}]: {value!r}: must be text", {"key": key})
        if not overwrite and key in present and present[key] != value:
            why = f"'{key}' already has a value ({present[key]}), and overwrite is false"
            raise RpcError("conflict", why, {"key": key, "value": present[key]})
    change = {**wanted, **dict.fromkeys(remove)}
    manager = "kubectl-label" if field == "labels" else "kubectl-annotate"
    new = store.merge_patch(kind.name, space, name, {"metadata": {field: change}}, manager=manager)
    return change_result(old, new)


def cordon(store: ClusterWriter, name: str, unschedulable: bool, dry_run: bool = False) -> dict[str, Any]:
    old = store.get("Node", "", name)
    if bool(old.spec.get("unschedulable")) == unschedulable:
        return change_result(old, old)
    patch = {"spec": {"unschedulable": unschedulable or None}}
    return change_result(old, store.merge_patch("Node", "", name, patch, dry_run=dry_run, manager="kubectl"))


def taint(store: ClusterWriter, name: str, wanted: Sequence[str], overwrite: bool) -> dict[str, Any]:
    """Taints in kubectl's notation: `key=value:Effect` sets one, `key:Effect-` and `key-` take away."""
    old = store.get("Node", "", name)
    taints = [dict(entry) for entry in old.spec.get("taints") or ()]
    seen: set[tuple[str, str]] = set()
    for text in wanted:
        key, value, effect, away = _read_taint(text)
        if (key, effect) in seen:
            raise RpcError("invalid", f'taint "{text}": {key}:{effect} is named twice', {"taint": text})
        seen.add((key, effect))
        same = [t for t in taints if t.get("key") == key and effect in ("", t.get("effect"))]
        if away:
            if not same:
                missing = f"{key}:{effect}" if effect else key
                raise RpcError("not_found", f'taint "{missing}" not found', {"taint": text})
            taints = [t for t in taints if t not in same]
            continue
        if same and not overwrite and (same[0].get("value") or "") != value:
            why = f"node {name} already has taint {key} with the same effect, and overwrite is false"
            raise RpcError("conflict", why, {"taint": text})
        entry = {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}
        if same:
            taints[taints.index(same[0])] = entry if (same[0].get("value") or "") != value else same[0]
        else:
            taints.append(entry)
    return change_result(
        old, store.merge_patch("Node", "", name, {"spec": {"taints": taints or None}}, manager="kubectl-taint")
    )


def _read_taint(text: str) -> tuple[str, str, str, bool]:
    """(key, value, effect, whether it is to be taken away)."""
    found = _TAINT.fullmatch(text)
    effect = (found and found["effect"]) or ""
    away = bool(found and found["away"])
    if found is None or (not away and not effect) or (effect and effect not in EFFECTS):
        allowed = f"KEY=VALUE:EFFECT, KEY:EFFECT, KEY:EFFECT-, KEY-; EFFECT is one of {', '.join(EFFECTS)}"
        raise RpcError("invalid", f'"{text[:100]}" is no taint; allowed: {allowed}', {"taint": text[:100]})
    return found["key"], found["value"] or "", effect, away


@attrs.frozen
class Deletion:
    """What `objects.delete` was asked for. Raises RpcError where that makes no sense."""

    kind: str
    name: str | None
    label_selector: LabelSelector | None
    everything: bool
    namespace: str | None
    grace_period_s: int | None
    propagation: Propagation
    dry_run: bool
    field_selector: FieldSelector | None = None

    def __attrs_post_init__(self) -> None:
        selected = self.label_selector is not None or self.field_selector is not None
        if sum((self.name is not None, selected, self.everything)) != 1:
            raise RpcError("bad_params", "objects.delete: give one of name, label_selector (or field_selector) and all")
        if self.grace_period_s is not None and self.grace_period_s < 0:
            raise RpcError("invalid", f"grace_period_s: {self.grace_period_s}: must be 0 or more")

    def chosen(self, store: ClusterReader) -> Generator[None, None, Sequence[Object]]:
        """The objects it is about, in order; in steps."""
        kind = find_kind(store, self.kind)
        space = resolve_namespace(kind, self.namespace)
        if self.name is not None:
            return [store.get(kind.name, space, self.name)]
        check_field_selector(kind, self.field_selector)
        return (yield from in_order(store.present(kind.name, space), self.label_selector, self.field_selector))

    def delete(self, store: ClusterWriter, some: Sequence[Object]) -> list[dict[str, Any]]:
        """Delete some of these; one that has gone since is left out, unless it was asked for by name."""
        deleted = []
        for obj in some:
            kind = obj.kind
            try:
                store.delete(
                    kind,
                    obj.namespace,
                    obj.name,
                    grace_period_s=self.grace_period_s,
                    propagation=self.propagation,
                    dry_run=self.dry_run,
                )
            except NotFound:
                if self.name is not None:
                    raise
                continue
            gone = not self.dry_run and store.find(kind, obj.namespace, obj.name) is None
            deleted.append({"kind": kind, "namespace": obj.namespace, "name": obj.name, "gone": gone})
        return deleted
