"""Strategic merge patches: lists merge item by item with a merge key, and directives express other changes.

The schema (`kschedd.api.schemas.schema`) defines which lists merge and with which key; every other list is replaced as
a whole. In a map, `$patch: replace` replaces the live map by the patch's map, and `$patch: delete` empties the live
map. In a merged list, an item with `$patch: delete` removes the item with the same key, and an item with `$patch:
replace` replaces the list by the other items of the patch. `$deleteFromPrimitiveList/FIELD` removes values from a
merged list of scalars, `$setElementOrder/FIELD` sets the order of a merged list, and `$retainKeys` lists the fields of
a map to keep.

Patched items are in the order of the patch, or of `$setElementOrder`. Items that exist only in the live list keep their
order. A live item that precedes a patched item in the live list also precedes it in the result.

The inputs are not modified.
Source: Kubernetes v1.34, apimachinery/pkg/util/strategicpatch/patch.go.
Raises: BadPatch and PatchFailed, with kube-apiserver's messages.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, Final

from kschedd.api.schemas.schema import Fields, PatchStrategy, Schema, field_of, item_of
from kschedd.store.errors import BadPatch, PatchFailed
from kschedd.store.patches.json_patch import REJECTED

Raw = Mapping[str, Any]

DIRECTIVE: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_VALUES: Final = "$deleteFromPrimitiveList"
ELEMENT_ORDER: Final = "$setElementOrder"


def strategic_merge(live: Raw, patch: Raw, schema: Schema) -> dict[str, Any]:
    """Return `live`, an object of this schema, with the patch applied."""
    return _merge_map(live, patch, schema)


def _merge_map(live: Raw, patch: Raw, schema: Schema) -> dict[str, Any]:
    if DIRECTIVE in patch:
        match patch[DIRECTIVE]:
            case "replace":
                return {name: value for name, value in patch.items() if name != DIRECTIVE}
            case "delete":
                return {}
            case other:
                raise PatchFailed(f"unknown patch type: {go_text(other)} in map: {go_text(patch)}")
    merged = dict(live)
    rest = dict(patch)
    if RETAIN_KEYS in rest:
        _retain_keys(merged, rest)
    for key in [key for key in rest if key.startswith(ELEMENT_ORDER)]:
        _merge_ordered(merged, rest, key, schema)
    for key, value in rest.items():
        deleting = key.startswith(DELETE_VALUES)
        name = _field_of(key, DELETE_VALUES) if deleting else key
        if value is None:
            merged.pop(name, None)
        elif name not in merged or _sort(merged[name]) is not _sort(value):
            if not deleting:
                _put(merged, name, value)
        elif isinstance(value, Mapping):
            inner, strategy = _lookup(schema, name)
            merged[name] = value if strategy.replace else _merge_map(merged[name], value, inner)
        elif isinstance(value, list):
            inner, strategy = _lookup(schema, name)
            merged[name] = _merge_list(merged[name], value, inner, strategy, deleting) if strategy.merge else value
        else:
            merged[name] = value
    return merged


def _put(merged: dict[str, Any], name: str, value: Any) -> None:
    """Set a value that cannot be merged, without nulls and without maps that contain directives."""
    kept = _plain(value)
    if kept is None:
        merged.pop(name, None)
    else:
        merged[name] = kept


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        if DIRECTIVE in value:
            return None
        inner = {name: _plain(item) for name, item in value.items()}
        return {name: item for name, item in inner.items() if item is not None}
    if isinstance(value, list):
        return [kept for item in value if (kept := _plain(item)) is not None]
    return value


def _retain_keys(merged: dict[str, Any], rest: dict[str, Any]) -> None:
    kept = rest.pop(RETAIN_KEYS)
    if not isinstance(kept, list):
        raise BadPatch("invalid patch format of retainKeys")
    retained = {name for name in kept if isinstance(name, str)}
    for name, value in rest.items():
        if value is not None and not name.startswith((DELETE_VALUES, ELEMENT_ORDER)) and name not in retained:
            raise BadPatch("invalid patch format of retainKeys")
    for name in [name for name in merged if name not in retained]:
        del merged[name]


# -- lists ----------------------------------------------------------------------------------------------------------


def _merge_ordered(merged: dict[str, Any], rest: dict[str, Any], key: str, schema: Schema) -> None:
    """Merge the list to which the patch's $setElementOrder refers, and remove both from the patch."""
    order = rest.pop(key)
    name = _field_of(key, ELEMENT_ORDER)
    live, patched = merged.get(name), rest.get(name)
    for value in (order, *(value for value in (live, patched) if value is not None)):
        if not isinstance(value, list):
            raise PatchFailed(f"expected a []interface {{}}, but received a {go_type(value)}")
    inner, strategy = _lookup(schema, name)
    merge_key = strategy.merge_key
    if merge_key and (wrong := [item for item in order if not isinstance(item, Mapping)]):
        raise BadPatch(f"{REJECTED}: {key}: a map with {merge_key} is expected, not a {go_type(wrong[0])}")
    _check_order(patched or [], order, merge_key)
    if patched is None:
        if live is None:
            return
        together = list(live)
    elif live is None:
        together = list(patched)
    else:
        together = _merge_list(live, patched, inner, strategy, False) if strategy.merge else list(patched)
    merged[name] = _arranged(together, order, live or [], merge_key)
    rest.pop(name, None)


