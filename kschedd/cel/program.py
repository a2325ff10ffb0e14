"""Compiled CEL expressions: parsing, checking, planning and evaluation in one interface.

Evaluation counts the cost and stops at the limit of the environment. The semantics are those of CEL: an operand that
decides `&&` or `||` takes precedence over an error in the other operand.

A CEL library is not used: both libraries on PyPI were tried (cel-python 0.5, common-expression-language 0.10). Neither
of the two libraries counts the cost, can be interrupted, or checks names and types at compile time, and their errors
differ from upstream's. cel-python takes 184 µs for one selector on one device; this module takes 3 µs.

Source: dynamic-resource-allocation/cel/compile.go; cel-go and its messages.
Errors: CelCompileError from `compile_expression` and `compile_condition`; CelFailure from `value` and `holds`.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.cel import allowance, functions, regex
from kschedd.cel.checker import Checker, Resolved
from kschedd.cel.environment import BASE, MOST_COST, CelEnvironment
from kschedd.cel.errors import LONGEST_EXPRESSION, CelCompileError, CelFailure
from kschedd.cel.functions import text
from kschedd.cel.functions.text import ANY
from kschedd.cel.functions.times import duration, timestamp
from kschedd.cel.macros import STANDARD
from kschedd.cel.planner import Planner, UnplannedConversion
from kschedd.cel.run import CelEvaluation, Code, TooExpensive
from kschedd.cel.syntax import (
    CallExpr,
    CelSyntaxError,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    located,
    parse,
    subtree,
)
from kschedd.cel.types import Type, unwrapped
from kschedd.cel.values import kind

__all__ = ["CelCondition", "Program", "compile_condition", "compile_expression", "functions"]


@attrs.frozen(eq=False)
class Program:
    expression: str
    type: Type  # of its value
    _code: Code
    _most_cost: int

    def value(self, names: Mapping[str, Any]) -> Any:
        """Return the value for these values of all variables. Raises CelFailure."""
        value, _, failure = self.run(names)
        if failure is not None:
            raise failure
        return value

    def run(self, names: Mapping[str, Any]) -> tuple[Any, int, CelFailure | None]:
        """Return the value, the cost of the evaluation, and its failure. Raises AllowanceSpent."""
        allowed = allowance.present()
        most = self._most_cost if allowed is None else min(self._most_cost, allowed.left)
        run = CelEvaluation(names, most)
        try:
            value = self._code(run)
            run.spend(0)
        except TooExpensive:
            if most < self._most_cost:
                raise allowance.AllowanceSpent from None
            return None, run.cost, CelFailure("operation cancelled: actual cost limit exceeded")
        except CelFailure as failure:
            return None, run.cost, failure
        finally:
            if allowed is not None:
                allowed.left -= run.cost
        return value, run.cost, None


@attrs.frozen(eq=False)
class CelCondition:
    """An expression whose value is true or false."""

    program: Program

    @property
    def expression(self) -> str:
        return self.program.expression

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether the condition is true for these values of all its variables.

        Raises CelFailure if evaluation fails.
        """
        answer = self.program.value(values)
        if type(answer) is not bool:
            raise CelFailure(
                f"CEL result of type {kind(answer)} could not be converted to bool: "
                f"type conversion error from '{kind(answer)}' to 'bool'"
            )
        return answer


_CONDITIONS: Final = BASE | {"bindings"}


def compile_condition(
    expression: str,
    variables: Mapping[str, str],
    structs: Mapping[str, Mapping[str, str]] | None = None,
    most_cost: int = MOST_COST,
) -> CelCondition:
    """Compile a condition about these variables of these types (`string`, `int`, `map`, `dyn`, ...)."""
    if len(expression) > LONGEST_EXPRESSION:
        raise CelCompileError(expression, f"expression is too long: at most {LONGEST_EXPRESSION} characters")
    try:
        program = compile_expression(expression, CelEnvironment.of(variables, structs, _CONDITIONS, most_cost))
    except CelCompileError as fault:
        raise CelCompileError(expression, f"compilation failed: {fault.why}") from fault
    if program.type.name not in ("bool", "dyn"):
        raise CelCompileError(expression, f"must evaluate to bool or the unknown type, not {program.type}")
    return CelCondition(program)


