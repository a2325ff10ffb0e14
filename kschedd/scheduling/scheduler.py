"""One attempt to schedule one pod, as a pure state machine: a cluster and a pod go in, a decision comes out.

The attempt is a generator. It yields only where per-node plugins look at nodes one by one: then it yields
shards of that work and receives their answers, so the caller can spread them over workers, put a time limit on
them, or (`drive`) run them at once; and where extenders are asked: then it yields calls (`ExtenderCall`), likewise.
Vector plugins never make it yield.

Nothing here waits, reads a clock or has its own randomness: `choose` breaks ties.

Source: Kubernetes v1.34, scheduler/schedule_one.go (schedulePod, schedulingCycle).
"""

from collections.abc import Callable, Iterator, Sequence

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints, Rows
from kschedd.extenders.calls import ExtenderFailure
from kschedd.extenders.extender import HTTPExtender
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import EXTENDER_NAME
from kschedd.framework.faults import PluginError
from kschedd.framework.interface import PreFilterResult
from kschedd.framework.status import Code, Status, error, unresolvable
from kschedd.scheduling.batch import Batches, Batching
from kschedd.scheduling.breakpoints import ERROR, PREEMPTING, SCHEDULED, UNSCHEDULABLE
from kschedd.scheduling.candidates import Candidates
from kschedd.scheduling.evaluation_cache import CachedEvaluation, EvaluationCache
from kschedd.scheduling.extended import filtered, scored
from kschedd.scheduling.filters import Filters
from kschedd.scheduling.lookahead import ChosenWindow
from kschedd.scheduling.metrics import SUCCESS
from kschedd.scheduling.node_local_plugins import PluginFault
from kschedd.scheduling.node_search import Found, NodeSearch, narrowed_status, nodes_to_find
from kschedd.scheduling.nominations import NO_NOMINATED, Nominated, NominatedByRow, NominatedPods
from kschedd.scheduling.outcome import Attempt, FitError, ScheduleResult
from kschedd.scheduling.post_filtering import FailedAttemptView, PostFiltering
from kschedd.scheduling.pre_filtering import PreFiltering
from kschedd.scheduling.profile import Framework
from kschedd.scheduling.ranking import Ranking
from kschedd.scheduling.repetition import Repeated, Repetition
from kschedd.scheduling.signing import signer_of
from kschedd.scheduling.stepped_search import stepped_search
from kschedd.scheduling.stepper import AttemptDropped, Stepper, dropped_status
from kschedd.scheduling.ties import Choose
from kschedd.scheduling.verdicts import Diagnosis
from kschedd.scheduling.work import Work

NO_NODES = "no nodes available to schedule pods"


