"""Tests of the end of work: retries of rejected creations end it, unless one of them can succeed."""

from typing import Any

from kschedd import Cluster, deployment, job, node, pod

PROGRESS_DEADLINE_S = 600  # of a Deployment; until then, its controller has work left
LONGEST_RETRY_S = 300


def quota(pods: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"pods": pods}},
    }


def test_a_cluster_rests_although_a_quota_rejects_pods() -> None:
    cluster = Cluster([node("a")])
    cluster.apply(quota("1"), deployment("web", 3), job("batch", 2))
    began = cluster.time
    assert cluster.run_until_idle("1h")
    assert cluster.time - began < PROGRESS_DEADLINE_S + 2 * LONGEST_RETRY_S
    assert len(cluster.list("Pod")) == 1


def test_a_rejected_pod_is_created_before_the_cluster_rests_if_the_quota_has_room_again() -> None:
    cluster = Cluster([node("a")])
    cluster.apply(quota("1"), pod("first"), deployment("web", 1))
    assert cluster.run_until_idle("1h")
    assert list(cluster.placements()) == ["first"]
    cluster.delete("Pod", "first", grace_period_s=0)
    assert cluster.run_until_idle("1h")
    assert len(cluster.placements()) == 1
    assert next(iter(cluster.placements())).startswith("web-")
