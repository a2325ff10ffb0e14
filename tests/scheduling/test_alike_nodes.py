"""What is kept of nodes that are alike is what the plugins say of each of them."""

from random import Random
from typing import Any

import numpy as np
import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.scheduling import alike_nodes
from kschedd.scheduling.alike_nodes import AlikeNodes
from kschedd.scheduling.node_local_plugins import NodeLocalPlugins
from tests.scheduling.test_evaluation import scheduler

_SKIPPED = {"NodePorts"}


def _node(name: str, **allocatable: str) -> Node:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "6", **allocatable}}
    return Node.from_raw({"kind": "Node", "metadata": {"name": name}, "status": status})


def _pod(name: str, *, on: str = "", label: str = "", ports: bool = False, **requests: str) -> Pod:
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": {"requests": requests}}
    if ports:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    spec = {"containers": [container], **({"nodeName": on} if on else {})}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": label}}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": spec})


def _trial(cluster: SchedulerCache) -> tuple[NodeLocalPlugins, AlikeNodes]:
    plugins = NodeLocalPlugins(scheduler(cluster, True).profile, True)
    return plugins, AlikeNodes(plugins)


def _compare(
    cluster: SchedulerCache, plugins: NodeLocalPlugins, alike: AlikeNodes, pod: Pod, rows: Any, state: CycleState
) -> None:
    table = cluster.table
    kinds = alike.kinds_of(table, rows)
    judged = alike.judge(state, pod, table, rows, kinds)
    for kept, said in zip(judged, plugins.judge(state, pod, table, rows), strict=True):
        assert kept.tolist() == said.tolist()
    kept, kept_raw = alike.score(state, pod, table, rows, kinds)
    said, said_raw = plugins.score(state, pod, table, rows)
    assert kept.tolist() == said.tolist()
    assert {name: raw.tolist() for name, raw in kept_raw.items()} == {n: raw.tolist() for n, raw in said_raw.items()}


@pytest.mark.parametrize("most", [80, 4096], ids=["few-kinds-kept", "all-kept"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_is_what_the_plugins_say(monkeypatch: pytest.MonkeyPatch, seed: int, most: int) -> None:
    monkeypatch.setattr(alike_nodes, "_MOST_KINDS", most)
    random, cluster = Random(seed), SchedulerCache()
    for number in range(100):
        cluster.put_node(_node(f"n{number}", cpu=random.choice(("2", "4"))))
    plugins, alike = _trial(cluster)
    amounts = ({"cpu": "1"}, {"cpu": "500m", "memory": "1Gi"}, {}, {"example.com/a": "1"}, {"ephemeral-storage": "1Gi"})
    there: list[Pod] = []
    for number in range(300):
        requests = random.choice(amounts)
        placed = _pod(f"there{number}", on=f"n{random.randrange(100)}", ports=random.random() < 0.1, **requests)
        cluster.put_pod(placed)
        there.append(placed)
        if random.random() < 0.3:
            cluster.remove_pod(there.pop(random.randrange(len(there))))
        if random.random() < 0.1:
            extended = {"example.com/a": str(random.randrange(3))} if random.random() < 0.5 else {}
            cluster.put_node(_node(f"n{random.randrange(100)}", **extended, pods=str(random.randrange(1, 7))))
        ports = random.random() < 0.2
        incoming = _pod("p", label=random.choice("xy"), ports=ports, **random.choice(amounts))
        state = CycleState(skip_filter=set() if ports else _SKIPPED)
        rows = np.array(random.sample(range(100), random.randrange(1, 20)), dtype=np.int64)
        _compare(cluster, plugins, alike, incoming, rows, state)


def test_nodes_that_differ_in_a_resource_nobody_has_asked_for_yet_are_not_alike() -> None:
    cluster = SchedulerCache()
    for number in range(4):
        cluster.put_node(_node(f"n{number}", **({"example.com/a": "1"} if number % 2 else {})))
    plugins, alike = _trial(cluster)
    rows, state = np.arange(4), CycleState(skip_filter=_SKIPPED)
    incoming = _pod("p", **{"example.com/a": "1"})
    failed, _ = alike.judge(state, incoming, cluster.table, rows, alike.kinds_of(cluster.table, rows))
    assert (failed[rows % 2 == 1] != failed[0]).all()
    _compare(cluster, plugins, alike, incoming, rows, state)


def test_pods_of_several_templates_with_the_same_requests_share_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = SchedulerCache()
    for number in range(10):
        cluster.put_node(_node(f"n{number}"))
    _, alike = _trial(cluster)
    rows, table, state = np.arange(5), cluster.table, CycleState(skip_filter=_SKIPPED)
    first = alike.score(state, _pod("p", label="x", cpu="1"), table, rows, alike.kinds_of(table, rows))
    monkeypatch.setattr(NodeLocalPlugins, "score", None)  # nobody is asked any more
    others = alike.score(state, _pod("q", label="y", cpu="1"), table, rows + 5, alike.kinds_of(table, rows + 5))
    assert first[0].tolist() == others[0].tolist()


def test_after_misses_in_a_row_the_plugins_are_asked_at_once_for_a_while() -> None:
    cluster = SchedulerCache()
    for number in range(10):
        cluster.put_node(_node(f"n{number}"))
    _, alike = _trial(cluster)
    rows, table, state = np.arange(5), cluster.table, CycleState(skip_filter=_SKIPPED)

    def ask(amount: int) -> bool:
        kinds = alike.kinds_of(table, rows)
        alike.score(state, _pod("p", cpu=f"{amount}m"), table, rows, kinds)
        return kinds is not None

    assert all(ask(7) for _ in range(100))
    asked = [ask(amount) for amount in range(100, 1100)]
    assert asked[:10] == [True] * 10
    assert sum(asked) < 100
    assert any(asked[500:])
