"""Compiler for CEL expressions about `device` or about named variables, with an evaluator that has a cost limit.

Compilation checks names and static types (the type of an attribute is known only at run time), and converts the syntax
tree into nested closures. Evaluation takes about a microsecond per operation. Evaluation counts the cost and stops at
the limit (`cel.run`). The semantics are those of CEL: an operand that decides `&&` or `||` takes precedence over an
error in the other operand.

A CEL library is not used: both libraries on PyPI were tried (cel-python 0.5, common-expression-language 0.10). Neither
library counts the cost, can be interrupted, or checks names and types at compile time, and their errors differ from
upstream's. cel-python takes 184 µs for one selector on one device; this module takes 3 µs.

Source: dynamic-resource-allocation/cel/compile.go; cel-go checker, interpreter (runtimecost.go) and their messages;
CELSelectorExpressionMaxCost and CELSelectorExpressionMaxLength of api/resource/v1.
Errors: CelCompileError from `compile_selector` and `compile_condition`; CelFailure from `matches` and `holds`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import attrs

from kschedd.devices.cel import regex as cel_regex
from kschedd.devices.cel.errors import LONGEST_EXPRESSION, CelCompileError, CelFailure
from kschedd.devices.cel.functions import FUNCTIONS
from kschedd.devices.cel.run import (
    DEVICE_FIELDS,
    MOST_COST,
    CelEvaluation,
    Code,
    DeviceInput,
    TooExpensive,
    collected,
    constant,
    decided,
    dispatch,
    exactly_one,
    member,
    member_if_there,
    quantified,
    with_name,
)
from kschedd.devices.cel.syntax import (
    CallExpr,
    CelSyntaxError,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    located,
    parse,
)
from kschedd.devices.cel.values import (
    OPTIONAL,
    DeviceMaps,
    Optional,
    TypeName,
    equal,
    key_in,
    kind,
    traversed,
)

DEVICE: Final = "kubernetes.DRADevice"
_TYPE_NAMES: Final = frozenset({"bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"})
_COMPREHENSIONS: Final = {"all": 2, "exists": 2, "exists_one": 2, "existsOne": 2, "map": 2, "filter": 2}


@attrs.frozen(eq=False)
class Program:
    expression: str
    _code: Code

    def matches(self, device: DeviceInput) -> bool:
        """Return whether the device is selected; raises CelFailure if evaluation fails."""
        return _decided(self._code, CelEvaluation(device))


@attrs.frozen(eq=False)
class CelCondition:
    """An expression about named variables, with the cost limit `most_cost`."""

    expression: str
    _code: Code
    _most_cost: int

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether the condition is true for these values of all its variables.

        Raises CelFailure if evaluation fails.
        """
        return _decided(self._code, CelEvaluation(_NO_DEVICE, values, self._most_cost))


_NO_DEVICE: Final = DeviceInput("", DeviceMaps(), DeviceMaps())


def _decided(code: Code, run: CelEvaluation) -> bool:
    try:
        answer = code(run)
    except TooExpensive:
        raise CelFailure("operation cancelled: actual cost limit exceeded") from None
    if type(answer) is not bool:
        raise CelFailure(
            f"CEL result of type {kind(answer)} could not be converted to bool: "
            f"type conversion error from '{kind(answer)}' to 'bool'"
        )
    return answer


def compile_selector(expression: str, fields: Mapping[str, str] = DEVICE_FIELDS) -> Program:
    """Compile a condition about `device`, which has fields of these types."""
    return Program(expression, _compiled(expression, None, fields))


def compile_condition(expression: str, variables: Mapping[str, str], most_cost: int = MOST_COST) -> CelCondition:
    """Compile a condition about these variables of these types (`string`, `int`, `map`, `dyn`, ...)."""
    return CelCondition(expression, _compiled(expression, variables), most_cost)


