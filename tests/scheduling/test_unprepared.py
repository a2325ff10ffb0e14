"""Tests of profiles that enable a plugin without the extension point at which it prepares: pods fail as upstream."""

from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.config.loading.load import config_from_raw
from kschedd.framework.status import Code
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine


def attempted(pod: Pod, point: str, *disabled: str, nodes: int = 2, **spec: Any) -> ScheduleResult | FitError:
    """Return the outcome of an attempt with these plugins disabled at the given extension point."""
    without = {"plugins": {point: {"disabled": [{"name": name} for name in disabled]}}}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    machine = SchedulingMachine(config_from_raw({**kind, "profiles": [without]}), seed=1)
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}
    raws = [{"kind": "Node", "metadata": {"name": f"n{n}"}, "spec": spec, "status": status} for n in range(nodes)]
    machine.cluster.load(map(Node.from_raw, raws))
    for _ in range(2):  # the last one uses cached results of the others
        drive(machine.begin(pod, {}))
    result = drive(machine.begin(pod, {}))
    assert isinstance(result, ScheduleResult | FitError)
    return result


def pod(**spec: Any) -> Pod:
    wanted = {"containers": [{"name": "c", "image": "i"}], **spec}
    return Pod.from_raw({"kind": "Pod", "metadata": {"name": "p", "namespace": "d", "uid": "p"}, "spec": wanted})


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        ("NodePorts", 'reading "PreFilterNodePorts" from cycleState: not found'),
        ("NodeResourcesFit", 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'),
        ("VolumeBinding", "not found"),
        ("PodTopologySpread", 'reading "PreFilterPodTopologySpread" from cycleState: not found'),
        ("InterPodAffinity", 'error reading "PreFilterInterPodAffinity" from cycleState: not found'),
        ("DynamicResources", "not found"),
    ],
)
def test_a_filter_that_was_not_prepared_is_an_error(plugin: str, why: str) -> None:
    result = attempted(pod(), "preFilter", plugin)
    assert isinstance(result, FitError)
    assert (result.status.code, result.message) == (Code.ERROR, f'running "{plugin}" filter plugin: {why}')


def test_nodes_that_an_earlier_filter_rejects_do_not_get_that_far() -> None:
    result = attempted(pod(), "preFilter", "InterPodAffinity", unschedulable=True)
    assert result.message.startswith("0/2 nodes are available: 2 node(s) were unschedulable.")


@pytest.mark.parametrize("plugin", ["NodeAffinity", "VolumeZone", "NodeVolumeLimits"])
def test_filters_that_can_do_without_go_on(plugin: str) -> None:
    assert isinstance(attempted(pod(), "preFilter", plugin), ScheduleResult)


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        ("TaintToleration", 'failed to read "PreScoreTaintToleration" from cycleState: not found'),
        ("PodTopologySpread", 'error reading "PreScorePodTopologySpread" from cycleState: not found'),
        ("InterPodAffinity", 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'),
    ],
)
def test_a_score_that_was_not_prepared_is_an_error(plugin: str, why: str) -> None:
    result = attempted(pod(), "preScore", plugin)
    assert result.message == f'running Score plugins: plugin "{plugin}" failed with: {why}'
    assert isinstance(attempted(pod(), "preScore", plugin, nodes=1), ScheduleResult), "one feasible node is not scored"


def test_preferences_that_cannot_be_read_are_found_out_when_scoring() -> None:
    older = {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["-5"]}]}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": older}]}
    result = attempted(pod(affinity={"nodeAffinity": wish}), "preScore", "NodeAffinity")
    assert isinstance(result, FitError)
    assert result.message.startswith(
        'running Score plugins: plugin "NodeAffinity" failed with: [0].matchExpressions[0]'
    )
