"""Tests of a node table as kube-scheduler builds it from the nodes in an extender's response."""

from kschedd.api.objects import parse
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table_without_pods import TableWithoutPods
from tests.cache.made import pod

NODE = {
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"zone": "z"}},
    "status": {"allocatable": {"cpu": "4"}, "images": [{"names": ["i:1"], "sizeBytes": 1}]},
}


def test_the_nodes_are_there_without_pods_and_images() -> None:
    cluster = SchedulerCache()
    cluster.put(parse(NODE))
    placed = {**pod(1, {"cpu": "1"}, 80, None).raw}
    cluster.put(parse({**placed, "spec": {**placed["spec"], "nodeName": "n"}}))
    whole = cluster.table
    table = TableWithoutPods(whole)
    row = table.row_of["n"]
    assert (table.node_count, table.nodes[row]) == (1, whole.nodes[row])
    assert table.label("zone").ids[row] == whole.label("zone").ids[row]
    assert (table.requested.any(), table.nonzero.any(), table.pod_count.any()) == (False, False, False)
    assert len(table.pods) == table.capacity
    assert not any(table.pods)
    assert (table.ports, table.images, table.claims) == ({}, {}, {})
    number = table.resource("example.com/gpu")
    assert table.requested[number][row] == 0
    assert "example.com/gpu" not in whole.resources
    assert (whole.requested[0][row], len(whole.pods[row]), whole.pod_count[row]) == (1000, 1, 1)
    assert whole.images
    assert whole.ports
