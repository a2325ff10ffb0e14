"""Tests of a node as a plugin for one node sees it."""

from kschedd.api.objects import parse
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.node_info import NodeInfo
from tests.scheduling.driven import Raw, pod


def node(name: str, **allocatable: str) -> Raw:
    return {"kind": "Node", "metadata": {"name": name, "labels": {"zone": "z"}}, "status": {"allocatable": allocatable}}


def test_a_node_has_its_pods_and_amounts_of_every_known_resource() -> None:
    with_port = pod("a", cpu="250m", on="n")
    with_port["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]
    cluster = SchedulerCache()
    cluster.table.resource("example.com/gpu")
    for raw in (node("n", cpu="2", memory="1Ki", pods="10"), with_port):
        cluster.put(parse(raw))
    info = NodeInfo(cluster.table, cluster.table.row_of["n"])
    assert (info.name, info.node.name, dict(info.labels)) == ("n", "n", {"zone": "z"})
    assert [each.name for each in info.pods] == ["a"]
    amounts = {"ephemeral-storage": 0, "example.com/gpu": 0}
    assert info.allocatable == {"cpu": 2000, "memory": 1024, **amounts}
    assert info.requested == {"cpu": 250, "memory": 0, **amounts}
    assert info.used_ports == {("0.0.0.0", "TCP", 8080)}


def test_a_node_without_pods_uses_no_ports() -> None:
    cluster = SchedulerCache()
    cluster.put(parse(node("n")))
    info = NodeInfo(cluster.table, 0)
    assert (list(info.pods), info.used_ports) == ([], frozenset())
