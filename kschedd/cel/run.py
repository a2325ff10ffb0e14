"""Run-time operations of compiled CEL expressions: lookups, calls, folds, and the accounting of their cost.

A `CelEvaluation` exists for one evaluation of one expression. `cel.planner` combines the functions defined here.

Source: cel-go interpreter (attributes.go, interpretable.go, runtimecost.go) and its messages.
Errors: CelFailure, and TooExpensive above the limit.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from kschedd.cel.environment import MOST_COST
from kschedd.cel.errors import CelFailure
from kschedd.cel.functions.overloads import COSTED_BY_NAME, OPERATED, Overload
from kschedd.cel.values import DeviceMaps, Optional, key_in, kind


class CelEvaluation:
    """One evaluation: its variables (the given ones and those of macros), its present cost and its limit."""

    __slots__ = ("cost", "most_cost", "names")

    def __init__(self, names: Mapping[str, Any], most_cost: int = MOST_COST) -> None:
        self.names: dict[str, Any] = dict(names)
        self.cost, self.most_cost = 0, most_cost

    def spend(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.most_cost:
            raise TooExpensive


class TooExpensive(Exception):
    """The cost limit was exceeded. The exception ends the evaluation at any depth, and no operator may catch it."""


Code = Callable[[CelEvaluation], Any]


def constant(value: Any) -> Code:
    return lambda run: value


class Lazy(dict[str, Any]):
    """Named values that are computed when they are first read; a failure is raised again by each reader."""

    __slots__ = ("_computed", "type_name")

    def __init__(self, compute: Mapping[str, Callable[[], Any]], type_name: str) -> None:
        super().__init__(compute)
        self.type_name = type_name
        self._computed: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._computed:
            try:
                self._computed[name] = super().__getitem__(name)()
            except CelFailure as failure:
                self._computed[name] = failure
        found = self._computed[name]
        if isinstance(found, CelFailure):
            raise found
        return found


def member(table: Any, key: Any) -> Any:
    if isinstance(table, dict):
        if key in table if type(key) is str else key_in(table, key):
            return table[key]
        if isinstance(table, DeviceMaps):
            return {}
        raise CelFailure(f"no such key: {_shown(key)}")
    if isinstance(table, list):
        place = _place(key)
        if place is None:
            raise CelFailure(f"unsupported index type '{kind(key)}' in list")
        if not 0 <= place < len(table):
            raise CelFailure(f"index out of bounds: {place}")
        return table[place]
    if isinstance(table, Optional):
        return member_if_there(table.values[0], key) if table.values else table
    if table is None:
        raise CelFailure(f"no such key: {_shown(key)}")
    raise CelFailure("no such overload")


def _shown(key: Any) -> str:
    return "true" if key is True else "false" if key is False else str(key)


def _place(key: Any) -> int | None:
    """Return the index that a key denotes: whole numbers of any type."""
    if isinstance(key, bool) or not isinstance(key, int | float):
        return None
    if key != int(key):
        raise CelFailure(f"unsupported index value {key} in list")
    return int(key)


def member_if_there(table: Any, key: Any) -> Optional:
    if isinstance(table, Optional):
        return member_if_there(table.values[0], key) if table.values else table
    if isinstance(table, DeviceMaps) or (isinstance(table, dict) and key_in(table, key)):
        return Optional((member(table, key),))
    if isinstance(table, dict):
        return Optional()
    if isinstance(table, list) and (place := _place(key)) is not None:
        return Optional((table[place],)) if 0 <= place < len(table) else Optional()
    raise CelFailure("no such overload")


def has_member(table: Any, field: str) -> bool:
    if isinstance(table, Optional):
        table = table.values[0] if table.values else {}
    if table is None:
        return False
    if not isinstance(table, dict):
        raise CelFailure("no such overload")
    return field in table


def dispatch(name: str, overloads: tuple[Overload, ...], codes: tuple[Code, ...], *, plain: bool = False) -> Code:
    """Return a closure that calls the overload for the run-time types of the arguments.

    With `plain`, the static types leave several overloads. The cost is then 1, except for the functions of Kubernetes.
    """
    plain = plain and name not in COSTED_BY_NAME

    def call(run: CelEvaluation) -> Any:
        values = [code(run) for code in codes]
        kinds = tuple(map(kind, values))
        for overload in overloads:
            if overload.takes(kinds):
                if plain:
                    run.spend(1)
                    return overload.run(*values)
                return applied(run, overload, values)
        run.spend(1)
        raise CelFailure(_no_overload(name, kinds))

    return call


def _no_overload(name: str, kinds: tuple[str, ...]) -> str:
    """Return upstream's message for values that no overload takes."""
    if name not in OPERATED:
        return f"no such overload: {name}({', '.join(kinds)})"
    return "no such overload" if kinds[0] in OPERATED[name] else f"no such overload: {name}"


def applied(run: CelEvaluation, overload: Overload, values: list[Any]) -> Any:
    if overload.cost_after is not None:
        result = overload.run(*values)
        run.spend(overload.cost_after(result))
        return result
    run.spend(1 if overload.cost is None else overload.cost(*values))
    return overload.run(*values)


def items(table: Any, two: bool) -> Iterable[tuple[Any, ...]]:
    """Return the values of the iteration variables for each item of a list or map."""
    if isinstance(table, list):
        return enumerate(table) if two else ((item,) for item in table)
    if isinstance(table, dict):
        return list(table.items()) if two else [(key,) for key in table]
    of_kind = kind(table)
    raise CelFailure(f"got 'types.{_GO_TYPES.get(of_kind, of_kind)}', expected iterable type")


_GO_TYPES: Final = {
    "int": "Int", "string": "String", "bool": "Bool", "double": "Double", "uint": "Uint", "null_type": "Null",
    "bytes": "Bytes",
}  # fmt: skip


def decided(values: Iterable[Code], run: CelEvaluation, *, deciding: bool) -> bool:
    """Return the result of `&&` or `||`.

    A value that decides takes precedence, even over failures of other values. Raises CelFailure.
    """
    failure: CelFailure | None = None
    for compute in values:
        try:
            value = compute(run)
        except CelFailure as fault:
            failure = failure or fault
            continue
        if value is deciding:
            return bool(deciding)
        if type(value) is not bool:
            failure = failure or CelFailure("no such overload")
    if failure is not None:
        raise failure
    return not deciding


_UNSET: Final = object()


def scoped(run: CelEvaluation, names: tuple[str, ...]) -> Iterator[None]:
    """Yield once, and then restore the variables that have these names outside."""
    before = [run.names.get(name, _UNSET) for name in names]
    try:
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            if value is _UNSET:
                run.names.pop(name, None)
            else:
                run.names[name] = value
