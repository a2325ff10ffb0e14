"""Arguments of NodeAffinity: a node affinity that every pod has in addition to its own.

Source: Kubernetes v1.34, validation_pluginargs.go (ValidateNodeAffinityArgs).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.selecting.names import label_value
from kschedd.config.args import ArgsContext, arg
from kschedd.config.parsing.reading import ConfigValue
from kschedd.config.scoring_args import check_name

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_INTEGER = re.compile(r"[-+]?[0-9]+", re.ASCII)


def _node_affinity(place: ConfigValue, context: ArgsContext) -> Any:
    """Read a `nodeAffinity` in the format of a pod spec, and validate it."""
    inner = place.fields(REQUIRED, PREFERRED)
    if inner is None:
        return None
    selector = inner.mapping(REQUIRED)
    terms = selector.fields("nodeSelectorTerms") if selector else None
    for term in terms.items("nodeSelectorTerms") if terms else []:
        _check_term(term)
    for item in inner.items(PREFERRED):
        weighted = item.fields("weight", "preference")
        if weighted is None:
            continue
        weighted.integer("weight", 0)
        preference = weighted.mapping("preference")
        if preference is not None:
            _check_term(preference)
    return place.value


def _check_term(term: ConfigValue) -> None:
    fields = term.fields("matchExpressions", "matchFields")
    if fields is None:
        return
    for place in fields.items("matchExpressions"):
        _check_expression(place)
    for place in fields.items("matchFields"):
        requirement = place.fields("key", "operator", "values")
        if requirement is None:
            continue
        requirement.needed_text("key")
        if requirement.needed_text("operator") is None:
            continue
        requirement.choice("operator", "", ("In", "NotIn"))
        if len(requirement.texts("values")) != 1:
            place.reading.report(requirement.path("values"), None, "a field needs exactly one value")


def _check_expression(place: ConfigValue) -> None:
    requirement = place.fields("key", "operator", "values")
    if requirement is None:
        return
    key = requirement.needed_text("key")
    if key is not None:
        check_name(place.at("key", key), key)
    if requirement.needed_text("operator") is None:
        return
    operator = requirement.choice("operator", "", _OPERATORS)
    values = requirement.texts("values")
    where, shown = requirement.path("values"), [text for _, text in values]
    if operator in ("In", "NotIn") and not values:
        place.reading.report(where, shown, f"the operator {operator} needs values")
    elif operator in ("Exists", "DoesNotExist") and values:
        place.reading.report(where, shown, f"the operator {operator} takes no values")
    elif operator in ("Gt", "Lt") and (len(values) != 1 or not _INTEGER.fullmatch(shown[0])):
        place.reading.report(where, shown, f"the operator {operator} needs one value, a whole number")
    for value_place, value in values:
        for wrong in label_value(value):
            value_place.wrong(wrong)


@attrs.frozen
class NodeAffinityArgs:
    added_affinity: Mapping[str, Any] | None = arg(None, read=_node_affinity)
    """A `nodeAffinity` as in a pod spec, applied to every pod in addition to its own."""
