"""Tests that every in-tree plugin follows the rules of the plugin interface, and that a violation is detected."""

import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from kschedd.config.args import ArgsContext, default_args
from kschedd.config.in_tree import IN_TREE, in_tree_class
from kschedd.config.versions.feature_gates import defaults
from kschedd.config.versions.kube_versions import DEFAULT
from kschedd.framework.interface import PreFilterResult
from kschedd.framework.registry import Registry
from kschedd.framework.status import SKIP, Status, unschedulable
from kschedd.plugins.older.nodelabel import NodeLabelArgs
from kschedd.plugins.older.serviceaffinity import ServiceAffinityArgs
from kschedd.testing.rules import RULES, BrokenRule, Rule, check

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"
SEEDS = range(int(os.environ.get("KSCHEDD_RULE_SEEDS", "12")))


ARGS = {  # arguments of plugins that do nothing by default
    "NodeLabel": NodeLabelArgs(("disk",), ("example.com/none",), ("disk",), ("example.com/none",)),
    "ServiceAffinity": ServiceAffinityArgs(("topology.kubernetes.io/zone",), ("topology.kubernetes.io/zone", "disk")),
}


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", IN_TREE)
def test_an_in_tree_plugin_keeps(name: str, rule: Rule) -> None:
    args = ARGS.get(name) or default_args(name, IN_TREE[name], ArgsContext(defaults(DEFAULT.gates)))
    check(rule, in_tree_class(name), args, seeds=SEEDS)


LABELS = {
    "node_labels": {"example.com/price": ("0.40", "1.20", "x")},
    "pod_labels": {"example.com/most": ("0.50", "2"), "team": ("a", "b"), "kschedd.io/gang": ("g",)},
}


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("file", ["cheap_nodes.py", "one_per_team.py"])
def test_an_example_keeps(file: str, rule: Rule) -> None:
    registry = Registry()
    [name] = registry.add_file(EXAMPLES / file)
    check(rule, registry.plugin_class(name), seeds=SEEDS, **LABELS)


class Plain:
    name: ClassVar = "Plain"

    def filter_rows(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return (table.pod_count[rows] > 1).astype(np.int64)

    def code_status(self, state: Any, pod: Any, code: int) -> Status:
        return unschedulable("full")


class SaysNodeLooksAtPods(Plain):
    depends_on: ClassVar = frozenset({"node"})


class SaysRequestedLooksAtAnnotations(Plain):
    depends_on: ClassVar = frozenset({"node", "requested"})

    def filter_rows(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return np.array([any(p.deletion_timestamp for p in table.pods[row]) for row in rows], dtype=np.int64)


class LooksAtThePodsName(Plain):
    depends_on: ClassVar = frozenset({"node"})

    def filter_rows(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return np.full(len(rows), int(pod.name[1:]) % 2, dtype=np.int64)


class LooksAtOtherRows(Plain):
    depends_on: ClassVar = frozenset({"node"})

    def score_rows(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return np.arange(len(rows), dtype=np.int64)


class NeedsItsState(Plain):
    depends_on: ClassVar = frozenset({"node"})

    def pre_filter(self, state: Any, pod: Any, cluster: Any) -> None:
        state.data[self.name] = True

    def filter_rows(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return np.full(len(rows), int(self.name in state.data), dtype=np.int64)


class RejectsAfterAll(Plain):
    def idle_for(self, pod: Any) -> tuple[str, ...]:
        return () if pod.labels else ("filter",)


class DoesNotSkip(Plain):
    def idle_for(self, pod: Any) -> tuple[str, ...]:
        return ("pre_filter",)

    def pre_filter(self, state: Any, pod: Any, cluster: Any) -> Status | None:
        return SKIP if pod.labels else None


class LeavesSomething(Plain):
    def idle_for(self, pod: Any) -> tuple[str, ...]:
        return ("pre_filter",)

    def pre_filter(self, state: Any, pod: Any, cluster: Any) -> Status | None:
        state.data[self.name] = 1
        return SKIP


class NotConstant(Plain):
    def constant_score(self, pod: Any, table: Any) -> int | None:
        return 50

    def score_rows(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return np.minimum(table.pod_count[rows], 100)


class ScoresTooHigh(Plain):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 101 if node.pods else 0


class TwoMinds(Plain):
    def filter(self, state: Any, pod: Any, node: Any) -> None:
        return None


class Forgetful(Plain):
    def __init__(self) -> None:
        self.requests = 0

    def filter_rows(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        self.requests += 1
        return np.full(len(rows), self.requests % 2, dtype=np.int64)


class PromisesTooMuch(Plain):
    def pre_filter(self, state: Any, pod: Any, cluster: Any) -> PreFilterResult:
        return PreFilterResult(frozenset(cluster.table.row_of), already_filtered=True)


class DoesNotFollow(Plain):
    """A plugin that counts pods only in PreFilter."""

    def pre_filter(self, state: Any, pod: Any, cluster: Any) -> None:
        state.data[self.name] = cluster.table.pod_count.copy()

    def filter_rows(self, state: Any, pod: Any, table: Any, rows: Any) -> Any:
        return state.data[self.name][rows] % 2

    def add_pod(self, state: Any, pod: Any, other: Any, node: Any) -> None:
        """Do nothing."""

    def remove_pod(self, state: Any, pod: Any, other: Any, node: Any) -> None:
        """Do nothing."""


class Half:
    name: ClassVar = "Half"

    def filter_rows(self, state: Any, pod: Any, table: Any, rows: Any) -> None:
        return None


@pytest.mark.parametrize(
    ("plugin", "rule"),
    [
        (SaysNodeLooksAtPods, "depends-on-no-more"),
        (SaysRequestedLooksAtAnnotations, "depends-on-no-more"),
        (SaysRequestedLooksAtAnnotations, "remembered-equals-plain"),
        (LooksAtThePodsName, "depends-on-no-more"),
        (LooksAtOtherRows, "row-by-row"),
        (NeedsItsState, "works-without-state"),
        (RejectsAfterAll, "idle-for"),
        (DoesNotSkip, "idle-for"),
        (LeavesSomething, "idle-for"),
        (NotConstant, "constant-score"),
        (ScoresTooHigh, "scores-within-range"),
        (TwoMinds, "rows-equal-nodes"),
        (Forgetful, "says-the-same-twice"),
        (PromisesTooMuch, "already-filtered"),
        (DoesNotFollow, "follows-pods"),
        (Half, "is-whole"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_broken_rule_is_found_out_with_its_seed(plugin: type[Any], rule: str) -> None:
    [broken] = [known for known in RULES if str(known) == rule]
    with pytest.raises(BrokenRule, match=rf"^{plugin.name}, seed \d+: {rule}: ") as raised:
        check(broken, plugin)
    with pytest.raises(BrokenRule) as again:
        check(broken, plugin, seeds=[raised.value.seed])
    assert str(again.value) == str(raised.value)


def test_a_plugin_that_says_nothing_of_itself_keeps_all_rules() -> None:
    for rule in RULES:
        check(rule, Plain)
