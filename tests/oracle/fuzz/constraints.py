"""Constraints that need no further objects: resources, ports, node affinity, taints, spread, pod affinity."""

from tests.oracle.fuzz.cluster import Cluster
from tests.oracle.fuzz.draws import EFFECTS, EXTENDED, NAMESPACES, REGION, TAINTS, TEAMS, ZONE, Draw, Raw


def resources(cluster: Cluster, pod: Raw) -> None:
    """Add containers of all kinds, overhead, extended resources and pod-level resources."""
    draw, spec = cluster.draw, pod["spec"]
    for place in range(draw.randint(0, 2)):
        spec["containers"].append(_container(draw, f"more{place}", spec["containers"][0]["image"]))
    for place in range(draw.choice((0, 0, 1, 2))):
        init = _container(draw, f"init{place}", "registry.example.com/tools:v1")
        if draw.chance(40):
            init["restartPolicy"] = "Always"
        spec.setdefault("initContainers", []).append(init)
    if draw.chance(20):
        spec["overhead"] = {"cpu": draw.cpu(10, 500), "memory": draw.memory(16, 256)}
    if draw.chance(20):
        spec["resources"] = {"requests": {"cpu": draw.cpu(4000, 9000), "memory": draw.memory(4096, 9000)}}
    if draw.chance(10):
        spec["containers"][0]["resources"]["requests"]["cpu"] = draw.choice(("0", "64", "100u"))


def _container(draw: Draw, name: str, image: str) -> Raw:
    requests = {}
    if draw.chance(70):
        requests["cpu"] = draw.cpu(10, 2000)
    if draw.chance(60):
        requests["memory"] = draw.memory(16, 4096)
    if draw.chance(20):
        requests["ephemeral-storage"] = draw.memory(100, 20000)
    resources: Raw = {"requests": requests}
    if draw.chance(25):
        requests[EXTENDED] = str(draw.randint(1, 3))
        resources["limits"] = {EXTENDED: requests[EXTENDED]}
    return {"name": name, "image": image, "resources": resources}


def ports(cluster: Cluster, pod: Raw) -> None:
    """Give the pod and some running pods host ports."""
    draw = cluster.draw
    _add_ports(draw, pod)
    for other in draw.sample(cluster.pods, len(cluster.pods) // 2):
        _add_ports(draw, other)


def _add_ports(draw: Draw, pod: Raw) -> None:
    found = {}
    for _ in range(draw.randint(1, 2)):
        host, protocol, address = draw.choice((80, 443, 8080)), draw.choice(("TCP", "TCP", "UDP")), ""
        if draw.chance(50):
            address = draw.choice(("0.0.0.0", "10.0.0.1", "127.0.0.1"))
        port = {"containerPort": host, "hostPort": host, "protocol": protocol}
        found[host, protocol] = port | ({"hostIP": address} if address else {})
    pod["spec"]["containers"][0]["ports"] = list(found.values())


def node_affinity(cluster: Cluster, pod: Raw) -> None:
    draw = cluster.draw
    affinity: Raw = {}
    if draw.chance(30):
        pod["spec"]["nodeSelector"] = draw.choice(({"disk": "ssd"}, {REGION: "r1"}, {ZONE: "zone-a"}))
    if draw.chance(70):
        terms = [_node_term(cluster) for _ in range(draw.randint(1, 2))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if draw.chance(70):
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draw.randint(1, 100), "preference": {"matchExpressions": [_node_expression(draw)]}}
            for _ in range(draw.randint(1, 3))
        ]
    pod["spec"].setdefault("affinity", {})["nodeAffinity"] = affinity


def _node_term(cluster: Cluster) -> Raw:
    draw = cluster.draw
    term: Raw = {}
    if draw.chance(20):
        names = draw.some(cluster.node_names, 1, 1)
        term["matchFields"] = [{"key": "metadata.name", "operator": draw.choice(("In", "NotIn")), "values": names}]
    if not term or draw.chance(60):
        term["matchExpressions"] = [_node_expression(draw) for _ in range(draw.randint(1, 2))]
    return term


def _node_expression(draw: Draw) -> Raw:
    key, values = draw.choice(
        (("disk", ["ssd", "hdd"]), (ZONE, ["zone-a", "zone-b", "zone-c"]), (REGION, ["r1"]), ("generation", ["1", "2"]))
    )
    if key == "generation" and draw.chance(60):
        return {"key": key, "operator": draw.choice(("Gt", "Lt")), "values": [draw.choice(("1", "5"))]}
    operator = draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": draw.some(values, 1, 2)}


def taints(cluster: Cluster, pod: Raw) -> None:
    draw, found = cluster.draw, []
    for key, value in draw.some(TAINTS, 1, 3):
        toleration: Raw = {"key": key, "operator": "Exists"}
        if draw.chance(50):
            toleration = {"key": key, "operator": "Equal", "value": value or "x"}
        if draw.chance(60):
            toleration["effect"] = draw.choice(EFFECTS)
        found.append(toleration)
    if draw.chance(10):
        found.append({"operator": "Exists"} | ({"effect": "NoSchedule"} if draw.chance(50) else {}))
    pod["spec"]["tolerations"] = found


def spread(cluster: Cluster, pod: Raw) -> None:
    draw, found = cluster.draw, {}
    for _ in range(draw.randint(1, 3)):
        key, action = draw.topology(), draw.choice(("DoNotSchedule", "ScheduleAnyway"))
        constraint: Raw = {"maxSkew": draw.randint(1, 3), "topologyKey": key, "whenUnsatisfiable": action}
        constraint["labelSelector"] = {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}
        if draw.chance(30):
            constraint["labelSelector"] = draw.selector()
        if action == "DoNotSchedule" and draw.chance(30):
            constraint["minDomains"] = draw.randint(1, 5)
        if draw.chance(20):
            constraint["nodeAffinityPolicy"] = draw.choice(("Honor", "Ignore"))
        if draw.chance(30):
            constraint["nodeTaintsPolicy"] = draw.choice(("Honor", "Ignore"))
        found[key, action] = constraint
    pod["spec"]["topologySpreadConstraints"] = list(found.values())


def pod_affinity(cluster: Cluster, pod: Raw) -> None:
    """Give the pod and some running pods terms of pod affinity and anti-affinity."""
    draw = cluster.draw
    _add_pod_affinity(draw, pod)
    for other in draw.sample(cluster.pods, len(cluster.pods) // 3):
        _add_pod_affinity(draw, other)


def _add_pod_affinity(draw: Draw, pod: Raw) -> None:
    affinity = pod["spec"].setdefault("affinity", {})
    for name in draw.some(("podAffinity", "podAntiAffinity"), 1, 2):
        found: Raw = {}
        if draw.chance(60):
            found["requiredDuringSchedulingIgnoredDuringExecution"] = [_pod_term(draw)]
        if not found or draw.chance(50):
            found["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": draw.randint(1, 100), "podAffinityTerm": _pod_term(draw)} for _ in range(draw.randint(1, 2))
            ]
        affinity[name] = found


def _pod_term(draw: Draw) -> Raw:
    term: Raw = {"topologyKey": draw.topology(), "labelSelector": draw.selector()}
    if draw.chance(25):
        term["namespaces"] = draw.some(NAMESPACES, 1, 2)
    if draw.chance(25):
        labels = {"team": draw.choice(tuple(TEAMS.values()))}
        term["namespaceSelector"] = {} if draw.chance(30) else {"matchLabels": labels}
    return term


def gates(cluster: Cluster, pod: Raw) -> None:
    if cluster.draw.chance(30):
        pod["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
