"""Merging of manifests: RFC 7386 merge patches, and the three-way merge of `kubectl apply`.

The inputs are not modified; unchanged parts are shared with the original.

`apply` merges three manifests: the last applied manifest (stored in an annotation, as by kubectl), the new manifest,
and the live object. Fields of the last applied manifest that are not in the new manifest are removed. Fields of the new
manifest are set. Fields that exist only in the live object (defaults, fields of other clients) remain. Maps merge key
by key. Lists merge item by item if the schema gives them a merge key, or as sets if the schema marks them as merging
scalars. All other lists are replaced.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.api.schemas.schema import ANY, NO_STRATEGY, PatchStrategy, Schema, field_of, item_of

Raw = Mapping[str, Any]

_NO_MAPS: Final = frozenset((str, list, int, bool, float))
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` after an RFC 7386 patch: null removes a field, maps are merged, any other value replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged: dict[str, Any] = dict(target) if isinstance(target, Mapping) else {}
    for name, wanted in patch.items():
        if wanted is None:
            merged.pop(name, None)
        elif type(wanted) in _NO_MAPS:  # fast path: `isinstance` of an abstract class would be slow
            merged[name] = wanted
        else:
            merged[name] = merge_patch(merged.get(name), wanted)
    return merged


def three_way(last: Any, wanted: Any, live: Any, schema: Schema = ANY, strategy: PatchStrategy = NO_STRATEGY) -> Any:
    """Return `live` with `wanted` applied.

    `last` is the last applied value; `schema` and `strategy` belong to this field.
    """
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        before = last if isinstance(last, Mapping) else {}
        merged = {
            name: value for name, value in live.items() if name in wanted or name not in before or before[name] is None
        }
        for name, value in wanted.items():
            if value is None:
                merged.pop(name, None)
            elif name in merged:
                inner, how = field_of(schema, name)
                merged[name] = three_way(before.get(name), value, merged[name], inner, how)
            else:
                merged[name] = value
        return merged
    if isinstance(wanted, list) and isinstance(live, list) and strategy.merge:
        applied = last if isinstance(last, list) else []
        if not strategy.merge_key:
            return [*wanted, *(value for value in live if value not in wanted and value not in applied)]
        if _named(strategy.merge_key, wanted, live):
            return _merge_items(applied, wanted, live, strategy.merge_key, item_of(schema))
    return wanted


def _named(key: str, *lists: Sequence[Any]) -> bool:
    """Return whether every item of the lists has the key, with a value that is unique in its list."""
    if not all(isinstance(item, Mapping) and key in item for items in lists for item in items):
        return False
    return all(len({repr(item[key]) for item in items}) == len(items) for items in lists)


def _merge_items(
    last: Sequence[Any], wanted: Sequence[Raw], live: Sequence[Raw], key: str, schema: Schema
) -> list[Any]:
    """Return the wanted items in order, then the live items that are neither wanted nor in the last applied list."""
    before = {repr(item[key]): item for item in last if isinstance(item, Mapping) and key in item}
    present = {repr(item[key]): item for item in live}
    merged = []
    for item in wanted:
        name = repr(item[key])
        merged.append(three_way(before.get(name), item, present[name], schema) if name in present else item)
    named = {repr(item[key]) for item in wanted}
    return merged + [item for name, item in present.items() if name not in named and name not in before]
