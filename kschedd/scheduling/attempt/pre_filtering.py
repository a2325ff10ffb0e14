"""PreFilter in an attempt: data that plugins compute about the pod before any node is evaluated.

Source: Kubernetes v1.34, runtime/framework.go (RunPreFilterPlugins).
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.fast_path import idle_for
from kschedd.framework.interface import PRE_FILTER, PreFilterPlugin, PreFilterResult
from kschedd.framework.status import Code, Status, error, fault_text, unresolvable
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.debug.work import Work, drive
from kschedd.scheduling.profiles import plugin_metrics as points
from kschedd.scheduling.profiles.plugin_metrics import CallCounter
from kschedd.scheduling.profiles.profile import Framework
from kschedd.scheduling.verdicts import Verdicts

_MOST_SHAPES = 4096

Concerned = tuple[list[tuple[PreFilterPlugin, CallCounter]], frozenset[str]]
"""The plugins whose PreFilter runs, with their call counters, and the names of those that skip it."""
_REJECTIONS: Final = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
"""The codes that reject a pod. Pending, with which later extension points reject, is an error here as any other code.
"""


@attrs.frozen(eq=False)
class PreFiltered:
    """The combined results of the PreFilter plugins for a pod."""

    narrowed: PreFilterResult | None  # only these nodes can be feasible; None: all nodes
    status: Status | None = None  # the rejection or error
    narrowed_by: set[str] = attrs.field(factory=set)  # plugins


@attrs.define(eq=False)
class PreFiltering:
    """The PreFilter plugins of a profile."""

    _profile: Framework
    _cluster: SchedulerCache
    _plugins: list[tuple[PreFilterPlugin, CallCounter]] = attrs.field(init=False)
    _idle: list[tuple[str, Callable[[Pod], Collection[str]]]] = attrs.field(init=False)
    # True if all plugins with `idle_for` are in-tree: they return the same results for pods that differ only in their
    # pinned node or in amounts.
    _in_tree: bool = attrs.field(init=False)
    _concerned_by: dict[int, Concerned] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        calls = self._profile.plugin_metrics.calls
        self._plugins = [(plugin, calls(plugin.name, points.PRE_FILTER)) for plugin in self._profile.at(PRE_FILTER)]
        self._idle = [(plugin.name, idle_for(plugin)) for plugin, _ in self._plugins if hasattr(plugin, "idle_for")]
        self._in_tree = all(name in self._profile.in_tree for name, _ in self._idle)

    def all_but(self, names: Collection[str]) -> Sequence[tuple[PreFilterPlugin, CallCounter]]:
        """Return all plugins except these, for `run`."""
        return [one for one in self._plugins if one[0].name not in names]

    def at_once(self, state: CycleState, pod: Pod) -> PreFiltered:
        """Run all plugins without a stepper."""
        return drive(self.run(state, pod, None))

    def run(
        self,
        state: CycleState,
        pod: Pod,
        stepper: Stepper | None,
        only: Sequence[tuple[PreFilterPlugin, CallCounter]] | None = None,
    ) -> Work[PreFiltered]:
        """Run the plugins for this pod, or only the plugins in `only`.

        With a `stepper` the attempt may stop before each plugin.
        """
        narrowed: PreFilterResult | None = None
        narrowed_by: set[str] = set()
        rejected: Status | None = None
        called, idle = self._concerned(pod) if only is None else (only, ())
        state.skip_filter.update(idle)
        for plugin, calls in called:
            if stepper is not None:
                yield from stepper.before("preFilter", plugin.name)
            began = calls.start() if calls.sampling.plugins else None
            try:
                answer = plugin.pre_filter(state, pod, self._cluster)
            except Exception as fault:  # a plugin's exception fails the attempt, not the daemon
                answer = error(fault_text(fault))
            if answer is None and began is None:
                calls.evaluations += 1
                continue
            calls.answered(began, answer)
            if answer is None:
                continue
            if isinstance(answer, PreFilterResult):
                narrowed_by.add(plugin.name)
                if answer.already_filtered and plugin.name in self._profile.in_tree:
                    state.already_filtered_by = plugin.name
                narrowed = answer if narrowed is None else PreFilterResult(narrowed.node_names & answer.node_names)
                if stepper is not None:
                    stepper.narrowed_to = narrowed.node_names
                if not narrowed.node_names:
                    return PreFiltered(narrowed, unresolvable(_unsatisfied(narrowed_by)), narrowed_by)
            elif answer.code == Code.SKIP:
                state.skip_filter.add(plugin.name)
            elif answer.code in _REJECTIONS:
                rejected = answer.by(plugin.name)
                if stepper is not None:
                    stepper.rejected_by = rejected
                    yield from stepper.rejected("preFilter", plugin.name)
                if answer.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                    return PreFiltered(None, rejected)
                # The other plugins' PreFilter still runs, because PostFilter's dry runs need their data.
            elif answer.code != Code.SUCCESS:
                text = f'running PreFilter plugin "{plugin.name}": {answer.message}'
                return PreFiltered(None, Status(Code.ERROR, (text,), plugin.name))
        return PreFiltered(narrowed, rejected, narrowed_by)

    def _concerned(self, pod: Pod) -> Concerned:
        """Return the plugins whose PreFilter runs for pods with this signature, and the names of the other plugins.

        Each plugin is returned with its call counter.
        """
        signature = pod.signature
        number = signature.id
        if self._in_tree:
            ignoring_node = signature.signature_ignoring_node
            number = signature.signature_ignoring_amounts if ignoring_node == number else ignoring_node
        known = self._concerned_by.get(number)
        if known is None:
            idle = frozenset([name for name, is_idle in self._idle if "pre_filter" in is_idle(pod)])
            called = [each for each in self._plugins if each[0].name not in idle]
            if len(self._concerned_by) >= _MOST_SHAPES:
                self._concerned_by.clear()
            known = self._concerned_by[number] = called, idle
        return known

    def no_verdicts(self, state: CycleState, pod: Pod, status: Status) -> Verdicts:
        """Return the verdicts for a pod that PreFilter rejected on all nodes."""
        none = np.zeros(0, dtype=np.int64)
        table = self._cluster.table
        return Verdicts(
            table, self._profile.filters, state, pod, none, none.astype(np.int16), none, default_status=status
        )


def _unsatisfied(plugins: set[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {next(iter(plugins))}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously"
