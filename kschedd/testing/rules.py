"""The rules of the plugin interface as checks.

A plugin runs in random clusters and must behave as its attributes declare.

    from kschedd.testing.rules import RULES, check

    @pytest.mark.parametrize("rule", RULES, ids=str)
    def test_my_plugin_keeps(rule):
        check(rule, MyPlugin)

The description of each attribute contains its rule (`kschedd.framework.fast_path`, `kschedd.framework.interface`). If
the plugin does not have the attribute of a rule, its check passes. A failure message contains the plugin, the rule and
the seed; the same seed reproduces the failure.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import hints_of
from kschedd.framework.fast_path import IDLE_POINTS
from kschedd.framework.faults import BadAnswer
from kschedd.framework.interface import MAX_NODE_SCORE, PreFilterResult, extension_points, missing_methods
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Code, Status
from kschedd.testing.attempts import TwoSchedulers
from kschedd.testing.calls import PluginCalls, made
from kschedd.testing.clusters import RandomCluster

_SEEDS: Final = 40
_STEPS: Final = 12


@attrs.define(eq=False)
class BrokenRule(AssertionError):
    """The plugin violates a rule."""

    plugin: str
    rule: str
    seed: int
    what: str

    def __str__(self) -> str:
        return f"{self.plugin}, seed {self.seed}: {self.rule}: {self.what}"


@attrs.define(eq=False)
class Trial(PluginCalls):
    """A plugin in a random cluster."""

    world: RandomCluster
    args: Any

    def require(self, condition: bool, what: str) -> None:
        if not condition:
            raise _Broken(what)


class _Broken(Exception):
    """A violation, raised by the code of a rule."""


# -- the rules -------------------------------------------------------------------------------------------------------


def _is_whole(trial: Trial) -> None:
    """Require that the plugin has a name, all methods of its extension points, and events that can be registered."""
    plugin = trial.plugin
    trial.require(isinstance(plugin.name, str) and plugin.name != "", f"name is {plugin.name!r}")
    trial.require(bool(extension_points(plugin)), "it takes part in no extension point")
    trial.require(not missing_methods(plugin), missing_methods(plugin))
    if trial.has("events_to_register"):
        hints_of(plugin.events_to_register())


def _says_the_same_twice(trial: Trial) -> None:
    """Require that the plugin returns the same result again if nothing has changed."""
    pod = trial.world.pod()
    if trial.has("filter", "filter_rows"):
        first, second = trial.filtered(pod), trial.filtered(pod)
        trial.require(first == second, f"of {pod.raw['spec']}: {first}, then {second}")
    if trial.has("score", "score_rows"):
        scored, again = trial.scores(pod, trial.rows), trial.scores(pod, trial.rows)
        trial.require(scored == again, f"of {pod.raw['spec']}: {scored}, then {again}")


def _rejects_with_a_rejection(trial: Trial) -> None:
    """Require that a filter passes or rejects, and that the text of a rejection code comes from a rejection."""
    if not trial.has("filter", "filter_rows"):
        return
    for status in trial.filtered(trial.world.pod()) or ():
        trial.require(status is None or status.rejected, f"a verdict is {status}")


def _scores_within_range(trial: Trial) -> None:
    """Require that final scores are integers from 0 to 100, whichever nodes are feasible."""
    if not trial.has("score", "score_rows"):
        return
    pod = trial.world.pod()
    for rows in (trial.rows, trial.rows[:1], trial.rows[1:]):
        for score in trial.scores(pod, rows) or () if len(rows) else ():
            trial.require(type(score) is int and 0 <= score <= MAX_NODE_SCORE, f"a score is {score!r}")


def _rows_equal_nodes(trial: Trial) -> None:
    """Require that a plugin with both styles returns the same result for rows as for single nodes."""
    pod = trial.world.pod()
    if trial.has("filter") and trial.has("filter_rows"):
        state, answer = trial.pre_filter(pod)
        if not isinstance(answer, Status):
            by_rows, by_node = trial.verdicts(state, pod, trial.rows), trial.verdicts_by_node(state, pod, trial.rows)
            trial.require(by_rows == by_node, f"of rows {by_rows}, of nodes {by_node}")
    if trial.has("score") and trial.has("score_rows"):
        state, said_of = trial.pre_score(pod, trial.rows)
        if said_of is None:
            raw, by_one = trial.raw_scores(state, pod, trial.rows), trial.raw_scores_by_node(state, pod, trial.rows)
            trial.require(raw == by_one, f"of rows {raw}, of nodes {by_one}")


def _row_by_row(trial: Trial) -> None:
    """Require that, with `depends_on`, the result for a row does not depend on the other rows of the call."""
    if not getattr(trial.plugin, "depends_on", None):
        return
    pod, rows = trial.world.pod(), trial.rows
    if trial.has("filter_rows"):
        together = trial.verdicts(CycleState(), pod, rows)
        alone = [trial.verdicts(CycleState(), pod, rows[n : n + 1])[0] for n in range(len(rows))]
        trial.require(together == alone, f"together {together}, alone {alone}")
    if trial.has("score_rows"):
        scored = trial.raw_scores(CycleState(), pod, rows)
        by_one = [trial.raw_scores(CycleState(), pod, rows[n : n + 1])[0] for n in range(len(rows))]
        trial.require(scored == by_one, f"together {scored}, alone {by_one}")


def _works_without_state(trial: Trial) -> None:
    """Require that, with `depends_on`, no result depends on the data that PreFilter and PreScore store in `state`."""
    if not getattr(trial.plugin, "depends_on", None):
        return
    pod, rows = trial.world.pod(), trial.rows
    state, answer = trial.pre_filter(pod)
    rejected = isinstance(answer, Status) and answer.code is not Code.SUCCESS
    if trial.has("filter_rows") and not rejected:
        with_it, without = trial.verdicts(state, pod, rows), trial.verdicts(CycleState(), pod, rows)
        trial.require(with_it == without, f"with state {with_it}, without {without}")
    state, scoring = trial.pre_score(pod, rows)
    if trial.has("score_rows") and not rejected and (scoring is None or scoring.code is Code.SUCCESS):
        scored, bare = trial.raw_scores(state, pod, rows), trial.raw_scores(CycleState(), pod, rows)
        trial.require(scored == bare, f"with state {scored}, without {bare}")


def _depends_on_no_more(trial: Trial) -> None:
    """Require that `depends_on` and `cache_key` contain all inputs of a result for a row except the pod's signature."""
    depends_on = getattr(trial.plugin, "depends_on", None)
    if not depends_on:
        return
    pods = [trial.world.pod() for _ in range(3)]
    key, before = trial.cache_key(), [trial.answers(pod) for pod in pods]
    for _ in range(_STEPS):
        change = trial.world.change()
        changed = {name for name, parts in change.of.items() if parts & depends_on}
        now, after = trial.cache_key(), [trial.answers(trial.world.like(pod)) for pod in pods]
        if now == key:
            for pod, old, new in zip(pods, before, after, strict=True):
                for name in old.keys() & new.keys() - changed:
                    what = f"{old[name]} of {name}, then {new[name]} after {dict(change.of)}, for {pod.raw['spec']}"
                    trial.require(old[name] == new[name], what)
        key, before = now, after