@attrs.define(eq=False)
class Scheduler:
    """The attempts of one profile. `start` is where the next search begins; profiles of one daemon share it."""

    profile: Framework
    cluster: SchedulerCache
    choose: Choose
    start: "StartNode"
    remember: bool = True
    extenders: tuple[HTTPExtender, ...] = ()
    batches: Batches | None = None
    cache: EvaluationCache | None = attrs.field(init=False)
    filters: Filters = attrs.field(init=False)
    search: NodeSearch = attrs.field(init=False)
    ranking: Ranking = attrs.field(init=False)
    candidates: Candidates = attrs.field(init=False)
    pre_filters: PreFiltering = attrs.field(init=False)
    post_filters: PostFiltering = attrs.field(init=False)
    repetition: Repetition | None = attrs.field(init=False)  # None: every attempt is made as a whole
    _sign: Callable[[Pod], str | None] | None = attrs.field(init=False)  # None: no pod can have a batch signature

    def __attrs_post_init__(self) -> None:
        self.cache = EvaluationCache(self.profile, self.cluster) if self.remember else None
        self.filters = Filters(self.profile, self.cluster)
        self.search = NodeSearch(self.filters, self.cache)
        self.ranking = Ranking(self.profile, self.cluster, self.cache)
        self.candidates = Candidates(self.filters)
        self.pre_filters = PreFiltering(self.profile, self.cluster)
        self.post_filters = PostFiltering(self.profile, self.cluster, self.candidates, self.extenders)
        self.repetition = None
        if self.cache is not None and not self.extenders:
            self.repetition = Repetition(self.profile, self.cluster, self.cache, self.search)
        batched = self.batches is not None and self.profile.rules.opportunistic_batching
        self._sign = signer_of(self.profile) if batched else None

    def attempt(
        self,
        pod: Pod,
        nominated: Nominated,
        *,
        every_node: bool = False,
        stepper: Stepper | None = None,
        batching: Batching | None = None,
    ) -> Attempt:
        """Find a node, or explain why there is none and what PostFilter did.

        `nominated` maps nodes to their nominated pods. `every_node` searches all nodes, as explaining does. With a
        `stepper` it may be stopped at each plugin. `batching`: see `batched`.
        """
        try:
            if stepper is None:
                sampled = self.profile.plugin_metrics.sampling.scores
                whole = every_node or sampled or batching is not None
                repeated = None if nominated or whole else self.repeated(pod)
                if repeated is not None:
                    return repeated
                return (yield from self._attempt(pod, nominated, every_node, None, batching))
            return (yield from self._stepped(pod, nominated, stepper, batching))
        except AttemptDropped:
            return FitError(pod, dropped_status(), Diagnosis(self.cluster.table.node_count), CycleState())
        except PluginError as fault:
            return FitError(pod, broken_off(fault), Diagnosis(self.cluster.table.node_count), CycleState())
        except ExtenderFailure as failure:
            return FitError(pod, error(failure.why), Diagnosis(self.cluster.table.node_count), CycleState())

    def repeated(self, pod: Pod) -> ScheduleResult | None:
        """The outcome for a pod like an earlier one, where no pod is nominated; None where a whole attempt has to be
        made."""
        if self.repetition is None:
            return None
        wanted = self._wanted(len(self.cluster.table.order))
        made = self.repetition.attempt(pod, self.start.index, wanted, self.profile.times)
        return None if made is None else self._of_repeated(pod, made)

    def repeated_each(self, pods: Sequence[Pod]) -> Iterator[ScheduleResult]:
        """As `repeated` of the first of these pods, as long as there is an outcome; the pod is on its node, and nothing
        else has changed, when the next one is asked for."""
        assert self.repetition is not None, "else there is no run"
        wanted = self._wanted(len(self.cluster.table.order))
        windows = self.repetition.attempt_each(pods, self.start.index, wanted, self.profile.times)
        for pod, window in zip(pods, windows, strict=False):
            yield self._of_window(pod, window)

    def _of_repeated(self, pod: Pod, made: Repeated) -> ScheduleResult:
        found, start = made.found, self.start
        start.index = (start.index + found.visited) % self.cluster.table.node_count
        if made.best is None:
            return self._only_node(made.state, pod, found)
        return self._one_of(made.best, made.state, pod, found, made.totals, made.score)

    def _of_window(self, pod: Pod, window: ChosenWindow) -> ScheduleResult:
        names, best, totals, score, start = (
            self.cluster.table.names,
            window.best,
            window.totals,
            window.score,
            self.start,
        )
        ties, visited = len(best), window.visited
        node_name = names[best.item(0) if ties == 1 else self.choose(best, names)]
        if totals is not None and score is not None and self.profile.plugin_metrics.sampling.plugins:
            self.profile.plugin_metrics.chosen(totals, score, ties)
        start.index = (start.index + visited) % self.cluster.table.node_count
        return ScheduleResult(
            pod, node_name, self.profile, window.state, window.feasible, visited, totals, score, ties, None
        )

    def longest_run(self, pod: Pod) -> int:
        """About how many attempts may be made in one run, beginning with that for a pod like this."""
        sampling = self.profile.plugin_metrics.sampling
        if self.repetition is None or self._sign is not None or sampling.due:
            return 0
        return self.repetition.known(pod, self._wanted(len(self.cluster.table.order)))

    def run(self, pods: Sequence[Pod]) -> list[ScheduleResult]:
        """The outcomes for the first of these pods, as far as they are known without anything but a choice; to be made
        one right after the other, with no pod nominated."""
        assert self.repetition is not None, "else there is no run"
        wanted = self._wanted(len(self.cluster.table.order))
        windows = self.repetition.run(pods, self.start.index, wanted, self.profile.times)
        return [self._of_window(pod, window) for pod, window in zip(pods, windows, strict=False)]

    def _attempt(
        self, pod: Pod, nominated: Nominated, every_node: bool, stepper: Stepper | None, batching: Batching | None
    ) -> Attempt:
        table = self.cluster.table
        state = CycleState()
        if stepper is not None:
            stepper.state = state
        diagnosis = Diagnosis(table.node_count)
        if table.node_count == 0:
            return FitError(pod, unresolvable(NO_NODES), diagnosis, state)
        counting = NominatedPods(table, pod, nominated, apart=stepper is not None)
        began = self.profile.times.start()
        pre_filtered = yield from self.pre_filters.run(state, pod, stepper)
        narrowed, status = pre_filtered.narrowed, pre_filtered.status
        began = self.profile.times.ended("PreFilter", began, _label(status))
        diagnosis.unschedulable_plugins.update(pre_filtered.narrowed_by)
        if status is not None:
            if not status.rejected:
                return FitError(pod, status, diagnosis, state)
            diagnosis.pre_filter = status
            diagnosis.add_plugin(status)
            view = FailedAttemptView(
                self.post_filters, self.pre_filters.no_verdicts(state, pod, status), counting, None
            )
            return (yield from self.post_filters.run(state, pod, diagnosis, view, stepper))
        cached = None if self.cache is None or stepper is not None else self.cache.of(pod, state)
        try:
            if batching is not None:
                yield from self._hint(batching, state, pod)
            wished = pod.nominated_node_name or ("" if batching is None else batching.hint)
            found = yield from self._find(
                state, pod, narrowed, diagnosis, counting, every_node, cached, stepper, wished
            )
        except PluginFault as fault:
            return FitError(pod, Status(Code.ERROR, (fault.message,), fault.plugin), diagnosis, state)
        diagnosis.verdicts = found.verdicts
        self.profile.times.ended("Filter", began, _label(found.error))
        if found.error is not None:
            diagnosis.add_verdicts(found.verdicts.before_error())
            return FitError(pod, found.error, diagnosis, state)
        if not len(found.rows):
            diagnosis.add_verdicts()
            view = FailedAttemptView(self.post_filters, found.verdicts, counting, cached)
            return (yield from self.post_filters.run(state, pod, diagnosis, view, stepper))
        result = yield from self._select(state, pod, found, diagnosis, cached, stepper)
        if batching is not None and isinstance(result, ScheduleResult):
            batching.store(result.node_name, result.feasible, result.totals, table.names)
        if self.repetition is not None and cached is not None and not every_node and isinstance(result, ScheduleResult):
            if narrowed is not None or len(result.feasible) > 1:
                self.repetition.learn(pod, state, narrowed)
        return result

    # -- batching ---------------------------------------------------------------------------------------------

    def batched(self, pod: Pod, cycle: int, now_s: float) -> Batching | None:
        """What an attempt in this scheduling cycle knows of the one before; None where no pod can be signed."""
        if self._sign is None:
            return None
        assert self.batches is not None, "otherwise nothing is signed"
        return Batching(self.batches.of(self.profile.name), cycle, self._sign(pod), now_s)

    def _hint(self, batching: Batching, state: CycleState, pod: Pod) -> Work[None]:
        """Take the next best node of the cycle before, if the one it chose is full for this pod."""
        row = self.cluster.table.row_of.get(batching.full_node)
        if row is None:
            return
        rows = np.array([row], dtype=np.int64)
        there = yield from self.search.run(state, pod, rows, 0, 1, NO_NOMINATED, None)
        if there.error is None and not len(there.rows):
            batching.take_hint(self.choose)

    # -- step by step -----------------------------------------------------------------------------------------

    def _stepped(self, pod: Pod, nominated: Nominated, stepper: Stepper, batching: Batching | None) -> Attempt:
        """An attempt, and what somebody makes of its outcome who is stopped at it."""
        result = yield from self._attempt(pod, nominated, False, stepper, batching)
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
        """The outcome with the node that was forced; without nodes that were vetoed after the search."""
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
        """The result with one of the best by these totals; the one it has, if that is one of them."""
        names = self.cluster.table.names
        score = np.maximum.reduce(totals)
        best = result.feasible[totals == score]
        if self.cluster.table.row_of[result.node_name] in best:
            return attrs.evolve(result, totals=totals, score=int(score), ties=len(best))
        chosen = int(best[0]) if len(best) == 1 else self.choose(best, names)
        return attrs.evolve(result, node_name=names[chosen], totals=totals, score=int(score), ties=len(best))

    # -- filter -----------------------------------------------------------------------------------------------

    def _find(
        self,
        state: CycleState,
        pod: Pod,
        narrowed: PreFilterResult | None,
        diagnosis: Diagnosis,
        counting: NominatedPods,
        every_node: bool,
        cached: CachedEvaluation | None,
        stepper: Stepper | None,
        wished: str,
    ) -> Work[Found]:
        """`wished`: the node that is tried first, by a nomination or a hint; "" for none."""
        table = self.cluster.table
        nominee: Found | None = None
        if wished and wished in table.row_of:
            row = np.array([table.row_of[wished]], dtype=np.int64)
            # An entry shared by pods pinned to different nodes is valid only on the nodes PreFilter narrowed to.
            known = cached if narrowed is None or wished in narrowed.node_names else None
            nominee = yield from self._search(state, pod, row, 0, 1, counting.at(wished), known, stepper)
            if self.extenders and len(nominee.rows):
                nominee = yield from self._nominee_left(pod, nominee)
            if len(nominee.rows) and not every_node:
                return nominee
            if not len(nominee.rows) and nominee.error is None:
                # Plugins that rejected the nominated node are named even if other nodes pass them.
                diagnosis.add_verdicts(nominee.verdicts)
        order = table.order
        if narrowed is not None:
            rows = sorted(table.row_of[name] for name in narrowed.node_names if name in table.row_of)
            order = np.array(rows, dtype=np.int64)
        wanted = len(order) if every_node else self._wanted(len(order))
        start = self.start.index % len(order) if len(order) else 0
        found = yield from self._search(state, pod, order, start, wanted, counting.if_any, cached, stepper)
        if narrowed is not None:
            # Both searches share one set of plugins, so those that rejected the nominated node are named here, too.
            found.verdicts.default_status = narrowed_status(tuple(sorted(diagnosis.unschedulable_plugins)))
        processed = found.visited
        if nominee is not None and not len(nominee.rows) and nominee.error is None:
            if table.row_of[wished] not in found.verdicts.rows:
                # The verdict on the nominated node stays, even if PreFilter excluded that node.
                found = attrs.evolve(found, verdicts=found.verdicts.joined(nominee.verdicts))
                processed += 1
        if not every_node:
            self.start.index = (self.start.index + processed) % table.node_count
        if self.extenders and found.error is None:
            left = yield from filtered(self.extenders, pod, table, found)
            if len(left.rows) != len(found.rows):
                diagnosis.unschedulable_plugins.add(EXTENDER_NAME)
            found = left
        return found

    def _search(
        self,
        state: CycleState,
        pod: Pod,
        order: Rows,
        start: int,
        wanted: int,
        nominated: NominatedByRow,
        cached: CachedEvaluation | None,
        stepper: Stepper | None,
    ) -> Work[Found]:
        if stepper is None:
            return self.search.run(state, pod, order, start, wanted, nominated, cached)
        return stepped_search(self.search, state, pod, order, start, wanted, nominated, stepper)

    def _nominee_left(self, pod: Pod, nominee: Found) -> Work[Found]:
        """The nominated node if the extenders leave it; one that fails makes it a node like all others."""
        try:
            return (yield from filtered(self.extenders, pod, self.cluster.table, nominee))
        except ExtenderFailure:
            return attrs.evolve(nominee, rows=nominee.rows[:0])

    def _wanted(self, nodes: int) -> int:
        """Of so many nodes, how many feasible ones end a search."""
        if not self.profile.scores and not any(one.filters or one.prioritizes for one in self.extenders):
            return 1
        return nodes_to_find(nodes, self.profile.percentage)

    # -- score ------------------------------------------------------------------------------------------------

    def _select(
        self,
        state: CycleState,
        pod: Pod,
        found: Found,
        diagnosis: Diagnosis,
        cached: CachedEvaluation | None,
        stepper: Stepper | None,
    ) -> Work[ScheduleResult | FitError]:
        rows = found.rows
        if len(rows) == 1:
            return self._only_node(state, pod, found)
        state.scores_without_pods = found.without_pods
        if stepper is not None:
            stepper.scoring = rows
        began = self.profile.times.start()
        failure = yield from self.ranking.pre_scoring(state, pod, rows, stepper)
        began = self.profile.times.ended("PreScore", began, _label(failure))
        if failure is not None:
            diagnosis.add_verdicts()
            return FitError(pod, failure, diagnosis, state)
        try:
            totals = yield from self.ranking.totals(state, pod, rows, cached, stepper)
            self.profile.times.ended("Score", began)
        except PluginFault as fault:
            self.profile.times.ended("Score", began, Code.ERROR.label)
            diagnosis.add_verdicts()
            return FitError(pod, Status(Code.ERROR, (fault.message,), fault.plugin), diagnosis, state)
        if self.extenders:
            totals = yield from scored(self.extenders, pod, self.cluster.table, rows, totals)
        return self._choice(state, pod, found, totals)

    def _only_node(self, state: CycleState, pod: Pod, found: Found) -> ScheduleResult:
        """The one feasible node, which needs no score."""
        rows = found.rows
        name = self.cluster.table.names[int(rows[0])]
        return ScheduleResult(pod, name, self.profile, state, rows, found.visited, None, None, 1, found.verdicts)

    def _choice(self, state: CycleState, pod: Pod, found: Found, totals: Ints) -> ScheduleResult:
        """One of the best by these totals."""
        score = totals.item(totals.argmax())
        return self._one_of(found.rows[totals == score], state, pod, found, totals, score)

    def _one_of(
        self, best: Rows, state: CycleState, pod: Pod, found: Found, totals: Ints | None, score: int
    ) -> ScheduleResult:
        names, ties = self.cluster.table.names, len(best)
        chosen = int(best[0]) if ties == 1 else self.choose(best, names)
        metrics = self.profile.plugin_metrics
        if totals is not None and metrics.sampling.plugins:
            metrics.chosen(totals, score, ties)
        scored, self.ranking.scored = self.ranking.scored, None
        if scored is not None:
            place = int((found.rows == chosen).nonzero()[0][0])
            for plugin, weighted in scored.weighted.items():
                metrics.scored(plugin, int(weighted[place]))
        return ScheduleResult(
            pod, names[chosen], self.profile, state, found.rows, found.visited, totals, score, ties, found.verdicts
        )


@attrs.define(eq=False)
class StartNode:
    """Where in the visiting order the next search begins."""

    index: int = 0


def broken_off(fault: PluginError) -> Status:
    """The status of an attempt that an out-of-tree plugin aborted."""
    text = f'running plugin "{fault.plugin}", {fault.method}: {fault.why}'
    return Status(Code.ERROR, (text,), fault.plugin)


def _label(status: Status | None) -> str:
    return SUCCESS if status is None else status.code.label
