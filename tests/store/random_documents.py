"""Random documents of all built-in kinds, made from their schemas, some with invalid parts.

The seed determines every document.
"""

import random
from typing import Any, Final

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
)

JUNK: Final[tuple[Any, ...]] = (
    *(None, 5, -1, 2**70, 1.5, True, "", "text", "x" * 300, "a/b/c", "\n", "é"),
    *([], [1], [None], {}, {"a": 1}, [[]], [{}], {"a": None}),
)
_TEXTS: Final = ("", "a", "web", "a.io/b", "1", "10.0.0.1", "v1", "Pod", "In", "Exists", "Always", "default", "0s")
_LEAVES: Final[dict[str, tuple[Any, ...]]] = {
    STR: _TEXTS,
    INT: (0, 1, -1, 80, 2**40),
    INT32: (0, 1, -1, 80, 2**31 - 1),
    BOOL: (True, False),
    QUANTITY: ("1", "100m", "1Gi", "-1", 0, 1.5, "1e30"),
    INT_OR_STR: (0, 1, "50%", "a", "-1%"),
    TIME: ("2020-01-01T00:00:00Z",),
    MICRO_TIME: ("2020-01-01T00:00:00.000000Z",),
    BYTES: ("", "aGk="),
    NUMBER: (0, 1.5, -2),
    ANY: JUNK,
}


def document(schema: Schema, chance: random.Random, depth: int = 0) -> Any:
    """Return a random value of this schema, in which each field may be absent."""
    if isinstance(schema, str):
        return chance.choice(_LEAVES[schema])
    if isinstance(schema, ListOf):
        return [document(schema.item, chance, depth + 1) for _ in range(chance.choice((0, 1, 1, 2)))]
    if isinstance(schema, MapOf):
        return {
            chance.choice(_TEXTS): document(schema.item, chance, depth + 1) for _ in range(chance.choice((0, 1, 2)))
        }
    assert isinstance(schema, Fields)
    likely = 0.7 if depth < 2 else 0.5 if depth < 5 else 0.15
    return {
        name: document(inner, chance, depth + 1)
        for name, inner in schema.items()
        if chance.random() < (likely if len(schema) < 12 else likely * 8 / len(schema))
    }


def spoiled(value: Any, chance: random.Random) -> Any:
    """Return the value with an invalid part; deeper parts are less likely."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        name = chance.choice(list(value))
        return {**value, name: spoiled(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        place = chance.randrange(len(value))
        return [*value[:place], spoiled(value[place], chance), *value[place + 1 :]]
    return chance.choice(JUNK)


def mutated(value: Any, schema: Schema, chance: random.Random) -> Any:
    """Return the value with one part replaced by another value of the right type."""
    if isinstance(schema, Fields) and isinstance(value, dict) and schema and chance.random() < 0.9:
        there = [name for name in schema if name in value]
        name = chance.choice(there if there and chance.random() < 0.7 else list(schema))
        inner = schema[name]
        return {**value, name: mutated(value[name], inner, chance) if name in value else document(inner, chance, 1)}
    if isinstance(schema, ListOf) and isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], mutated(value[place], schema.item, chance), *value[place + 1 :]]
    return document(schema, chance, 1)
