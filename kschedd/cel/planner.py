"""Planner: converts a checked expression into nested closures that evaluate it and count its cost.

Evaluation takes about a microsecond per operation. A part that consists of literals is computed once, without cost, as
cel-go's optimizer does.

Source: cel-go interpreter/planner.go, attributes.go, decorators.go, runtimecost.go.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kschedd.cel.checker import Checker, Resolved, TypeValue, Variable
from kschedd.cel.errors import CelFailure
from kschedd.cel.run import (
    CelEvaluation,
    Code,
    constant,
    decided,
    dispatch,
    has_member,
    items,
    member,
    member_if_there,
    scoped,
)
from kschedd.cel.syntax import CallExpr, Expr, Fold, Ident, ListLiteral, Literal, MapLiteral, Select, StructLiteral
from kschedd.cel.values import (
    Opaque,
    Optional,
    Quantity,
    Semver,
    Struct,
    TypeName,
    equal,
    key_in,
    kind,
    size_of,
    traversed,
)

_LIST_COST: Final = 10
_MAP_COST: Final = 30
_STRUCT_COST: Final = 40
_KEYS: Final = ("string", "bool", "int", "uint")
_CONVERSIONS: Final = frozenset("int uint double string bytes bool type dyn timestamp duration".split())


class UnplannedConversion(Exception):
    """A literal cannot be converted to the type of its conversion."""


@attrs.frozen
class _Failed:
    """The accumulator of `all` and `exists` after a failure, which a later item may absorb."""

    failure: CelFailure


@attrs.define(eq=False)
class Planner:
    checked: Checker
    _constants: dict[int, Any] = attrs.field(factory=dict)  # values of constant nodes, by id

    def plan(self, node: Expr) -> Code:
        if isinstance(node, Literal):
            self._constants[id(node)] = node.value
            return constant(node.value)
        if isinstance(node, Ident):
            return self._ident(node, self.checked.resolved[id(node)])
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

    # -- attributes -------------------------------------------------------------------------------------------

    def _ident(self, node: Expr, found: Variable | TypeValue) -> Code:
        if isinstance(found, TypeValue):
            value = TypeName(found.type.name)
            self._constants[id(node)] = value
            return constant(value)
        name = found.name

        def variable(run: CelEvaluation) -> Any:
            run.cost += 1
            value = run.names[name]
            if type(value) is _Failed:
                raise value.failure
            return value

        return variable

    def _is_attribute(self, node: Expr) -> bool:
        """Return whether a node is a variable with fields and indices, which cost 1 each."""
        if isinstance(node, Ident):
            return isinstance(self.checked.resolved[id(node)], Variable)
        if isinstance(node, Select):
            return not node.tests
        return isinstance(node, CallExpr) and node.name in ("_[_]", "_[?_]", "_?_:_")

    def _of_variable(self, node: Expr) -> int:
        """Return the cost of the variable of an attribute, which is not counted within another attribute."""
        while id(node) not in self.checked.resolved:
            if not isinstance(node, Select) or node.tests:
                return 0
            node = node.operand
        found = self.checked.resolved[id(node)]
        if isinstance(found, Resolved) and found.name == "_[_]":
            return self._of_variable(found.args[0])
        return int(isinstance(found, Variable))

    def _relative(self, node: Expr) -> int:
        """Return the additional cost of a field of a node that is not an attribute."""
        return 0 if self._is_attribute(node) else 1

    def _select(self, node: Select) -> Code:
        found = self.checked.resolved.get(id(node))
        if found is not None:
            return self._ident(node, found)
        operand, field, more = self.plan(node.operand), node.field, self._relative(node.operand)
        if node.tests:

            def test(run: CelEvaluation) -> bool:
                run.spend(more)
                return has_member(operand(run), field)

            return test
        if node.optional:
            return _looked_up(operand, constant(field), more)
        cost = 1 + more

        def select(run: CelEvaluation) -> Any:
            table = operand(run)
            run.cost += cost
            return member(table, field)

        return select

    def _index(self, call: Resolved) -> Code:
        operand, index = map(self.plan, call.args)
        if call.name == "_[?_]":
            return _looked_up(operand, index, self._relative(call.args[0]) - self._of_variable(call.args[1]))
        cost = 1 + self._relative(call.args[0]) - self._of_variable(call.args[1])

        def at(run: CelEvaluation) -> Any:
            table, key = operand(run), index(run)
            run.spend(cost)
            return member(table, key)

        return at

    # -- literals ---------------------------------------------------------------------------------------------

    def _list(self, node: ListLiteral) -> Code:
        codes = [self.plan(item) for item in node.items]
        if not node.optional and all(id(item) in self._constants for item in node.items):
            return self._constant(node, [self._constants[id(item)] for item in node.items])
        optional = node.optional

        def build(run: CelEvaluation) -> list[Any]:
            values = [code(run) for code in codes]
            run.spend(_LIST_COST)
            if not optional:
                return values
            kept = []
            for place, value in enumerate(values):
                if place not in optional:
                    kept.append(value)
                elif not isinstance(value, Optional):
                    raise CelFailure(f"cannot initialize optional list element from non-optional value {value}")
                elif value.values:
                    kept.append(value.value)
            return kept

        return build

    def _constant(self, node: Expr, value: Any) -> Code:
        self._constants[id(node)] = value
        return constant(value)

    def _map(self, node: MapLiteral) -> Code:
        pairs = [(self.plan(key), self.plan(value)) for key, value in node.entries]
        optional = node.optional

        def build(run: CelEvaluation) -> dict[Any, Any]:
            built: dict[Any, Any] = {}
            for place, (key_code, value_code) in enumerate(pairs):
                key, value = key_code(run), value_code(run)
                if kind(key) not in _KEYS:
                    raise CelFailure(f"unsupported key type: {kind(key)}")
                if key_in(built, key):
                    raise CelFailure("Failed with repeated key")
                if place in optional:
                    if not isinstance(value, Optional):
                        raise CelFailure(f"cannot initialize optional entry '{key}' from non-optional value {value}")
                    if not value.values:
                        continue
                    value = value.value
                built[key] = value
            run.spend(_MAP_COST)
            return built

        parts = [part for entry in node.entries for part in entry]
        if not optional and all(id(part) in self._constants for part in parts):
            try:
                return self._constant(node, build(CelEvaluation({})))
            except CelFailure:  # the failure is raised again when the expression is evaluated
                return build
        return build

    def _struct(self, node: StructLiteral) -> Code:
        fields = [(name, self.plan(value), optional) for _, name, value, optional in node.fields]
        of_type = node.name

        def build(run: CelEvaluation) -> Struct:
            built = {}
            for name, code, optional in fields:
                value = code(run)
                if optional:
                    if not isinstance(value, Optional):
                        raise CelFailure(f"cannot initialize optional entry '{name}' from non-optional value {value}")
                    if not value.values:
                        continue
                    value = value.value
                built[name] = value
            run.spend(_STRUCT_COST)
            return Struct(of_type, built)

        return build

    # -- calls ------------------------------------------------------------------------------------------------

    def _call(self, node: CallExpr) -> Code:
        call: Resolved = self.checked.resolved[id(node)]
        special = _SPECIAL.get(call.name)
        if special is not None and (special is not Planner._or or node.target is not None):
            return special(self, call)
        codes = tuple(map(self.plan, call.args))
        if call.name in _CONVERSIONS and len(codes) == 1 and id(call.args[0]) in self._constants:
            return self._converted(node, call, codes)
        return dispatch(call.name, call.overloads, codes, plain=len(call.overloads) > 1)

    def _converted(self, node: CallExpr, call: Resolved, codes: tuple[Code, ...]) -> Code:
        code = dispatch(call.name, call.overloads, codes)
        try:
            return self._constant(node, code(CelEvaluation({})))
        except CelFailure as fault:
            raise UnplannedConversion(str(fault)) from None

    def _logical(self, call: Resolved) -> Code:
        codes, deciding = [self.plan(arg) for arg in call.args], call.name == "_||_"
        return lambda run: decided(codes, run, deciding=deciding)

    def _conditional(self, call: Resolved) -> Code:
        condition, then, otherwise = map(self.plan, call.args)
        less_then, less_otherwise = (self._of_variable(arg) for arg in call.args[1:])

        def choose(run: CelEvaluation) -> Any:
            answer = condition(run)
            if type(answer) is not bool:
                raise CelFailure("no such overload")
            run.cost -= less_then if answer else less_otherwise
            return then(run) if answer else otherwise(run)

        return choose

    def _equality(self, call: Resolved) -> Code:
        left, right = map(self.plan, call.args)
        wanted = call.name == "_==_"

        def compare(run: CelEvaluation) -> bool:
            one, other = left(run), right(run)
            if type(one) is str and type(other) is str:
                run.spend(traversed(min(len(one), len(other))))
                return (one == other) is wanted
            of_kubernetes = isinstance(one, Quantity | Semver | Opaque)
            run.spend(1 if of_kubernetes else traversed(min(size_of(one), size_of(other))))
            return equal(one, other) is wanted

        return compare

    def _membership(self, call: Resolved) -> Code:
        value, table = map(self.plan, call.args)
        sized = self.checked.type_of(call.args[1]).name == "list"
        free = id(call.args[1]) in self._constants and isinstance(call.args[1], ListLiteral)
        items = self._constants[id(call.args[1])] if free else ()
        texts = frozenset(items) if all(type(item) is str for item in items) else frozenset()

        def contains(run: CelEvaluation) -> bool:
            wanted, there = value(run), table(run)
            if texts and type(wanted) is str:
                return wanted in texts
            if isinstance(there, dict):
                run.spend(1)
                return key_in(there, wanted)
            if not isinstance(there, list):
                raise CelFailure("no such overload")
            if not free:
                run.spend(len(there) if sized else 1)
            return any(equal(wanted, item) for item in there)

        return contains

    def _not_strictly_false(self, call: Resolved) -> Code:
        (inner,) = map(self.plan, call.args)

        def holds(run: CelEvaluation) -> bool:
            run.spend(1)
            try:
                return inner(run) is not False
            except CelFailure:
                return True

        return holds

    def _or(self, call: Resolved) -> Code:
        """Compile `a.or(b)` and `a.orValue(b)`, whose argument is evaluated only if it is needed."""
        first, second = map(self.plan, call.args)
        whole = call.name == "or"

        def choose(run: CelEvaluation) -> Any:
            value = first(run)
            if not isinstance(value, Optional):
                raise CelFailure(f"no such overload: {kind(value)}.{call.name}")
            if value.values:
                return value if whole else value.value
            return second(run)

        return choose

    # -- folds ------------------------------------------------------------------------------------------------

    def _fold(self, node: Fold) -> Code:
        init, result = self.plan(node.init), self.plan(node.result)
        accu = node.accu
        if isinstance(node.condition, Literal) and node.condition.value is False:

            def bind(run: CelEvaluation) -> Any:
                value = init(run)
                for _ in scoped(run, (accu,)):
                    run.names[accu] = value
                    return result(run)
                raise AssertionError("the scope yields once")

            return bind
        over, condition, two = self.plan(node.range), self.plan(node.condition), len(node.variables) == 2
        step, grows = self._step(node)
        names = node.variables
        absorbs = not isinstance(node.condition, Literal)

        def fold(run: CelEvaluation) -> Any:
            table, values = over(run), run.names
            for _ in scoped(run, (accu, *names)):
                first = init(run)
                values[accu] = type(first)(first) if grows else first
                for item in items(table, two):
                    values.update(zip(names, item, strict=True))
                    run.spend(0)
                    if not condition(run):
                        break
                    try:
                        values[accu] = step(run)
                    except CelFailure as failure:
                        if not absorbs:
                            raise
                        values[accu] = _Failed(failure)
                return result(run)
            raise AssertionError("the scope yields once")

        return fold

    def _step(self, node: Fold) -> tuple[Code, bool]:
        """Return the step, and whether it adds to the accumulator in place, which no expression can observe."""
        whole, wanted = node.step, None
        if isinstance(whole, CallExpr) and whole.name == "_?_:_" and _adds(whole.args[1]):
            wanted, whole = whole.args[0], whole.args[1]
        if not isinstance(whole, CallExpr) or not _adds(whole):
            return self.plan(node.step), False
        add = self._append(node.accu, whole) if whole.name == "_+_" else self._insert(node.accu, whole)
        if wanted is None:
            return add, True
        holds, accu = self.plan(wanted), node.accu

        def add_if(run: CelEvaluation) -> Any:
            answer = holds(run)
            if type(answer) is not bool:
                raise CelFailure("no such overload")
            if answer:
                return add(run)
            return run.names[accu]

        return add_if, True

    def _append(self, accu: str, step: CallExpr) -> Code:
        literal = step.args[1]
        assert isinstance(literal, ListLiteral), "a macro adds a list of one item"
        item = self.plan(literal.items[0])
        cost = 2 if id(literal.items[0]) in self._constants else 2 + _LIST_COST

        def append(run: CelEvaluation) -> list[Any]:
            value = item(run)
            run.spend(cost)
            found: list[Any] = run.names[accu]
            found.append(value)
            return found

        return append

    def _insert(self, accu: str, step: CallExpr) -> Code:
        codes = tuple(map(self.plan, step.args[1:]))

        def insert(run: CelEvaluation) -> dict[Any, Any]:
            values = [code(run) for code in codes]
            run.spend(2)
            found: dict[Any, Any] = run.names[accu]
            for key, value in [tuple(values)] if len(values) == 2 else values[0].items():
                if key_in(found, key):
                    raise CelFailure(f"insert failed: key {key} already exists")
                found[key] = value
            return found

        return insert


def _looked_up(operand: Code, index: Code, more: int) -> Code:
    """Return the code of `a.?b` and `a[?b]`, which cost 1 if there is a value."""

    def look_up(run: CelEvaluation) -> Optional:
        table, key = operand(run), index(run)
        found = member_if_there(table, key)
        run.spend(more + len(found.values))
        return found

    return look_up


def _adds(node: Expr) -> bool:
    return isinstance(node, CallExpr) and (
        (node.name == "_+_" and isinstance(node.args[1], ListLiteral)) or node.name == "cel.@mapInsert"
    )


_SPECIAL: Final[Mapping[str, Callable[[Planner, Resolved], Code]]] = {
    "_&&_": Planner._logical,
    "_||_": Planner._logical,
    "_?_:_": Planner._conditional,
    "_==_": Planner._equality,
    "_!=_": Planner._equality,
    "@in": Planner._membership,
    "_[_]": Planner._index,
    "_[?_]": Planner._index,
    "@not_strictly_false": Planner._not_strictly_false,
    "or": Planner._or,
    "orValue": Planner._or,
}