def _idle_for(trial: Trial) -> None:
    """Require that, if `idle_for` is true for a pod, PreFilter returns Skip and the filter passes every node.

    PreFilter must also store no data in `state` for such a pod.
    """
    if not trial.has("idle_for"):
        return
    for _ in range(_STEPS):
        pod = trial.world.pod()
        idle = trial.plugin.idle_for(pod)
        trial.require(set(idle) <= {*IDLE_POINTS}, f"{idle}; allowed are {', '.join(IDLE_POINTS)}")
        if "filter" in idle:
            verdicts = trial.filtered(pod)
            passed = verdicts is not None and all(status is None for status in verdicts)
            trial.require(passed, f"{verdicts} for {pod.raw['spec']}")
        if "pre_filter" in idle:
            state, answer = trial.pre_filter(pod)
            trial.require(isinstance(answer, Status) and answer.code is Code.SKIP, f"{answer} for {pod.raw['spec']}")
            trial.require(not state.data, f"left {state.data} for {pod.raw['spec']}")


def _constant_score(trial: Trial) -> None:
    """Require that a number in `constant_score` is the final score of every node, whichever nodes are feasible."""
    if not trial.has("constant_score"):
        return
    for _ in range(_STEPS):
        pod = trial.world.pod()
        constant = trial.plugin.constant_score(pod, trial.cluster.table)
        for rows in (trial.rows, trial.rows[1:]) if constant is not None else ():
            scores = trial.scores(pod, rows)
            same = scores is None or scores == [constant] * len(rows)
            trial.require(same, f"{constant}, but {scores} for {pod.raw['spec']}")


