"""Volumes for a pod: claims in all states, volumes, storage capacity, and the limits of CSI drivers."""

from tests.oracle.fuzz.cluster import Cluster
from tests.oracle.fuzz.draws import HOSTNAME, ZONE, Raw

DRIVER = "csi.example.com"
_WAIT = {"volumeBindingMode": "WaitForFirstConsumer"}


def volumes(cluster: Cluster, pod: Raw) -> None:
    """Give the pod one to three claims: bound, unbound, to be provisioned, or missing."""
    draw = cluster.draw
    classes(cluster)
    for _ in range(draw.randint(1, 3)):
        kind = draw.choice(("bound", "bound", "local", "dynamic", "dynamic", "immediate", "missing"))
        mount(pod, claim(cluster, pod["metadata"]["namespace"], kind))


def bound_volume(cluster: Cluster, pod: Raw) -> None:
    """Give the pod a bound claim, since no controller binds claims in a trace."""
    classes(cluster)
    mount(pod, claim(cluster, pod["metadata"]["namespace"], "bound"))


def classes(cluster: Cluster) -> None:
    """Add the storage classes and their driver unless they exist."""
    draw = cluster.draw
    if any(one["kind"] == "StorageClass" for one in cluster.others):
        return
    for name, provisioner, more in (
        ("local", "kubernetes.io/no-provisioner", _WAIT),
        ("dynamic", DRIVER, _WAIT),
        ("immediate", DRIVER, {"volumeBindingMode": "Immediate"}),
    ):
        cluster.add("StorageClass", "storage.k8s.io/v1", name, provisioner=provisioner, reclaimPolicy="Delete", **more)
    if draw.chance(30):
        zones = {"key": ZONE, "values": draw.some(("zone-a", "zone-b", "zone-c"), 1, 2)}
        cluster.others[-2]["allowedTopologies"] = [{"matchLabelExpressions": [zones]}]
    with_capacity = draw.chance(50)
    spec = {"attachRequired": True, "podInfoOnMount": False, "storageCapacity": with_capacity}
    cluster.add("CSIDriver", "storage.k8s.io/v1", DRIVER, spec=spec)
    if with_capacity:
        for zone in draw.some(("zone-a", "zone-b", "zone-c", "zone-d"), 1, 4):
            cluster.add(
                "CSIStorageCapacity",
                "storage.k8s.io/v1",
                f"capacity-{zone}",
                "default",
                storageClassName="dynamic",
                nodeTopology={"matchLabels": {ZONE: zone}},
                capacity=f"{draw.choice((1, 5, 20, 100))}Gi",
            )


def mount(pod: Raw, claim_name: str) -> None:
    found = pod["spec"].setdefault("volumes", [])
    found.append({"name": f"v{len(found)}", "persistentVolumeClaim": {"claimName": claim_name}})


def claim(cluster: Cluster, namespace: str, kind: str) -> str:
    """Add a claim with the objects that it needs; return its name."""
    draw, name = cluster.draw, f"claim-{cluster.number()}"
    if kind == "missing":
        return name
    modes = [draw.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"))]
    size = draw.choice((1, 2, 10))
    spec: Raw = {
        "accessModes": modes,
        "resources": {"requests": {"storage": f"{size}Gi"}},
        "volumeMode": "Filesystem",
        "storageClassName": "local" if kind == "bound" else kind,
    }
    status: Raw = {"phase": "Pending"}
    volume_claim = cluster.add("PersistentVolumeClaim", "v1", name, namespace, spec=spec, status=status)
    if kind == "bound":
        found = volume(cluster, modes, size, "local")
        reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": namespace, "name": name}
        found["spec"]["claimRef"] = reference | {"uid": volume_claim["metadata"]["uid"]}
        found["status"]["phase"] = status["phase"] = "Bound"
        spec["volumeName"] = found["metadata"]["name"]
        volume_claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    elif kind == "local":
        for place in range(draw.randint(0, 4)):
            volume(cluster, modes, size + place, "local")
    return name


def volume(cluster: Cluster, modes: list[str], size: int, class_name: str) -> Raw:
    """Add a volume that is accessible from some nodes only, with a unique size."""
    draw, number = cluster.draw, cluster.number()
    spec: Raw = {
        "capacity": {"storage": f"{size * 1024 + number}Mi"},
        "accessModes": modes,
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": "Filesystem",
        "storageClassName": class_name,
        "csi": {"driver": DRIVER, "volumeHandle": f"handle-{number}"},
    }
    metadata: Raw = {}
    where = draw.randrange(4)
    if where == 0:
        metadata["labels"] = {ZONE: draw.choice(("zone-a", "zone-b", "zone-a__zone-b"))}
    elif where < 3:
        hosts = {"key": HOSTNAME, "operator": "In", "values": draw.some(cluster.node_names, 1, 5)}
        zones = {"key": ZONE, "operator": "In", "values": draw.some(("zone-a", "zone-b", "zone-c"), 1, 2)}
        terms = [{"matchExpressions": [hosts if where == 1 else zones]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    found = cluster.add("PersistentVolume", "v1", f"volume-{number}", spec=spec, status={"phase": "Available"})
    found["metadata"] |= metadata
    return found


def limits(cluster: Cluster, pod: Raw) -> None:
    """Add limits of attached volumes, running pods that use volumes, and volumes of the pod itself."""
    draw = cluster.draw
    classes(cluster)
    for name in cluster.node_names:
        if draw.chance(80):
            driver: Raw = {"name": DRIVER, "nodeID": name, "topologyKeys": [HOSTNAME]}
            if draw.chance(80):
                driver["allocatable"] = {"count": draw.randint(1, 3)}
            cluster.add("CSINode", "storage.k8s.io/v1", name, spec={"drivers": [driver]})
    for other in draw.sample(cluster.pods, len(cluster.pods) // 2):
        for _ in range(draw.randint(1, 2)):
            mount(other, _attached(cluster, other["metadata"]["namespace"]))
    shared = [one for one in cluster.pods if one["metadata"]["namespace"] == pod["metadata"]["namespace"]]
    for _ in range(draw.randint(1, 2)):
        mount(pod, _attached(cluster, pod["metadata"]["namespace"]))
    mounted = [one["spec"]["volumes"][0]["persistentVolumeClaim"] for one in shared if one["spec"].get("volumes")]
    if mounted and draw.chance(30):
        mount(pod, draw.choice(mounted)["claimName"])


def _attached(cluster: Cluster, namespace: str) -> str:
    name = claim(cluster, namespace, "bound")
    cluster.others[-1]["spec"].pop("nodeAffinity", None)
    return name