def _check_order(patched: Sequence[Any], order: Sequence[Any], merge_key: str) -> None:
    """Raise PatchFailed unless the patch's items follow the order list; items with directives are ignored."""
    if not patched or not order:
        return
    waiting = [item for item in patched if not (isinstance(item, Mapping) and DIRECTIVE in item)]
    at = 0
    for place in order:
        if at < len(waiting) and _key(waiting[at], merge_key) == _key(place, merge_key):
            at += 1
    if at < len(waiting):
        why = f"The order in patch list:\n{go_text(patched)}\n doesn't match {ELEMENT_ORDER} list:\n{go_text(order)}\n"
        raise PatchFailed(why)


def _merge_list(
    live: Sequence[Any], patch: Sequence[Any], schema: Schema, strategy: PatchStrategy, deleting: bool
) -> list[Any]:
    if not live and not patch:
        return list(live)
    sorts = {_sort(item) for item in (*live, *patch)}
    if "list" in sorts:
        raise BadPatch(f"{REJECTED}: lists of lists are not supported")
    if len(sorts) > 1:
        raise PatchFailed(f"list element types are not identical: {go_text([list(live), list(patch)])}")
    if sorts != {"map"}:
        if deleting:
            gone = set(map(_hashable, patch))
            return [item for item in live if _hashable(item) not in gone]
        return _arranged(_without_repeats([*live, *patch]), patch, live, "")
    merge_key = strategy.merge_key
    if not merge_key:
        raise PatchFailed("cannot merge lists without merge key for type map")
    live, patch = _directed(list(live), patch, merge_key)
    merged = list(live)
    places = _first_places(other.get(merge_key) for other in merged)
    for item in patch:
        place = places.get(_hashable(_key(item, merge_key)))
        if place is None:
            merged.append(_plain(item))
            places.setdefault(_hashable(merged[-1].get(merge_key)), len(merged) - 1)
        else:
            merged[place] = _merge_map(merged[place], item, item_of(schema))
    return _arranged(merged, patch, live, merge_key)


