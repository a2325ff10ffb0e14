"""Transitions of a binding cycle: the wait at Permit, then calls of PreBind, Bind and PostBind plugins.

A plugin that binds returns its writes as a plan. The stages and their effects are defined in `cycle`.

Source: Kubernetes v1.34, scheduler/schedule_one.go (bindingCycle, bind), scheduler/framework/runtime/framework.go
(RunPreBindPlugins, RunBindPlugins).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import attrs

from kschedd.extenders.extender import HTTPExtender
from kschedd.framework.guarding.guarded import GuardedPlugin
from kschedd.framework.handle import Handle
from kschedd.framework.interface import BIND, POST_BIND, PRE_BIND, Plugin
from kschedd.framework.status import Code, Status, error
from kschedd.framework.writes import Bind, Plan
from kschedd.scheduling.binding.cycle import (
    AssumedPod,
    AwaitPermit,
    BindingCycle,
    BindingEffect,
    CallExtender,
    CallPlugin,
    Ended,
    ExecutePlan,
    ReleaseInFlight,
    Stage,
    StageStep,
)
from kschedd.scheduling.binding.pre_bind import has_pre_bind_work, nomination
from kschedd.scheduling.binding.run import AttemptRun
from kschedd.scheduling.binding.waiting import WaitingPods
from kschedd.scheduling.profiles import plugin_metrics as points
from kschedd.scheduling.profiles.contained import contained
from kschedd.scheduling.profiles.profile import Framework

# For each stage, the method of its plugins, and the stage's names for the debugger and for metrics.
_POINTS = {
    Stage.PRE_BIND: ("pre_bind", "preBind", "PreBind"),
    Stage.BIND: ("bind", "bind", "Bind"),
    Stage.POST_BIND: ("post_bind", "postBind", "PostBind"),
}
# Extension points at which no plugin may have work for a pod that is bound directly.
_BEFORE_BIND = ("PreBind",)
_AROUND_BIND = ("PreBind", "PostBind")


Answer = Plan | Status | None


@attrs.define(eq=False)
class BindingSteps:
    """The steps of binding cycles of one cluster."""

    _handle: Handle
    _waiting: WaitingPods
    extenders: tuple[HTTPExtender, ...] = ()

    def next(self, cycle: BindingCycle, answer: Answer) -> BindingEffect | Ended:
        """Continue the binding cycle, and return its next effect or its end.

        `answer` is the answer to the previous effect, or None if that effect has no answer.
        """
        while True:
            effect = _TRANSITIONS[cycle.progress.stage](self, cycle, answer)
            if effect is not None:
                return effect
            answer = None

    def _nominate(self, cycle: BindingCycle, answer: Answer) -> BindingEffect | Ended | None:
        progress, assumed = cycle.progress, cycle.assumed
        if progress.step is StageStep.NONE and self._handle.rules.nominated_before_binding:
            pod, node_name = assumed.pod, assumed.result.node_name
            work = has_pre_bind_work(assumed.framework, assumed.result.state, pod, node_name)
            if isinstance(work, Status):
                return Ended(work)
            progress.has_work = work
            if work or assumed.waiting is not None:
                progress.step = StageStep.WAITED
                return ExecutePlan(pod.uid, nomination(pod, node_name))
        progress.enter(Stage.PERMIT)  # the binding continues even if the nomination was rejected
        return None

    def _permit(self, cycle: BindingCycle, answer: Answer) -> BindingEffect | Ended:
        progress, assumed = cycle.progress, cycle.assumed
        if assumed.waiting is not None:
            if progress.step is StageStep.NONE:
                progress.step = StageStep.WAITED
                return AwaitPermit(assumed.waiting)
            self._waiting.pods.pop(assumed.pod.uid, None)
            if assumed.waiting.rejection is not None:
                return Ended(assumed.waiting.rejection)
        progress.enter(Stage.PRE_BIND, assumed.framework.times.start())
        return ReleaseInFlight()

    def _pre_bind(self, cycle: BindingCycle, answer: Answer) -> BindingEffect | Ended | None:
        progress, framework = cycle.progress, cycle.assumed.framework
        plugins = framework.at(PRE_BIND)
        if progress.place == len(plugins):
            if progress.cancelled is not None:
                return Ended(progress.cancelled)
            framework.times.ended("PreBind", progress.began_s)
            progress.enter(Stage.EXTENDER)
            return None
        plugin = plugins[progress.place]
        if progress.step is StageStep.NONE and progress.cancelled is not None:
            returned: BindingEffect | Status | None = progress.cancelled
        else:
            returned = self._called(cycle, plugin, answer)
        if isinstance(returned, BindingEffect):
            return returned
        if returned is not None and returned.code not in (Code.SUCCESS, Code.SKIP):
            framework.times.ended("PreBind", progress.began_s, returned.code.label)
            return Ended(_refusal("PreBind", plugin, returned))
        progress.passed()
        return None

    def _extender_binds(self, cycle: BindingCycle, answer: Answer) -> BindingEffect | Ended | None:
        progress, assumed = cycle.progress, cycle.assumed
        pod, node_name = assumed.pod, assumed.result.node_name
        if progress.place == len(self.extenders):
            progress.enter(Stage.BIND, assumed.framework.times.start())
            return None
        extender = self.extenders[progress.place]
        if progress.step is StageStep.CALLED:
            assert not isinstance(answer, Plan), "an extender has no plans"
            if answer is None:
                progress.enter(Stage.POST_BIND, assumed.framework.times.start())
                return None
            if not extender.ignorable:
                return Ended(answer)
        elif extender.binds and extender.is_interested(pod):
            progress.step = StageStep.CALLED
            binding = Bind(pod.namespace, pod.name, pod.uid, node_name)
            return CallExtender(pod.uid, extender.bind(pod, node_name), binding)
        progress.passed()
        return None

    def _bind(self, cycle: BindingCycle, answer: Answer) -> BindingEffect | Ended | None:
        progress, framework = cycle.progress, cycle.assumed.framework
        plugins = framework.at(BIND)
        if progress.place == len(plugins):
            return Ended(error("no Bind plugin bound the pod"))
        binder = plugins[progress.place]
        returned = self._called(cycle, binder, answer)
        if isinstance(returned, BindingEffect):
            return returned
        if returned is not None and returned.code == Code.SKIP:
            progress.passed()
            return None
        if returned is not None and returned.code != Code.SUCCESS:
            framework.times.ended("Bind", progress.began_s, returned.code.label)
            return Ended(_refusal("Bind", binder, returned))
        framework.times.ended("Bind", progress.began_s)
        progress.enter(Stage.POST_BIND, framework.times.start())
        return None

    def _post_bind(self, cycle: BindingCycle, answer: Answer) -> BindingEffect | Ended | None:
        progress, framework = cycle.progress, cycle.assumed.framework
        plugins = framework.at(POST_BIND)
        if progress.place == len(plugins):
            framework.times.ended("PostBind", progress.began_s)
            return Ended(None)
        returned = self._called(cycle, plugins[progress.place], answer)
        if isinstance(returned, BindingEffect):
            return returned
        progress.passed()
        return None

    def _called(self, cycle: BindingCycle, plugin: Plugin, answer: Answer) -> BindingEffect | Status | None:
        """Call the plugin of the stage and execute its plan; return the next effect or the result."""
        progress, assumed = cycle.progress, cycle.assumed
        framework, pod, node_name = assumed.framework, assumed.pod, assumed.result.node_name
        name, point, label = _POINTS[progress.stage]
        if progress.step is StageStep.WAITED:
            assert not isinstance(answer, Plan), "a plan is answered with a Status, or None"
            return answer
        if progress.step is StageStep.NONE and cycle.stepper is not None:
            progress.step = StageStep.STOPPED
            at = cycle.stepper.place(point, plugin.name, node_name)
            if cycle.stepper.debugger.arrives(at):
                return at
        if progress.step is StageStep.CALLED:
            framework.plugin_metrics.calls(plugin.name, label).answered(progress.called_s, answer)
        else:
            method = getattr(plugin, name)
            if plugin.name not in framework.in_tree:
                assert isinstance(plugin, GuardedPlugin), "out-of-tree plugins are guarded"
                progress.step = StageStep.CALLED
                progress.called_s = framework.plugin_metrics.calls(plugin.name, label).start()
                call = partial(method, assumed.result.state, pod, node_name)
                return CallPlugin(pod.uid, plugin.name, plugin.guard, name, pod, plugin.guard.limit_of(name), call)
            answer = contained(framework, label, plugin, method, assumed.result.state, pod, node_name)
        if isinstance(answer, Plan):
            progress.step = StageStep.WAITED
            return ExecutePlan(pod.uid, answer)
        return answer

    def direct_plan(self, assumed: AssumedPod) -> Plan | None:
        """Return the plan that is the pod's whole binding cycle; None if the cycle may have further steps."""
        binder = assumed.binder
        if binder is None:
            return None
        result = assumed.result
        answer = contained(
            assumed.framework, points.BIND, binder, binder.bind, result.state, assumed.pod, result.node_name
        )
        return answer if isinstance(answer, Plan) else None

    def direct_plans(self, run: AttemptRun) -> list[Plan | None]:
        """Return `direct_plan` of each assumed pod of the run, with one lookup of the plugin for all pods."""
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
            answer = binder.bind(assumed.result.state, assumed.pod, assumed.result.node_name)
            plans.append(answer if isinstance(answer, Plan) else None)
        return plans

    def all_bound_directly(self, framework: Framework, began_s: Sequence[float]) -> None:
        """Record pods as bound whose plans all succeeded."""
        framework.times.ended_each("Bind", began_s)
        framework.times.skipped(_AROUND_BIND, len(began_s))

    def bound_directly(self, assumed: AssumedPod, began_s: float, failure: Status | None) -> Status | None:
        """Return the result of a binding cycle with one executed plan; `began_s` is on the clock of `times`."""
        times = assumed.framework.times
        if failure is None or failure.code == Code.SUCCESS:
            times.ended("Bind", began_s)
            times.skipped(_AROUND_BIND)
            return None
        times.ended("Bind", began_s, failure.code.label)
        times.skipped(_BEFORE_BIND)
        name = assumed.framework.at(BIND)[0].name
        return error(f'running Bind plugin "{name}": {failure.message}').by(name)


_TRANSITIONS: Final[Mapping[Stage, Callable[[BindingSteps, BindingCycle, Answer], BindingEffect | Ended | None]]] = {
    Stage.NOMINATE: BindingSteps._nominate,
    Stage.PERMIT: BindingSteps._permit,
    Stage.PRE_BIND: BindingSteps._pre_bind,
    Stage.EXTENDER: BindingSteps._extender_binds,
    Stage.BIND: BindingSteps._bind,
    Stage.POST_BIND: BindingSteps._post_bind,
}


def _refusal(point: str, plugin: Plugin, answer: Status) -> Status:
    """Return the final Status of a binding cycle for a plugin's failure; a rejection is returned unchanged."""
    return (answer if answer.rejected else error(f'running {point} plugin "{plugin.name}": {answer.message}')).by(
        plugin.name
    )
