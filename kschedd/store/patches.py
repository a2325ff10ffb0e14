"""Changes to manifests as values: RFC 7386 merge patches, and the three-way merge of `kubectl apply`.

Nothing is changed in place; what a change does not touch is shared with the original.

`apply` compares three manifests: what was applied last time (kept in an annotation, as kubectl does), what is to be
applied now, and what is live. Fields applied before and no longer named are taken away; fields named now win; fields
only the live object has (defaults, other writers') stay. Maps merge key by key. Lists of named things (containers,
volumes, ports and the like, see MERGE_KEYS) merge item by item, every other list is replaced as a whole: what
strategic merge does for the built-in kinds, without its directives (`$patch`, `$retainKeys`), which are not supported.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

Raw = Mapping[str, Any]

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

# Field name of a list -> the fields of which one that is in every item tells the items apart.
MERGE_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "schedulingGates": ("name",),
    "resourceClaims": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "port"),
    "conditions": ("type",),
    "topologySpreadConstraints": ("topologyKey",),
    "hostAliases": ("ip",),
    "addresses": ("type",),
    "ownerReferences": ("uid",),
}


def merge_patch(target: Any, patch: Any) -> Any:
    """`target` with an RFC 7386 patch applied: null takes a field away, maps merge, anything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged: dict[str, Any] = dict(target) if isinstance(target, Mapping) else {}
    for name, wanted in patch.items():
        if wanted is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), wanted)
    return merged


def three_way(last: Any, wanted: Any, live: Any, field: str = "") -> Any:
    """What `live` becomes when `wanted` is applied after `last` was. `field` is the name of the place, for lists."""
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        before = last if isinstance(last, Mapping) else {}
        merged = {
            name: value for name, value in live.items() if name in wanted or name not in before or before[name] is None
        }
        for name, value in wanted.items():
            if value is None:
                merged.pop(name, None)
            elif name in merged:
                merged[name] = three_way(before.get(name), value, merged[name], name)
            else:
                merged[name] = value
        return merged
    if isinstance(wanted, list) and isinstance(live, list):
        key = _merge_key(field, wanted, live)
        if key is not None:
            return _merge_items(last if isinstance(last, list) else [], wanted, live, key)
    return wanted


def _merge_key(field: str, *lists: Sequence[Any]) -> str | None:
    for key in MERGE_KEYS.get(field, ()):
        if all(isinstance(item, Mapping) and key in item for items in lists for item in items):
            if all(len({repr(item[key]) for item in items}) == len(items) for items in lists):
                return key
    return None


def _merge_items(last: Sequence[Any], wanted: Sequence[Raw], live: Sequence[Raw], key: str) -> list[Any]:
    """Wanted items in the wanted order, then those that only the live list has and that were never applied."""
    before = {repr(item[key]): item for item in last if isinstance(item, Mapping) and key in item}
    present = {repr(item[key]): item for item in live}
    merged = [
        three_way(before.get(repr(item[key])), item, present[repr(item[key])]) if repr(item[key]) in present else item
        for item in wanted
    ]
    named = {repr(item[key]) for item in wanted}
    return merged + [item for name, item in present.items() if name not in named and name not in before]
