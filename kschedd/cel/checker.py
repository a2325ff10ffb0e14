"""Checker: names, static types and overloads of an expression, with the messages and positions of cel-go.

Source: cel-go checker/checker.go.
Errors: collected in `faults`.
"""

from typing import Any, Final

import attrs

from kschedd.cel import types
from kschedd.cel.environment import CelEnvironment
from kschedd.cel.functions.overloads import Overload
from kschedd.cel.syntax import (
    CallExpr,
    Expr,
    Fold,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    StructLiteral,
    dotted,
)
from kschedd.cel.types import BOOL, DYN, ERROR, Type, assignable, substituted, type_of
from kschedd.cel.values import kind

_TYPE_NAMES: Final = {
    **{name: type_of(name) for name in ("bool", "int", "uint", "double", "string", "bytes", "null_type", "type")},
    "list": type_of("list(A)"),
    "map": type_of("map(A,B)"),
    types.TIMESTAMP_NAME: type_of("timestamp"),
    types.DURATION_NAME: type_of("duration"),
}


@attrs.frozen
class Variable:
    name: str


@attrs.frozen
class TypeValue:
    type: Type


@attrs.frozen(eq=False)
class Resolved:
    """The function of a call: its name, the overloads that fit the static types, and all arguments."""

    name: str
    overloads: tuple[Overload, ...]
    args: tuple[Expr, ...]


