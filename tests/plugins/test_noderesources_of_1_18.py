"""Tests of resource scores against a published log of kube-scheduler v1.18, and of configurations that select them."""

import json
from typing import Any

import pytest

from kschedd.answers import plain
from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.config.changing.files import convert
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import load_config
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import V1_34
from kschedd.explain.explain import explain
from kschedd.scheduling.machine import SchedulingMachine
from tests.extenders.servers import serving

Raw = dict[str, Any]

CPU, MEMORY = 47_800, 66_054_406_144
POLICY = {
    "apiVersion": "v1",
    "kind": "Policy",
    "priorities": [
        {"name": "BalancedResourceAllocation", "weight": 1},
        {"name": "LeastRequestedPriority", "weight": 1},
        {"name": "SelectorSpreadPriority", "weight": 1},
    ],
}
V1ALPHA1 = {
    "apiVersion": "kubescheduler.config.k8s.io/v1alpha1",
    "kind": "KubeSchedulerConfiguration",
    "algorithmSource": {"provider": "DefaultProvider"},
}
V1ALPHA2 = {"apiVersion": "kubescheduler.config.k8s.io/v1alpha2", "kind": "KubeSchedulerConfiguration"}


def _config(raw: Raw) -> Config:
    return load_config(json.dumps(raw), "old.yaml", catalogue=IN_TREE, version=V1_34)


def _node(name: str, cpu: int, memory: int) -> Raw:
    room = {"cpu": f"{cpu}m", "memory": str(memory), "pods": "110"}
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": room, "capacity": room}}


def _pod(name: str, cpu: int, memory: int, on: str = "") -> Raw:
    requests = {"cpu": f"{cpu}m", "memory": str(memory)} if cpu else {}
    spec: Raw = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    if on:
        spec["nodeName"] = on
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": spec,
    }


def _explained(config: Config, *raws: Raw) -> Raw:
    machine = SchedulingMachine(config)
    for raw in raws[:-1]:
        machine.cluster.put(parse(raw))
    requests = parse(raws[-1])
    assert isinstance(requests, Pod)
    return plain(explain(machine, requests, {}))


def test_the_scores_of_a_published_log() -> None:
    cpu, memory = 500, 1 << 30
    raws = [
        _node("n1", CPU, MEMORY),
        _node("n2", CPU, MEMORY),
        _pod("a", 7_850 - cpu, 6_786_383_872 - memory, "n1"),
        _pod("b", 6_950 - cpu, 7_627_341_824 - memory, "n2"),
        _pod("p", cpu, memory),
    ]
    scored: Raw = {"score": lambda args: [{"Host": "n1", "Score": 2}, {"Host": "n2", "Score": 5}]}
    with serving(scored) as extender:
        extenders = [{"urlPrefix": extender.url, "prioritizeVerb": "score", "weight": 1, "nodeCacheCapable": True}]
        answer = _explained(_config({**POLICY, "extenders": extenders}), *raws)
    weighted = {
        plugin: [by_node[name]["weighted"] for name in ("n1", "n2")] for plugin, by_node in answer["scores"].items()
    }
    assert weighted.pop(extender.url) == [20, 50]
    assert weighted == {
        "NodeResourcesBalancedAllocation": [93, 97],
        "NodeResourcesLeastAllocated": [86, 86],
        "SelectorSpread": [100, 100],
    }
    assert answer["totals"] == {"n1": 93 + 86 + 100 + 20, "n2": 97 + 86 + 100 + 50}


@pytest.mark.parametrize("raw", [POLICY, V1ALPHA1, V1ALPHA2], ids=["Policy", "v1alpha1", "v1alpha2"])
@pytest.mark.parametrize(("cpu", "memory", "score"), [(100, 200, 90), (200, 500, 70), (1_000, 200, 0), (0, 0, 90)])
def test_the_balance_of_cpu_and_memory(raw: Raw, cpu: int, memory: int, score: int) -> None:
    mib = 1 << 20
    raws = [_node(name, 1_000, 1_000 * mib) for name in ("n1", "n2")]
    answer = _explained(_config(raw), *raws, _pod("p", cpu, memory * mib))
    # A pod without requests is scored as if it requested 100m and 200 MiB.
    assert answer["scores"]["NodeResourcesBalancedAllocation"]["n1"]["raw"] == score


def test_later_formats_have_the_arithmetic_of_today_and_conversion_keeps_it() -> None:
    later = {"apiVersion": "kubescheduler.config.k8s.io/v1beta3", "kind": "KubeSchedulerConfiguration"}
    mib = 1 << 20
    nodes = [_node(name, 1_000, 1_000 * mib) for name in ("n1", "n2")]
    answer = _explained(_config(later), *nodes, _pod("p", 100, 200 * mib))
    assert answer["scores"]["NodeResourcesBalancedAllocation"]["n1"]["raw"] == 95
    text = convert(json.dumps(POLICY), "old.yaml", IN_TREE)
    assert "arithmetic: difference  # kube-scheduler v1.34 has no such argument" in text
    answer = _explained(load_config(text, "new.yaml", catalogue=IN_TREE), *nodes, _pod("p", 100, 200 * mib))
    assert answer["scores"]["NodeResourcesBalancedAllocation"]["n1"]["raw"] == 90
