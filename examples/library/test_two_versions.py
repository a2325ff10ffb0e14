"""A test that runs by the rules of two Kubernetes releases. Run the file with pytest; kschedd provides the fixture."""

import pytest

from kschedd import Cluster, node, pod


@pytest.mark.kschedd(versions=["1.34", "1.37"])
def test_a_tainted_node_is_avoided(cluster: Cluster) -> None:
    """A pod without a toleration is scheduled to the node without a taint."""
    cluster.apply(node("gpu", taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]), node("plain"))
    cluster.apply(pod("web"))
    assert cluster.placements() == {"web": "plain"}