@attrs.define(eq=False)
class Checker:
    environment: CelEnvironment
    faults: list[tuple[int, str]] = attrs.field(factory=list)  # offsets and messages
    resolved: dict[int, Any] = attrs.field(factory=dict)  # Variable, TypeValue or Resolved, by the id of the node
    nodes: list[Expr] = attrs.field(factory=list)  # all checked nodes
    _types: dict[int, Type] = attrs.field(factory=dict)
    _mapped: types.Mapped = attrs.field(factory=dict)
    _scopes: list[dict[str, Type]] = attrs.field(factory=list)
    _free: int = 0

    def whole(self, node: Expr) -> Type:
        """Check an expression; return its type."""
        found = self.check(node)
        return substituted(self._mapped, found, closed=True)

    def type_of(self, node: Expr) -> Type:
        return substituted(self._mapped, self._types[id(node)], closed=True)

    def check(self, node: Expr) -> Type:
        self.nodes.append(node)
        found = self._types[id(node)] = self._check(node)
        return found

    def _check(self, node: Expr) -> Type:
        if isinstance(node, Literal):
            return type_of(kind(node.value))
        if isinstance(node, Ident):
            return self._ident(node)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, CallExpr):
            return self._call(node)
        if isinstance(node, ListLiteral):
            return self._list(node)
        if isinstance(node, MapLiteral):
            return self._map(node)
        if isinstance(node, StructLiteral):
            return self._struct(node)
        assert isinstance(node, Fold), f"a node of a known class is expected, not {node}"
        return self._fold(node)

    def fault(self, at: int, why: str) -> Type:
        self.faults.append((at, why))
        return ERROR

    def _fresh(self) -> Type:
        self._free += 1
        return Type(f"_var{self._free}")

    def _fits(self, given: Type, wanted: Type) -> bool:
        after = assignable(self._mapped, (given,), (wanted,))
        if after is None:
            return False
        self._mapped = after
        return True

    # -- names ------------------------------------------------------------------------------------------------

    def _ident(self, node: Ident) -> Type:
        for scope in reversed(self._scopes):
            if node.name in scope:
                self.resolved[id(node)] = Variable(node.name)
                return scope[node.name]
        found = self._global(node, node.name)
        return found or self.fault(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def _global(self, node: Expr, name: str) -> Type | None:
        variable = self.environment.variables.get(name)
        if variable is not None:
            self.resolved[id(node)] = Variable(name)
            return variable
        named = _TYPE_NAMES.get(name) or self.environment.type_named(name)
        if named is None:
            return None
        self.resolved[id(node)] = TypeValue(named)
        return Type("type", (named,))

    def _select(self, node: Select) -> Type:
        if not node.optional and not node.tests and (name := dotted(node)):
            first = name.partition(".")[0]
            if not any(first in scope for scope in self._scopes) and (found := self._global(node, name)):
                return found
        of_operand = self.check(node.operand)
        inside, was_optional = types.unwrapped(substituted(self._mapped, of_operand))
        found = self._field(node, inside)
        if was_optional or node.optional:
            found = types.optional_of(found)
        return BOOL if node.tests else substituted(self._mapped, found)

    def _field(self, node: Select, inside: Type) -> Type:
        if inside.name == "map":
            return inside.params[1]
        if inside.is_param:
            self._fits(DYN, inside)
            return DYN
        if inside.is_struct:
            found = self.environment.field_of(inside, node.field)
            if found is None and not self.environment.has_fields(inside):
                return self.fault(node.at, f"unexpected failed resolution of '{inside.name}'")
            return found or self.fault(node.at, f"undefined field '{node.field}'")
        if inside.name not in ("dyn", "error"):
            self.fault(node.at, f"type '{inside.shown}' does not support field selection")
        return DYN

    # -- calls ------------------------------------------------------------------------------------------------

    def _call(self, node: CallExpr) -> Type:
        for arg in node.args:
            self.check(arg)
        name, args, member = node.name, node.args, False
        overloads = self.environment.overloads(name)
        if node.target is not None:
            before = dotted(node.target)
            qualified = self.environment.overloads(f"{before}.{name}") if before else ()
            if qualified:
                name, overloads = f"{before}.{name}", qualified
            else:
                self.check(node.target)
                args, member = (node.target, *args), True
        if not overloads:
            return self.fault(node.at, f"undeclared reference to '{name}' (in container '')")
        kinds = [self._types[id(arg)] for arg in args]
        if name in ("_&&_", "_||_"):
            return self._logical(node, kinds)
        return self._resolve(node, name, overloads, args, kinds, member)

    def _logical(self, node: CallExpr, kinds: list[Type]) -> Type:
        wrong = False
        for arg, each in zip(node.args, kinds, strict=True):
            if not self._fits(each, BOOL):
                wrong = True
                self.fault(arg.at, f"expected type 'bool' but found '{self._shown(each)}'")
        self.resolved[id(node)] = Resolved(node.name, (), node.args)
        return ERROR if wrong else BOOL

    def _shown(self, of_type: Type) -> str:
        return substituted(self._mapped, of_type, closed=False).shown

    def _resolve(
        self,
        node: CallExpr,
        name: str,
        overloads: tuple[Overload, ...],
        args: tuple[Expr, ...],
        kinds: list[Type],
        member: bool,
    ) -> Type:
        result: Type | None = None
        fitting: list[Overload] = []
        for overload in overloads:
            if overload.member is not member or len(overload.params) != len(kinds):
                continue
            fresh = {name: self._fresh() for name in overload.free}
            wanted = [substituted(fresh, each) for each in overload.params] if fresh else overload.params
            after = assignable(self._mapped, kinds, wanted)
            if after is None:
                continue
            self._mapped = after
            fitting.append(overload)
            of_this = substituted(self._mapped, substituted(fresh, overload.result))
            if result is None:
                result = of_this
            elif result.name != "dyn" and result != of_this:
                result = DYN
        if result is None:
            shown = [substituted(self._mapped, each, closed=True).shown for each in kinds]
            applied = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
            return self.fault(node.at, f"found no matching overload for '{name}' applied to '{applied}'")
        self.resolved[id(node)] = Resolved(name, tuple(fitting), args)
        return result

    # -- literals ---------------------------------------------------------------------------------------------

    def _list(self, node: ListLiteral) -> Type:
        element: Type | None = None
        for place, item in enumerate(node.items):
            element = self._join(element, self._item(item, place in node.optional))
        return types.list_of(element or self._fresh())

    def _map(self, node: MapLiteral) -> Type:
        of_keys: Type | None = None
        of_values: Type | None = None
        for place, (key, value) in enumerate(node.entries):
            of_keys = self._join(of_keys, self.check(key))
            of_values = self._join(of_values, self._item(value, place in node.optional))
        return types.map_of(of_keys or self._fresh(), of_values or self._fresh())

    def _item(self, node: Expr, optional: bool) -> Type:
        found = self.check(node)
        if not optional:
            return found
        inside, was_optional = types.unwrapped(found)
        if not was_optional and inside.name != "dyn":
            wanted = types.optional_of(inside).shown
            self.fault(node.at, f"expected type '{wanted}' but found '{inside.shown}'")
        return inside

    def _join(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        found = types.joined(self._mapped, previous, current)
        if found is None:
            return DYN  # `program` rejects literals with elements of different types
        self._mapped, result = found
        return result

    def _struct(self, node: StructLiteral) -> Type:
        of_type = self.environment.type_named(node.name)
        if of_type is None:
            self.fault(node.at, f"undeclared reference to '{node.name}' (in container '')")
            return ERROR
        for at, name, value, optional in node.fields:
            given = self._item(value, optional)
            wanted = self.environment.field_of(of_type, name)
            if wanted is None:
                self.fault(at, f"undefined field '{name}'")
            elif not self._fits(wanted, given):
                self.fault(
                    at,
                    f"expected type of field '{name}' is '{wanted.shown}' but provided type is '{self._shown(given)}'",
                )
        return of_type

    # -- comprehensions ---------------------------------------------------------------------------------------

    def _fold(self, node: Fold) -> Type:
        self.check(node.range)
        of_accu = self.check(node.init)
        over = substituted(self._mapped, self._types[id(node.range)])
        self._scopes.append({node.accu: of_accu})
        self._scopes.append(dict(zip(node.variables, self._items(node, over), strict=True)))
        self.check(node.condition)
        of_step = self.check(node.step)
        if not self._fits(of_step, of_accu):
            self.fault(node.step.at, f"expected type '{self._shown(of_accu)}' but found '{self._shown(of_step)}'")
        self._scopes.pop()
        result = self.check(node.result)
        self._scopes.pop()
        return substituted(self._mapped, result)

    def _items(self, node: Fold, over: Type) -> tuple[Type, ...]:
        """Return the types of the iteration variables."""
        two = len(node.variables) == 2
        if over.name == "list":
            return (types.INT, over.params[0]) if two else (over.params[0],)
        if over.name == "map":
            return over.params if two else (over.params[0],)
        if over.is_open:
            self._fits(DYN, over)
            return (DYN,) * len(node.variables)
        why = f"expression of type '{over.shown}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self.fault(node.range.at, why)
        return (ERROR,) * len(node.variables)
