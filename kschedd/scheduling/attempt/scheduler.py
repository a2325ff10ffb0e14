"""One attempt to schedule one pod, as a pure state machine: cluster and pod are the input, a decision is the output.

The attempt is a generator. It yields in two places. If per-node plugins evaluate nodes one by one, the generator yields
shards of that work and receives the results. The caller can spread the shards over workers, put a time limit on them,
or run them directly (`drive`). If extenders take part, the generator yields calls (`ExtenderCall`) in the same way.
Vector plugins never make the generator yield.

This module does not wait, read a clock or draw random numbers; the caller does: `choose` breaks ties.

Source: Kubernetes v1.34, scheduler/schedule_one.go (schedulePod, schedulingCycle).
"""

from collections.abc import Callable, Sequence
from typing import Final

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.pod_groups import PodGroups
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, Rows
from kschedd.extenders.calls import ExtenderFailure
from kschedd.extenders.extender import HTTPExtender
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import EXTENDER_NAME
from kschedd.framework.faults import PluginError
from kschedd.framework.interface import PreFilterResult
from kschedd.framework.status import Code, Status, error, unresolvable
from kschedd.scheduling.attempt.batch import Batches, Batching, SortedNodes
from kschedd.scheduling.attempt.extended import filtered, scored
from kschedd.scheduling.attempt.node_search import (
    Found,
    NodeSearch,
    StartNode,
    narrowed_status,
    nodes_to_find,
    nodes_wanted,
)
from kschedd.scheduling.attempt.one_node import OneNode
from kschedd.scheduling.attempt.outcome import Attempt, FitError, ScheduleResult
from kschedd.scheduling.attempt.post_filtering import FailedAttemptView, PostFiltering
from kschedd.scheduling.attempt.pre_filtering import PreFiltered, PreFiltering
from kschedd.scheduling.attempt.prepared import Preparations, PreparedAttempt
from kschedd.scheduling.attempt.ranking import Ranking
from kschedd.scheduling.attempt.resizing import skipping
from kschedd.scheduling.attempt.runs import Runs
from kschedd.scheduling.attempt.signing import signer_of
from kschedd.scheduling.attempt.ties import Choose
from kschedd.scheduling.debug.breakpoints import ERROR, PREEMPTING, SCHEDULED, UNSCHEDULABLE
from kschedd.scheduling.debug.stepper import AttemptDropped, Stepper, dropped_status
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.filtering.evaluation import Evaluation, Evaluations
from kschedd.scheduling.filtering.filters import Filters
from kschedd.scheduling.filtering.node_local_plugins import PluginFault
from kschedd.scheduling.nominations.counted import NO_NOMINATED, Nominated, NominatedPods
from kschedd.scheduling.preemption.candidates import Candidates
from kschedd.scheduling.profiles.metrics import SUCCESS
from kschedd.scheduling.profiles.profile import EnabledFilter, Framework
from kschedd.scheduling.verdicts import Diagnosis

NOTHING_FILTERED: Final = PreFiltered(None)
NO_NODES: Final = "no nodes available to schedule pods"