def _compiled(expression: str, variables: Mapping[str, str] | None, fields: Mapping[str, str] = DEVICE_FIELDS) -> Code:
    """Compile an expression. If `variables` is None, the only variable is `device`, which has these fields."""
    if len(expression) > LONGEST_EXPRESSION:
        raise CelCompileError(expression, f"expression is too long: at most {LONGEST_EXPRESSION} characters")
    try:
        tree = parse(expression)
    except CelSyntaxError as fault:
        raise CelCompileError(expression, f"compilation failed: {fault}") from fault
    compiler = _Compiler(expression, dict(variables or {}), on_device=variables is None, fields=fields)
    of_type, code = compiler.node(tree)
    if compiler.faults:
        raise CelCompileError(expression, "compilation failed: " + "\n".join(compiler.faults))
    if of_type not in ("bool", "dyn"):
        raise CelCompileError(expression, f"must evaluate to bool or the unknown type, not {of_type}")
    return code


def _is_pattern(node: Expr) -> bool:
    """Return whether a literal is a valid regular expression; the value of any other node is known only at run time."""
    if not isinstance(node, Literal) or not isinstance(node.value, str):
        return True
    try:
        cel_regex.search(node.value, "")
    except cel_regex.PatternError:
        return False
    return True


def _element(of_type: str) -> str:
    """Return the type of a list's elements or of a map's values; `_iterated` returns the type of an iteration."""
    base, _, inside = of_type.partition("(")
    inside = inside[:-1]
    if base == "list":
        return inside or "dyn"
    if base == "map":
        return inside.partition(", ")[2] or "dyn"
    return "dyn"


def _iterated(of_type: str) -> str:
    base, _, inside = of_type.partition("(")
    return _element(of_type) if base == "list" else inside.partition(", ")[0] or "dyn"


def _common(types: list[str]) -> str:
    return types[0] if types and all(one == types[0] for one in types) else "dyn"


