"""All rules of `kschedd lint`, by code, by group and by the kinds of objects that they check."""

from collections.abc import Mapping, Sequence
from typing import Final

from kschedd.lint.catalogue import (
    configurations,
    devices,
    nodes,
    pods,
    spreading,
    texts,
    unknown_fields,
    volumes,
    workloads,
)
from kschedd.lint.rules import LintRule

#: rules by group
GROUPS: Final[Mapping[str, Sequence[LintRule]]] = {
    module.__name__.rpartition(".")[2].replace("_", "-"): module.RULES.rules
    for module in (spreading, pods, nodes, workloads, volumes, devices, configurations, texts, unknown_fields)
}
RULES: Final[Sequence[LintRule]] = tuple(rule for rules in GROUPS.values() for rule in rules)
GROUP_OF: Final[Mapping[str, str]] = {rule.code: group for group, rules in GROUPS.items() for rule in rules}


def _by_kind() -> Mapping[str, Sequence[LintRule]]:
    found: dict[str, list[LintRule]] = {}
    for rule in RULES:
        for kind in rule.kinds:
            found.setdefault(kind, []).append(rule)
    return found


BY_CODE: Final[Mapping[str, LintRule]] = {rule.code: rule for rule in RULES}
BY_KIND: Final[Mapping[str, Sequence[LintRule]]] = _by_kind()
assert len(BY_CODE) == len(RULES), "a code belongs to one rule"
