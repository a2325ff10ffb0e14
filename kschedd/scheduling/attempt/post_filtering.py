"""PostFilter in an attempt: plugins, such as preemption, that are called for a pod that fits on no node.

Source: Kubernetes v1.34, runtime/framework.go (RunPostFilterPlugins).
"""

from collections.abc import Sequence

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Rows
from kschedd.extenders.extender import HTTPExtender
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.faults import PluginError
from kschedd.framework.interface import POST_FILTER, PostFilterPlugin, PostFilterResult
from kschedd.framework.postfilter import DryRun
from kschedd.framework.status import Code, Status, error, fault_text
from kschedd.framework.writes import Write
from kschedd.plugins.defaultpreemption import DefaultPreemption
from kschedd.scheduling.attempt.extended import CandidatesFound, candidates_left, preempting
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.attempt.resizing import SKIPPING
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.debug.work import Work, drive
from kschedd.scheduling.filtering.evaluation import Evaluation
from kschedd.scheduling.filtering.filters import Filters
from kschedd.scheduling.nominations.counted import Nominated, NominatedPods
from kschedd.scheduling.preemption.candidates import Candidates
from kschedd.scheduling.profiles import plugin_metrics as points
from kschedd.scheduling.profiles.profile import Framework
from kschedd.scheduling.verdicts import Diagnosis, Verdicts


@attrs.frozen(eq=False)
class FailedAttemptView:
    """The view of a failed attempt that PostFilter plugins get (`kschedd.framework.postfilter`)."""

    phase: "PostFiltering"
    verdicts: Verdicts
    counting: NominatedPods
    cached: Evaluation | None
    apart: bool = False  # True: do not cache dry runs, because a time limit may abandon the plugin's call
    left: DryRun | None = None  # dry run as reduced by extenders

    def code_on(self, node_name: str) -> Code:
        return self.verdicts.code_on(self.phase.cluster.table.row_of.get(node_name, -1))

    def rows_with(self, code: Code) -> Rows:
        return self.verdicts.rows_with(code)

    def nominated_on(self, node_name: str) -> Sequence[Pod]:
        return tuple(self.counting.nominated.get(node_name, ()))

    def dry_run(self, state: CycleState, pod: Pod, rows: Rows, offset: int, wanted: int) -> DryRun:
        if self.left is not None:
            return self.left
        phase = self.phase
        candidates = phase.candidates
        if self.apart:
            candidates = Candidates(Filters(phase.profile, phase.cluster), candidates.groups, candidates.judged_on)
        tried = candidates.dry_run(state, pod, rows, offset, wanted, self.counting.everywhere, self.cached)
        if phase.extenders and tried.candidates and not self.apart and preempting(phase.extenders, pod):
            raise CandidatesFound(tried)
        return tried


@attrs.define(eq=False)
class PostFiltering:
    """The PostFilter plugins of a profile, and the view of a failed attempt that is passed to them."""

    profile: Framework
    cluster: SchedulerCache
    candidates: Candidates
    extenders: tuple[HTTPExtender, ...]
    _plugins: list[PostFilterPlugin] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._plugins = self.profile.at(POST_FILTER)

    def run(
        self,
        state: CycleState,
        pod: Pod,
        diagnosis: Diagnosis,
        view: FailedAttemptView,
        stepper: Stepper | None = None,
    ) -> Work[FitError]:
        result = None
        if self._plugins:
            began = self.profile.times.start()
            result = yield from self._call(state, pod, view, stepper)
            self.profile.times.ended("PostFilter", began, result.status.code.label)
            diagnosis.post_filter_message = result.status.message
        status = Status(Code.UNSCHEDULABLE, (diagnosis.message,))
        if result is not None:
            nominated_node = result.nominated_node
        else:
            nominated_node = "" if self.profile.rules.nomination_cleared_without_post_filter else None
        return FitError(pod, status, diagnosis, state, result, nominated_node)

    def reconsider(self, failed: FitError, nominated: Nominated) -> FitError:
        """Run PostFilter again for a failed attempt, with the current nominations."""
        diagnosis = failed.diagnosis
        if failed.post_filter is None or diagnosis.verdicts is None:
            return failed
        counting = NominatedPods(self.cluster.table, failed.pod, nominated)
        view = FailedAttemptView(self, diagnosis.verdicts, counting, None)
        return drive(self.run(failed.state, failed.pod, diagnosis, view))

    def _call(
        self, state: CycleState, pod: Pod, view: FailedAttemptView, stepper: Stepper | None = None
    ) -> Work[PostFilterResult]:
        """Run PostFilter plugins until one of them makes the pod schedulable. Join their messages.

        Source: runtime/framework.go, RunPostFilterPlugins.
        """
        messages: list[str] = []
        result: PostFilterResult | None = None
        rejected_by = ""
        writes: tuple[Write, ...] = ()
        for plugin in self._plugins:
            answer: PostFilterResult
            if state.resizes and plugin.name in SKIPPING:
                continue
            if stepper is not None:
                yield from stepper.before("postFilter", plugin.name)
            own = view if plugin.name in self.profile.in_tree else attrs.evolve(view, cached=None, apart=True)
            calls = self.profile.plugin_metrics.calls(plugin.name, points.POST_FILTER)
            began, started = calls.start(), self.profile.times.start()
            try:
                try:
                    answer = plugin.post_filter(state, pod, self.cluster, own)
                # PostFilter cannot be suspended, so it is called again with the extenders' answers
                except CandidatesFound as found:
                    interested = preempting(self.extenders, pod)
                    left = yield from candidates_left(interested, pod, self.cluster.table, found.tried)
                    answer = plugin.post_filter(state, pod, self.cluster, attrs.evolve(own, left=left))
            except PluginError:  # raised by this plugin, or by a plugin that its dry run called
                raise
            except Exception as fault:  # a plugin's exception fails the attempt, not the daemon
                answer = PostFilterResult(error(fault_text(fault)))
            calls.answered(began, answer.status)
            if isinstance(plugin, DefaultPreemption):
                took_s = self.profile.times.start() - started
                self.profile.plugin_metrics.searched_victims("pod", answer.status.code.label, took_s)
            code = answer.status.code
            if writes:
                answer = attrs.evolve(answer, writes=(*writes, *answer.writes))
            writes = answer.writes
            if code == Code.SUCCESS:
                return answer
            if code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return attrs.evolve(answer, status=answer.status.by(plugin.name))
            if not answer.status.rejected:
                return PostFilterResult(Status(Code.ERROR, answer.status.reasons, plugin.name), writes=writes)
            if answer.nominated_node is not None:
                result = answer
            messages.extend(answer.status.reasons)
            rejected_by = rejected_by or plugin.name
        nominated_node = None if result is None else result.nominated_node
        details = None if result is None else result.details
        status = Status(Code.UNSCHEDULABLE, tuple(messages), rejected_by)
        return PostFilterResult(status, nominated_node, writes=writes, details=details)
