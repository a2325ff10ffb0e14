"""Tests of pending pods by cause: the groups, and the report at the end of a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.causes import pending
from kschedd.causes.pending import pending_causes, pending_groups
from kschedd.clusters.virtual import VirtualCluster
from kschedd.config.loading.load import default_config
from kschedd.framework.registry import Registry
from kschedd.methods import cluster_methods
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.sdk.objects import node, pod
from kschedd.simulation.simulation import Simulation


def simulated(*raws: dict[str, Any]) -> Simulation:
    simulation = Simulation(default_config(), seed=1, registry=Registry(), controllers=())
    for raw in raws:
        simulation.store.create(raw)
        simulation.run_until_idle()
        simulation.advance(simulation.now + 1)
    return simulation


def test_what_helps_the_largest_group_is_said() -> None:
    pods = [pod(f"p{number}", cpu="1500m") for number in range(5)]
    simulation = simulated(node("n1", cpu="2"), *pods, pod("giant", cpu="64"))
    before = simulation.store.version
    found = pending_causes(simulation, cluster_methods, 1)
    assert found is not None
    assert [(group.code, group.count) for group in found.groups] == [("ClusterFull", 4), ("RequestAboveEveryNode", 1)]
    assert "add 1 node like n1" in found.text()
    assert len(found.as_json()["diagnoses"]) == 1
    assert simulation.store.version == before


def test_nothing_is_said_where_nothing_is_pending() -> None:
    assert pending_causes(simulated(node("n1"), pod("p1")), cluster_methods, 1) is None


def test_one_pod_of_each_spec_is_examined(monkeypatch) -> None:
    simulation = simulated(node("n1", cpu="1"), *[pod(f"p{number}", cpu="2") for number in range(9)])
    examined = []
    monkeypatch.setattr(pending, "case_of", lambda *given: examined.append(given) or real(*given))
    (group,) = pending_groups(simulation, None, lambda: None)
    assert (group.count, len(examined)) == (9, 1)


def test_beyond_a_number_of_specs_pods_are_told_with_those_of_their_message(monkeypatch) -> None:
    monkeypatch.setattr(pending, "_MOST_EXAMINED", 2)
    simulation = simulated(node("n1", cpu="1"), *[pod(f"p{number}", cpu=str(number)) for number in range(2, 9)])
    groups = pending_groups(simulation, None, lambda: None)
    assert sum(group.count for group in groups) == 7
    assert len(groups) == 2


def test_pods_that_are_not_created_are_told_as_well() -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {**pod("x")["spec"], "priorityClassName": "nosuch"}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    (group,) = pending_groups(simulated(node("n1"), web), None, lambda: None)
    assert (group.code, group.count, group.missing) == ("PriorityClassMissing", 0, 3)
    assert [named.name for named in group.workloads] == ["web"]


real = pending.case_of


def deployment(name: str, replicas: int, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": spec}
    whole = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


def test_a_remedy_is_searched_for_so_many_groups_and_printed(tmp_path: Path) -> None:
    cluster = ScenarioCluster(tmp_path)
    large = deployment("large", 3, **pod("x", cpu="3")["spec"])
    lost = deployment("lost", 1, **{**pod("x", cpu="100m")["spec"], "nodeSelector": {"pool": "genral"}})
    nodes = [node(f"n{number}", cpu="2", labels={"pool": "general"}) for number in range(4)]
    cluster.do("apply", "\n---\n".join(map(json.dumps, [*nodes, large, lost])))
    cluster.do("advance 10s", "")
    for most in (0, 1, 2):
        groups = cluster.connect().call("causes.pending", remedies=most)
        assert [group["code"] for group in groups] == ["RequestAboveEveryNode", "NodeLabelMisspelled"]
        assert [group["remedy"] is not None for group in groups] == [most > 0, most > 1]
    answer = cluster.do("explain --pending -A", "")
    assert "RequestAboveEveryNode, deployment/large: request 2 cpu\n    kschedd patch deployment large " in answer
    assert "NodeLabelMisspelled, deployment/lost: use pool=general\n    kschedd patch deployment lost " in answer
    assert answer.endswith(
        "A remedy was searched for one workload of each group, with at most 200 pods; `explain KIND/NAME` has more, "
        "with their effects.\n"
    )


@pytest.mark.parametrize(("replicas", "examined"), [((9, 2), ["second"]), ((9, 8), [])])
def test_the_smallest_workload_of_a_group_gets_a_remedy_and_none_of_very_many_pods(
    monkeypatch: pytest.MonkeyPatch, replicas: tuple[int, int], examined: list[str]
) -> None:
    monkeypatch.setattr(pending, "MOST_PODS", 3)
    spec = pod("x", cpu="3")["spec"]
    pair = zip(("first", "second"), replicas, strict=True)
    cluster = VirtualCluster()
    for raw in (node("n1", cpu="2"), *(deployment(name, number, **spec) for name, number in pair)):
        cluster.engine.store.create(raw)
    cluster.engine.run_until_idle()
    requests: list[str] = []
    (group,) = pending_groups(cluster.engine, None, lambda: None, lambda obj: requests.append(obj.name), 5)
    assert requests == examined
    assert group.workloads[0].name == "second"


def test_a_preempted_workload_has_the_cause_that_explain_gives(tmp_path: Path) -> None:
    cluster = ScenarioCluster(tmp_path)
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    low = deployment("low", 1, **pod("x", cpu="2")["spec"])
    top = deployment("top", 1, **pod("x", cpu="2")["spec"], priorityClassName="high")
    for raws in ((node("n1", cpu="2"), high, low), (top,)):
        cluster.do("apply", "\n---\n".join(map(json.dumps, raws)))
        cluster.do("advance 60s", "")
    client = cluster.connect()
    (group,) = client.call("causes.pending")
    found = client.call("causes.explain", kind="Deployment", name="low", remedies=False)
    assert (group["code"], group["message"]) == (found["cause"]["code"], found["cause"]["message"])
    assert group["code"] == "Preempted"


def test_a_pod_with_a_node_and_an_unallocated_claim_is_pending(tmp_path: Path) -> None:
    cluster = ScenarioCluster(tmp_path)
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}}
    claim["spec"] = {"devices": {"requests": [request]}}
    placed = pod("placed", cpu="1")
    placed["spec"] |= {"nodeName": "n1", "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    cluster.do("apply", "\n---\n".join(map(json.dumps, [node("n1"), claim, placed, pod("running", cpu="1")])))
    cluster.do("advance 60s", "")
    client = cluster.connect()
    (group,) = client.call("causes.pending")
    assert (group["count"], [each["name"] for each in group["workloads"]]) == (1, ["placed"])
    found = client.call("causes.explain", kind="Pod", name="placed", remedies=False)
    assert group["message"] == found["cause"]["message"]
