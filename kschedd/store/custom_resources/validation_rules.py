"""Validation rules of custom resources: CEL rules of a schema (`x-kubernetes-validations`) about `self` and `oldSelf`.

A rule belongs to a part of the schema and is evaluated for each value of this part. A rule that uses `oldSelf` is a
transition rule. A transition rule is evaluated only if the value existed before, unless its `oldSelf` is optional. The
old value of a field or map entry is always available; the old value of a list item only if the list has keys. Rules are
compiled when their CustomResourceDefinition is written. A rule that does not compile is rejected at that time, so every
stored rule is effective.

Source: Kubernetes v1.37, apiextensions-apiserver/pkg/apiserver/schema/cel (validation.go, compilation.go),
pkg/apis/apiextensions/validation/validation.go.
Errors: none; violations are returned.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from kschedd.api.schemas.fields import FieldError, child, duplicate, forbidden, invalid, required, unsupported
from kschedd.cel.errors import CelCompileError, CelFailure
from kschedd.store.custom_resources.ratcheting import ABSENT, is_unchanged, key_of, keys_of, old_items

if TYPE_CHECKING:
    from kschedd.cel.environment import CelEnvironment
    from kschedd.cel.program import Program
    from kschedd.store.custom_resources.rule_costs import RuleCosts

Raw = Mapping[str, Any]

RULES: Final = "x-kubernetes-validations"
BUDGET: Final = 10_000_000
"""The cost limit of all rules for one object."""
_HTML: Final = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LONGEST_MESSAGE: Final = 5 * 1024  # octets
_MOST_COMPILED: Final = 1 << 10
_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"
_NO_FIELDS: Final[Raw] = {}


def definition_rule_faults(schema: Any, path: str, *, unchanged: bool = False) -> Iterator[FieldError]:
    """Yield errors for rules in the schema that are incomplete, do not compile or are too expensive.

    If the schema is `unchanged`, costs are not estimated, and its transition rules are accepted in any place.
    """
    if not has_rules(schema):
        return
    from kschedd.store.custom_resources.rule_costs import RuleCosts  # imports CEL

    costs = None if unchanged else RuleCosts()
    yield from _inner_faults(schema, path, True, 1, costs, "")
    if costs is not None:
        yield from costs.faults(path)


def _inner_faults(
    schema: Any, path: str, root: bool, count: int | None, costs: "RuleCosts | None", within: str
) -> Iterator[FieldError]:
    """Yield the errors of a schema that has `count` values in an object; None without a limit.

    `within` is the path of the enclosing list whose items have no old value; "" if there is no such list.
    """
    if not isinstance(schema, Mapping):
        return
    valid = []
    for index, rule in enumerate(_rules(schema)):
        here = f"{path}.{RULES}[{index}]"
        faults = list(_definition_faults(schema, rule, here, root))
        yield from faults
        if not faults:
            valid.append((rule, here))
    if costs is not None:
        from kschedd.store.custom_resources.rule_costs import inner_count

        yield from _cost_faults(schema, valid, root, count, costs)
        count = inner_count(schema, count)
    if within:
        for rule, here in valid if costs is not None else ():
            if _compiled(schema, rule, root).uses_old:
                why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                yield invalid(f"{here}.rule", rule["rule"], why)
    elif schema.get("type") == "array" and schema.get("x-kubernetes-list-type") != "map":
        within = path
    for name, inner in _inner_schemas(schema):
        yield from _inner_faults(inner, f"{path}.{name}", False, count, costs, within)


def _cost_faults(
    schema: Raw, rules: Sequence[tuple[Raw, str]], root: bool, count: int | None, costs: "RuleCosts"
) -> Iterator[FieldError]:
    """Yield the errors of expressions whose estimated cost is too high.

    `rules` contains valid rules, each with its path.
    """
    if not rules:
        return
    from kschedd.cel.estimates import estimated_cost
    from kschedd.store.custom_resources.rule_costs import sized_type, total_cost

    sizes, most = sized_type(schema, root=root)
    for rule, path in rules:
        environment = _environment(schema, bool(rule.get("optionalOldSelf")), root)
        cost = total_cost(estimated_cost(str(rule["rule"]), environment, sizes), most if count is None else count)
        yield from costs.add(cost, f"{path}.rule", "rule")
        if message := str(rule.get("messageExpression") or ""):
            cost = estimated_cost(message, environment, sizes)
            yield from costs.add(cost, f"{path}.messageExpression", "messageExpression")


def has_rules(schema: Any) -> bool:
    """Return whether the schema, or a part of it, has rules."""
    if not isinstance(schema, Mapping):
        return False
    return bool(_rules(schema)) or any(has_rules(inner) for _, inner in _inner_schemas(schema))


def _definition_faults(schema: Raw, rule: Raw, path: str, root: bool) -> Iterator[FieldError]:
    text, message, expression = (str(rule.get(field) or "") for field in ("rule", "message", "messageExpression"))
    faults = []
    if not text.strip():
        faults.append(required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        faults.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif _is_long(message.strip()):
        faults.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    elif _is_long(text.strip()) and not message.strip():
        faults.append(required(f"{path}.message", "message must be specified if rule contains line breaks"))
    if expression and not expression.strip():
        faults.append(required(f"{path}.messageExpression", "messageExpression must be non-empty if specified"))
    reason, optional = rule.get("reason"), rule.get("optionalOldSelf")
    if reason is not None and reason not in _REASONS:
        faults.append(unsupported(f"{path}.reason", reason, _REASONS))
    yield from faults
    if faults:
        return
    found = _compiled(schema, rule, root)
    if found.fault:
        yield FieldError(f"{path}.rule", None, f"Invalid value: {_as_json(rule)}: {found.fault}")
    elif found.message_fault:
        shown = f"Invalid value: {_as_json(rule)}: {found.message_fault}"
        yield FieldError(f"{path}.messageExpression", None, shown)
    elif optional is not None and not found.uses_old:
        yield invalid(f"{path}.optionalOldSelf", optional, "may not be set if oldSelf is not used in rule")


def _as_json(rule: Raw) -> str:
    """Return a rule as the real API server shows it: as JSON of its Go type, with the characters of HTML escaped."""
    fields = {
        "Rule": rule.get("rule") or "",
        "Message": rule.get("message") or "",
        "MessageExpression": rule.get("messageExpression") or "",
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    shown = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return shown.translate(_HTML)


def _is_long(text: str) -> bool:
    return "\n" in text or "\r" in text


# -- evaluation ------------------------------------------------------------------------------------------------------


def rule_faults(schema: Raw, value: Any, old: Any = ABSENT, *, shows_values: bool = True) -> list[FieldError]:
    """Return the violations of a schema's rules in an object; `old` is the previous object.

    With `shows_values`, messages contain the wrong value (since 1.35); otherwise they contain the type of the value.
    """
    return judged_rules(schema, value, old, shows_values=shows_values)[0]


def judged_rules(
    schema: Raw, value: Any, old: Any = ABSENT, *, shows_values: bool = True
) -> tuple[list[FieldError], list[str]]:
    """Return the violations, as `rule_faults` does, and warnings about the violations of unchanged values."""
    evaluation = _Evaluation(shows_values)
    return evaluation.faults(schema, value, old), evaluation.warnings


class _Spent(Exception):
    """The cost limit of the object is exceeded."""


@attrs.define(eq=False)
class _Evaluation:
    """The evaluation of all rules for one object."""

    shows_values: bool
    budget: int = BUDGET
    warnings: list[str] = attrs.field(factory=list)  # warnings about violations in unchanged values

    def faults(self, schema: Raw, value: Any, old: Any) -> list[FieldError]:
        found: list[FieldError] = []
        try:
            self._walk(schema, value, old, "", found, unchanged=False, root=True)
        except _Spent:
            return found  # contains the reason
        return found

    def _walk(
        self,
        schema: Raw,
        value: Any,
        old: Any,
        path: str,
        found: list[FieldError],
        *,
        unchanged: bool,
        root: bool = False,
    ) -> None:
        """Append the violations in a value.

        If there is no old value, `unchanged` states whether the enclosing value is unchanged.
        """
        if value is None:
            return
        if old is not ABSENT:
            unchanged = is_unchanged(schema, value, old)
        for rule in _rules(schema):
            self._judge(rule, schema, value, old, path, root, found, unchanged)
        items = schema.get("items")
        if isinstance(value, list) and isinstance(items, Mapping):
            before = old_items(schema, old)
            keys = keys_of(schema)
            for index, each in enumerate(value):
                was = before.get(key_of(each, keys), ABSENT) if before else ABSENT
                self._walk(items, each, was, f"{path}[{index}]", found, unchanged=unchanged)
        elif isinstance(value, Mapping):
            then = old if isinstance(old, Mapping) else _NO_FIELDS
            known, more = schema.get("properties") or _NO_FIELDS, schema.get("additionalProperties")
            for name, each in value.items():
                inner = known.get(name, more)
                if isinstance(inner, Mapping):
                    was = then.get(name, ABSENT)
                    self._walk(inner, each, was, child(path, name), found, unchanged=unchanged)

    def _judge(
        self,
        rule: Raw,
        schema: Raw,
        value: Any,
        old: Any,
        path: str,
        root: bool,
        found: list[FieldError],
        unchanged: bool,
    ) -> None:
        """Append the violation of one rule. Raises _Spent."""
        here, shown = path or "<nil>", str(schema.get("type") or "")
        compiled = _compiled(schema, rule, root)
        if compiled.program is None:
            found.append(invalid(here, shown, f"rule compile error: {compiled.fault}"))
            return
        absent = old is ABSENT or old is None
        if compiled.uses_old and absent and not rule.get("optionalOldSelf"):
            return
        stated = str(rule.get("message") or "").strip() or str(rule.get("rule") or "").strip()
        try:
            names = _names(schema, value, None if absent else old, root)
            failure: CelFailure | None = None
        except CelFailure as fault:
            names, failure = {}, fault
        if failure is None:
            names = _for_rule(rule, names, absent)
            answer, cost, failure = compiled.program.run(names)
            self.budget -= cost
            if self.budget < 0:
                found.append(invalid(here, shown, _SPENT))
                raise _Spent
        if failure is not None:
            found.append(invalid(here, shown, _failed(str(failure), stated)))
            if "cost limit exceeded" in str(failure):
                raise _Spent
            return
        if answer is not True:
            message = self._message(compiled, rule, names, here, shown, found)
            violation = self._violation(rule, schema, value, path, message)
            if unchanged and not compiled.uses_old:
                self.warnings.append(str(violation))
            else:
                found.append(violation)

    def _message(
        self, compiled: "CompiledRule", rule: Raw, names: Raw, here: str, shown: str, found: list[FieldError]
    ) -> str:
        """Return the message of a violation. Raises _Spent."""
        if compiled.message is not None:
            value, cost, failure = compiled.message.run(names)
            self.budget -= cost
            if self.budget < 0:
                why = "messageExpression evaluation failed due to running out of cost budget"
                found.append(invalid(here, shown, f"{why}, no further validation rules will be run"))
                raise _Spent
            text = value.strip() if failure is None and isinstance(value, str) else ""
            if text and not _is_long(text) and len(text.encode(errors="replace")) <= _LONGEST_MESSAGE:
                return text
        message = str(rule.get("message") or "").strip()
        return message or f"failed rule: {str(rule.get('rule') or '').strip()}"

    def _violation(self, rule: Raw, schema: Raw, value: Any, path: str, message: str) -> FieldError:
        where = f"{path}{rule.get('fieldPath') or ''}".removeprefix(".") or "<nil>"
        of = str(schema.get("type") or "")
        omitted = self.shows_values and of in ("object", "array")
        match rule.get("reason"):
            case "FieldValueForbidden":
                return forbidden(where, message)
            case "FieldValueRequired":
                return required(where, message)
            case "FieldValueDuplicate":
                return (
                    FieldError(where, None, "Duplicate value") if omitted else duplicate(where, self._shown(of, value))
                )
        if omitted:
            return FieldError(where, None, f"Invalid value: {message}")
        return invalid(where, self._shown(of, value), message)

    def _shown(self, of: str, value: Any) -> Any:
        return value if self.shows_values else of


def _failed(failure: str, rule: str) -> str:
    if failure.startswith("no such overload"):
        what = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{failure}': {what}: {rule}"
    if failure.startswith("operation cancelled"):
        what = "no further validation rules will be run due to call cost exceeds limit for rule"
        return f"'{failure}': {what}: {rule}"
    return f"{failure} evaluating rule: {rule}"


def _names(schema: Raw, value: Any, old: Any, root: bool) -> dict[str, Any]:
    from kschedd.store.custom_resources.rule_types import rule_value

    before = None if old is None else rule_value(schema, old, root=root)
    return {"self": rule_value(schema, value, root=root), "oldSelf": before}


def _for_rule(rule: Raw, names: dict[str, Any], absent: bool) -> dict[str, Any]:
    """Return the variables of a rule; `oldSelf` may be optional."""
    if not rule.get("optionalOldSelf"):
        return names
    from kschedd.cel.values import Optional

    return {**names, "oldSelf": Optional() if absent else Optional((names["oldSelf"],))}


# -- compilation -----------------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class CompiledRule:
    """A rule and its message expression, or the reason why one of them does not compile."""

    schema: Raw  # reference that keeps the schema alive, because the cache's key is the identity of the schema
    program: "Program | None"
    fault: str
    message: "Program | None"
    message_fault: str
    uses_old: bool


_COMPILED: Final[dict[tuple[int, str, str, bool, bool], CompiledRule]] = {}


def _compiled(schema: Raw, rule: Raw, root: bool) -> CompiledRule:
    text, expression = str(rule.get("rule") or ""), str(rule.get("messageExpression") or "")
    key = id(schema), text, expression, bool(rule.get("optionalOldSelf")), root
    known = _COMPILED.get(key)
    if known is None or known.schema is not schema:
        if len(_COMPILED) >= _MOST_COMPILED:
            _COMPILED.clear()
        known = _COMPILED[key] = _compile(schema, text, expression, key[3], root)
    return known


def _compile(schema: Raw, text: str, expression: str, optional: bool, root: bool) -> CompiledRule:
    from kschedd.cel.program import compile_expression, uses

    environment = _environment(schema, optional, root)
    program = message = None
    fault = message_fault = ""
    try:
        program = compile_expression(text, environment)
        if program.type.name != "bool":
            program, fault = None, "cel expression must evaluate to a bool"
    except CelCompileError as wrong:
        fault = wrong.detail
    if program is not None and expression.strip():
        try:
            message = compile_expression(expression, environment)
            if message.type.name != "string":
                message, message_fault = None, "messageExpression must evaluate to a string"
        except CelCompileError as wrong:
            message_fault = f"messageExpression {wrong.detail}"
    return CompiledRule(schema, program, fault, message, message_fault, program is not None and uses(text, "oldSelf"))


def _environment(schema: Raw, optional: bool, root: bool) -> "CelEnvironment":
    from kschedd.cel.environment import CelEnvironment
    from kschedd.store.custom_resources.rule_types import rule_types

    of_type, structs = rule_types(schema, root=root)
    return CelEnvironment.of({"self": of_type, "oldSelf": f"optional({of_type})" if optional else of_type}, structs)


def _rules(schema: Raw) -> Sequence[Raw]:
    found = schema.get(RULES)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else ()


def _inner_schemas(schema: Raw) -> Iterator[tuple[str, Any]]:
    known = schema.get("properties")
    for name, inner in sorted(known.items()) if isinstance(known, Mapping) else ():
        yield f"properties[{name}]", inner
    for field in ("items", "additionalProperties"):
        yield field, schema.get(field)
