"""Devices for a pod: classes, pools of slices, claims with all allocation modes, and allocated devices."""

from tests.oracle.fuzz.cluster import Cluster
from tests.oracle.fuzz.draws import ZONE, Draw, Raw

GROUP = "resource.k8s.io/v1"
GPU = "gpu.example.com"
NET = "net.example.com"
EXTENDED_GPU = "gpu.example.com/any"
MODELS = ("t4", "a100", "h100")

_LARGE = f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'
_EXPRESSIONS = (
    _LARGE,
    *(f'device.attributes["{GPU}"].model == "{model}"' for model in MODELS),
    f'device.attributes["{GPU}"].index < 1',
    f'"{GPU}" in device.attributes && device.attributes["{GPU}"].ecc',
)


def devices(cluster: Cluster, pod: Raw) -> None:
    """Give the pod one or two claims for devices; running pods use some of the devices."""
    pools(cluster)
    in_use(cluster)
    claims(cluster, pod)


def claims(cluster: Cluster, pod: Raw) -> None:
    """Give the pod one or two claims, or a request for an extended resource of a DeviceClass."""
    draw = cluster.draw
    if draw.chance(10):
        resources = pod["spec"]["containers"][0]["resources"]
        resources["limits"] = resources.setdefault("limits", {}) | {EXTENDED_GPU: "1"}
        resources["requests"][EXTENDED_GPU] = "1"
        if draw.chance(70):
            return
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
    """Add the classes and, for most nodes, a slice; some devices are accessible from several nodes."""
    draw = cluster.draw
    for name, driver in (("gpu", GPU), ("net", NET)):
        spec: Raw = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
        if name == "gpu" and draw.chance(30):
            spec["extendedResourceName"] = EXTENDED_GPU
        cluster.add("DeviceClass", GROUP, name, spec=spec)
    for node in cluster.node_names:
        if draw.chance(75):
            _slice(cluster, GPU, node, {"nodeName": node})
    if draw.chance(40):
        zone = {"key": ZONE, "operator": "In", "values": draw.some(("zone-a", "zone-b"), 1, 2)}
        nodes: Raw = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
        _slice(cluster, NET, "net-pool", {"nodeSelector": nodes} if draw.chance(60) else {"allNodes": True})
    if cluster.minor >= 37 and draw.chance(25):
        taint_rule(cluster)


def taint_rule(cluster: Cluster) -> Raw:
    """Add a rule that taints the devices of one node, or one device on every node."""
    draw = cluster.draw
    taint = {"key": "broken", "value": "yes", "effect": draw.choice(("NoSchedule", "NoExecute", "None"))}
    spec: Raw = {"taint": taint | {"timeAdded": "2025-01-01T00:00:00Z"}}
    where = draw.choice(({"driver": GPU}, {"pool": draw.choice(cluster.node_names)}, {"device": "dev-0"}))
    spec["deviceSelector"] = where
    return cluster.add("DeviceTaintRule", GROUP, f"rule-{cluster.number()}", spec=spec)


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
    counters = _newer(cluster, found) if cluster.minor >= 36 or draw.chance(15) else None
    slices = [{"devices": found}]
    if len(found) > 1 and draw.chance(15):
        middle = draw.randint(1, len(found) - 1)
        slices = [{"devices": found[:middle]}, {"devices": found[middle:]}]
    if counters is not None:
        slices.append({"sharedCounters": [counters]})
    missing = 1 if draw.chance(3) else 0
    for place, parts in enumerate(slices):
        generation = 2 if draw.chance(2) else 1
        about = {"name": pool, "generation": generation, "resourceSliceCount": len(slices) + missing}
        spec = {"driver": driver, "pool": about, **where, **parts}
        cluster.add("ResourceSlice", GROUP, f"slice-{pool}-{place}", spec=spec)


def _newer(cluster: Cluster, devices: list[Raw]) -> Raw | None:
    """Add device features that are enabled by default since 1.36; return the counters that the devices share, if any.

    These are taints, shared devices, binding conditions, and counters.
    """
    draw = cluster.draw
    for device in devices:
        if draw.chance(15):
            device["taints"] = [{"key": "broken", "value": "yes", "effect": draw.choice(("NoSchedule", "NoExecute"))}]
        if draw.chance(15):
            device["allowMultipleAllocations"] = True
            if draw.chance(60):
                device["capacity"]["memory"]["requestPolicy"] = _policy(draw)
        if draw.chance(5):
            device["bindingConditions"] = ["example.com/attached"]
            device["bindingFailureConditions"] = ["example.com/failed"]
    if not draw.chance(20):
        return None
    for device in devices:
        amount = {"units": {"value": str(draw.randint(1, 2))}}
        device["consumesCounters"] = [{"counterSet": "shared", "counters": amount}]
    return {"name": "shared", "counters": {"units": {"value": str(draw.randint(1, 4))}}}


def _policy(draw: Draw) -> Raw:
    if draw.chance(50):
        return {"default": "1Gi", "validValues": ["1Gi", "2Gi", "8Gi"]}
    return {"default": "2Gi", "validRange": {"min": "2Gi", "max": "16Gi", "step": "2Gi"}}


def in_use(cluster: Cluster) -> None:
    """Allocate devices of some slices to running pods."""
    draw = cluster.draw
    found = [one["spec"] for one in cluster.others if one["kind"] == "ResourceSlice"]
    slices = [spec for spec in found if "nodeName" in spec and spec.get("devices")]
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
        kind = "distinctAttribute" if cluster.minor >= 36 and draw.chance(30) else "matchAttribute"
        found["constraints"] = [{"requests": [one["name"] for one in requests], kind: attribute}]
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
    if cluster.minor >= 36 and draw.chance(20):
        request["capacity"] = {"requests": {"memory": draw.choice(("1Gi", "3Gi", "8Gi", "40Gi"))}}
    return request
