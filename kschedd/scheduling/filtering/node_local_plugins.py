"""Plugins whose result for a node depends on that node only, and the handling of their exceptions.

The plugins that declare the data that they read (`depends_on`) run here on columns, in the profile's order. A caller
selects all plugins, only plugins that read more than the Node object, or only plugins that read just the Node object.
The results may be cached row by row (`evaluation`).

Source: Kubernetes v1.34, scheduler/framework/runtime/framework.go (RunEnabledFilters, RunEnabledScores). Shapes: one
value for each of the given rows. Errors: PluginFault, with kube-scheduler's messages.
"""

from collections.abc import Sequence

import attrs
import numpy as np
from numpy import count_nonzero  # several times faster than `all` and `any` of a boolean array

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, NodeTable, Rows
from kschedd.errors import KscheddError
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.faults import PluginError
from kschedd.framework.interface import MAX_NODE_SCORE
from kschedd.framework.status import fault_text
from kschedd.scheduling.filter_pass import FilterPass
from kschedd.scheduling.profiles.plugin_metrics import ERROR, SUCCESS, UNSCHEDULABLE
from kschedd.scheduling.profiles.profile import EnabledFilter, EnabledScore, EvaluationStyle, Framework
from kschedd.scheduling.verdicts import Places

NODE_ONLY = frozenset(("node",))  # `depends_on` of plugins that read only the Node object


@attrs.define(eq=False)
class PluginFault(Exception):
    """A failure of an out-of-tree plugin; the attempt ends with this error."""

    plugin: str
    message: str


def filter_columns(filter_: EnabledFilter, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints | None:
    """Return a vector filter's codes on the rows, or None if all rows pass. Raises PluginFault."""
    calls = filter_.calls
    began = calls.start() if calls.sampling.plugins else None
    try:
        columns = filter_.vector.filter_rows(state, pod, table, rows)
    except Exception as fault:  # an exception of a plugin must end the attempt and not the daemon
        if filter_.in_tree:
            raise
        calls.ended(began, ERROR, len(rows))
        text = f'running "{filter_.name}" filter plugin: {fault_text(fault)}'
        raise PluginFault(filter_.name, text) from fault
    if began is None:
        calls.evaluations += len(rows)
    else:
        none_passes = columns is not None and count_nonzero(columns) == len(rows)
        calls.ended(began, UNSCHEDULABLE if none_passes else SUCCESS, len(rows))
    return columns


def score_columns(score: EnabledScore, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
    """Return a vector plugin's raw scores of the rows. Raises PluginFault."""
    calls = score.calls
    began = calls.start() if calls.sampling.plugins else None
    try:
        columns = score.vector.score_rows(state, pod, table, rows)
    except KscheddError as wrong:  # an invalid pod, for example with a term that cannot be parsed
        why = wrong.why if isinstance(wrong, PluginError) else str(wrong)
        text = f'running Score plugins: plugin "{score.name}" failed with: {why}'
        raise PluginFault(score.name, text) from wrong
    except Exception as fault:  # an exception of a plugin must end the attempt and not the daemon
        if score.in_tree:
            raise
        calls.ended(began, ERROR, len(rows))
        text = f'running Score plugins: plugin "{score.name}" failed with: {fault_text(fault)}'
        raise PluginFault(score.name, text) from fault
    if began is None:
        calls.evaluations += len(rows)
    else:
        calls.ended(began, SUCCESS, len(rows))
    return columns


def out_of_range(values: Ints) -> Ints:
    """Return the indices of final scores outside 0 to 100."""
    return ((values < 0) | (values > MAX_NODE_SCORE)).nonzero()[0]


def invalid_score(name: str, value: int) -> PluginFault:
    return PluginFault(
        name,
        f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid score {value}, '
        f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing",
    )


def check_range(score: EnabledScore, values: Ints) -> None:
    """Check that all final scores are between 0 and 100. Raises PluginFault."""
    wrong = out_of_range(values)
    if len(wrong):
        raise invalid_score(score.name, int(values[wrong[0]]))


def judge(
    filters: Sequence[EnabledFilter],
    state: CycleState,
    pod: Pod,
    table: NodeTable,
    rows: Rows,
    already_filtered_by: str = "",
) -> tuple[Places, Ints]:
    """Return for each row the index of the first filter that rejects it (PASSED if none), and that filter's code.

    `already_filtered_by` is a plugin whose filter is skipped, because PreFilter has already checked the rows.
    """
    done = FilterPass(rows)
    skipped = state.skip_filter
    for filter_ in filters:
        if filter_.name in skipped or filter_.name == already_filtered_by:
            continue
        passing = done.passing
        if not len(passing):
            break
        codes = filter_columns(filter_, state, pod, table, passing)
        if codes is not None:
            done.reject(filter_.place, codes)
    return done.columns()


class NodeLocalPlugins:
    """The node-local filters and scores of a profile, or some of them, in the profile's order."""

    def __init__(self, profile: Framework, of_pods: bool | None) -> None:
        """Select plugins by the data that they read.

        `True` selects plugins that read more than the Node object, `False` selects all other plugins, and `None`
        selects all plugins.
        """

        def belongs(plugin: EnabledFilter | EnabledScore) -> bool:
            return plugin.style is EvaluationStyle.CACHED and (
                of_pods is None or (plugin.depends_on != NODE_ONLY) is of_pods
            )

        self.filters = tuple(filter_ for filter_ in profile.filters if belongs(filter_))
        self.scores = tuple(score for score in profile.scores if belongs(score))

    def judge(
        self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, already_filtered_by: str = ""
    ) -> tuple[Places, Ints]:
        """Return the verdicts of all filters of this object."""
        return judge(self.filters, state, pod, table, rows, already_filtered_by)

    def score(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> tuple[Ints, dict[str, Ints]]:
        """Return the weighted sum of the scores that need no normalizing, and the raw scores of the plugins that do."""
        base = np.zeros(len(rows), dtype=np.int64)
        raw = {}
        for score in self.scores:
            if score.name in state.skip_score:
                continue
            if (
                score.constant is not None
                and not score.normalizes
                and (constant := score.constant(pod, table)) is not None
            ):
                if constant:  # most of them are 0
                    base += constant * score.weight
                continue
            values = score_columns(score, state, pod, table, rows)
            if score.normalizes:
                raw[score.name] = values
            else:
                if not score.in_tree:
                    check_range(score, values)
                base += values if score.weight == 1 else values * score.weight
        return base, raw
