"""Why pods are pending after a zone is lost, on a fork: the cluster itself does not change."""

from kschedd import Cluster, node, pod

ZONE = "topology.kubernetes.io/zone"

cluster = Cluster([node(f"{zone}{number}", cpu="4", labels={ZONE: zone}) for zone in "abc" for number in (1, 2)])
spread = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
template = pod("web", cpu="1", labels={"app": "web"}, spec={"topologySpreadConstraints": [spread]})
cluster.apply(
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 18,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": template["spec"]},
        },
    }
)
cluster.run_until_idle()
with cluster.fork() as fork:
    for lost in ("c1", "c2"):
        fork.delete("Node", lost)
    fork.advance("10m")
    for group in fork.causes():
        print(f"{group.count} pods pending: {group.message}")
print(f"{len(cluster.pending())} pods pending in the cluster itself")
