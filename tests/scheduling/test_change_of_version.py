"""Tests of the Kubernetes version's effects on the cache and on attempts: resized pods, nominations after a failure."""

import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.config.loading.load import config_from_raw, default_config
from kschedd.config.versions.kube_versions import V1_34, V1_36, KubernetesVersion
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from tests.actors.clusters import node, pod


def test_a_change_of_version_changes_how_pods_being_resized_count() -> None:
    machine = SchedulingMachine(default_config(version=V1_36))
    resized = pod(nodeName="n1", resources={"requests": {"cpu": "1"}})
    resized = {**resized, "status": {"resources": {"requests": {"cpu": "3"}}}}
    machine.cluster.load(map(parse, (node(), resized)))
    table = machine.cluster.table
    cpu = table.resource("cpu")
    assert table.requested[cpu, 0] == 3000
    machine.reconfigure(default_config(version=V1_34))
    assert table.requested[cpu, 0] == 1000


@pytest.mark.parametrize(
    ("version", "post_filters", "nominated"),
    [
        pytest.param(V1_34, False, None, id="1.34-leaves-it-without-PostFilter"),
        pytest.param(V1_36, False, "", id="1.36-clears-it-without-PostFilter"),
        pytest.param(V1_34, True, "", id="1.34-clears-it-where-PostFilter-finds-nothing"),
        pytest.param(V1_36, True, "", id="1.36-clears-it-where-PostFilter-finds-nothing"),
    ],
)
def test_the_nomination_after_an_attempt_that_fails(
    version: KubernetesVersion, post_filters: bool, nominated: str | None
) -> None:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{} if post_filters else {"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}],
    }
    machine = SchedulingMachine(config_from_raw(raw, version=version))
    machine.cluster.load([parse(node())])
    failed = drive(machine.begin(Pod.from_raw({**pod(cpu="9"), "status": {"nominatedNodeName": "n1"}}), {}))
    assert isinstance(failed, FitError)
    assert failed.nominated_node == nominated
