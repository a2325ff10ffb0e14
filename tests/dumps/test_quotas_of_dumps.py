"""A quota of a dump counts before the first pod is created, whether the dump has its status or not."""

from pathlib import Path

import pytest

from kschedd import Cluster

DUMP = """
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "8", memory: 8Gi, pods: "20"}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: shop}, spec: {hard: {requests.cpu: "2"}}%s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop}
spec:
  replicas: 4
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 800m}}}]}
"""


@pytest.mark.parametrize("status", ["", ', status: {hard: {requests.cpu: "2"}, used: {requests.cpu: "0"}}'])
def test_a_quota_of_a_dump_counts_from_the_start(tmp_path: Path, status: str) -> None:
    file = tmp_path / "dump.yaml"
    file.write_text(DUMP % status)
    with Cluster.from_dump(str(file)) as cluster:
        cluster.advance("1m")
        assert len([pod for pod in cluster.pods if pod.namespace == "shop"]) == 2
        assert "ResourceQuota q: requests.cpu 1600m of 2 used" in cluster.run("explain deployment/cart -n shop")