@attrs.define(eq=False)
class _Compiler:
    """The compiler. Each method returns the static type of a node and the closure that evaluates the node.

    Faults are collected.
    """

    text: str
    scope: dict[str, str] = attrs.field(factory=dict)  # variable -> type
    on_device: bool = True  # `device` is declared
    fields: Mapping[str, str] = attrs.field(default=DEVICE_FIELDS)  # fields of `device`
    faults: list[str] = attrs.field(factory=list)
    made: int = 0

    def fault(self, at: int, why: str) -> tuple[str, Code]:
        self.faults.append(located(self.text, at, why))
        return "dyn", constant(None)

    def node(self, node: Expr) -> tuple[str, Code]:
        if isinstance(node, Literal):
            return kind(node.value), constant(node.value)
        if isinstance(node, Ident):
            return self.ident(node)
        if isinstance(node, Select):
            return self.select(node)
        if isinstance(node, ListLiteral):
            return self.list_literal(node)
        if isinstance(node, MapLiteral):
            return self.map_literal(node)
        assert isinstance(node, CallExpr), f"a node of a known class is expected, not {node}"
        return self.call(node)

    def ident(self, node: Ident) -> tuple[str, Code]:
        name = node.name
        if name in self.scope:

            def variable(run: CelEvaluation) -> Any:
                run.cost += 1
                return run.names[name]

            return self.scope[name], variable
        if name == "device" and self.on_device:

            def device(run: CelEvaluation) -> Any:
                run.cost += 1
                return run.device

            return DEVICE, device
        if name in _TYPE_NAMES:
            return "type", constant(TypeName(name))
        return self.fault(node.at, f"undeclared reference to '{name}' (in container '')")

    def select(self, node: Select) -> tuple[str, Code]:
        of_type, operand = self.node(node.operand)
        field = node.field
        if of_type == DEVICE and not node.optional:
            if field not in self.fields:
                return self.fault(node.at, f"undefined field '{field}'")

            def of_device(run: CelEvaluation) -> Any:
                run.cost += 2
                return run.device.field(field)

            return self.fields[field], of_device
        base = of_type.partition("(")[0]
        if base not in ("map", "dyn", OPTIONAL, DEVICE):
            return self.fault(node.at, f"type '{of_type}' does not support field selection")
        if node.optional or base == OPTIONAL:
            return OPTIONAL, self.looked_up_if_there(operand, constant(field))
        return _element(of_type), self.looked_up(operand, constant(field))

    # -- lookups ----------------------------------------------------------------------------------------------

    def looked_up(self, operand: Code, index: Code) -> Code:
        def look_up(run: CelEvaluation) -> Any:
            table, key = operand(run), index(run)
            run.cost += 1
            if isinstance(table, Optional):
                return member_if_there(table.values[0], key) if table.values else table
            return member(table, key)

        return look_up

    def looked_up_if_there(self, operand: Code, index: Code) -> Code:
        def look_up(run: CelEvaluation) -> Any:
            table, key = operand(run), index(run)
            run.cost += 1
            if isinstance(table, Optional):
                return member_if_there(table.values[0], key) if table.values else table
            return member_if_there(table, key)

        return look_up

    # -- literals ---------------------------------------------------------------------------------------------

    def list_literal(self, node: ListLiteral) -> tuple[str, Code]:
        compiled = [self.node(item) for item in node.items]
        codes = [code for _, code in compiled]

        def build(run: CelEvaluation) -> list[Any]:
            run.spend(10)
            return [code(run) for code in codes]

        of_type = _common([one for one, _ in compiled])
        return f"list({of_type})", build

    def map_literal(self, node: MapLiteral) -> tuple[str, Code]:
        keys = [self.node(key) for key, _ in node.entries]
        values = [self.node(value) for _, value in node.entries]
        pairs = [(key, value) for (_, key), (_, value) in zip(keys, values, strict=True)]

        def build(run: CelEvaluation) -> dict[Any, Any]:
            run.spend(30)
            built: dict[Any, Any] = {}
            for key_code, value_code in pairs:
                key = key_code(run)
                if kind(key) not in ("string", "bool", "int", "uint"):
                    raise CelFailure(f"unsupported key type: {kind(key)}")
                if key_in(built, key):
                    raise CelFailure("Failed with repeated key")
                built[key] = value_code(run)
            return built

        return f"map({_common([one for one, _ in keys])}, {_common([one for one, _ in values])})", build

    # -- calls ------------------------------------------------------------------------------------------------

    def call(self, node: CallExpr) -> tuple[str, Code]:
        if node.target is None:
            special = _OPERATORS.get(node.name)
            if special is not None:
                return special(self, node)
            if node.name == "has":
                return self.has(node)
            return self.function(node.at, node.name, node.args)
        if isinstance(node.target, Ident) and node.target.name not in self.scope:
            if node.target.name == "cel" and node.name == "bind":
                return self.bind(node)
            qualified = f"{node.target.name}.{node.name}"
            if qualified in FUNCTIONS:
                return self.function(node.at, qualified, node.args)
        if node.name in _COMPREHENSIONS and len(node.args) >= _COMPREHENSIONS[node.name]:
            return self.comprehension(node, node.target)
        if node.name in ("optMap", "optFlatMap") and len(node.args) == 2:
            return self.optional_map(node, node.target)
        if node.name == "matches" and len(node.args) == 1 and not _is_pattern(node.args[0]):
            self.fault(node.args[0].at, "invalid matches argument")
        return self.function(node.at, f".{node.name}", (node.target, *node.args))

    def function(self, at: int, name: str, args: tuple[Expr, ...]) -> tuple[str, Code]:
        overloads = FUNCTIONS.get(name)
        compiled = [self.node(arg) for arg in args]
        kinds = tuple(of_type for of_type, _ in compiled)
        if overloads is None:
            return self.fault(at, f"undeclared reference to '{name.lstrip('.')}' (in container '')")
        fitting = tuple(overload for overload in overloads if overload.takes(kinds))
        if not fitting:
            shown = f"{kinds[0]}.({', '.join(kinds[1:])})" if name[0] == "." else f"({', '.join(kinds)})"
            return self.fault(at, f"found no matching overload for '{name.lstrip('.')}' applied to '{shown}'")
        result = _common([overload.result for overload in fitting])
        return result, dispatch(name, fitting, tuple(code for _, code in compiled))

    def boolean(self, node: Expr, name: str, kinds: list[str]) -> Code:
        of_type, code = self.node(node)
        kinds.append(of_type)
        if of_type not in ("bool", "dyn"):
            self.fault(node.at, f"expected type 'bool' but found '{of_type}'")
        return code

    def logical(self, node: CallExpr) -> tuple[str, Code]:
        """Compile `&&` and `||`: an operand that decides takes precedence, even over errors in other operands."""
        deciding = node.name == "_||_"
        kinds: list[str] = []
        codes = [self.boolean(arg, node.name, kinds) for arg in node.args]

        def decide(run: CelEvaluation) -> bool:
            return decided((partial(code, run) for code in codes), deciding=deciding)

        return "bool", decide

    def conditional(self, node: CallExpr) -> tuple[str, Code]:
        kinds: list[str] = []
        condition = self.boolean(node.args[0], node.name, kinds)
        (then_type, then), (other_type, otherwise) = self.node(node.args[1]), self.node(node.args[2])
        if "dyn" not in (then_type, other_type) and then_type.partition("(")[0] != other_type.partition("(")[0]:
            applied = f"({kinds[0]}, {then_type}, {other_type})"
            return self.fault(node.at, f"found no matching overload for '_?_:_' applied to '{applied}'")

        def choose(run: CelEvaluation) -> Any:
            answer = condition(run)
            if type(answer) is not bool:
                raise CelFailure("no such overload")
            return then(run) if answer else otherwise(run)

        return _common([then_type, other_type]), choose

    def equality(self, node: CallExpr) -> tuple[str, Code]:
        (left_type, left), (right_type, right) = self.node(node.args[0]), self.node(node.args[1])
        wanted = node.name == "_==_"
        bases = {left_type.partition("(")[0], right_type.partition("(")[0]}
        if len(bases) == 2 and not bases & {"dyn", "null_type"}:
            applied = f"({left_type}, {right_type})"
            return self.fault(node.at, f"found no matching overload for '{node.name}' applied to '{applied}'")

        def compare(run: CelEvaluation) -> bool:
            return equal(left(run), right(run), run.spend) is wanted

        return "bool", compare

    def membership(self, node: CallExpr) -> tuple[str, Code]:
        (left_type, left), (right_type, right) = self.node(node.args[0]), self.node(node.args[1])
        base = right_type.partition("(")[0]
        inside = _iterated(right_type)
        unlike = "dyn" not in (left_type, inside) and left_type != inside
        if base not in ("list", "map", "dyn") or (unlike and inside):
            applied = f"({left_type}, {right_type})"
            return self.fault(node.at, f"found no matching overload for '@in' applied to '{applied}'")

        def contains(run: CelEvaluation) -> bool:
            value, table = left(run), right(run)
            if isinstance(table, dict):
                run.spend(1)
                return key_in(table, value)
            if not isinstance(table, list):
                raise CelFailure("no such overload")
            run.spend(max(1, traversed(len(table))))
            return any(equal(value, item, run.spend) for item in table)

        return "bool", contains

    def index(self, node: CallExpr) -> tuple[str, Code]:
        (of_type, operand), (key_type, index) = self.node(node.args[0]), self.node(node.args[1])
        base = of_type.partition("(")[0]
        wanted = "int" if base == "list" else _iterated(of_type)
        if base not in ("list", "map", "dyn", OPTIONAL) or (
            base in ("list", "map") and "dyn" not in (key_type, wanted) and key_type != wanted
        ):
            applied = f"({of_type}, {key_type})"
            return self.fault(node.at, f"found no matching overload for '{node.name}' applied to '{applied}'")
        if node.name == "_[?_]" or base == OPTIONAL:
            return OPTIONAL, self.looked_up_if_there(operand, index)
        return _element(of_type), self.looked_up(operand, index)

    # -- macros -----------------------------------------------------------------------------------------------

    def has(self, node: CallExpr) -> tuple[str, Code]:
        if len(node.args) != 1 or not isinstance(node.args[0], Select):
            return self.fault(node.at, "invalid argument to has() macro")
        select = node.args[0]
        of_type, operand = self.node(select.operand)
        field = select.field
        if of_type == DEVICE:
            return ("bool", constant(True)) if field in self.fields else self.select(select)
        if of_type.partition("(")[0] not in ("map", "dyn", OPTIONAL):
            return self.fault(select.at, f"type '{of_type}' does not support field selection")

        def there(run: CelEvaluation) -> bool:
            table = operand(run)
            run.cost += 1
            if isinstance(table, Optional):
                table = table.values[0] if table.values else {}
            if not isinstance(table, dict):
                raise CelFailure("no such overload")
            return field in table

        return "bool", there

    def bind(self, node: CallExpr) -> tuple[str, Code]:
        if len(node.args) != 3 or not isinstance(node.args[0], Ident):
            return self.fault(node.at, "cel.bind() variable names must be simple identifiers")
        name = node.args[0].name
        of_type, init = self.node(node.args[1])
        result, body = self.within(name, of_type, node.args[2])

        def bound(run: CelEvaluation) -> Any:
            run.spend(10)
            return with_name(run, name, init(run), body)

        return result, bound

    def optional_map(self, node: CallExpr, target: Expr) -> tuple[str, Code]:
        if not isinstance(node.args[0], Ident):
            return self.fault(node.at, f"{node.name}() variable name must be a simple identifier")
        name = node.args[0].name
        _, operand = self.node(target)
        _, body = self.within(name, "dyn", node.args[1])
        flat = node.name == "optFlatMap"

        def mapped(run: CelEvaluation) -> Any:
            value = operand(run)
            if not isinstance(value, Optional):
                raise CelFailure("no such overload")
            if not value.values:
                return value
            answer = with_name(run, name, value.values[0], body)
            return answer if flat else Optional((answer,))

        return OPTIONAL, mapped

    def within(self, name: str, of_type: str, body: Expr) -> tuple[str, Code]:
        """Compile the body with an additional variable in scope."""
        before = self.scope
        self.scope = {**before, name: of_type}
        compiled = self.node(body)
        self.scope = before
        return compiled

    def comprehension(self, node: CallExpr, target: Expr) -> tuple[str, Code]:
        variable = node.args[0]
        if not isinstance(variable, Ident) or len(node.args) > (3 if node.name == "map" else 2):
            return self.fault(node.at, "argument must be a simple name")
        of_type, operand = self.node(target)
        if of_type.partition("(")[0] not in ("list", "map", "dyn"):
            why = f"expression of type '{of_type}' cannot be range of a comprehension (must be list, map, or dynamic)"
            return self.fault(target.at, why)
        name, inner = variable.name, _iterated(of_type)
        result, body = self.within(name, inner, node.args[1])
        if (node.name != "map" or len(node.args) == 3) and result not in ("bool", "dyn"):
            return self.fault(node.args[1].at, f"expected type 'bool' but found '{result}'")
        if node.name in ("all", "exists"):
            return "bool", quantified(operand, name, body, deciding=node.name == "exists")
        if node.name in ("exists_one", "existsOne"):
            return "bool", exactly_one(operand, name, body)
        if node.name == "filter":
            return f"list({inner})", collected(operand, name, body, None)
        if len(node.args) == 3:
            result, transform = self.within(name, inner, node.args[2])
            return f"list({result})", collected(operand, name, body, transform)
        return f"list({result})", collected(operand, name, None, body)


_OPERATORS: Final[Mapping[str, Callable[[_Compiler, CallExpr], tuple[str, Code]]]] = {
    "_&&_": _Compiler.logical,
    "_||_": _Compiler.logical,
    "_?_:_": _Compiler.conditional,
    "_==_": _Compiler.equality,
    "_!=_": _Compiler.equality,
    "@in": _Compiler.membership,
    "_[_]": _Compiler.index,
    "_[?_]": _Compiler.index,
}