_COST_OF_CHARACTER: Final = 2  # compiling a character takes about 2.5 us, and evaluations of this cost take 3 us


def compile_expression(expression: str, environment: CelEnvironment) -> Program:
    """Compile an expression.

    Raises CelCompileError, with the faults in the format of cel-go, and AllowanceSpent.
    """
    allowance.charge(_COST_OF_CHARACTER * len(expression))
    try:
        tree = parse(expression, environment.macros)
    except CelSyntaxError as fault:
        raise CelCompileError(expression, str(fault)) from fault
    checker = Checker(environment)
    of_type = checker.whole(tree)
    faults = checker.faults or _literal_faults(checker) or _aggregate_faults(checker)
    if faults:
        faults.sort(key=lambda fault: fault[0])
        why = "\n".join(located(expression, at, why) for at, why in faults)
        raise CelCompileError(expression, why)
    try:
        code = Planner(checker).plan(tree)
    except UnplannedConversion as fault:
        raise CelCompileError(expression, str(fault), at_instantiation=True) from None
    return Program(expression, of_type, code, environment.most_cost)


def uses(expression: str, name: str) -> bool:
    """Return whether a valid expression contains a variable of this name."""
    return any(isinstance(node, Ident) and node.name == name for node in subtree(parse(expression, STANDARD)))


_LITERALS: Final = {"matches": 1, "timestamp": 0, "duration": 0}


def _aggregate_faults(checker: Checker) -> list[tuple[int, str]]:
    """Return the faults of lists and maps whose elements have different types, and of literal formats."""
    found: list[tuple[int, str]] = []
    exempt: set[int] = set()
    for node in reversed(checker.nodes):
        if isinstance(node, CallExpr) and node.name == "format":
            exempt.update(id(each) for each in subtree(node))
            found += _format_faults(node)
    for node in checker.nodes:
        if id(node) in exempt:
            continue
        if isinstance(node, ListLiteral):
            found += _unlike(checker, [(item, place in node.optional) for place, item in enumerate(node.items)])
        elif isinstance(node, MapLiteral):
            found += _unlike(checker, [(key, False) for key, _ in node.entries])
            found += _unlike(
                checker, [(value, place in node.optional) for place, (_, value) in enumerate(node.entries)]
            )
    return found


def _unlike(checker: Checker, nodes: list[tuple[Expr, bool]]) -> list[tuple[int, str]]:
    """Return the faults of elements whose type differs from that of the first element."""
    kinds = [unwrapped(checker.type_of(node))[0] if optional else checker.type_of(node) for node, optional in nodes]
    return [
        (node.at, f"expected type '{kinds[0].shown}' but found '{each.shown}'")
        for (node, _), each in zip(nodes, kinds, strict=True)
        if each != kinds[0]
    ]


def _format_faults(node: CallExpr) -> list[tuple[int, str]]:
    """Return the errors of a call `format` whose format string and values are literals."""
    target, values = node.target, node.args[0] if len(node.args) == 1 else None
    if not isinstance(target, Literal) or not isinstance(target.value, str) or not isinstance(values, ListLiteral):
        return []
    found = text.literal_fault(
        target.value, [each.value if isinstance(each, Literal) else ANY for each in values.items]
    )
    return [] if found is None else [(node.at if found[0] is None else values.items[found[0]].at, found[1])]


def _literal_faults(checker: Checker) -> list[tuple[int, str]]:
    """Return the faults of literals in calls of `matches`, `timestamp` and `duration`."""
    found = []
    for node in checker.nodes:
        call = checker.resolved.get(id(node))
        if not isinstance(node, CallExpr) or not isinstance(call, Resolved) or call.name not in _LITERALS:
            continue
        place = _LITERALS[call.name]
        arg = call.args[place] if place < len(call.args) else None
        if isinstance(arg, Literal) and isinstance(arg.value, str) and not _is_valid(call.name, arg.value):
            found.append((arg.at, f"invalid {call.name} argument"))
    return found


def _is_valid(function: str, text: str) -> bool:
    try:
        match function:
            case "matches":
                regex.search(text, "")
            case "timestamp":
                timestamp(text)
            case _:
                duration(text)
    except (CelFailure, regex.PatternError):
        return False
    return True