@attrs.define(eq=False)
class Scheduler:
    """The attempts of one profile. `start` is the position at which the next search begins; all profiles share it."""

    profile: Framework
    cluster: SchedulerCache
    choose: Choose
    start: StartNode
    remember: bool = True
    extenders: tuple[HTTPExtender, ...] = ()
    batches: Batches | None = None
    groups: PodGroups | None = None
    evaluations: Evaluations = attrs.field(init=False)
    filters: Filters = attrs.field(init=False)
    search: NodeSearch = attrs.field(init=False)
    one_node: OneNode = attrs.field(init=False)
    ranking: Ranking = attrs.field(init=False)
    candidates: Candidates = attrs.field(init=False)
    pre_filters: PreFiltering = attrs.field(init=False)
    post_filters: PostFiltering = attrs.field(init=False)
    preparations: Preparations | None = attrs.field(init=False)  # None: every plugin is called in every attempt
    runs: Runs | None = attrs.field(init=False)  # None if attempts never run together
    _sign: Callable[[Pod], str | None] | None = attrs.field(init=False)  # None if no pod can have a batch signature

    def __attrs_post_init__(self) -> None:
        self.evaluations = Evaluations(self.profile, self.cluster, self.remember)
        self.filters = Filters(self.profile, self.cluster)
        self.search = NodeSearch(self.filters, self.evaluations)
        self.pre_filters = PreFiltering(self.profile, self.cluster)
        self.one_node = OneNode(self.cluster.table, self.pre_filters, self.evaluations, self.search)
        self.ranking = Ranking(self.profile, self.cluster, self.evaluations)
        groups = self.groups if self.profile.rules.groups_preempt else None
        self.candidates = Candidates(self.filters, groups, self.one_node.why_not)
        self.post_filters = PostFiltering(self.profile, self.cluster, self.candidates, self.extenders)
        self.preparations = None
        if self.remember:
            self.preparations = Preparations(self.profile, self.cluster, self.filters, self.ranking)
        batched = self.batches is not None and self.profile.rules.opportunistic_batching
        self._sign = signer_of(self.profile, self.cluster) if batched else None
        self.runs = None
        if self.preparations is not None and not self.extenders and self._sign is None:
            self.runs = Runs(
                self.cluster,
                self.profile,
                self.choose,
                self.start,
                self.preparations,
                self.evaluations,
                self.search,
                self.ranking,
            )

    def attempt(
        self,
        pod: Pod,
        nominated: Nominated,
        *,
        every_node: bool = False,
        stepper: Stepper | None = None,
        batching: Batching | None = None,
        post_filters: bool = True,
        resizes: bool = False,
        placement: Rows | None = None,
    ) -> Attempt:
        """Find a node, or explain why no node is feasible and what PostFilter did.

        `nominated` maps nodes to their nominated pods. With `every_node` the search visits all nodes, as an explanation
        requires. With a `stepper` the attempt can stop at each plugin. `batching` is the result of `batched`. Without
        `post_filters` no PostFilter plugin is called, and the pod's nomination stays. `resizes` is true for a running
        pod with a deferred resize (`kschedd.scheduling.attempt.resizing`). With `placement`, only the nodes in these
        rows are considered.
        """
        try:
            if stepper is None:
                result = yield from self._attempt(
                    pod,
                    nominated,
                    every_node,
                    None,
                    batching,
                    post_filters=post_filters,
                    resizes=resizes,
                    placement=placement,
                )
                assert result is not None, "an attempt without a limit has a result"
                return result
            return (yield from self._stepped(pod, nominated, stepper, batching))
        except AttemptDropped:
            return FitError(pod, dropped_status(), Diagnosis(self.cluster.table.node_count), CycleState())
        except PluginError as fault:
            return FitError(pod, broken_off(fault), Diagnosis(self.cluster.table.node_count), CycleState())
        except ExtenderFailure as failure:
            return FitError(pod, error(failure.why), Diagnosis(self.cluster.table.node_count), CycleState())

    def attempt_within(self, pod: Pod, most: int) -> Work[ScheduleResult | FitError | None]:
        """Attempt a pod without nominations; return None if this visits more than `most` nodes or finds no node."""
        return self._attempt(pod, {}, False, None, None, within=most)

    def _attempt(
        self,
        pod: Pod,
        nominated: Nominated,
        every_node: bool,
        stepper: Stepper | None,
        batching: Batching | None,
        *,
        within: int | None = None,
        post_filters: bool = True,
        resizes: bool = False,
        placement: Rows | None = None,
    ) -> Work[ScheduleResult | FitError | None]:
        """Attempt a pod. `within` is the largest number of nodes to visit, as in `attempt_within`."""
        table = self.cluster.table
        if table.node_count == 0:
            return FitError(pod, unresolvable(NO_NODES), Diagnosis(0), CycleState())
        prepared = None
        special = every_node or resizes or placement is not None
        if self.preparations is not None and stepper is None and not special:
            prepared = self.preparations.of(pod)
        state = CycleState(resizes=resizes) if prepared is None else prepared.begin()
        if stepper is not None:
            stepper.state = state
        counting = NominatedPods(table, pod, nominated, apart=stepper is not None)
        diagnosis = Diagnosis(table.node_count if placement is None else len(placement))
        times = self.profile.times
        began = times.start()
        pre_filtered = yield from self._pre_filter(state, pod, prepared, stepper)
        narrowed, status = pre_filtered.narrowed, pre_filtered.status
        if prepared is None:
            began = times.ended("PreFilter", began, _label(status))
        if pre_filtered.narrowed_by:
            diagnosis.unschedulable_plugins.update(pre_filtered.narrowed_by)
        if status is not None:
            if within is not None:
                return None
            if not status.rejected:
                return FitError(pod, status, diagnosis, state)
            diagnosis.pre_filter = status
            diagnosis.add_plugin(status)
            if not post_filters:
                return _unfiltered(state, pod, diagnosis)
            view = FailedAttemptView(
                self.post_filters, self.pre_filters.no_verdicts(state, pod, status), counting, None
            )
            return (yield from self.post_filters.run(state, pod, diagnosis, view, stepper))
        apart = stepper is not None or resizes
        known = self.evaluations.apart(state) if apart else self.evaluations.of(pod, state)
        try:
            if batching is not None:
                looked_up = times.start()
                yield from self._hint(batching, state, pod)
                batching.tried(times.start() - looked_up)
            wished = pod.nominated_node_name or ("" if batching is None else batching.hint)
            others = None if prepared is None else prepared.others
            found = yield from self._find(
                state, pod, narrowed, diagnosis, counting, every_node, known, stepper, wished, others, placement
            )
        except PluginFault as fault:
            return FitError(pod, Status(Code.ERROR, (fault.message,), fault.plugin), diagnosis, state)
        if within is not None and (found.error is not None or not len(found.rows) or found.visited > within):
            return None
        diagnosis.verdicts = found.verdicts
        searched = 0.0
        if prepared is None or found.error is not None or not len(found.rows):
            times.ended("Filter", began, _label(found.error))
        else:
            searched = times.start()
        if found.error is not None:
            diagnosis.add_verdicts(found.verdicts.before_error())
            return FitError(pod, found.error, diagnosis, state)
        if not len(found.rows):
            diagnosis.add_verdicts()
            if not post_filters:
                return _unfiltered(state, pod, diagnosis)
            kept = None if known.shared or resizes else known
            view = FailedAttemptView(self.post_filters, found.verdicts, counting, kept)
            return (yield from self.post_filters.run(state, pod, diagnosis, view, stepper))
        result = yield from self._select(state, pod, found, diagnosis, known, stepper, prepared)
        if isinstance(result, ScheduleResult):
            if batching is not None:
                raw = None
                if self.profile.rules.batch_rescores and result.totals is not None:
                    if batching.replaces(result.node_name):
                        raw = yield from self.ranking.raw_scores(state, pod, result.feasible)
                storing = times.start()
                batching.store(result.node_name, result.feasible, result.totals, table.names, raw)
                batching.stored(times.start() - storing)
            if prepared is None and self.preparations is not None and not (known.shared or special):
                if narrowed is not None or len(result.feasible) > 1:
                    self.preparations.learn(pod, state, pre_filtered)
            elif prepared is not None:
                times.repeated(searched - began, None if result.totals is None else times.start() - searched)
        return result

    # -- batching ---------------------------------------------------------------------------------------------

    def batched(self, pod: Pod, cycle: int, now_s: float) -> Batching | None:
        """Return the batching results that an attempt in this cycle may use; None if no pod can have a signature."""
        if self._sign is None:
            return None
        assert self.batches is not None, "otherwise nothing is signed"
        state = self.batches.of(self.profile.name)
        state.hinted = ""
        return Batching(state, cycle, self._sign(pod), now_s, self.batches.counts(self.profile.name))

    def _hint(self, batching: Batching, state: CycleState, pod: Pod) -> Work[None]:
        """Pop the next best node of the previous cycle if the node of that cycle is full for this pod or rescored."""
        rules = self.profile.rules
        full_node = batching.full_node(nominated=bool(pod.nominated_node_name) and rules.nominated_pods_unbatched)
        if not full_node:
            return
        row = self.cluster.table.row_of.get(full_node)
        if row is None:
            batching.unusable("node_missing")
            return
        rows = np.array([row], dtype=np.int64)
        known = self.evaluations.apart(state)
        there = yield from self.search.run(known, state, pod, known.place[rows], 0, 1, NO_NOMINATED)
        why = ""
        if there.error is not None:
            why = "filter_error" if rules.batch_rescores else "node_not_full"
        elif len(there.rows) and rules.batch_rescores:
            began = self.profile.times.start()
            why = yield from self._rescored(batching.nodes_left(self.choose), state, pod, row)
            batching.rescored(self.profile.times.start() - began)
        elif len(there.rows):
            why = "node_not_full"
        if why:
            batching.unusable(why)
        else:
            batching.take_hint(self.choose)

    def _rescored(self, nodes: SortedNodes, state: CycleState, pod: Pod, row: int) -> Work[str]:
        """Score the row again, and add the row to the nodes after normalizing all scores together.

        Return the reason if scoring fails.
        """
        table, state = self.cluster.table, state.clone()
        found = [table.row_of.get(name) for name in nodes.names]
        rows = [known for known in found if known is not None]
        if len(rows) < len(found):
            return "node_missing"
        together = np.array([*rows, row], dtype=np.int64)
        why = "rescore_error"
        try:
            if (yield from self.ranking.pre_scoring(state, pod, together, None)) is not None:
                return "prescore_error"
            fresh = yield from self.ranking.raw_scores(state, pod, together[-1:])
            nodes.add(table.names[row], {plugin: int(values[0]) for plugin, values in fresh.items()})
            why = "normalize_error"
            nodes.totals = self.ranking.totals_of(state, pod, together, nodes.raw).tolist()
        except PluginFault:
            return why
        return ""

    # -- step by step -----------------------------------------------------------------------------------------

    def _stepped(self, pod: Pod, nominated: Nominated, stepper: Stepper, batching: Batching | None) -> Attempt:
        """Attempt a pod and apply the user's changes when the stepper stops at its outcome."""
        made = yield from self._attempt(pod, nominated, False, stepper, batching)
        assert made is not None, "an attempt without a limit has a result"
        result: ScheduleResult | FitError = made
        while True:
            result = self._by_hand(result, stepper)
            known = stepper.changed
            if isinstance(result, ScheduleResult):
                yield from stepper.ended(SCHEDULED, result.node_name, result.feasible)
            else:
                post = result.post_filter
                if post is not None:
                    stepper.victims, stepper.nominated_node = post.victims, post.nominated_node or ""
                failed = ERROR if result.status.code == Code.ERROR else UNSCHEDULABLE
                yield from stepper.ended(PREEMPTING if stepper.victims else failed)
            if stepper.changed == known:
                return result

    def _by_hand(self, result: ScheduleResult | FitError, stepper: Stepper) -> ScheduleResult | FitError:
        """Return the outcome with the forced node, or without the nodes that were vetoed after the search."""
        table, pod, state = self.cluster.table, result.pod, result.state
        row = table.row_of.get(stepper.forced)
        if row is not None:
            if isinstance(result, ScheduleResult):
                return attrs.evolve(result, node_name=stepper.forced)
            verdicts = result.diagnosis.verdicts or self.pre_filters.no_verdicts(state, pod, result.status)
            rows = np.array([row], dtype=np.int64)
            return ScheduleResult(
                pod, stepper.forced, self.profile, state, rows, len(verdicts.rows), None, None, 1, verdicts
            )
        if not isinstance(result, ScheduleResult) or not (stepper.vetoed or stepper.replaced):
            return result
        vetoed = stepper.vetoes(result.feasible)
        if vetoed:
            left = result.feasible[~np.isin(result.feasible, list(vetoed))]
            assert result.verdicts is not None, "of an attempt of its own"
            result = attrs.evolve(result, verdicts=result.verdicts.overruled(vetoed, ()), feasible=left, totals=None)
        if not len(result.feasible):
            diagnosis = Diagnosis(table.node_count, result.verdicts)
            diagnosis.add_verdicts()
            return FitError(pod, Status(Code.UNSCHEDULABLE, (diagnosis.message,)), diagnosis, state)
        if stepper.scoring is None:
            return attrs.evolve(result, node_name=table.names[int(result.feasible[0])])
        return self._chosen(result, stepper.totals()[np.isin(stepper.scoring, result.feasible)])

    def _chosen(self, result: ScheduleResult, totals: Ints) -> ScheduleResult:
        """Return the result with one of the best nodes by these totals, preferably the pod's present node."""
        names = self.cluster.table.names
        score = np.maximum.reduce(totals)
        places = (totals == score).nonzero()[0]
        best = result.feasible[places]
        if self.cluster.table.row_of[result.node_name] in best:
            return attrs.evolve(result, totals=totals, score=int(score), ties=len(best))
        chosen = int(best[0]) if len(best) == 1 else self.choose(best, names, places)
        return attrs.evolve(result, node_name=names[chosen], totals=totals, score=int(score), ties=len(best))

    # -- filter -----------------------------------------------------------------------------------------------

    def _pre_filter(
        self, state: CycleState, pod: Pod, prepared: PreparedAttempt | None, stepper: Stepper | None
    ) -> Work[PreFiltered]:
        """Call the PreFilter plugins that are not covered by a prepared attempt."""
        if state.resizes:
            left_out = skipping(self.profile)
            state.skip_filter.update(left_out)
            return (yield from self.pre_filters.run(state, pod, stepper, self.pre_filters.all_but(left_out)))
        if prepared is None:
            return (yield from self.pre_filters.run(state, pod, stepper))
        if prepared.named:
            name = pod.signature.spec.required_node or ""
            return PreFiltered(PreFilterResult(frozenset((name,)), True), None, {state.already_filtered_by})
        if prepared.pre_filters:
            return (yield from self.pre_filters.run(state, pod, None, prepared.pre_filters))
        return NOTHING_FILTERED

    def _find(
        self,
        state: CycleState,
        pod: Pod,
        narrowed: PreFilterResult | None,
        diagnosis: Diagnosis,
        counting: NominatedPods,
        every_node: bool,
        known: Evaluation,
        stepper: Stepper | None,
        wished: str,
        others: Sequence[EnabledFilter] | None,
        placement: Rows | None,
    ) -> Work[Found]:
        """Search for feasible nodes.

        `wished` is the node that is tried first because of a nomination or a hint; "" if there is none. `others` are
        the filters that must be called in addition to the cached ones; None if they are not computed yet.
        """
        table = self.cluster.table
        nominee: Found | None = None
        if wished and wished in table.row_of and (placement is None or table.row_of[wished] in placement):
            of_nominee = known
            if narrowed is not None and wished not in narrowed.node_names and not known.shared:
                # Pods pinned to different nodes share this evaluation, so the evaluation is valid only on the nodes
                # that PreFilter left.
                of_nominee = self.evaluations.apart(state)
            at = of_nominee.place[[table.row_of[wished]]]
            nominee = yield from self.search.run(of_nominee, state, pod, at, 0, 1, counting.at(wished), stepper)
            if self.extenders and len(nominee.rows):
                nominee = yield from self._nominee_left(pod, nominee)
            if len(nominee.rows) and not every_node:
                return nominee
            # The message names plugins that rejected the nominated node, even if other nodes pass these plugins.
            diagnosis.add_verdicts(nominee.verdicts)
        among, nodes = None, known.size
        if narrowed is not None:
            rows = sorted(table.row_of[name] for name in narrowed.node_names if name in table.row_of)
            if placement is not None:
                rows = np.intersect1d(rows, placement).tolist()
            among, nodes = known.place[rows] if rows else known.place[:0], len(rows)
        elif placement is not None:
            among, nodes = known.place[placement], len(placement)
        wanted = nodes if every_node else self._wanted(nodes)
        start = self.start.index % nodes if nodes else 0
        found = yield from self.search.run(known, state, pod, among, start, wanted, counting.if_any, stepper, others)
        if narrowed is not None:
            # the search on the nominated node and the full search share this set of plugins, so the message also names
            # the plugins that rejected the nominated node
            found.verdicts.default_status = narrowed_status(tuple(sorted(diagnosis.unschedulable_plugins)))
        processed = found.visited
        if nominee is not None and not len(nominee.rows) and nominee.error is None:
            if table.row_of[wished] not in found.verdicts.rows:
                # The verdict on the nominated node stays, even if PreFilter excluded that node.
                found = attrs.evolve(found, verdicts=found.verdicts.joined(nominee.verdicts))
                processed += 1
        if not every_node:
            self.start.index = (self.start.index + processed) % diagnosis.node_count
        if self.extenders and found.error is None:
            left = yield from filtered(self.extenders, pod, table, found)
            if len(left.rows) != len(found.rows):
                diagnosis.unschedulable_plugins.add(EXTENDER_NAME)
            found = left
        return found

    def _nominee_left(self, pod: Pod, nominee: Found) -> Work[Found]:
        """Return the nominated node, or nothing if an extender rejects the node.

        If an extender fails, the nominated node is not tried first.
        """
        try:
            return (yield from filtered(self.extenders, pod, self.cluster.table, nominee))
        except ExtenderFailure:
            return attrs.evolve(nominee, rows=nominee.rows[:0])

    def _wanted(self, nodes: int) -> int:
        """Return the number of feasible nodes at which a search among `nodes` ends."""
        if any(one.filters or one.prioritizes for one in self.extenders):
            return nodes_to_find(nodes, self.profile.percentage)
        return nodes_wanted(self.profile, nodes)

    # -- score ------------------------------------------------------------------------------------------------

    def _select(
        self,
        state: CycleState,
        pod: Pod,
        found: Found,
        diagnosis: Diagnosis,
        known: Evaluation,
        stepper: Stepper | None,
        prepared: PreparedAttempt | None,
    ) -> Work[ScheduleResult | FitError]:
        rows = found.rows
        if len(rows) == 1:
            return self._only_node(state, pod, found)
        state.scores_without_pods = found.without_pods
        if stepper is not None:
            stepper.scoring = rows
        began = self.profile.times.start()
        failure = None
        if prepared is None:
            failure = yield from self.ranking.pre_scoring(state, pod, rows, stepper)
        elif prepared.pre_scores:
            failure = yield from self.ranking.pre_scoring(state, pod, rows, None, prepared.pre_scores)
        if prepared is None:
            began = self.profile.times.ended("PreScore", began, _label(failure))
        if failure is not None:
            diagnosis.add_verdicts()
            return FitError(pod, failure, diagnosis, state)
        try:
            at = known.place[rows] if found.at is None else found.at
            scores = None if prepared is None else (prepared.constant, prepared.scores)
            totals = yield from self.ranking.totals(state, pod, rows, known, at, stepper, scores)
            if prepared is None:
                self.profile.times.ended("Score", began)
        except PluginFault as fault:
            self.profile.times.ended("Score", began, Code.ERROR.label)
            diagnosis.add_verdicts()
            return FitError(pod, Status(Code.ERROR, (fault.message,), fault.plugin), diagnosis, state)
        plain = totals
        if self.extenders:
            totals = yield from scored(self.extenders, pod, self.cluster.table, rows, totals)
        return self._choice(state, pod, found, totals, extended=totals is not plain)

    def _only_node(self, state: CycleState, pod: Pod, found: Found) -> ScheduleResult:
        """Return the only feasible node, which needs no score."""
        rows = found.rows
        name = self.cluster.table.names[int(rows[0])]
        return ScheduleResult(pod, name, self.profile, state, rows, found.visited, None, None, 1, found.verdicts)

    def _choice(
        self, state: CycleState, pod: Pod, found: Found, totals: Ints, *, extended: bool = False
    ) -> ScheduleResult:
        """Return one of the best nodes by these totals; `extended` is true if an extender has scored."""
        score = totals.item(totals.argmax())
        places = (totals == score).nonzero()[0]
        best = found.rows[places]
        names, ties = self.cluster.table.names, len(best)
        chosen = int(best[0]) if ties == 1 else self.choose(best, names, None if extended else places)
        metrics = self.profile.plugin_metrics
        if metrics.sampling.plugins:
            metrics.chosen(totals, score, ties)
        scored, self.ranking.scored = self.ranking.scored, None
        if scored is not None:
            place = int((found.rows == chosen).nonzero()[0][0])
            for plugin, weighted in scored.weighted.items():
                metrics.scored(plugin, int(weighted[place]))
        return ScheduleResult(
            pod, names[chosen], self.profile, state, found.rows, found.visited, totals, score, ties, found.verdicts
        )


def broken_off(fault: PluginError) -> Status:
    """Return the status of an attempt that an out-of-tree plugin aborted."""
    text = f'running plugin "{fault.plugin}", {fault.method}: {fault.why}'
    return Status(Code.ERROR, (text,), fault.plugin)


def _label(status: Status | None) -> str:
    return SUCCESS if status is None else status.code.label


def _unfiltered(state: CycleState, pod: Pod, diagnosis: Diagnosis) -> FitError:
    """Return the result for a pod that fits on no node and for which no PostFilter plugin is called."""
    return FitError(pod, Status(Code.UNSCHEDULABLE, (diagnosis.message,)), diagnosis, state, None, None)
