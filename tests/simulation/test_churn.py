"""Tests that no memory is kept for deleted pods and nodes, each of which has its own names, labels, taints and images.

Caches with limits get such low limits that they are full at once. Then the number of this program's objects must not
increase in the second half of the run.
"""

import functools
import gc
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kschedd.cache.table import NodeTable
from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.config.loading.load import default_config
from kschedd.log.log import Log
from kschedd.methods import daemon_methods

ROUNDS, NODES, PODS = 6, 3, 5
#: modules whose caches and histories are limited by a constant with one of these names
_ROOMS = ("actors", "cache", "log", "plugins", "queue", "scheduling", "store")
_NAMES = ("KEPT", "LIMIT", "MOST", "REMEMBERED", "BRANCHES")
_SET_TO = 8
#: constants that limit no memory, and must keep their values
_NOT_BOUNDS = ("MOST_POPPED", "_MOST_EVENTS", "MOST_OPERATIONS", "MOST_COPIED")

NODE = """
apiVersion: v1
kind: Node
metadata:
  name: n{r}-{i}
  labels: {{zone-{r}: z{i}, topology.kubernetes.io/zone: zone{r}-{i}, kubernetes.io/hostname: n{r}-{i}}}
spec: {{taints: [{{key: t{r}, value: v{i}, effect: PreferNoSchedule}}]}}
status:
  allocatable: {{cpu: 4, memory: 8Gi, pods: 100}}
  images: [{{names: ["img{r}-{i}:v1"], sizeBytes: 10000000}}]
---"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: p{r}-{i}, labels: {{app-{r}: a{i}, app: a{r}}}}}
spec:
  nodeSelector: {{zone-{r}: z{node}}}
  tolerations: [{{key: t{r}, operator: Exists}}]
  topologySpreadConstraints:
  - maxSkew: 5
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {{matchLabels: {{app: a{r}}}}}
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {{topologyKey: rack-{r}, labelSelector: {{matchLabels: {{app-{r}: a{i}}}}}}}
  containers: [{{name: c, image: "img{r}-{node}:v1", resources: {{requests: {{cpu: 1{i}m}}}}}}]
---"""


def lower_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in list(sys.modules.items()):
        if not name.startswith(tuple(f"kschedd.{room}." for room in _ROOMS)):
            continue
        for constant, value in list(vars(module).items()):
            named = constant.isupper() and any(part in constant for part in _NAMES) and constant not in _NOT_BOUNDS
            if named and type(value) is int and value > _SET_TO:
                monkeypatch.setattr(module, constant, _SET_TO)
    monkeypatch.setattr(NodeTable, "most_counters", _SET_TO)
    monkeypatch.setattr(Log.__init__, "__defaults__", (_SET_TO, ""))


def churn(daemon: VirtualDaemon, cluster: VirtualCluster, number: int) -> int:
    """Add, run and delete nodes and pods; return the number of pods that were scheduled."""
    nodes = [NODE.format(r=number, i=i) for i in range(NODES)]
    pods = [POD.format(r=number, i=i, node=i % (NODES + 1)) for i in range(PODS)]
    applied = daemon.call("objects.apply", manifests="".join([*nodes, *pods]), source="churn")
    assert not applied["errors"]
    engine = cluster.engine
    engine.advance(engine.now + 5)
    there = daemon.call("objects.list", kind="Pod")["items"]
    daemon.call("objects.delete", kind="Pod", all=True, namespace="default", grace_period_s=0)
    engine.advance(engine.now + 5)
    daemon.call("objects.delete", kind="Node", all=True)
    engine.advance(engine.now + 400)
    return sum("nodeName" in pod["spec"] for pod in there)


def caches() -> list[Any]:
    return [each for each in gc.get_objects() if type(each) is functools._lru_cache_wrapper]  # limited by their sizes


@pytest.fixture
def earlier_caches() -> Iterator[list[Any]]:
    """Return the caches of functions that exist before the test, whose other objects are not traversed."""
    yield caches()
    gc.unfreeze()


def what_there_is(earlier_caches: Sequence[Any]) -> Counter[str]:
    for each in (*earlier_caches, *caches()):
        each.cache_clear()
    gc.collect()
    return Counter(name for each in gc.get_objects() if (name := str(type(each))).startswith("<class 'kschedd."))


def test_nothing_is_left_of_what_came_and_went(monkeypatch: pytest.MonkeyPatch, earlier_caches: list[Any]) -> None:
    gc.freeze()
    VirtualCluster(default_config(), seed=1)  # imports the plugins, whose limits are lowered with the others
    lower_bounds(monkeypatch)
    cluster = VirtualCluster(default_config(), seed=1)
    cluster.engine.store.log.keep(20)
    daemon = VirtualDaemon(cluster, daemon_methods)
    scheduled = [churn(daemon, cluster, number) for number in range(ROUNDS)]
    before = what_there_is(earlier_caches)
    scheduled += [churn(daemon, cluster, number) for number in range(ROUNDS, 2 * ROUNDS)]
    after = what_there_is(earlier_caches)
    assert scheduled == [4] * 2 * ROUNDS, "one of five asks for a node that there is not"
    grown = {name: (before[name], count) for name, count in after.items() if count > before[name] + _SET_TO}
    assert not grown
