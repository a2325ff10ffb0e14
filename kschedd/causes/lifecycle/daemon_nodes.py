"""Nodes without a pod of a DaemonSet, which excludes nodes by taints or by its node selector."""

from kschedd.api.pods import Pod
from kschedd.causes.case import case_of
from kschedd.causes.demands.tainted import untolerated
from kschedd.causes.lifecycle.creating import template_pod
from kschedd.causes.words import some
from kschedd.causes.workload import ExaminedWorkload
from kschedd.simulation.engine import Engine

_OF_CONDITIONS = "node.kubernetes.io/"  # prefix of taints that the controller lets its pods tolerate


def left_out(engine: Engine, workload: ExaminedWorkload) -> list[str]:
    """Return a sentence for each reason why nodes have no pod of the DaemonSet."""
    made = template_pod(engine.store, workload)
    if not isinstance(made, Pod) or made.scheduler_name not in engine.machine.schedulers:
        return []
    case = case_of(engine, workload, made)
    without = case.cluster.names - {pod.node_name for pod in workload.pods}
    by_reason: dict[str, list[str]] = {}
    for name in without & case.selected:
        taints = [taint.shown for taint in untolerated(case, name) if not taint.key.startswith(_OF_CONDITIONS)]
        if taints:
            by_reason.setdefault(f"its pods do not tolerate {', '.join(taints)}", []).append(name)
    unselected = without - case.selected
    if unselected:
        by_reason["its pods select other nodes"] = [*unselected]
    return [
        f"{some(names)} {'has' if len(names) == 1 else 'have'} no pod of it: {why}" for why, names in by_reason.items()
    ]
