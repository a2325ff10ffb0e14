"""A test that runs by the rules of two Kubernetes releases. Run with pytest; the fixture comes with kschedd."""

import pytest

from kschedd import Cluster, node, pod


@pytest.mark.parametrize("version", ["1.34", "1.37"])
def test_a_tainted_node_is_avoided(version: str) -> None:
    """A pod without a toleration goes to the node without a taint."""
    tainted = node("gpu", taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])
    cluster = Cluster([tainted, node("plain")], version=version)
    cluster.apply(pod("web"))
    assert cluster.placements() == {"web": "plain"}
