"""Tests of very large workloads: only a sample of their pods is created, but all are counted."""

from pathlib import Path

from kschedd.causes.sampling import MOST_PODS, sample
from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.methods import cluster_methods
from kschedd.sdk.objects import node
from tests.causes.test_created import diagnosed
from tests.causes.test_volumes import NODE

WANTED = 100_000
LARGE = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": WANTED,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
        },
    },
}


def test_a_sample_of_a_large_workload_is_examined_and_all_are_counted() -> None:
    cluster = VirtualCluster()
    cluster.engine.store.create(node("n1", cpu="4"))
    cluster.engine.store.create(LARGE)
    said = list(sample(cluster.engine.store))
    assert said == ["Deployment default/web: 2,000 of its 100,000 pods are examined, which are alike"]
    cluster.engine.run_until_idle()
    assert cluster.engine.store.count("Pod") == MOST_PODS
    found = VirtualDaemon(cluster, cluster_methods).call("causes.explain", kind="Deployment", name="web")
    assert (found["wanted"], found["scheduled"]) == (WANTED, 4)
    assert found["cause"]["message"].endswith("it takes 24,999 more nodes like n1")
    assert found["tried"] == ["nothing: a remedy is tried for at most 2,000 pods"]


def test_the_nodes_that_are_missing_are_counted(tmp_path: Path) -> None:
    manifests = (
        NODE
        + """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 200
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
"""
    )
    found = diagnosed(tmp_path, manifests, "Deployment", "web")
    assert found["cause"]["message"].endswith("it takes 49 more nodes like n1")
    assert "196 pods of the workload wait; 49 empty nodes like n1 would hold them" in found["cause"]["evidence"]
