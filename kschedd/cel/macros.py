"""CEL macros: calls that the parser replaces by other expressions, as in cel-go.

Each macro gets the call and returns the replacement, a fault, or None if the call is not a macro.

Source: cel-go parser/macro.go, cel/library.go (optMap), ext/comprehensions.go, ext/lists.go (sortBy), ext/bindings.go.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from kschedd.cel.syntax import CallExpr, Expr, Fold, Ident, ListLiteral, Literal, Macro, MacroFault, Macros, MapLiteral
from kschedd.cel.syntax import Select as SelectExpr

ACCU: Final = "@result"
_SORTED: Final = "@__sortBy_input__"
_UNUSED: Final = "#unused"


def _has(call: CallExpr) -> Expr | MacroFault:
    select = call.args[0]
    if not isinstance(select, SelectExpr):
        return MacroFault(select.at, "invalid argument to has() macro")
    return SelectExpr(call.at, select.operand, select.field, tests=True)


def _names(call: CallExpr, count: int, why: str) -> tuple[str, ...] | MacroFault:
    """Return the names of the iteration variables, which are the first arguments."""
    found = []
    for arg in call.args[:count]:
        if not isinstance(arg, Ident):
            return MacroFault(arg.at, why)
        if arg.name == "__result__":
            return MacroFault(arg.at, "iteration variable overwrites accumulator variable")
        found.append(arg.name)
    if len(set(found)) != count:
        return MacroFault(call.args[1].at, f"duplicate variable name: {found[1]}")
    return tuple(found)


def _of_one_or_two(count: int) -> str:
    return "argument must be a simple name" if count == 1 else "argument must be a simple variable name"


def _target(call: CallExpr) -> Expr:
    assert call.target is not None, "the macro of a method has a target"
    return call.target


def _quantifier(kind: str, count: int, call: CallExpr) -> Expr | MacroFault:
    names = _names(call, count, _of_one_or_two(count))
    if isinstance(names, MacroFault):
        return names
    at, body = call.at, call.args[count]
    accu = Ident(at, ACCU)
    if kind == "exists_one":
        one = Literal(at, 1)
        step = CallExpr(at, "_?_:_", (body, CallExpr(at, "_+_", (Ident(at, ACCU), one)), Ident(at, ACCU)))
        result = CallExpr(at, "_==_", (accu, one))
        return Fold(at, _target(call), names, ACCU, Literal(at, 0), Literal(at, True), step, result)
    every = kind == "all"
    continuing: Expr = Ident(at, ACCU) if every else CallExpr(at, "!_", (Ident(at, ACCU),))
    condition = CallExpr(at, "@not_strictly_false", (continuing,))
    step = CallExpr(at, "_&&_" if every else "_||_", (Ident(at, ACCU), body))
    return Fold(at, _target(call), names, ACCU, Literal(at, every), condition, step, accu)


def _collect(kind: str, count: int, why: str, call: CallExpr) -> Expr | MacroFault:
    """Expand `map`, `filter`, `transformList`, `transformMap` and `transformMapEntry`."""
    names = _names(call, count, why)
    if isinstance(names, MacroFault):
        return names
    at, rest = call.at, call.args[count:]
    wanted = rest[0] if kind == "filter" or len(rest) == 2 else None
    value = call.args[0] if kind == "filter" else rest[-1]
    init: Expr = ListLiteral(at, ()) if kind in ("map", "filter", "transformList") else MapLiteral(at, ())
    if kind == "transformMap":
        step = CallExpr(at, "cel.@mapInsert", (Ident(at, ACCU), Ident(at, names[0]), value))
    elif kind == "transformMapEntry":
        step = CallExpr(at, "cel.@mapInsert", (Ident(at, ACCU), value))
    else:
        step = CallExpr(at, "_+_", (Ident(at, ACCU), ListLiteral(at, (value,))))
    if wanted is not None:
        step = CallExpr(at, "_?_:_", (wanted, step, Ident(at, ACCU)))
    return Fold(at, _target(call), names, ACCU, init, Literal(at, True), step, Ident(at, ACCU))


def _bound(at: int, name: str, value: Expr, body: Expr) -> Fold:
    """Return the expression of `body` with a variable: a fold over nothing, whose accumulator is the variable."""
    return Fold(at, ListLiteral(at, ()), (_UNUSED,), name, value, Literal(at, False), Ident(at, name), body)


def _bind(call: CallExpr) -> Expr | MacroFault | None:
    if not isinstance(call.target, Ident) or call.target.name != "cel":
        return None
    name, value, body = call.args
    if not isinstance(name, Ident):
        return MacroFault(name.at, "cel.bind() variable names must be simple identifiers")
    return _bound(call.at, name.name, value, body)


def _opt_map(flat: bool, call: CallExpr) -> Expr | MacroFault:
    at, (name, body) = call.at, call.args
    if not isinstance(name, Ident):
        return MacroFault(name.at, f"{call.name}() variable name must be a simple identifier")
    value = CallExpr(at, "value", (), _target(call))
    mapped: Expr = _bound(at, name.name, value, body)
    if not flat:
        mapped = CallExpr(at, "optional.of", (mapped,))
    return CallExpr(
        at, "_?_:_", (CallExpr(at, "hasValue", (), _target(call)), mapped, CallExpr(at, "optional.none", ()))
    )


def _sort_by(call: CallExpr) -> Expr | MacroFault:
    at = call.at
    keys = _collect("map", 1, _NO_IDENTIFIER, CallExpr(at, "map", call.args, Ident(at, _SORTED)))
    if isinstance(keys, MacroFault):
        return keys
    ordered = CallExpr(at, "@sortByAssociatedKeys", (keys,), Ident(at, _SORTED))
    return _bound(at, _SORTED, _target(call), ordered)


_NO_IDENTIFIER: Final = "argument is not an identifier"


def _methods(expand: Callable[..., Expr | MacroFault], name: str, counts: tuple[int, ...], *args: object) -> Macros:
    macro: Macro = partial(expand, *args)
    return {(name, count, True): macro for count in counts}


STANDARD: Final[Macros] = {
    ("has", 1, False): _has,
    **_methods(_quantifier, "all", (2,), "all", 1),
    **_methods(_quantifier, "exists", (2,), "exists", 1),
    **_methods(_quantifier, "exists_one", (2,), "exists_one", 1),
    **_methods(_quantifier, "existsOne", (2,), "exists_one", 1),
    **_methods(_collect, "map", (2, 3), "map", 1, _NO_IDENTIFIER),
    **_methods(_collect, "filter", (2,), "filter", 1, _NO_IDENTIFIER),
    **_methods(_opt_map, "optMap", (2,), False),
    **_methods(_opt_map, "optFlatMap", (2,), True),
    **_methods(_quantifier, "all", (3,), "all", 2),
    **_methods(_quantifier, "exists", (3,), "exists", 2),
    **_methods(_quantifier, "exists_one", (3,), "exists_one", 2),
    **_methods(_quantifier, "existsOne", (3,), "exists_one", 2),
    **_methods(_collect, "transformList", (3, 4), "transformList", 2, _of_one_or_two(2)),
    **_methods(_collect, "transformMap", (3, 4), "transformMap", 2, _of_one_or_two(2)),
    **_methods(_collect, "transformMapEntry", (3, 4), "transformMapEntry", 2, _of_one_or_two(2)),
}
BINDINGS: Final[Macros] = {("bind", 3, True): _bind}
SORTING: Final[Macros] = {("sortBy", 2, True): _sort_by}
