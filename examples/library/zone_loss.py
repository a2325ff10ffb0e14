"""The reasons why pods are pending after the loss of a zone, on a fork: the cluster itself does not change."""

from kschedd import Cluster, deployment, node

ZONE = "topology.kubernetes.io/zone"

cluster = Cluster([node(f"{zone}{number}", cpu="4", labels={ZONE: zone}) for zone in "abc" for number in (1, 2)])
spread = {
    "maxSkew": 1,
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
cluster.apply(deployment("web", 18, cpu="1", spec={"topologySpreadConstraints": [spread]}))
cluster.run_until_idle()
with cluster.fork() as fork:
    fork.delete("Node", selector=f"{ZONE}=c")
    fork.run_until_idle()
    for group in fork.causes(remedies=1):
        print(f"{group.count} pods pending: {group.message}")
        if group.remedy is not None:
            print(f"a remedy: {group.remedy.summary}")
print(f"{len(cluster.pending())} pods pending in the cluster itself")
