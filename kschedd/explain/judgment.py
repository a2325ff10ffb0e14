"""Results of filters, extenders and preemption for one pod on a fork. Each part is computed on first access."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.forked_counts import ForkedCounts
from kschedd.cache.table import Rows
from kschedd.explain import preempting
from kschedd.explain.answers import PreemptionAnswer
from kschedd.explain.extenders import CalledExtenders
from kschedd.explain.fork import Fork, scheduler_on, without_node
from kschedd.explain.judging import NodeVerdict, Tick, any_passes, judge, judge_alike
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import PRE_ENQUEUE
from kschedd.framework.postfilter import Preemption
from kschedd.framework.status import Code, Status, error, fault_text, unresolvable
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.pre_filtering import PreFiltered
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.nominations.counted import NominatedPods

Reasons = Mapping[str, tuple[str, ...]]
"""By plugin."""

_UNTIMED: Final[Tick] = lambda point, plugin: None  # noqa: E731


class Judgment:
    """See the module. The fork cannot be used for another judgment, because `scheduler` uses it."""

    def __init__(self, fork: Fork, scheduler: Scheduler | None = None, tick: Tick = _UNTIMED) -> None:
        self._fork = fork
        self._scheduler = scheduler or scheduler_on(fork)
        self._profile = self._scheduler.profile
        self._table = self._scheduler.cluster.table
        self._pod = fork.judged
        self._nominated = fork.nominated
        self._tick = tick

    def of_changed(self, pod: Pod) -> "Judgment":
        """Return the judgment of the same pod with another spec, on the same fork."""
        return Judgment(attrs.evolve(self._fork, judged=without_node(pod)), self._scheduler)

    @property
    def counts(self) -> ForkedCounts:
        """The pod counts of the fork; filters may already have computed some of them."""
        counts = self._scheduler.cluster.counts
        assert isinstance(counts, ForkedCounts), "a judgment works on a fork"
        return counts

    # -- the attempt ----------------------------------------------------------------------------------------------

    @cached_property
    def extenders(self) -> CalledExtenders:
        return CalledExtenders(self._scheduler.extenders, self._pod)

    @cached_property
    def outcome(self) -> ScheduleResult | FitError:
        """The result of an attempt that evaluates every node."""
        return self.extenders.attempt(self._scheduler.attempt(self._pod, self._nominated, every_node=True))

    @property
    def message(self) -> str:
        """The scheduler's message of the failed attempt; "" if it succeeds."""
        return self.outcome.message if isinstance(self.outcome, FitError) else ""

    @property
    def preemption(self) -> PreemptionAnswer | None:
        outcome = self.outcome
        if not isinstance(outcome, FitError) or outcome.post_filter is None:
            return None
        post = outcome.post_filter
        if post.status.code != Code.SUCCESS or not post.nominated_node:
            return None
        details = post.details if isinstance(post.details, Preemption) else None
        return preempting.preemption_answer(post.nominated_node, [victim.key for victim in post.victims], details)

    # -- the filters ----------------------------------------------------------------------------------------------

    @cached_property
    def gated(self) -> Status | None:
        """The status of the PreEnqueue plugin that gates the pod; None if no plugin does."""
        for plugin in self._profile.at(PRE_ENQUEUE):
            try:
                status: Status | None = plugin.pre_enqueue(self._pod)
            except Exception as fault:  # a plugin's exception ends here, not in the daemon
                status = error(fault_text(fault))
            if status is not None and status.code != Code.SUCCESS:
                return status.by(plugin.name)
        return None

    @property
    def pod_group(self) -> str:
        """`namespace/name` of the pod's group; "" without one, or if the version does not schedule groups."""
        return self._pod.pod_group if self._profile.rules.pod_groups else ""

    @cached_property
    def state(self) -> CycleState:
        """The cycle state that the filters share.

        With extenders the attempt runs first, because their answers may change this state.
        """
        if self._scheduler.extenders:
            assert self.outcome is not None
        return CycleState(scores_without_pods=self.extenders.lose_pods)

    @cached_property
    def pre_filtered(self) -> PreFiltered:
        found = self._scheduler.pre_filters.at_once(self.state, self._pod)
        self._tick("PreFilter", "")
        return found

    @cached_property
    def verdicts(self) -> list[NodeVerdict]:
        """The verdict of every plugin on every node, in the order in which the next search would visit them."""
        verdicts = self._verdicts()
        rejected = self.extenders.rejections(self._table)
        if rejected:
            for verdict in verdicts:
                if not verdict.rejections:
                    verdict.rejections = tuple(rejected.get(verdict.row, ()))
        return verdicts

    @cached_property
    def alike(self) -> Sequence[tuple[Reasons, Sequence[str]]]:
        """The nodes, grouped by equal rejections.

        The first plugin of each group is the one in the scheduler's message.
        """
        names = self._table.names
        if self._simple and "verdicts" not in vars(self):
            found = judge_alike(self._scheduler.filters, self.state, self._pod, self._visiting(), self._tick)
            return [(_by_plugin(statuses), [names[row] for row in rows.tolist()]) for statuses, rows in found]
        groups: dict[tuple[Status, ...], list[str]] = {}
        last: tuple[Status, ...] | None = None
        group: list[str] = []
        for verdict in self.verdicts:
            if verdict.rejections is not last or last is None:  # mostly shared
                last = verdict.rejections
                group = groups.setdefault(last, [])
            group.append(names[verdict.row])
        return [(_by_plugin(statuses), nodes) for statuses, nodes in groups.items()]

    @property
    def _simple(self) -> bool:
        """Return whether only the filters decide: there is no extender, nominated pod or PreFilter result."""
        pre_filtered = self.pre_filtered
        return not (
            self._scheduler.extenders
            or self._nominated
            or pre_filtered.status is not None
            or pre_filtered.narrowed is not None
        )

    @cached_property
    def fits(self) -> bool:
        """Return whether the pod would get a node."""
        if self._scheduler.extenders:  # the extenders may reject the last feasible node
            return not self.message
        if "alike" in vars(self):
            return any(not reasons for reasons, _ in self.alike)
        if self._simple and "verdicts" not in vars(self):
            return any_passes(self._scheduler.filters, self.state, self._pod, self._visiting())
        return any(not verdict.rejections for verdict in self.verdicts)

    def _verdicts(self) -> list[NodeVerdict]:
        pre_filtered, order = self.pre_filtered, self._visiting()
        narrowed, narrowed_by = pre_filtered.narrowed, pre_filtered.narrowed_by
        if pre_filtered.status is not None:
            everywhere = (pre_filtered.status.by(_joined(narrowed_by)),)
            return [NodeVerdict(row, everywhere) for row in order.tolist()]
        requested = order
        if narrowed is not None:
            # The nominated node is always evaluated.
            wished = {*narrowed.node_names, self._pod.nominated_node_name}
            requested = order[np.array([self._table.names[row] in wished for row in order.tolist()], dtype=bool)]
        counted = NominatedPods(self._table, self._pod, self._nominated).everywhere
        verdicts = judge(self._scheduler.filters, self.state, self._pod, requested, counted, self._tick)
        if narrowed is not None:
            by_row = {verdict.row: verdict for verdict in verdicts}
            nominee = by_row.get(self._table.row_of.get(self._pod.nominated_node_name, -1))
            blamed = narrowed_by | {nominee.rejections[0].plugin if nominee and nominee.rejections else ""} - {""}
            out = unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(blamed))}]")
            others = (out.by(_joined(narrowed_by)),)
            verdicts = [by_row.get(row) or NodeVerdict(row, others) for row in order.tolist()]
        return verdicts

    def _visiting(self) -> Rows:
        """All rows of the node table, in the order in which the next search would visit them."""
        order = self._table.order
        return np.roll(order, -(self._scheduler.start.index % len(order))) if len(order) else order


def _by_plugin(statuses: Sequence[Status]) -> Reasons:
    return {each.plugin: tuple(each.reasons) for each in statuses}


def _joined(names: set[str]) -> str:
    return " ".join(sorted(names))
