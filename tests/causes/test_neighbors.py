"""Tests of causes in other pods: terms of an earlier template, and the number of owners that are looked up."""

from pathlib import Path

import pytest

from kschedd.causes import workload
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.sdk.objects import deployment, node, pod
from kschedd.store.cluster_api import ClusterReader

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"tier": "web"}}}
        ]
    }
}
RELAXED = [{"op": "remove", "path": "/spec/template/spec/affinity"}]


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    made = ScenarioCluster(tmp_path)
    made.connect().call("objects.apply", manifests=[node(f"n{number}") for number in range(6)])
    return made


def test_old_pods_have_an_anti_affinity_that_their_template_no_longer_has(cluster: ScenarioCluster) -> None:
    daemon = cluster.connect()
    daemon.call("objects.apply", manifests=[deployment("apart", 6, labels={"tier": "web"}, spec={"affinity": APART})])
    cluster.do("advance 60s", "")
    daemon.call(
        "objects.patch",
        kind="Deployment",
        name="apart",
        patch=[{"op": "add", "path": "/spec/paused", "value": True}, *RELAXED],
        type="json",
    )
    daemon.call("objects.apply", manifests=[deployment("other", 1, labels={"tier": "web"})])
    cluster.do("advance 60s", "")
    answer = daemon.call("causes.explain", kind="Deployment", name="other")
    assert answer["cause"]["code"] == "AntiAffinityOfOthers"
    assert "deployment/apart" in answer["cause"]["message"]
    assert answer["remedies"] == []


def test_each_owner_of_pods_that_hold_a_port_is_looked_up_once(
    cluster: ScenarioCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 9100}]}]}
    daemon = cluster.connect()
    daemon.call("objects.apply", manifests=[deployment("agent", 6, spec=port)])
    cluster.do("advance 60s", "")
    daemon.call("objects.apply", manifests=[pod("late", spec=port)])
    looked_up: list[str] = []
    original = workload.root_of

    def noted(store: ClusterReader, obj: workload.Object) -> workload.Object:
        looked_up.append(obj.name)
        return original(store, obj)

    monkeypatch.setattr(workload, "root_of", noted)
    answer = daemon.call("causes.explain", kind="Pod", name="late", remedies=False)
    assert answer["cause"]["code"] == "HostPortTaken"
    assert len([name for name in looked_up if name.startswith("agent")]) == 1
