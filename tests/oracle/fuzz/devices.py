"""Devices of a pod: classes, pools of slices, claims in all modes, and devices in use."""

from tests.oracle.fuzz.cluster import Cluster
from tests.oracle.fuzz.draws import ZONE, Raw

GROUP = "resource.k8s.io/v1"
GPU = "gpu.example.com"
NET = "net.example.com"
MODELS = ("t4", "a100", "h100")

_LARGE = f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'
_EXPRESSIONS = (
    _LARGE,
    *(f'device.attributes["{GPU}"].model == "{model}"' for model in MODELS),
    f'device.attributes["{GPU}"].index < 1',
    f'"{GPU}" in device.attributes && device.attributes["{GPU}"].ecc',
)


def devices(cluster: Cluster, pod: Raw) -> None:
    """Give the pod one or two claims for devices; some devices are in use by running pods."""
    draw = cluster.draw
    pools(cluster)
    in_use(cluster)
    for place in range(draw.choice((1, 1, 2))):
        name = f"claim-{cluster.number()}"
        namespace = pod["metadata"]["namespace"]
        claim: Raw = {"devices": _claim(cluster)}
        cluster.add("ResourceClaim", GROUP, name, namespace, spec=claim, status={})
        _use(pod, f"d{place}", name)


def _use(pod: Raw, name: str, claim_name: str) -> None:
    spec = pod["spec"]
    spec.setdefault("resourceClaims", []).append({"name": name, "resourceClaimName": claim_name})
    spec["containers"][0]["resources"].setdefault("claims", []).append({"name": name})


def pools(cluster: Cluster) -> None:
    """Add the classes and, for most nodes, a slice of their own; some devices are reachable from several nodes."""
    draw = cluster.draw
    for name, driver in (("gpu", GPU), ("net", NET)):
        selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
        cluster.add("DeviceClass", GROUP, name, spec={"selectors": [selector]})
    for node in cluster.node_names:
        if draw.chance(75):
            _slice(cluster, GPU, node, {"nodeName": node})
    if draw.chance(40):
        zone = {"key": ZONE, "operator": "In", "values": draw.some(("zone-a", "zone-b"), 1, 2)}
        nodes: Raw = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
        _slice(cluster, NET, "net-pool", {"nodeSelector": nodes} if draw.chance(60) else {"allNodes": True})


def _slice(cluster: Cluster, driver: str, pool: str, where: Raw) -> None:
    draw = cluster.draw
    found = []
    for place in range(draw.randint(1, 4)):
        attributes: Raw = {
            "model": {"string": draw.choice(MODELS)},
            "index": {"int": place},
            "ecc": {"bool": draw.chance(50)},
            "numa": {"int": place % 2},
        }
        device: Raw = {"name": f"dev-{place}", "attributes": attributes}
        device["capacity"] = {"memory": {"value": draw.choice(("16Gi", "40Gi", "80Gi"))}}
        found.append(device)
    if cluster.minor >= 36:
        _newer(cluster, found)
    about = {"name": pool, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "pool": about, **where, "devices": found}
    cluster.add("ResourceSlice", GROUP, f"slice-{pool}", spec=spec)


def _newer(cluster: Cluster, devices: list[Raw]) -> None:
    """Add what releases since 1.36 look at: taints of devices, and devices that several claims share."""
    draw = cluster.draw
    for device in devices:
        if draw.chance(15):
            device["taints"] = [{"key": "broken", "value": "yes", "effect": draw.choice(("NoSchedule", "NoExecute"))}]
        if draw.chance(15):
            device["allowMultipleAllocations"] = True


def in_use(cluster: Cluster) -> None:
    """Allocate devices of some slices to running pods."""
    draw = cluster.draw
    slices = [one["spec"] for one in cluster.others if one["kind"] == "ResourceSlice" and "nodeName" in one["spec"]]
    by_node: dict[str, Raw] = {}
    for one in cluster.pods:
        by_node.setdefault(one["spec"]["nodeName"], one)
    for spec in slices:
        user = by_node.get(spec["nodeName"])
        whole = [device for device in spec["devices"] if not device.get("allowMultipleAllocations")]
        if user is None or not whole or not draw.chance(40):
            continue
        name, metadata = f"used-{cluster.number()}", user["metadata"]
        result = {"request": "r0", "driver": spec["driver"], "pool": spec["pool"]["name"]}
        result["device"] = draw.choice(whole)["name"]
        field = {"key": "metadata.name", "operator": "In", "values": [spec["nodeName"]]}
        selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        allocation: Raw = {"devices": {"results": [result]}, "nodeSelector": selector}
        reserved = {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
        cluster.add(
            "ResourceClaim",
            GROUP,
            name,
            metadata["namespace"],
            spec={"devices": {"requests": [{"name": "r0", "exactly": _exactly(1)}]}},
            status={"allocation": allocation, "reservedFor": [reserved]},
        )
        _use(user, "used", name)


def _exactly(count: int) -> Raw:
    return {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}


def _claim(cluster: Cluster) -> Raw:
    draw = cluster.draw
    requests: list[Raw] = []
    for place in range(draw.choice((1, 1, 2))):
        if draw.chance(20):
            choices = [{"name": f"s{number}", **_request(cluster)} for number in range(draw.randint(1, 3))]
            requests.append({"name": f"r{place}", "firstAvailable": choices})
        else:
            requests.append({"name": f"r{place}", "exactly": _request(cluster)})
    found: Raw = {"requests": requests}
    if draw.chance(25):
        attribute = f"{GPU}/{draw.choice(('model', 'numa'))}"
        found["constraints"] = [{"requests": [one["name"] for one in requests], "matchAttribute": attribute}]
    return found


def _request(cluster: Cluster) -> Raw:
    draw = cluster.draw
    request = _exactly(draw.choice((1, 1, 2, 3)))
    if draw.chance(10):
        request["deviceClassName"] = draw.choice(("net", "missing"))
    if draw.chance(10):
        request["allocationMode"] = "All"
        del request["count"]
    if draw.chance(40):
        request["selectors"] = [{"cel": {"expression": draw.choice(_EXPRESSIONS)}}]
    if cluster.minor >= 36 and draw.chance(20):
        request["tolerations"] = [{"key": "broken", "operator": "Exists"}]
    return request
