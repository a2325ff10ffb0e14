"""Small changes of existing objects, as requests: scale, label, annotate, cordon, taint, delete.

Each function creates the request that kubectl would send after reading the object. If kubectl would send no request,
the function raises RpcError with kubectl's message.
"""

import re
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.field_labels import check_field_selector
from kschedd.api.schemas.fields import child
from kschedd.api.selecting.selector_text import FieldSelector
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.api.unsupported import newly_unsupported
from kschedd.service.errors import RpcError
from kschedd.service.objects.answers import ChangeAnswer
from kschedd.service.objects.kinds import find_kind, resolve_namespace
from kschedd.service.request import DeleteOptions, PatchBody, Request, Response, WriteOptions
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.creating.scales import paths_of
from kschedd.store.custom_resources.scale import integer_at
from kschedd.store.deletion import Propagation
from kschedd.store.managing import without_entries
from kschedd.store.objects.listing import in_order

Raw = Mapping[str, Any]

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NOT_NEWS: Final = frozenset(("metadata.resourceVersion", "metadata.generation"))
_TAINT: Final = re.compile(r"(?P<key>[^=:\s]+?)(?:=(?P<value>[^:\s]*))?(?::(?P<effect>[A-Za-z]+))?(?P<away>-)?")


def changed_paths(old: Any, new: Any, path: str = "") -> list[str]:
    """Return the paths of the fields that differ, each as specific as possible."""
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


def change_result(response: Response) -> ChangeAnswer:
    """Return the answer about a change: the object, the changed fields, and warnings."""
    new, old = response.object, response.before
    assert old is not None, "an object that is changed was there before"
    changed = changed_paths(without_entries(old.raw), without_entries(new.raw))
    idle = newly_unsupported(old.raw, new.raw, jobs_finish=response.jobs_finish)
    return ChangeAnswer(without_entries(new.raw), changed, response.warnings, idle)


def merging(kind: str, obj: Object, change: Raw, manager: str, dry_run: bool = False) -> Request:
    """Return the request that merges this change into an object."""
    options = WriteOptions(dry_run, manager)
    return Request("patch", kind, obj.namespace, obj.name, body=PatchBody("merge", change), options=options)


def scale(store: ClusterReader, obj: Object, replicas: int, current: int | None = None) -> Request:
    """Return the request that sets an object's replicas.

    Raises RpcError if the object's current number of replicas is not `current`.
    """
    if replicas < 0:
        raise RpcError("invalid", f"replicas: {replicas}: must be 0 or more", {"replicas": replicas})
    before = replicas_of(store, obj)
    if current not in (None, before):
        raise RpcError("conflict", f"Expected replicas to be {current}, was {before}", {"replicas": before})
    return attrs.evolve(merging(obj.kind, obj, {"spec": {"replicas": replicas}}, "kubectl"), subresource="scale")


def replicas_of(store: ClusterReader, obj: Object) -> int:
    """Return the number of replicas in an object's spec. Raises NoScale."""
    found = integer_at(obj.raw, paths_of(store, obj).replicas)
    return found if found is not None else 1 if store.kind_of(obj.raw).known else 0


def set_metadata(old: Object, field: str, wanted: Mapping[str, Any], remove: Sequence[str], overwrite: bool) -> Request:
    """Return the request that sets and removes labels or annotations (`field`)."""
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
    return merging(old.kind, old, {"metadata": {field: change}}, manager)


def cordon(node: Object, unschedulable: bool, dry_run: bool = False) -> Request:
    change = {} if bool(node.spec.get("unschedulable")) == unschedulable else {"unschedulable": unschedulable or None}
    return merging("Node", node, {"spec": change}, "kubectl", dry_run)


def taint(old: Object, wanted: Sequence[str], overwrite: bool) -> Request:
    """Return the request for taints in kubectl's notation: `key=value:Effect` sets, `key:Effect-` and `key-` remove."""
    name = old.name
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
    return merging("Node", old, {"spec": {"taints": taints or None}}, "kubectl-taint")


def _read_taint(text: str) -> tuple[str, str, str, bool]:
    """Parse a taint. Return key, value, effect, and whether to remove the taint."""
    found = _TAINT.fullmatch(text)
    effect = (found and found["effect"]) or ""
    away = bool(found and found["away"])
    if found is None or (not away and not effect) or (effect and effect not in EFFECTS):
        allowed = f"KEY=VALUE:EFFECT, KEY:EFFECT, KEY:EFFECT-, KEY-; EFFECT is one of {', '.join(EFFECTS)}"
        raise RpcError("invalid", f'"{text[:100]}" is no taint; allowed: {allowed}', {"taint": text[:100]})
    return found["key"], found["value"] or "", effect, away


@attrs.frozen
class Deletion:
    """The parameters of `objects.delete`. Raises RpcError if the parameters contradict each other."""

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
        """Return the selected objects in order; the generator yields between its steps."""
        kind = find_kind(store, self.kind)
        space = resolve_namespace(kind, self.namespace)
        if self.name is not None:
            return [store.get(kind.name, space, self.name)]
        check_field_selector(kind, self.field_selector)
        return (yield from in_order(store.present(kind.name, space), self.label_selector, self.field_selector))

    @property
    def request(self) -> Request:
        """Return the request that deletes one of these objects."""
        options = DeleteOptions(self.grace_period_s, self.propagation, dry_run=self.dry_run)
        return Request("delete", name=self.name or "", deletion=options)
