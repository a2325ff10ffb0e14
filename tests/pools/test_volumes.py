"""Tests of the volumes that Karpenter's rules read."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.pools.karpenter.requirements import alternatives
from kschedd.pools.volumes import ClaimedVolumes
from kschedd.scenarios.commands import ScenarioCluster

ZONE = "topology.kubernetes.io/zone"
POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: all}
spec: {template: {spec: {requirements: []}}}
"""


def claim(name: str, **spec: Any) -> dict[str, Any]:
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {**size, **spec}}


def volume(name: str, *terms: dict[str, list[str]], source: dict[str, Any] | None = None) -> dict[str, Any]:
    stated = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": values} for key, values in term.items()]}
        for term in terms
    ]
    spec = {**(source or {"csi": {"driver": "d", "volumeHandle": name}})}
    if stated:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": stated}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def storage_class(name: str, mode: str = "WaitForFirstConsumer", *zones: list[str]) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "d",
        "volumeBindingMode": mode,
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": values}]} for values in zones],
    }


def pod(*claims: str, name: str = "p") -> Pod:
    mounted = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    meta = {"name": name, "namespace": "default", "uid": name}
    return Pod.from_raw({"metadata": meta, "spec": {"containers": [{"name": "a", "image": "a"}], "volumes": mounted}})


def volumes(*raws: dict[str, Any]) -> ClaimedVolumes:
    return ClaimedVolumes.of(map(parse, raws))


def zones(found: ClaimedVolumes, of: Pod) -> list[list[str]]:
    return [sorted(each[ZONE].values) if ZONE in each else [] for each in alternatives(found.node_terms(of))]


def test_the_alternatives_of_several_volumes_are_combined() -> None:
    found = volumes(
        claim("a", volumeName="va"),
        claim("b", storageClassName="fast"),
        volume("va", {ZONE: ["z1", "z2"]}, {ZONE: ["z3"]}),
        storage_class("fast", "WaitForFirstConsumer", ["z2", "z4"]),
    )
    assert zones(found, pod("a")) == [["z1", "z2"], ["z3"]]
    assert zones(found, pod("a", "b")) == [["z2"]], "the combination of z3 with z2 and z4 contradicts itself"
    assert zones(found, pod()) == []


def test_contradicting_volumes_leave_only_impossible_combinations() -> None:
    found = volumes(
        *(claim("a", volumeName="va"), claim("b", volumeName="vb")),
        *(volume("va", {ZONE: ["z1"]}), volume("vb", {ZONE: ["z2"]})),
    )
    assert zones(found, pod("a", "b")) == [[]], "no zone is allowed"
    (impossible,) = alternatives(found.node_terms(pod("a", "b")))
    assert not impossible[ZONE].allows("z1")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param({"local": {"path": "/x"}}, [[], ["z1"]], id="local"),
        pytest.param({"hostPath": {"path": "/x"}}, [[], ["z1"]], id="host-path"),
    ],
)
def test_the_hostname_of_a_volume_on_a_node_is_ignored(source: dict[str, Any], expected: list[list[str]]) -> None:
    terms = ({"kubernetes.io/hostname": ["n1"]}, {"kubernetes.io/hostname": ["n1"], ZONE: ["z1"]})
    assert zones(volumes(claim("a", volumeName="v"), volume("v", *terms, source=source)), pod("a")) == expected
    (by_host, _) = alternatives(volumes(claim("a", volumeName="v"), volume("v", *terms)).node_terms(pod("a")))
    assert by_host["kubernetes.io/hostname"].values == {"n1"}, "a CSI volume keeps its hostname"


@pytest.mark.parametrize(
    ("raws", "words"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([claim("c")], "is not bound and has no StorageClass"),
        ([claim("c", storageClassName="gone")], 'the StorageClass "gone" of persistentvolumeclaim "c" does not exist'),
        ([claim("c", volumeName="gone")], 'the volume "gone" of persistentvolumeclaim "c" does not exist'),
        ([claim("c", storageClassName="now"), storage_class("now", "Immediate")], "binds immediately"),
        ([{**claim("c", volumeName="v"), "status": {"phase": "Lost"}}, volume("v")], "a volume that does not exist"),
        ([claim("c", storageClassName="gone", volumeName="v"), volume("v")], ""),
        ([claim("c", storageClassName="fast"), storage_class("fast")], ""),
    ],
)
def test_a_pod_is_left_out_for_the_reasons_of_the_scheduler(raws: list[dict[str, Any]], words: str) -> None:
    why = volumes(*raws).why_left_out(pod("c"))
    assert words in why
    assert bool(words) is bool(why)


def test_a_node_counts_different_claims_of_a_driver() -> None:
    found = volumes(*(claim(f"c{i}", storageClassName="fast") for i in range(3)), storage_class("fast"))
    several = [pod("c0", "c1", name="p"), pod("c1", name="q")]
    assert not found.exceeds({"d": 2}, several)
    assert found.exceeds({"d": 2}, [*several, pod("c2", name="r")])
    assert not found.exceeds({"other": 0}, several)


def test_a_launch_is_in_the_zone_of_the_volume(tmp_path: Path) -> None:
    cluster = ScenarioCluster(tmp_path)
    offerings = [
        {"Price": price, "Available": True, "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": ZONE, "operator": "In", "values": [zone]},
        ]}
        for zone, price in (("z1", 0.1), ("z2", 0.2))
    ]  # fmt: skip
    resources = {"cpu": "4", "memory": "16Gi", "pods": "50"}
    types = [{"name": "m", "architecture": "amd64", "operatingSystems": ["linux"], "resources": resources}]
    (tmp_path / "types.json").write_text(json.dumps([{**types[0], "offerings": offerings}]))
    (tmp_path / "pool.yaml").write_text(POOL)
    raw = {**pod("c").raw, "apiVersion": "v1", "kind": "Pod"}
    objects = [claim("c", storageClassName="fast"), storage_class("fast", "WaitForFirstConsumer", ["z2"]), raw]
    lost = {**raw, "metadata": {"name": "lost", "namespace": "default"}}
    lost["spec"] = {**raw["spec"], "volumes": [{"name": "x", "persistentVolumeClaim": {"claimName": "x"}}]}
    cluster.do("apply", "\n---\n".join(map(json.dumps, [*objects, lost])))
    found = json.loads(cluster.do("plan -o json scale-up --pools pool.yaml --pools types.json", ""))["pools"]
    (launch,) = found["launches"]
    assert (launch["zone"], launch["pods"]) == ("z2", ["default/p"])
    (refused,) = found["refused"]
    assert refused["pools"][0]["why"] == 'persistentvolumeclaim "x" not found'
