"""Sets of fields in the form of metadata.managedFields, and operations on such sets.

A set is a tree. The steps of a path have the format of FieldsV1: `f:NAME` is a field of a map, `k:{"name":"a"}` is the
list item with these keys, and `v:"a"` is the list item with this value. A set must not change after a function has
returned it; `insert` is only for building a set.

Source: sigs.k8s.io/structured-merge-diff v6, fieldpath (set.go, element.go, serialize.go).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kschedd.api.text.json_text import json_value

FieldsV1 = Mapping[str, Any]
Path = tuple[str, ...]


class FieldSet:
    """The fields at and below one place; with `member`, the field at this place itself belongs to the set."""

    __slots__ = ("children", "member")

    def __init__(self, member: bool = False, children: dict[str, "FieldSet"] | None = None) -> None:
        self.member = member
        self.children = {} if children is None else children

    def __bool__(self) -> bool:
        return self.member or bool(self.children)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldSet):
            return NotImplemented
        return self.member == other.member and self.children == other.children

    __hash__ = None  # type: ignore[assignment]  # it is built in place

    def __repr__(self) -> str:
        return f"FieldSet({fields_v1(self)})"

    def insert(self, path: Sequence[str]) -> None:
        here = self
        for step in path:
            below = here.children.get(step)
            if below is None:
                below = here.children[step] = FieldSet()
            here = below
        here.member = True

    def at(self, step: str) -> "FieldSet":
        return self.children.get(step, NO_FIELDS)

    def paths(self) -> Iterator[Path]:
        """Yield the paths of all members in upstream's order: at each place, members first, then the fields below."""
        if self.member:
            yield ()
        yield from self._below()

    def _below(self) -> Iterator[Path]:
        steps = sorted(self.children, key=_order)
        for step in steps:
            if self.children[step].member:
                yield (step,)
        for step in steps:
            for rest in self.children[step]._below():
                yield (step, *rest)


NO_FIELDS = FieldSet()


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    if not one.children and not other.children:
        return FieldSet(one.member or other.member)
    children = dict(one.children)
    for step, below in other.children.items():
        mine = children.get(step)
        children[step] = below if mine is None else union(mine, below)
    return FieldSet(one.member or other.member, children)


def union_of(sets: Sequence[FieldSet]) -> FieldSet:
    """Return the union of one or more sets. Sets are merged in pairs, so that each set is copied only a few times."""
    while len(sets) > 1:
        pairs = (sets[place : place + 2] for place in range(0, len(sets), 2))
        sets = [union(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return sets[0]


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    children = {}
    for step, below in one.children.items():
        if step in other.children and (both := intersection(below, other.children[step])):
            children[step] = both
    return FieldSet(one.member and other.member, children)


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the members of `one` that are not members of `other`; fields below a member of `other` remain."""
    children = {}
    for step, below in one.children.items():
        theirs = other.children.get(step)
        left = below if theirs is None else difference(below, theirs)
        if left:
            children[step] = left
    return FieldSet(one.member and not other.member, children)


def recursive_difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the members of `one` that are neither members of `other` nor below a member."""
    if other.member:
        return NO_FIELDS
    children = {}
    for step, below in one.children.items():
        theirs = other.children.get(step)
        left = below if theirs is None else recursive_difference(below, theirs)
        if left:
            children[step] = left
    return FieldSet(one.member, children)


def only_below(one: FieldSet, roots: Sequence[Path]) -> FieldSet:
    """Return the part of a set that is at or below one of these paths, in which "*" matches any step."""
    if any(not root for root in roots):
        return one
    children = {}
    for step, below in one.children.items():
        inner = [root[1:] for root in roots if root[0] in (step, "*")]
        if inner and (left := only_below(below, inner)):
            children[step] = left
    return FieldSet(False, children)


def set_of(*paths: Path) -> FieldSet:
    made = FieldSet()
    for path in paths:
        made.insert(path)
    return made


# -- as JSON --------------------------------------------------------------------------------------------------------


def fields_v1(fields: FieldSet) -> dict[str, Any]:
    """Return the set in the format of `fieldsV1`."""
    below = {step: fields_v1(fields.children[step]) for step in sorted(fields.children, key=_order)}
    return {".": {}, **below} if fields.member and below else below


def read_fields_v1(given: Any) -> FieldSet:
    """Return the set that a `fieldsV1` describes. Raises ValueError if the `fieldsV1` is invalid."""
    return _read(given, root=True)


def _read(given: Any, *, root: bool = False) -> FieldSet:
    if not isinstance(given, Mapping):
        raise ValueError("a set of fields is a map")
    if not given and not root:
        return FieldSet(member=True)
    children = {}
    for step, below in given.items():
        if step == ".":
            continue
        children[_canonical(step)] = _read(below)
    return FieldSet("." in given, children)


def _canonical(step: Any) -> str:
    sort, text = (step[:2], step[2:]) if isinstance(step, str) else ("", "")
    match sort:
        case "f:":
            return str(step)
        case "v:":
            return value_step(json_value(text))
        case "k:":
            keys = json_value(text)
            if isinstance(keys, dict):
                return key_step(keys)
        case "i:":
            return f"i:{int(text)}"
    raise ValueError(f"{str(step)[:100]!r} is not a valid path element")


def key_step(keys: Mapping[str, Any]) -> str:
    return "k:" + json.dumps(dict(sorted(keys.items())), separators=(",", ":"), ensure_ascii=False)


def value_step(value: Any) -> str:
    return "v:" + json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _order(step: str) -> tuple[str, Any]:
    sort, text = step[:2], step[2:]
    if sort == "k:":
        return sort, [(name, *_rank(value)) for name, value in json.loads(text).items()]
    if sort == "v:":
        return sort, [_rank(json.loads(text))]
    return sort, int(text) if sort == "i:" else text


def _rank(value: Any) -> tuple[int, Any]:
    """Return the sort key for the value of a key: numbers, then strings, then booleans."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, json.dumps(value, sort_keys=True))


def path_text(path: Sequence[str]) -> str:
    """Return a path as error messages show it: `.spec.containers[name="a"].image`."""
    return "".join(map(step_text, path))


def step_text(step: str) -> str:
    sort, text = step[:2], step[2:]
    match sort:
        case "k:":
            keys = json.loads(text)
            return "[" + ",".join(f"{name}={_value_text(value)}" for name, value in keys.items()) + "]"
        case "v:":
            return f"[={_value_text(json.loads(text))}]"
        case "i:":
            return f"[{text}]"
        case _:
            return f".{text}"


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_value_text, value)) + "]"
    if isinstance(value, dict):
        return "{" + ";".join(f"{name}={_value_text(item)}" for name, item in value.items()) + "}"
    return str(value)
