"""What another version of Kubernetes would decide, pod by pod, and which of its rules makes the difference.

A `Judge` decides about all pods by the rules of a version. Which rule a difference comes from is found by trying on the
pods that differ: the older version is given the rules of the newer one, those that matter most often one by one, all
others at once; then half of these, and so on, on the pods that fared otherwise under them. What remains are rules that
change something by themselves. A pod whose outcome no single rule explains differs through several together: which, is
found by giving the older version all rules of the newer one and taking them away again, more and more, as long as the
outcome stays. (Two rules that undo each other for a pod are not found to matter for it.)
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Annotated, Final

import attrs

from kschedd.config.versions.kube_versions import KubernetesVersion
from kschedd.config.versions.rules import RULES


@attrs.frozen
class PodOutcome:
    """The node that a pod gets, or "" and why it gets none."""

    node: str
    why: str = ""


PodOutcomes = Mapping[str, PodOutcome]
Judge = Callable[[KubernetesVersion, Collection[str] | None], PodOutcomes]
"""By the pod's key, in the order of the attempts. With a collection of keys the others may be left out."""


_OFTEN: Final = ("untolerated_taints_unnamed", "balance_before_and_after")  # the rules that most differences come from
_NOT_TRIED: Final = "no attempt was made"
_MOST_SETS: Final = 4  # of rules that only matter together


NodeOrNone = Annotated[str, "the node that it gets first, and `b` the one it gets then; empty for none"]
Pending = Annotated[Sequence[int], "how many pods have no node, of each"]
RuleName = Annotated[str, "rule"]


@attrs.frozen
class ChangedPod:
    """A pod that another version places elsewhere, or reports on in other words."""

    pod: str
    a: NodeOrNone
    b: str
    why: str
    why_a: str
    why_b: str
    change: Annotated[str, "moved, placed, pending or told (other words)"]
    rules: Annotated[Sequence[RuleName], "the responsible ones, found by turning them on one at a time"]
    together: Annotated[bool, "true if rules are some that do it only all at once (none: not found)"]


@attrs.frozen
class ResponsibleRule:
    rule: str
    where: str
    what: Annotated[str, "what kube-scheduler does otherwise in one of the versions"]
    since: str
    pods: int


@attrs.frozen
class ComparedVersions:
    versions: Sequence[Annotated[str, "version"]]
    pods: int
    different: Sequence[ChangedPod]
    pending: Pending
    rules: Sequence[ResponsibleRule]


def compare_versions(judge: Judge, a: KubernetesVersion, b: KubernetesVersion) -> ComparedVersions:
    """Compare the decisions of two versions; both break ties as the first does."""
    b = b.with_ties_of(a)
    comparison = _Comparison(judge, a, b, judge(a, None), judge(b, None))
    first, second = comparison.first, comparison.second
    keys = list(dict.fromkeys((*first, *second)))
    differing = [key for key in keys if first.get(key) != second.get(key)]
    alone = comparison.alone(differing) if differing else {}
    blamed = {key: comparison.responsible(key, alone) for key in differing}
    jointly = comparison.jointly([key for key in differing if not blamed[key]])
    told = [
        _told(key, first.get(key), second.get(key), blamed[key] or jointly.get(key, []), together=not blamed[key])
        for key in differing
    ]
    counts: dict[str, int] = {}
    for each in told:
        for rule in [""] if each.together else each.rules:
            counts[rule] = counts.get(rule, 0) + 1
    return ComparedVersions(
        [a.name, b.name],
        len(keys),
        told,
        [sum(not outcome.node for outcome in outcomes.values()) for outcomes in (first, second)],
        [_rule(name, count) for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))],
    )


@attrs.frozen(eq=False)
class _Comparison:
    """Two versions with what each makes of the pods: who asks which rules make the difference asks the judge again."""

    judge: Judge
    a: KubernetesVersion
    b: KubernetesVersion
    first: PodOutcomes
    second: PodOutcomes
    rules: Sequence[str] = attrs.field(init=False)  # those in which the versions differ

    @rules.default
    def _different_rules(self) -> Sequence[str]:
        before, after = self.a.default_rules, self.b.default_rules
        return [name for name in RULES if getattr(before, name) != getattr(after, name)]

    def _with(self, names: Iterable[str], keys: Collection[str]) -> PodOutcomes:
        """Return the outcomes of these pods by the older version with these rules of the newer one."""
        version = self.a
        for name in names:
            version = version.with_rule(name, self.b)
        return self.judge(version, keys)

    def _changed(self, names: Iterable[str], keys: Collection[str]) -> PodOutcomes:
        """Return the outcomes that differ from those of the older version."""
        outcomes = self._with(names, keys)
        return {key: outcome for key, outcome in outcomes.items() if outcome != self.first.get(key)}

    def alone(self, keys: Sequence[str]) -> dict[str, PodOutcomes]:
        """Return the rules that change something by themselves, with the outcomes of the pods that each changes."""
        found: dict[str, PodOutcomes] = {}
        for name in _OFTEN:
            if name in self.rules and (changed := self._changed([name], keys)):
                found[name] = changed
        found.update(self._halved(keys, [name for name in self.rules if name not in _OFTEN]))
        return found

    def _halved(self, keys: Sequence[str], rules: Sequence[str]) -> dict[str, PodOutcomes]:
        """Return what `alone` returns, by trying all rules at once, then halves for the changed pods, and so on."""
        changed = self._changed(rules, keys) if rules and keys else {}
        if not changed:
            return {}
        if len(rules) == 1:
            return {rules[0]: changed}
        middle, left = (len(rules) + 1) // 2, list(changed)
        halves = (self._halved(left, half) for half in (rules[:middle], rules[middle:]))
        return {name: outcomes for half in halves for name, outcomes in half.items()}

    def responsible(self, key: str, alone: Mapping[str, PodOutcomes]) -> list[str]:
        """Return the rules that alone produce the outcome, else those that change it; none if several act together."""
        whole = [name for name, outcomes in alone.items() if outcomes.get(key) == self.second.get(key)]
        return whole or [name for name, outcomes in alone.items() if key in outcomes]

    def jointly(self, keys: Sequence[str]) -> dict[str, list[str]]:
        """Return, for each of these pods, a minimal set of rules that together produce its outcome."""
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
        """Rules with which the pod fares as in the newer version, and without any one of which it does not."""
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


def _told(key: str, a: PodOutcome | None, b: PodOutcome | None, rules: list[str], *, together: bool) -> ChangedPod:
    on_a, on_b = a or PodOutcome("", _NOT_TRIED), b or PodOutcome("", _NOT_TRIED)
    if on_a.node != on_b.node:
        change = "moved" if on_a.node and on_b.node else "placed" if on_b.node else "pending"
    else:
        change = "told"
    return ChangedPod(key, on_a.node, on_b.node, on_a.why or on_b.why, on_a.why, on_b.why, change, rules, together)


def _rule(name: str, pods: int) -> ResponsibleRule:
    if not name:
        return ResponsibleRule("", "", "several rules together", "", pods)
    rule = RULES[name]
    return ResponsibleRule(name, rule.where, rule.what, rule.releases, pods)
