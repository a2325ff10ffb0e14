"""Comparison of two Kubernetes versions pod by pod, with the rule that causes each difference.

A `Judge` schedules all pods by the rules of a version. To find the rule behind each difference, the pods that differ
are scheduled again. The trials use the older version with some rules of the newer version: first the most frequent
causes one by one, then all other rules together, then halves of them, and so on. Each trial includes only the pods that
changed. The trials find every rule that changes a pod by itself. If no single rule explains a pod, several rules act
together. To find them, the older version gets all rules of the newer version, and rules are removed while the outcome
stays the same. Two rules that cancel out are not found.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs

from kschedd.config.versions.kube_versions import KubernetesVersion
from kschedd.config.versions.rules import RULES
from kschedd.simulation.comparing.comparison import (
    PlacementComparison,
    PodOutcomes,
    ResponsibleRule,
    changed_pod,
    comparison,
    differing_keys,
)

Judge = Callable[[KubernetesVersion, Collection[str] | None], PodOutcomes]
"""A function that decides by the rules of a version about all pods, or at least about those with these keys."""

_OFTEN: Final = ("untolerated_taints_unnamed", "balance_before_and_after")  # the rules that cause most differences
_MOST_SETS: Final = 4  # maximum number of rule sets for a pod that no single rule explains


def compare_versions(judge: Judge, a: KubernetesVersion, b: KubernetesVersion) -> PlacementComparison:
    """Compare the decisions of two versions; both break ties like the first version."""
    b = b.with_ties_of(a)
    blame = _Blame(judge, a, b, judge(a, None), judge(b, None))
    first, second = blame.first, blame.second
    differing = differing_keys(first, second)
    alone = blame.alone(differing) if differing else {}
    blamed = {key: blame.responsible(key, alone) for key in differing}
    jointly = blame.jointly([key for key in differing if not blamed[key]])
    different = [
        attrs.evolve(
            changed_pod(key, first.get(key), second.get(key)),
            rules=blamed[key] or jointly.get(key, []),
            together=not blamed[key],
        )
        for key in differing
    ]
    counts: dict[str, int] = {}
    for each in different:
        for rule in [""] if each.together else each.rules:
            counts[rule] = counts.get(rule, 0) + 1
    rules = [_rule(name, count) for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))]
    return comparison(first, second, different, versions=[a.name, b.name], rules=rules)


@attrs.frozen(eq=False)
class _Blame:
    """The search for the rules that cause the differences."""

    judge: Judge
    a: KubernetesVersion
    b: KubernetesVersion
    first: PodOutcomes
    second: PodOutcomes
    rules: Sequence[str] = attrs.field(init=False)  # the rules in which the versions differ

    @rules.default
    def _different_rules(self) -> Sequence[str]:
        before, after = self.a.default_rules, self.b.default_rules
        return [name for name in RULES if getattr(before, name) != getattr(after, name)]

    def _with(self, names: Iterable[str], keys: Collection[str]) -> PodOutcomes:
        """Return the outcomes of these pods under the older version with these rules of the newer version."""
        version = self.a
        for name in names:
            version = version.with_rule(name, self.b)
        return self.judge(version, keys)

    def _changed(self, names: Iterable[str], keys: Collection[str]) -> PodOutcomes:
        """Return the outcomes that differ from those of the older version."""
        outcomes = self._with(names, keys)
        return {key: outcome for key, outcome in outcomes.items() if outcome != self.first.get(key)}

    def alone(self, keys: Sequence[str]) -> dict[str, PodOutcomes]:
        """Return the rules that change any outcome by themselves, with the changed outcomes."""
        found: dict[str, PodOutcomes] = {}
        for name in _OFTEN:
            if name in self.rules and (changed := self._changed([name], keys)):
                found[name] = changed
        found.update(self._halved(keys, [name for name in self.rules if name not in _OFTEN]))
        return found

    def _halved(self, keys: Sequence[str], rules: Sequence[str]) -> dict[str, PodOutcomes]:
        """Return the same as `alone`, by bisection: try all rules together, then each half on the changed pods."""
        changed = self._changed(rules, keys) if rules and keys else {}
        if not changed:
            return {}
        if len(rules) == 1:
            return {rules[0]: changed}
        middle, left = (len(rules) + 1) // 2, list(changed)
        halves = (self._halved(left, half) for half in (rules[:middle], rules[middle:]))
        return {name: outcomes for half in halves for name, outcomes in half.items()}

    def responsible(self, key: str, alone: Mapping[str, PodOutcomes]) -> list[str]:
        """Return the rules that produce the outcome by themselves, or else the rules that change the outcome.

        Return none if only several rules together have an effect.
        """
        whole = [name for name, outcomes in alone.items() if outcomes.get(key) == self.second.get(key)]
        return whole or [name for name, outcomes in alone.items() if key in outcomes]

    def jointly(self, keys: Sequence[str]) -> dict[str, list[str]]:
        """Return, for each of these pods, a minimal set of rules that produces its outcome."""
        found: dict[str, list[str]] = {}
        left = list(keys)
        for _ in range(_MOST_SETS):
            if not left:
                break
            needed = self._least(left[0])
            outcomes = self._with(needed, left)
            alike = [key for key in left if outcomes.get(key) == self.second.get(key)]
            found.update(dict.fromkeys(alike, needed))
            left = [key for key in left[1:] if key not in found]
        return found

    def _least(self, key: str) -> list[str]:
        """Return a minimal set of rules with which the pod has its outcome of the newer version."""
        kept, step = list(self.rules), max(1, len(self.rules) // 2)
        while True:
            for start in range(0, len(kept), step):
                fewer = kept[:start] + kept[start + step :]
                if self._with(fewer, [key]).get(key) == self.second.get(key):
                    kept = fewer
                    break
            else:
                if step == 1:
                    return kept
                step //= 2


def _rule(name: str, pods: int) -> ResponsibleRule:
    if not name:
        return ResponsibleRule("", "", "several rules together", "", pods)
    rule = RULES[name]
    return ResponsibleRule(name, rule.where, rule.what, rule.releases, pods)