def _already_filtered(trial: Trial) -> None:
    """Require that the nodes in PreFilter's `already_filtered` pass the plugin's own filter."""
    if not trial.has("pre_filter"):
        return
    for _ in range(_STEPS):
        pod = trial.world.pod()
        state, answer = trial.pre_filter(pod)
        if isinstance(answer, PreFilterResult) and answer.already_filtered:
            table = trial.cluster.table
            rows = np.array([table.row_of[name] for name in answer.node_names if name in table.row_of], dtype=np.int64)
            verdicts = trial.verdicts(state, pod, rows) if len(rows) else []
            trial.require(not any(verdicts), f"{verdicts} of {sorted(answer.node_names)} for {pod.raw['spec']}")


def _follows_pods(trial: Trial) -> None:
    """Require that, after `add_pod` and `remove_pod`, the filter returns the same results as with a new `state`."""
    if not trial.has("add_pod"):
        return
    pod, other = trial.world.pod(), trial.world.pod()
    state, answer = trial.pre_filter(pod)
    if isinstance(answer, Status):
        return
    rows = trial.rows
    number = trial.world.random.randrange(len(rows))
    name = trial.cluster.table.names[int(rows[number])]
    copy = trial.cluster.table.copy_rows(rows.tolist())
    placed, node = other.on_node(name), NodeInfo(copy, number)
    before = trial.verdicts(state.clone(), pod, copy.order, copy)
    copy.add_pod(number, placed)
    trial.plugin.add_pod(state, pod, placed, node)
    followed = trial.verdicts(state, pod, copy.order, copy)
    copy.remove_pod(number, placed)
    trial.plugin.remove_pod(state, pod, placed, node)
    after = trial.verdicts(state, pod, copy.order, copy)
    trial.require(after == before, f"{before}, and once {other.raw['spec']} was on {name} and went: {after}")
    trial.cluster.assume(other, name)
    fresh, answer = trial.pre_filter(pod)
    if not isinstance(answer, Status):
        anew = trial.verdicts(fresh, pod, rows)
        trial.require(followed == anew, f"with {other.raw['spec']} on {name}: {followed}, anew {anew}")


def _remembered_equals_plain(trial: Trial) -> None:
    """Require that attempts with the evaluation cache have the same results as attempts without it."""
    both = TwoSchedulers(trial.cluster, type(trial.plugin), trial.args)
    pods = [trial.world.pod() for _ in range(2)]
    for _ in range(_STEPS):
        for pod in pods:
            remembered, plain = both.outcomes(trial.world.like(pod))
            trial.require(remembered == plain, f"{remembered}, plain {plain} for {pod.raw['spec']}")
        trial.world.change()


@attrs.frozen(eq=False)
class Rule:
    check: Callable[[Trial], None]

    @property
    def text(self) -> str:
        """The rule in one sentence, as failure messages contain it."""
        return self.check.__doc__ or ""

    def __str__(self) -> str:
        return self.check.__name__.strip("_").replace("_", "-")


RULES: Final = tuple(
    Rule(check)
    for check in (
        *(_is_whole, _says_the_same_twice, _rejects_with_a_rejection, _scores_within_range, _rows_equal_nodes),
        *(_row_by_row, _works_without_state, _depends_on_no_more, _idle_for),
        *(_constant_score, _already_filtered, _follows_pods, _remembered_equals_plain),
    )
)


def check(
    rule: Rule,
    plugin_class: type[Any],
    args: Any = None,
    *,
    seeds: Sequence[int] = range(_SEEDS),
    node_labels: Mapping[str, Sequence[str]] | None = None,
    pod_labels: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Check a plugin against a rule. Raises BrokenRule.

    `args` are the arguments of `from_args`; None: the defaults of a profile. Labels that the plugin reads must be
    passed with some values; otherwise no node and no pod has these labels.
    """
    for seed in seeds:
        world = RandomCluster(seed, node_labels, pod_labels)
        try:
            rule.check(Trial(made(plugin_class, args, world.cluster), world.cluster, world, args))
        except _Broken as broken:
            raise BrokenRule(plugin_class.name, str(rule), seed, f"{rule.text} But: {broken}") from None
        except BadAnswer as wrong:
            raise BrokenRule(plugin_class.name, str(rule), seed, str(wrong)) from None
