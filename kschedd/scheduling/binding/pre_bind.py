"""PreBind's preflight: a check before binding whether a plugin has work to do for a pod.

While volumes are bound or devices reserved, a cluster autoscaler must not remove the node of the pending pod. If a
PreBind plugin has work, or the pod waits at Permit, the scheduler therefore first writes the node to the pod's status
(`nominatedNodeName`). The rule nominated_before_binding enables the write of the nominated node.

Source: Kubernetes v1.36, scheduler/schedule_one.go (bindingCycle) and framework/runtime/framework.go
(RunPreBindPreFlights).
"""

from typing import cast

from kschedd.api.pods import Pod
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import PRE_BIND, PreBindPreFlight
from kschedd.framework.status import Code, Status, error, fault_text
from kschedd.framework.writes import MergePatch, Plan
from kschedd.scheduling.profiles.profile import Framework


def has_pre_bind_work(framework: Framework, state: CycleState, pod: Pod, node_name: str) -> bool | Status:
    """Return whether a PreBind plugin has work; a Status if a preflight fails.

    A plugin without a preflight is assumed to have work.
    """
    work = False
    for plugin in framework.at(PRE_BIND):
        if not hasattr(plugin, "pre_bind_pre_flight"):
            work = True
            continue
        try:
            answer = cast(PreBindPreFlight, plugin).pre_bind_pre_flight(state, pod, node_name)
        except Exception as fault:  # a plugin's exception fails the binding, not the daemon
            answer = error(fault_text(fault))
        if answer is None or answer.code == Code.SUCCESS:
            work = True
        elif answer.code != Code.SKIP:
            return error(f'running PreBindPreFlight "{plugin.name}": {answer.message}').by(plugin.name)
    return work


def nomination(pod: Pod, node_name: str) -> Plan:
    """Return the plan that writes the pod's nominatedNodeName. The plan has no writes if the field is already set."""
    if pod.nominated_node_name == node_name:
        return Plan(())
    patch = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node_name}}
    return Plan((MergePatch("Pod", pod.namespace, pod.name, patch, "status"),))
