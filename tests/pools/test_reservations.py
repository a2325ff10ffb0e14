"""Tests of reserved instances: who holds them in a round, and which of them are in use."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.pools.karpenter.instance_types import InstanceType, instance_types_of, without_used
from kschedd.pools.karpenter.launching import LaunchOffers, launched_node
from kschedd.pools.karpenter.node_pools import node_pool_of
from kschedd.pools.karpenter.provisioning import ProvisioningRound, plan_round
from kschedd.pools.karpenter.requirements import CAPACITY_TYPE, ZONE
from kschedd.scenarios.commands import ScenarioCluster


def offering(kind: str, price: float, reservation: str = "", count: int | None = None) -> dict[str, Any]:
    own = [
        {"key": CAPACITY_TYPE, "operator": "In", "values": [kind]},
        {"key": ZONE, "operator": "In", "values": ["z1"]},
    ]
    if reservation:
        own.append({"key": "reservation-id", "operator": "In", "values": [reservation]})
    return {"Price": price, "Available": True, "Requirements": own, "ReservationCapacity": count}


def raw_type(name: str, cpu: int, *offerings: dict[str, Any]) -> dict[str, Any]:
    resources = {"cpu": str(cpu), "memory": "16Gi", "pods": "10"}
    shape = {"architecture": "amd64", "operatingSystems": ["linux"], "resources": resources}
    return {"name": name, **shape, "offerings": list(offerings)}


RESERVED = [raw_type("small", 2, offering("on-demand", 1.0), offering("reserved", 0.01, "r", 1))]


def pods(*cpus: str) -> list[Pod]:
    return [
        Pod.from_raw(
            {
                "metadata": {"name": f"p{number}", "namespace": "default", "uid": f"u{number}"},
                "spec": {"containers": [{"name": "a", "image": "a", "resources": {"requests": {"cpu": cpu}}}]},
            }
        )
        for number, cpu in enumerate(cpus)
    ]


def plan(types: list[InstanceType], *cpus: str, weights: tuple[int, ...] = (1,), on: bool = True) -> ProvisioningRound:
    pools = [
        node_pool_of(
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "metadata": {"name": f"pool{weight}"},
                "spec": {"weight": weight, "template": {"spec": {"requirements": []}}},
            }
        )
        for weight in weights
    ]
    return plan_round(pods(*cpus), [], LaunchOffers(pools, types), reserving=on)


def kinds(found: ProvisioningRound) -> list[str]:
    return [launched_node(launch, "n").labels[CAPACITY_TYPE] for launch in found.launches]


def test_a_planned_node_holds_the_reservation_and_the_next_pod_waits() -> None:
    found = plan(instance_types_of(RESERVED), "1500m", "1500m", weights=(2, 1))
    assert kinds(found) == ["reserved"]
    assert [pod.name for pod in found.failed] == ["p1"], "neither on demand, nor in the pool with the lower weight"


def test_a_pod_that_fits_on_the_planned_node_needs_no_further_reservation() -> None:
    found = plan(instance_types_of(RESERVED), "500m", "500m")
    assert (kinds(found), found.failed) == (["reserved"], [])
    assert len(found.launches[0].pods) == 2


def test_a_used_reservation_is_no_reason_to_wait() -> None:
    used = without_used(instance_types_of(RESERVED), [{CAPACITY_TYPE: "reserved", ZONE: "z1", "reservation-id": "r"}])
    assert [each.available for each in used[0].offerings] == [True, False]
    assert kinds(plan(used, "1500m", "1500m")) == ["on-demand", "on-demand"]
    other = without_used(instance_types_of(RESERVED), [{CAPACITY_TYPE: "reserved", ZONE: "z1", "reservation-id": "s"}])
    assert [each.available for each in other[0].offerings] == [True, True]


def test_a_larger_pod_does_not_take_the_last_reservation_from_a_planned_node() -> None:
    types = instance_types_of([
        raw_type("small", 2, offering("on-demand", 1.0), offering("reserved", 0.01, "r", 1)),
        raw_type("large", 8, offering("on-demand", 4.0)),
    ])  # fmt: skip
    found = plan(types, "1", "900m", "850m")
    assert kinds(found) == ["reserved"]
    assert [pod.name for pod in found.failed] == ["p2"], "small has room for two pods, and large has no reservation"


def test_each_unused_instance_of_a_reservation_serves_one_node() -> None:
    types = instance_types_of([raw_type("small", 2, offering("reserved", 0.01, "r", 2))])
    found = plan(types, "1500m", "1500m", "1500m")
    assert (kinds(found), len(found.failed)) == (["reserved", "reserved"], 1)


def test_without_the_rules_pods_fall_back_to_other_offerings() -> None:
    found = plan(instance_types_of(RESERVED), "1500m", "1500m", on=False)
    assert (len(found.launches), found.failed) == (2, [])


@pytest.mark.parametrize(("replicas", "waiting"), [(1, 0), (2, 1)])
def test_a_plan_names_the_reservation_for_which_a_pod_waits(tmp_path: Path, replicas: int, waiting: int) -> None:
    cluster = ScenarioCluster(tmp_path)
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "all"}}
    pool["spec"] = {"template": {"spec": {"requirements": []}}}  # type: ignore[assignment]
    (tmp_path / "pool.yaml").write_text(json.dumps(pool))
    (tmp_path / "types.json").write_text(json.dumps(RESERVED))
    raws = [{**pod.raw, "apiVersion": "v1", "kind": "Pod"} for pod in pods(*["1500m"] * replicas)]
    cluster.do("apply", "\n---\n".join(map(json.dumps, raws)))
    found = json.loads(cluster.do("plan -o json scale-up --pools pool.yaml --pools types.json", ""))["pools"]
    assert [each["capacity_type"] for each in found["launches"]] == ["reserved"]
    assert [each["pools"][0]["rule"] for each in found["refused"]] == ["reservation"] * waiting
