"""Tests that the size of the cache depends only on existing nodes and pods, however many have been deleted."""

import gc
from collections.abc import Iterable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.selecting.selectors import parse_label_selector
from kschedd.cache.counts import spread_matcher
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.loading.load import default_config
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import Observe
from kschedd.scheduling.machine import SchedulingMachine

HOSTNAME = "kubernetes.io/hostname"


def node(number: int) -> Node:
    """Return a node with its own name, label value, taint and image."""
    name = f"node-{number}"
    return Node.from_raw(
        {
            "kind": "Node",
            "metadata": {"name": name, "uid": name, "labels": {HOSTNAME: name, "serial": str(number)}},
            "spec": {"taints": [{"key": "serial", "value": str(number), "effect": "PreferNoSchedule"}]},
            "status": {
                "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
                "images": [{"names": [f"image:{number}"], "sizeBytes": 1000}],
            },
        }
    )


def pod(name: str, **spec: Any) -> Pod:
    raw = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}], **spec}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": raw})


def kept(roots: Iterable[Any]) -> int:
    """Return the number of elements of all containers and arrays that are reachable from these objects."""
    seen: set[int] = set()
    todo, entries = list(roots), 0
    while todo:
        found = todo.pop()
        if id(found) in seen or isinstance(found, type | ModuleType | FunctionType):
            continue
        seen.add(id(found))
        if isinstance(found, np.ndarray):
            entries += found.size
        elif isinstance(found, list | dict | set | frozenset | tuple):
            entries += len(found)
        todo += gc.get_referents(found)
    return entries


SPREAD = {
    "maxSkew": 1,
    "topologyKey": HOSTNAME,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
NEWER = {"matchExpressions": [{"key": "serial", "operator": "Gt", "values": ["5"]}]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NEWER]}}}


WANTED = (pod("a", topologySpreadConstraints=[SPREAD]), pod("b", affinity=AFFINITY))


def churned(machine: SchedulingMachine, numbers: range, *, attempts_every: int) -> None:
    """Add nodes one after the other, each with a pod, and remove each after 32 further nodes."""
    for number in numbers:
        machine.cluster.put(node(number))
        there = pod("there")
        there = Pod.from_raw({**there.raw, "metadata": {**there.metadata, "uid": f"there-{number}"}})
        machine.cluster.assume(there, f"node-{number}")
        if number % attempts_every == 0:
            for wanted in WANTED:
                drive(machine.begin(wanted, {}))
        if number >= 32:
            gone = machine.cluster.pod(f"there-{number - 32}")
            assert gone is not None
            machine.cluster.remove_pod(gone)
            machine.cluster.remove_node(f"node-{number - 32}")


@pytest.mark.parametrize("nodes", [12_000, pytest.param(100_000, marks=pytest.mark.full)])
def test_nodes_that_come_and_go_leave_nothing_behind(nodes: int) -> None:
    machine = SchedulingMachine(default_config(), seed=1)
    machine.cluster.versions.nodes.limit = machine.cluster.versions.pods.limit = 256
    churned(machine, range(2_000), attempts_every=10)
    before = kept([machine])
    churned(machine, range(2_000, nodes), attempts_every=200)
    churned(machine, range(nodes, nodes + 64), attempts_every=8)
    table = machine.cluster.table
    assert table.capacity == 64
    assert len(table.label(HOSTNAME).values) <= 33
    assert len(table.taint_sets) <= 34
    assert kept([machine]) < before + 1_000


def test_ten_thousand_pods_that_each_ask_for_something_of_their_own_leave_nothing_behind() -> None:
    """Each pod names a resource, a label key and a topology key of its own; limits.py limits what is stored."""
    machine = SchedulingMachine(default_config(), seed=1)
    driver = SchedulingDriver(machine)
    machine.cluster.versions.nodes.limit = machine.cluster.versions.pods.limit = 256
    machine.cluster.put(node(1))

    def come_and_go(numbers: range) -> int:
        for number in numbers:
            name = f"p{number}"
            spread = {**SPREAD, "topologyKey": f"topology-{number}", "whenUnsatisfiable": "ScheduleAnyway"}
            requests = pod(
                name, nodeSelector={f"key-{number}": "x"} if number % 2 else {}, topologySpreadConstraints=[spread]
            )
            container = {**requests.raw["spec"]["containers"][0], "resources": {"requests": {f"x.com/{number}": "1"}}}
            requests = Pod.from_raw({**requests.raw, "spec": {**requests.raw["spec"], "containers": [container]}})
            drive(machine.begin(requests, {}))
            machine.cluster.assume(requests, "node-1")
            machine.cluster.remove_pod(requests)
            driver.step(Observe(()))
        return kept([machine])

    before = come_and_go(range(4_500))
    # The scheduler's caches have 1,024 or 4,096 entries, so after as many further pods they are as full as before.
    assert come_and_go(range(4_500, 4_500 + 4_096)) < before * 1.1
    labels, resources = machine.cluster.table.columns
    assert labels <= 257
    assert resources <= 129


def test_a_number_of_a_label_value_is_given_out_again_only_when_no_row_has_it() -> None:
    cluster = SchedulerCache()
    for number in range(4):
        cluster.put(node(number))
    column = cluster.table.label(HOSTNAME)
    cluster.remove_node("node-1")
    assert "node-1" not in column.numbers
    cluster.put(node(7))
    cluster.put(node(8))
    there = {name: column.values[column.ids[row]] for name, row in cluster.table.row_of.items()}
    assert there == {name: name for name in ("node-0", "node-2", "node-3", "node-7", "node-8")}
    assert len(column.values) == 5


def test_counts_by_domain_follow_numbers_that_changed_hands() -> None:
    cluster = SchedulerCache()
    for number in range(2):
        cluster.put(node(number))
        raw = pod(f"p{number}").raw
        cluster.put(Pod.from_raw({**raw, "spec": {**raw["spec"], "nodeName": f"node-{number}"}}))
    counter = cluster.counts.matching(spread_matcher("default", parse_label_selector({"matchLabels": {"app": "web"}})))
    assert counter.by_domain(HOSTNAME).total == 2
    cluster.remove_node("node-0")
    cluster.put(node(5))
    domains = counter.by_domain(HOSTNAME)
    counts = {value: int(domains.counts[number]) for value, number in domains.column.numbers.items()}
    assert counts == {"node-1": 1, "node-5": 0}
