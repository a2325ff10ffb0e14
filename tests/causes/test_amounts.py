"""Tests of causes on nodes whose pods request more than the node offers."""

from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.methods import cluster_methods
from kschedd.sdk.objects import node, pod


def test_a_node_with_more_requests_than_room_is_named() -> None:
    cluster = VirtualCluster(controlled=False)
    for raw in (node("n1", cpu="4"), pod("static", cpu="5", node_name="n1"), pod("waits", cpu="1")):
        cluster.engine.store.create(raw)
    cluster.engine.run_until_idle()
    found = VirtualDaemon(cluster, cluster_methods).call("causes.explain", kind="Pod", name="waits", remedies=False)
    assert found["cause"]["code"] == "ClusterFull"
    beyond = "more is requested than there is on n1: n1 has 4 cpu, and its pods request 5"
    assert beyond in found["cause"]["evidence"]


def test_a_request_far_above_every_node_says_what_it_takes() -> None:
    cluster = VirtualCluster(controlled=False)
    for raw in (node("n1", cpu="4"), pod("waits", cpu="64")):
        cluster.engine.store.create(raw)
    cluster.engine.run_until_idle()
    found = VirtualDaemon(cluster, cluster_methods).call("causes.explain", kind="Pod", name="waits")
    assert found["cause"]["code"] == "RequestAboveEveryNode"
    assert found["remedies"] == []
    needed = "a node with 64 cpu is required, or smaller requests: 4 per pod would fit now"
    assert found["cause"]["evidence"] == [needed]
