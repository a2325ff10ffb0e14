"""Tests that storing or rejecting a long list or map costs at most n log n, for every list and map of each kind."""

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from itertools import cycle, pairwise
from typing import Any, Final

import pytest

from kschedd.api.schemas.schema import (
    ANY,
    BOOL,
    BYTES,
    INT,
    INT32,
    INT_OR_STR,
    MICRO_TIME,
    NUMBER,
    QUANTITY,
    STR,
    TIME,
    Fields,
    ListOf,
    MapOf,
    Schema,
    schema_of,
)
from kschedd.errors import KscheddError
from kschedd.store.store import Store
from tests.cost import cost_of
from tests.full_run import part
from tests.metering import metered, until_settled
from tests.store.manifests import Clock
from tests.store.test_random_documents import VERSIONS, named, whole_objects

SIZE: Final = 40
# growth from the second to the third of three sizes, each twice the one before, divided by the growth before
GROWTH: Final = 2.5
APART: Final = 2_000  # units that an object may cost at any size
DEEPEST: Final = 12  # steps of a path
MANY: Final = 60  # paths of a kind, of which the everyday run takes fewer
WAYS: Final = ("create", "create-equal", "apply")
VALID: Final = {raw["kind"]: raw for raw in reversed(whole_objects())}
Path = tuple[str | int, ...]


@pytest.fixture(autouse=True, scope="module")
def every_turn_is_counted() -> Iterator[None]:
    with metered():
        yield


def leaf(schema: str, number: int) -> Any:
    """Return a value of this type; values for two numbers differ unless the type has too few values."""
    values = {STR: f"v{number}", ANY: f"v{number}", QUANTITY: str(number + 1), BOOL: True, BYTES: "aGk="}
    times = {TIME: "2020-01-01T00:00:00Z", MICRO_TIME: "2020-01-01T00:00:00.000000Z"}
    return {INT: number, INT32: number, INT_OR_STR: number, NUMBER: number, **values, **times}[schema]


def item(schema: Schema, number: int, depth: int = 0) -> Any:
    """Return a value with all fields to some depth, and one item in each list and map."""
    if isinstance(schema, str):
        return leaf(schema, number)
    if isinstance(schema, ListOf):
        return [item(schema.item, number, depth + 1)] if depth < 3 else []
    if isinstance(schema, MapOf):
        return {f"k{number}": item(schema.item, number, depth + 1)} if depth < 3 else {}
    assert isinstance(schema, Fields)
    return {
        field: item(inner, number, depth + 1)
        for field, inner in schema.items()
        if depth < 2 or (depth < 3 and isinstance(inner, str))
    }


def long_ones(schema: Schema, seen: set[tuple[str, str]], path: Path = ()) -> Iterator[tuple[Path, Schema]]:
    """Yield the lists and maps of a type with their paths; each field of a type is visited once."""
    for field, inner in schema.items():
        here = (*path, field)
        if isinstance(inner, ListOf | MapOf):
            if (schema.name, field) not in seen:
                seen.add((schema.name, field))
                yield here, inner
            here, inner = (*here, 0 if isinstance(inner, ListOf) else "k"), inner.item
        if isinstance(inner, Fields) and len(here) < DEEPEST:
            yield from long_ones(inner, seen, here)


def walk() -> Iterator[Any]:
    """Yield all cases; the everyday run includes one way to write for each kind, in turn, and a part of its paths."""
    seen: set[tuple[str, str]] = set()
    turn = cycle(WAYS)
    for kind, version in VERSIONS.items():
        if found := list(long_ones(schema_of(version, kind), seen)):
            chosen = next(turn)
            for how in WAYS:
                yield pytest.param(
                    kind, found, how, id=f"{kind}-{how}", marks=() if how == chosen else pytest.mark.full
                )


def put(raw: Any, path: Path, value: Any) -> None:
    """Set the value at a path; create missing fields on the way."""
    for step, after in pairwise(path):
        sort = list if isinstance(after, int) else dict
        there = raw.get(step) if isinstance(raw, dict) else raw[step] if raw else None
        if not isinstance(there, sort) or not there:
            there = sort()
            if isinstance(raw, list):
                raw[:1] = [there]
            else:
                raw[step] = there
        raw = there
    if isinstance(raw, list):
        raw[:1] = [value]
    else:
        raw[path[-1]] = value


def cost(kind: str, path: Path, schema: Schema, how: str, size: int) -> int:
    """Return the cost of a write whose list or map at the path has this many items."""
    store, raw = Store(now=Clock()), deepcopy(dict(VALID.get(kind) or named(VERSIONS[kind], kind)))
    subresource: Any = "status" if path[0] == "status" else ""
    name, namespace = raw["metadata"]["name"], raw["metadata"].get("namespace") or ""
    if how == "apply":
        with suppress(KscheddError):  # an object that does not exist is created
            store.create(deepcopy(raw))
    items = [item(schema.item, 0 if how == "create-equal" else number) for number in range(size)]
    put(raw, path, items if isinstance(schema, ListOf) else {f"k{number}": each for number, each in enumerate(items)})
    if how == "apply":
        return cost_of(
            lambda: store.server_side_apply(kind, namespace, name, raw, "me", force=True, subresource=subresource)
        )
    return cost_of(lambda: store.create(raw, restore=bool(subresource)))


@pytest.mark.parametrize(("kind", "found", "how"), list(walk()))
def test_a_list_twice_as_long_costs_at_most_little_more_than_twice(
    kind: str, found: list[tuple[Path, Schema]], how: str
) -> None:
    cost(kind, *found[0], how, SIZE)  # what is cached once
    for path, schema in part(4 if len(found) < MANY else 24, found):
        for _ in range(3):  # one of the repetitions may evict cache entries of other tests
            for _ in until_settled():
                small, middle, large = (cost(kind, path, schema, how, SIZE << double) for double in range(3))
            before = middle - small if middle > small else middle  # where a longer one is rejected at once
            if large - middle <= GROWTH * before + APART:
                break
        assert large - middle <= GROWTH * before + APART, (path, small, middle, large)
