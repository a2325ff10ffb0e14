"""Validation of a Job's failure and success policies, and of its lists of indexes.

Source: Kubernetes v1.34, pkg/apis/batch/validation/validation.go (validatePodFailurePolicy, validateSuccessPolicy,
validateIndexesFormat).
"""

import re
from typing import Any, Final

from kschedd.api.quantity import quoted
from kschedd.api.schemas.fields import FieldError, duplicate, invalid, required, too_many, unsupported
from kschedd.api.selecting.names import qualified_name
from kschedd.registry.go_structs import go_struct
from kschedd.registry.validation_resources import NOT_NEGATIVE

Raw = dict[str, Any]
Faults = list[FieldError]

INDEXED_ONLY: Final = "requires indexed completion mode"
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES: Final = ("False", "True", "Unknown")
_OPERATORS: Final = ("In", "NotIn")
_MOST_RULES, _MOST_CODES = 20, 255
_LONGEST_INDEXES: Final = 64 * 1024


def without_value(path: str, why: str) -> FieldError:
    """Return an error whose message does not contain the value."""
    return FieldError(path, None, f"Invalid value: {why}")


def _valid(values: tuple[str, ...]) -> str:
    return "valid values: [" + " ".join(f'"{value}"' for value in values) + "]"


def validate_failure_policy(spec: Raw, policy: Raw, path: str, faults: Faults) -> None:
    rules = policy.get("rules") or ()
    pod = (spec.get("template") or {}).get("spec") or {}
    names = {each.get("name") for field in ("containers", "initContainers") for each in pod.get(field) or ()}
    if len(rules) > _MOST_RULES:
        faults.append(too_many(f"{path}.rules", len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        here = f"{path}.rules[{index}]"
        action = rule.get("action") or ""
        if not action:
            faults.append(required(f"{here}.action", _valid(_ACTIONS)))
        elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            faults.append(invalid(f"{here}.action", action, "requires the backoffLimitPerIndex to be set"))
        elif action not in _ACTIONS:
            faults.append(unsupported(f"{here}.action", action, _ACTIONS))
        codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if codes is not None:
            _validate_exit_codes(codes, names, f"{here}.onExitCodes", faults)
        _validate_patterns(patterns, f"{here}.onPodConditions", faults)
        if codes is not None and patterns:
            why = "specifying both OnExitCodes and OnPodConditions is not supported"
            faults.append(without_value(here, why))
        elif codes is None and not patterns:
            faults.append(without_value(here, "specifying one of OnExitCodes and OnPodConditions is required"))


def _validate_patterns(patterns: Any, path: str, faults: Faults) -> None:
    if len(patterns) > _MOST_RULES:
        faults.append(too_many(path, len(patterns), _MOST_RULES))
    for index, pattern in enumerate(patterns):
        here, kind, status = f"{path}[{index}]", pattern.get("type") or "", pattern.get("status") or ""
        faults += [invalid(f"{here}.type", kind, why) for why in qualified_name(kind)]
        if not status:
            faults.append(required(f"{here}.status", _valid(_STATUSES)))
        elif status not in _STATUSES:
            faults.append(unsupported(f"{here}.status", status, _STATUSES))


def _validate_exit_codes(codes: Raw, names: set[Any], path: str, faults: Faults) -> None:
    operator, values = codes.get("operator") or "", codes.get("values") or []
    if not operator:
        faults.append(required(f"{path}.operator", _valid(_OPERATORS)))
    elif operator not in _OPERATORS:
        faults.append(unsupported(f"{path}.operator", operator, _OPERATORS))
    container = codes.get("containerName")
    if container is not None and container not in names:
        why = "must be one of the container or initContainer names in the pod template"
        faults.append(invalid(f"{path}.containerName", container, why))
    here = f"{path}.values"
    if not values:
        faults.append(invalid(here, values, "at least one value is required"))
    elif len(values) > _MOST_CODES:
        faults.append(too_many(here, len(values), _MOST_CODES))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and not value:
            faults.append(invalid(f"{here}[{index}]", value, "must not be 0 for the In operator"))
        if value in seen:
            faults.append(duplicate(f"{here}[{index}]", value))
        seen.add(value)
    if values != sorted(values):
        faults.append(invalid(here, values, "must be ordered"))


def validate_success_policy(spec: Raw, policy: Raw, path: str, faults: Faults) -> None:
    rules = policy.get("rules") or []
    if spec.get("completionMode") != "Indexed":
        faults.append(invalid(path, go_struct("batch.v1.SuccessPolicy", policy), INDEXED_ONLY))
        return
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        faults.append(required(f"{path}.rules", why))
    if len(rules) > _MOST_RULES:
        faults.append(too_many(f"{path}.rules", len(rules), _MOST_RULES))
    completions = spec.get("completions") or 0
    for index, rule in enumerate(rules):
        _validate_success_rule(rule, completions, f"{path}.rules[{index}]", faults)


def _validate_success_rule(rule: Raw, completions: int, path: str, faults: Faults) -> None:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        faults.append(required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    total = 0
    if indexes is not None:
        here = f"{path}.succeededIndexes"
        if len(indexes) > _LONGEST_INDEXES:
            faults.append(FieldError(here, indexes, f"Too long: may not be more than {_LONGEST_INDEXES} bytes"))
        try:
            total = sum(last - first + 1 for first, last in parse_indexes(indexes, completions))
        except IndexesError as wrong:
            faults.append(invalid(here, indexes, f"error parsing succeededIndexes: {wrong}"))
    if count is None:
        return
    here = f"{path}.succeededCount"
    if count < 0:
        faults.append(invalid(here, count, NOT_NEGATIVE))
    if count > completions:
        why = f"must be less than or equal to {completions} (the number of specified completions)"
        faults.append(invalid(here, count, why))
    if indexes is not None and count > total:
        of = "the number of indexes in the specified succeededIndexes field"
        faults.append(invalid(here, count, f"must be less than or equal to {total} ({of})"))


class IndexesError(ValueError):
    """The error for a list of indexes that cannot be parsed, with upstream's message."""


_NUMBER: Final = re.compile("[+-]?[0-9]{1,18}", re.ASCII)


def parse_indexes(text: str, completions: int) -> list[tuple[int, int]]:
    """Return the ascending intervals of a list of indexes such as "0-2,5". Raises IndexesError."""
    found: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        first, last = parse_interval(part, completions)
        if found and found[-1][1] >= first:
            raise IndexesError(f"non-increasing order, previous: {found[-1][1]}, current: {first}")
        found.append((first, last))
    return found


def parse_interval(text: str, completions: int) -> tuple[int, int]:
    """Return one interval. Raises IndexesError."""
    limits = text.split("-")
    if len(limits) > 2:
        rule = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IndexesError(f"the fragment {quoted(text)} {rule}")
    numbers = []
    for limit in limits:
        if not _NUMBER.fullmatch(limit):
            raise IndexesError(f"cannot convert string to integer for index: {quoted(limit)}")
        numbers.append(int(limit))
        if numbers[-1] >= completions:
            raise IndexesError(f"too large index: {quoted(limit)}")
    if len(numbers) > 1 and numbers[0] >= numbers[1]:
        raise IndexesError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]