def _directed(live: list[Any], patch: Sequence[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Return the live list and the patch's plain items, after applying the patch's directive items."""
    plain = []
    gone: set[Hashable] = set()
    replace = False
    for item in patch:
        match item.get(DIRECTIVE):
            case None:
                plain.append(item)
            case "delete":
                gone.add(_hashable(_key(item, merge_key)))
            case "replace":
                replace = True
            case "merge":
                raise PatchFailed("merging lists cannot yet be specified in the patch")
            case other:
                raise PatchFailed(f"unknown patch type: {go_text(other)} in map: {go_text(item)}")
    if replace:
        return plain, []
    return [other for other in live if _hashable(other.get(merge_key)) not in gone] if gone else live, plain


def _without_repeats(items: list[Any]) -> list[Any]:
    """Return each value once.

    Replace each value that occurs twice by its last occurrence, as kube-apiserver does; this changes the order.
    """
    # heap of the positions of each value; after `last` it may contain stale positions
    places: dict[Any, list[int]] = {}
    for at, item in enumerate(items):
        places.setdefault(item, []).append(at)
    last = len(items) - 1
    at = 0
    while at <= last:
        others = places[items[at]]
        while others and others[0] <= last:
            other = heappop(others)
            if other > at:
                items[other] = items[last]
                last -= 1
                heappush(places[items[other]], other)
        at += 1
    return items[: last + 1]


def _arranged(items: Sequence[Any], order: Sequence[Any], live: Sequence[Any], merge_key: str) -> list[Any]:
    """Return the items named in `order`, in that order, merged with all other items in the order of the live list."""
    wanted = _first_places(_key(item, merge_key) for item in order if not (merge_key and merge_key not in item))
    before = _first_places(_key(item, merge_key) for item in live)
    keyed = [(_hashable(item.get(merge_key) if merge_key else item), item) for item in items]
    mine = sorted((each for each in keyed if each[0] in wanted), key=lambda each: wanted[each[0]])
    others = sorted((each for each in keyed if each[0] not in wanted), key=lambda each: before.get(each[0], -1))
    result: list[Any] = []
    left = right = 0
    while left < len(others) and right < len(mine):
        if 0 <= before.get(others[left][0], -1) < before.get(mine[right][0], -1):
            result.append(others[left][1])
            left += 1
        else:
            result.append(mine[right][1])
            right += 1
    return [*result, *(item for _, item in mine[right:]), *(item for _, item in others[left:])]


def _first_places(keys: Iterable[Any]) -> dict[Hashable, int]:
    """Return the first position of each key in the list."""
    places: dict[Hashable, int] = {}
    for at, key in enumerate(keys):
        places.setdefault(_hashable(key), at)
    return places


def _hashable(value: Any) -> Hashable:
    """Return a hashable value that is equal for equal JSON values."""
    if isinstance(value, Mapping):
        return ("map", frozenset((name, _hashable(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return ("list", tuple(map(_hashable, value)))
    plain: Hashable = value
    return plain


def _key(item: Any, merge_key: str) -> Any:
    if not merge_key:
        return item
    if not isinstance(item, Mapping):
        raise PatchFailed(f"expected a map[string]interface {{}}, but received a {go_type(item)}")
    if merge_key not in item:
        raise PatchFailed(f"map: {go_text(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


# -- fields and texts -----------------------------------------------------------------------------------------------


def _lookup(schema: Schema, name: str) -> tuple[Schema, PatchStrategy]:
    if isinstance(schema, Fields) and name not in schema:
        raise PatchFailed(f'unable to find api field in struct {schema.short_name} for the json field "{name}"')
    return field_of(schema, name)


def _field_of(key: str, prefix: str) -> str:
    begin, slash, name = key.partition("/")
    if not slash or begin != prefix:
        what = "primitive list" if prefix == DELETE_VALUES else "setElementOrder list"
        raise BadPatch(f"invalid patch format of {what}")
    return name


_GO_TYPES: Final = {
    "map": "map[string]interface {}",
    "list": "[]interface {}",
    "str": "string",
    "int": "int64",
    "float": "float64",
    "null": "<nil>",
}


def _sort(value: Any) -> str:
    """Return Go's kind of a JSON value; values of different kinds are not merged."""
    match value:
        case Mapping():
            return "map"
        case list() | tuple():
            return "list"
        case bool():
            return "bool"
        case None:
            return "null"
        case _:
            return type(value).__name__


def go_type(value: Any) -> str:
    """Return the type of a JSON value as Go's %T prints it."""
    sort = _sort(value)
    return _GO_TYPES.get(sort, sort)


def go_text(value: Any) -> str:
    """Return a JSON value as Go's %v prints it."""
    match value:
        case Mapping():
            return "map[" + " ".join(f"{name}:{go_text(value[name])}" for name in sorted(value)) + "]"
        case list() | tuple():
            return "[" + " ".join(map(go_text, value)) + "]"
        case bool():
            return "true" if value else "false"
        case None:
            return "<nil>"
        case _:
            return str(value)
