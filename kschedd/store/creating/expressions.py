"""Checks of the CEL expressions in admission policies and webhooks, without type information.

The checks find syntax errors, undeclared names, and values that are obviously of the wrong type. Functions and fields
are not checked, because kschedd implements only the functions for device selectors and must not reject a policy that
uses another function.

Source: Kubernetes v1.34, apiserver/pkg/admission/plugin/cel/compile.go (mustBuildEnvs, CompileCELExpression).
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid
from kschedd.cel.syntax import (
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
from kschedd.cel.values import kind

Raw = Mapping[str, Any]

_REQUEST: Final = frozenset(("object", "oldObject", "request", "namespaceObject", "authorizer"))
_TYPES: Final = frozenset(
    "bool int uint double string bytes list map null_type type dyn google kubernetes optional_type".split()
)
_NAMESPACES: Final = frozenset("cel sets math base64 optional strings format ip cidr regex jsonpatch lists".split())
_ONE_VARIABLE: Final = frozenset(("map", "filter"))
_MACROS: Final = frozenset(
    "all exists exists_one existsOne map filter transformList transformMap transformMapEntry".split()
)
_BOOLEAN: Final = frozenset("_==_ _!=_ _<_ _<=_ _>_ _>=_ _&&_ _||_ !_ @in has".split())


def policy_faults(policy: Raw) -> list[FieldError]:
    """Return the errors in the expressions of a ValidatingAdmissionPolicy."""
    spec = policy.get("spec") or {}
    variables = _REQUEST | {"params"} if spec.get("paramKind") is not None else _REQUEST
    faults = _condition_faults(spec, "spec.", variables)
    for index, variable in enumerate(spec.get("variables") or ()):
        faults += _faults(variable, "expression", f"spec.variables[{index}]", variables, "")
        variables |= {"variables"}
    for index, validation in enumerate(spec.get("validations") or ()):
        here = f"spec.validations[{index}]"
        faults += _faults(validation, "expression", here, variables, "bool")
        faults += _faults(validation, "messageExpression", here, variables - {"authorizer"}, "string")
    return faults


def webhook_faults(configuration: Raw) -> list[FieldError]:
    """Return the errors in the match conditions of a webhook configuration."""
    webhooks = enumerate(configuration.get("webhooks") or ())
    return [fault for index, each in webhooks for fault in _condition_faults(each, f"webhooks[{index}].", _REQUEST)]


def _condition_faults(raw: Raw, path: str, variables: Collection[str]) -> list[FieldError]:
    conditions = enumerate(raw.get("matchConditions") or ())
    return [
        fault
        for index, condition in conditions
        for fault in _faults(condition, "expression", f"{path}matchConditions[{index}]", variables, "bool")
    ]


def _faults(raw: Raw, field: str, path: str, variables: Collection[str], wanted: str) -> list[FieldError]:
    text = raw.get(field) or ""
    why = expression_fault(text, variables, wanted) if text.strip() else ""
    return [invalid(f"{path}.{field}", text, why)] if why else []


def expression_fault(text: str, variables: Collection[str], wanted: str) -> str:
    """Return the reason why the expression does not compile, or "".

    `wanted` is the required type of the result, or "" for any type.
    """
    try:
        tree = parse(text)
    except CelSyntaxError as fault:
        return f"compilation failed: {fault}"
    declared = frozenset(variables) | _TYPES
    unknown = [
        located(text, at, f"undeclared reference to '{name}' (in container '')")
        for at, name in _unknown(tree, declared)
    ]
    if unknown:
        return "compilation failed: " + "\n".join(unknown)
    found = kind(tree.value) if isinstance(tree, Literal) else ""
    if isinstance(tree, CallExpr) and tree.target is None and tree.name in _BOOLEAN:
        found = "bool"
    return f"must evaluate to {wanted} but got {found}" if wanted and found not in ("", wanted) else ""


def _unknown(node: Expr, declared: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield each undeclared name with its position."""
    if isinstance(node, Ident):
        if node.name not in declared:
            yield node.at, node.name
    elif isinstance(node, Select):
        yield from _unknown(node.operand, declared)
    elif isinstance(node, ListLiteral):
        for item in node.items:
            yield from _unknown(item, declared)
    elif isinstance(node, MapLiteral):
        for entry in node.entries:
            for part in entry:
                yield from _unknown(part, declared)
    elif isinstance(node, CallExpr):
        yield from _unknown_in_call(node, declared)


def _unknown_in_call(node: CallExpr, declared: frozenset[str]) -> Iterator[tuple[int, str]]:
    target, args = node.target, node.args
    bound: tuple[Expr, ...] = ()
    if isinstance(target, Ident) and target.name in _NAMESPACES and target.name not in declared:
        if target.name == "cel" and node.name == "bind":
            bound, value = args[:1], args[1:2]
            args = args[2:]
            for each in value:
                yield from _unknown(each, declared)
    elif target is not None:
        yield from _unknown(target, declared)
        if node.name in _MACROS:
            many = 2 if node.name.startswith("transform") or (len(args) > 2 and node.name not in _ONE_VARIABLE) else 1
            bound, args = args[:many], args[many:]
    names = {each.name for each in bound if isinstance(each, Ident)}
    for each in args:
        yield from _unknown(each, declared | names)
