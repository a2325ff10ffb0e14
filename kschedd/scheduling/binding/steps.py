"""Steps of a binding cycle: the wait at Permit, then calls of PreBind, Bind and PostBind plugins.

A plugin that binds returns its writes as a Plan. See `cycle` for the steps that are yielded.

Source: Kubernetes v1.34, scheduler/schedule_one.go (bindingCycle, bind), scheduler/framework/runtime/framework.go
(RunPreBindPlugins, RunBindPlugins).
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial

import attrs

from kschedd.api.pods import Pod
from kschedd.extenders.extender import HTTPExtender
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.guarding.guarded import GuardedPlugin
from kschedd.framework.handle import Handle
from kschedd.framework.interface import BIND, POST_BIND, PRE_BIND, Plugin
from kschedd.framework.status import Code, Status, error
from kschedd.framework.writes import Bind, Plan
from kschedd.scheduling.binding.cycle import (
    AssumedPod,
    AwaitPermit,
    Binding,
    BindingEffect,
    BindingProgress,
    CallExtender,
    CallPlugin,
    ExecutePlan,
    ReleaseInFlight,
)
from kschedd.scheduling.binding.pre_bind import has_pre_bind_work, nomination
from kschedd.scheduling.binding.run import AttemptRun
from kschedd.scheduling.binding.waiting import WaitingPods
from kschedd.scheduling.debug.stepper import Stepper
from kschedd.scheduling.profiles import plugin_metrics as points
from kschedd.scheduling.profiles.contained import contained
from kschedd.scheduling.profiles.profile import Framework

# The method's names for the debugger and for metrics.
_POINTS = {"pre_bind": ("preBind", "PreBind"), "bind": ("bind", "Bind"), "post_bind": ("postBind", "PostBind")}
# Extension points at which no plugin has work for a pod that is bound directly.
_BEFORE_BIND = ("PreBind",)
_AROUND_BIND = ("PreBind", "PostBind")


@attrs.define(eq=False)
class BindingSteps:
    """The steps of binding cycles of one cluster."""

    _handle: Handle
    _waiting: WaitingPods
    extenders: tuple[HTTPExtender, ...] = ()

    def run(self, assumed: AssumedPod, progress: BindingProgress, stepper: Stepper | None = None) -> Binding:
        """Run the rest of the binding cycle. Ends with None when the pod is bound, else with the Status of the failure.

        The PreBind plugins that `progress` marks as done are skipped; it counts the others.
        """
        pod, state, node_name = assumed.pod, assumed.result.state, assumed.result.node_name
        profile = assumed.framework
        if self._handle.rules.nominated_before_binding and not progress.nominated:
            work = has_pre_bind_work(profile, state, pod, node_name)
            if isinstance(work, Status):
                return work
            progress.nominated, progress.has_work = True, work
            if work or assumed.waiting is not None:
                yield ExecutePlan(pod.uid, nomination(pod, node_name))  # if it is rejected, the binding continues
        if assumed.waiting is not None:
            yield AwaitPermit(assumed.waiting)
            self._waiting.pods.pop(pod.uid, None)
            if assumed.waiting.rejection is not None:
                return assumed.waiting.rejection
        yield ReleaseInFlight()
        times = profile.times
        began = times.start()
        progress.in_pre_bind = progress.has_work
        for plugin in profile.at(PRE_BIND)[progress.pre_binds :]:
            said = progress.cancelled
            if said is None:
                said = yield from _called(profile, plugin, plugin.pre_bind, state, pod, node_name, stepper)
            if said is not None and said.code not in (Code.SUCCESS, Code.SKIP):
                times.ended("PreBind", began, said.code.label)
                return _refusal("PreBind", plugin, said)
            progress.pre_binds += 1
        if progress.cancelled is not None:
            return progress.cancelled
        progress.in_pre_bind = False
        began = times.ended("PreBind", began)
        bound, refused = yield from self._extender_binds(pod, node_name)
        if refused is not None:
            return refused
        if not bound:
            refused = yield from self._plugin_binds(assumed, stepper)
            if refused is not None:
                return refused
        began = times.start()
        for informed in profile.at(POST_BIND):
            yield from _called(profile, informed, informed.post_bind, state, pod, node_name, stepper)
        times.ended("PostBind", began)
        return None

    def _extender_binds(
        self, pod: Pod, node_name: str
    ) -> Generator[BindingEffect, Plan | Status | None, tuple[bool, Status | None]]:
        """Return whether an extender was called to bind instead of the plugins, and its failure."""
        for extender in self.extenders:
            if not extender.binds or not extender.is_interested(pod):
                continue
            binding = Bind(pod.namespace, pod.name, pod.uid, node_name)
            refused = yield CallExtender(pod.uid, extender.bind(pod, node_name), binding)
            assert not isinstance(refused, Plan), "an extender has no plans"
            if refused is None or not extender.ignorable:
                return True, refused
        return False, None

    def _plugin_binds(self, assumed: AssumedPod, stepper: Stepper | None) -> Binding:
        """Call the Bind plugins until one does not skip the pod."""
        profile, result = assumed.framework, assumed.result
        began = profile.times.start()
        for binder in profile.at(BIND):
            said = yield from _called(
                profile, binder, binder.bind, result.state, assumed.pod, result.node_name, stepper
            )
            if said is not None and said.code == Code.SKIP:
                continue
            if said is not None and said.code != Code.SUCCESS:
                profile.times.ended("Bind", began, said.code.label)
                return _refusal("Bind", binder, said)
            profile.times.ended("Bind", began)
            return None
        return error("no Bind plugin bound the pod")

    def direct_plan(self, assumed: AssumedPod) -> Plan | None:
        """Return the one plan that is the whole binding cycle of the pod; None if it may have further steps."""
        binder = assumed.binder
        if binder is None:
            return None
        result = assumed.result
        said = contained(
            assumed.framework, points.BIND, binder, binder.bind, result.state, assumed.pod, result.node_name
        )
        return said if isinstance(said, Plan) and said.writes and said.ready is None else None

    def direct_plans(self, run: AttemptRun) -> list[Plan | None]:
        """Return the direct plan of each assumed pod of the run, as `direct_plan` does."""
        plans: list[Plan | None] = []
        calls = None
        for assumed in run.outcomes:
            binder = assumed.binder if isinstance(assumed, AssumedPod) else None
            if not isinstance(assumed, AssumedPod) or binder is None:
                plans.append(None)
                continue
            if calls is None:
                calls = assumed.framework.plugin_metrics.calls(binder.name, points.BIND)
            if calls.sampling.plugins:
                plans.append(self.direct_plan(assumed))
                continue
            calls.evaluations += 1
            said = binder.bind(assumed.result.state, assumed.pod, assumed.result.node_name)
            plans.append(said if isinstance(said, Plan) and said.writes and said.ready is None else None)
        return plans

    def all_bound_directly(self, framework: Framework, began_s: Sequence[float]) -> None:
        """Record directly bound pods, none of whose plans was rejected."""
        framework.times.ended_each("Bind", began_s)
        framework.times.skipped(_AROUND_BIND, len(began_s))

    def bound_directly(self, assumed: AssumedPod, began_s: float, failure: Status | None) -> Status | None:
        """Return the result of a binding cycle whose one plan was executed; `began_s` is on the clock of `times`."""
        times = assumed.framework.times
        if failure is None or failure.code == Code.SUCCESS:
            times.ended("Bind", began_s)
            times.skipped(_AROUND_BIND)
            return None
        times.ended("Bind", began_s, failure.code.label)
        times.skipped(_BEFORE_BIND)
        name = assumed.framework.at(BIND)[0].name
        return error(f'running Bind plugin "{name}": {failure.message}').by(name)


def _refusal(point: str, plugin: Plugin, said: Status) -> Status:
    """Return the final Status of a binding cycle for a plugin's failure; a rejection is returned unchanged."""
    return (said if said.rejected else error(f'running {point} plugin "{plugin.name}": {said.message}')).by(plugin.name)


def _called(
    framework: Framework,
    plugin: Plugin,
    method: Callable[[CycleState, Pod, str], Plan | Status | None],
    state: CycleState,
    pod: Pod,
    node_name: str,
    stepper: Stepper | None,
) -> Binding:
    """Call a plugin of a binding cycle and execute its plan; return the result."""
    point, label = _POINTS[method.__name__]
    if stepper is not None:
        at = stepper.place(point, plugin.name, node_name)
        if stepper.debugger.arrives(at):
            yield at
    if plugin.name in framework.in_tree:
        said = contained(framework, label, plugin, method, state, pod, node_name)
    else:
        assert isinstance(plugin, GuardedPlugin), "out-of-tree plugins are guarded"
        limit_s = plugin.guard.limit_of(method.__name__)
        calls = framework.plugin_metrics.calls(plugin.name, label)
        began = calls.start()
        said = yield CallPlugin(
            pod.uid, plugin.name, plugin.guard, method.__name__, pod, limit_s, partial(method, state, pod, node_name)
        )
        calls.answered(began, said)
    if isinstance(said, Plan):
        said = yield ExecutePlan(pod.uid, said)
    assert not isinstance(said, Plan), "a plan is answered with a Status, or None"
    return said
