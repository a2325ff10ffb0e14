"""Configurations with several profiles, weights, arguments, and disabled plugins."""

from tests.oracle.fuzz.cluster import Cluster
from tests.oracle.fuzz.draws import HOSTNAME, ZONE, Draw, Raw

API_VERSION = "kubescheduler.config.k8s.io/v1"
SCORES = (
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "InterPodAffinity",
    "NodeAffinity",
    "PodTopologySpread",
    "TaintToleration",
)
FILTERS = ("NodePorts", "NodeAffinity", "TaintToleration", "NodeUnschedulable", "PodTopologySpread", "InterPodAffinity")


def configuration(cluster: Cluster) -> None:
    """Give the cluster a configuration of one or two profiles, one of which each pod names."""
    draw = cluster.draw
    profiles = [{"schedulerName": "default-scheduler", **_profile(draw)}]
    if draw.chance(40):
        profiles.append({"schedulerName": "second", **_profile(draw)})
        cluster.scheduler_names.append("second")
    cluster.config = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", "profiles": profiles}


def _profile(draw: Draw) -> Raw:
    plugins: Raw = {}
    if draw.chance(60):
        weighted = draw.some(SCORES, 1, 3)
        enabled = [{"name": name, "weight": draw.choice((1, 3, 10, 100))} for name in weighted]
        plugins["score"] = {"disabled": [{"name": name} for name in weighted], "enabled": enabled}
        if draw.chance(30):
            plugins["score"]["disabled"] = [{"name": "*"}]
    if draw.chance(30):
        plugins["filter"] = {"disabled": [{"name": name} for name in draw.some(FILTERS, 1, 2)]}
    if draw.chance(15):
        plugins["postFilter"] = {"disabled": [{"name": "*"}]}
    arguments = [_arguments(name, fields) for name, fields in draw.some(_choices(draw), 0, 3)]
    return {"plugins": plugins, "pluginConfig": arguments}


def _arguments(name: str, fields: Raw) -> Raw:
    return {"name": name, "args": {"apiVersion": API_VERSION, "kind": f"{name}Args", **fields}}


def _choices(draw: Draw) -> list[tuple[str, Raw]]:
    resources = [{"name": "cpu", "weight": draw.randint(1, 5)}, {"name": "memory", "weight": 1}]
    strategy: Raw = {"type": draw.choice(("MostAllocated", "LeastAllocated")), "resources": resources}
    if draw.chance(40):
        shape = [{"utilization": 0, "score": draw.randint(0, 10)}, {"utilization": 100, "score": draw.randint(0, 10)}]
        strategy = {"type": "RequestedToCapacityRatio", "resources": resources}
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    spread = [
        {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}
        for key in draw.some((ZONE, HOSTNAME), 1, 2)
    ]
    zone = {"key": ZONE, "operator": "In", "values": ["zone-a", "zone-b"]}
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}
    return [
        ("NodeResourcesFit", {"scoringStrategy": strategy}),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 1}]}),
        ("InterPodAffinity", {"hardPodAffinityWeight": draw.choice((0, 1, 50, 100))}),
        ("PodTopologySpread", {"defaultConstraints": spread, "defaultingType": "List"}),
        ("NodeAffinity", {"addedAffinity": added}),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": 100}),
    ]
