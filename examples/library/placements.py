"""Placements as a data frame: the node of each pod, and how full the nodes are."""

from kschedd import Cluster, node, pod

cluster = Cluster(
    [node(f"n{number}", cpu="4", labels={"topology.kubernetes.io/zone": "ab"[number % 2]}) for number in range(4)]
)
cluster.apply([pod(f"web-{number}", cpu="700m") for number in range(12)])
pods = cluster.pods.to_pandas()
nodes = cluster.nodes.to_pandas()
print(pods.groupby("node")["cpu"].sum())
print(nodes[["name", "zone", "pods", "cpu_requested"]])
