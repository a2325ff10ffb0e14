"""Calls of a plugin's methods as the scheduler makes them, with rows or with single nodes, for tests of the plugin.

The results of the plugin's methods are checked with the same checks as in a scheduler: BadAnswer describes an
invalid result.
"""

from collections.abc import Hashable
from typing import Any, cast

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import NodeTable, Rows
from kschedd.config.args import ArgsContext, read_plugin_args
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import ConfigReader, ConfigValue
from kschedd.config.versions.feature_gates import defaults
from kschedd.config.versions.kube_versions import DEFAULT
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.guarding import answers
from kschedd.framework.handle import Handle
from kschedd.framework.interface import PreFilterResult, plugin_info
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import Code, Status


def made(plugin_class: type[Any], args: Any, cluster: SchedulerCache) -> Any:
    """Return an instance of the plugin on that cluster.

    `args`: the argument of the plugin's `from_args`; a mapping as in a profile, or None for no arguments. Raises
    ConfigErrors if the plugin's `args_type` rejects the mapping.
    """
    if not hasattr(plugin_class, "from_args"):
        return plugin_class()
    if args is None or isinstance(args, dict):
        reading = ConfigReader("args")
        place = None if args is None else ConfigValue(args, "$", reading)
        args = read_plugin_args(
            plugin_class.name, plugin_info(plugin_class), place, ArgsContext(defaults(DEFAULT.gates))
        )
        if reading.faults:
            raise ConfigErrors(tuple(reading.faults))
    return plugin_class.from_args(args, Handle(cluster))


@attrs.define(eq=False)
class PluginCalls:
    """A plugin on a cluster. Only methods that the plugin has may be called (see `has`)."""

    plugin: Any  # the class under test may have any methods
    cluster: SchedulerCache

    @property
    def rows(self) -> Rows:
        return self.cluster.table.order

    def has(self, *names: str) -> bool:
        return any(hasattr(self.plugin, name) for name in names)

    def pre_filter(self, pod: Pod) -> tuple[CycleState, Status | PreFilterResult | None]:
        state = CycleState()
        if not self.has("pre_filter"):
            return state, None
        answer = self.plugin.pre_filter(state, pod, self.cluster)
        answers.pre_filter("pre_filter", answer, self.plugin.name)
        return state, answer

    def verdicts(self, state: CycleState, pod: Pod, rows: Rows, table: NodeTable | None = None) -> list[Status | None]:
        """Return the filter's verdict on each row; `table`: a copy of the cluster's table."""
        table = self.cluster.table if table is None else table
        if self.has("filter_rows"):
            codes = answers.codes("filter_rows", self.plugin.filter_rows(state, pod, table, rows), len(rows))
            if codes is None:
                return [None] * len(rows)
            return [None if code == 0 else self.plugin.code_status(state, pod, code) for code in codes.tolist()]
        return self.verdicts_by_node(state, pod, rows, table)

    def verdicts_by_node(
        self, state: CycleState, pod: Pod, rows: Rows, table: NodeTable | None = None
    ) -> list[Status | None]:
        table = self.cluster.table if table is None else table
        answer = [self.plugin.filter(state, pod, NodeInfo(table, row)) for row in rows.tolist()]
        for status in answer:
            answers.status("filter", status, self.plugin.name)
        return [None if status is None or status.code is Code.SUCCESS else status for status in answer]

    def filtered(self, pod: Pod) -> list[Status | None] | None:
        """Return the verdicts on all rows as in an attempt, after PreFilter; None if PreFilter rejected the pod."""
        state, answer = self.pre_filter(pod)
        if isinstance(answer, Status) and answer.code is Code.SKIP:
            return [None] * len(self.rows)
        if isinstance(answer, Status) and answer.code is not Code.SUCCESS:
            return None
        return self.verdicts(state, pod, self.rows)

    def pre_score(self, pod: Pod, rows: Rows) -> tuple[CycleState, Status | None]:
        state, _ = self.pre_filter(pod)
        if not self.has("pre_score"):
            return state, None
        answer = self.plugin.pre_score(state, pod, self.cluster, rows)
        answers.status("pre_score", answer, self.plugin.name, Code.SKIP)
        return state, answer

    def raw_scores(self, state: CycleState, pod: Pod, rows: Rows) -> list[int]:
        table = self.cluster.table
        if self.has("score_rows"):
            answer = self.plugin.score_rows(state, pod, table, rows)
            return cast(list[int], answers.column("score_rows", answer, len(rows)).tolist())
        return self.raw_scores_by_node(state, pod, rows)

    def raw_scores_by_node(self, state: CycleState, pod: Pod, rows: Rows) -> list[int]:
        answer = [self.plugin.score(state, pod, NodeInfo(self.cluster.table, row)) for row in rows.tolist()]
        for score in answer:
            answers.score("score", score, self.plugin.name)
        return answer

    def scores(self, pod: Pod, rows: Rows) -> list[int] | None:
        """Return the final scores; None if PreScore returned Skip."""
        state, answer = self.pre_score(pod, rows)
        if answer is not None and answer.code is not Code.SUCCESS:
            return None
        raw = self.raw_scores(state, pod, rows)
        if not self.has("normalize"):
            return raw
        normal = self.plugin.normalize(state, pod, np.array(raw, dtype=np.int64))
        return cast(list[int], answers.column("normalize", normal, len(raw)).tolist())

    def answers(self, pod: Pod) -> dict[str, tuple[str | int | None, ...]]:
        """Return the plugin's results by node, with an empty CycleState, as for cached evaluations."""
        rows, names = self.rows, self.cluster.table.names
        found: dict[str, list[str | int | None]] = {names[row]: [] for row in rows.tolist()}
        if self.has("filter_rows"):
            for row, status in zip(rows.tolist(), self.verdicts(CycleState(), pod, rows), strict=True):
                found[names[row]].append(None if status is None else f"{status.code.label}: {status.message}")
        if self.has("score_rows"):
            for row, score in zip(rows.tolist(), self.raw_scores(CycleState(), pod, rows), strict=True):
                found[names[row]].append(score)
        return {name: tuple(answer) for name, answer in found.items()}

    def cache_key(self) -> Hashable:
        return self.plugin.cache_key(self.cluster) if self.has("cache_key") else None
