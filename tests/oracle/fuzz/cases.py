"""Random cases of one cluster and one pod, by family."""

from collections.abc import Callable, Mapping
from typing import Final

from tests.oracle.fuzz import constraints
from tests.oracle.fuzz.cluster import Cluster, cluster_of, pod
from tests.oracle.fuzz.configurations import configuration
from tests.oracle.fuzz.devices import devices
from tests.oracle.fuzz.draws import Draw, Raw
from tests.oracle.fuzz.extenders import extenders
from tests.oracle.fuzz.preemption import preemption
from tests.oracle.fuzz.volumes import limits, volumes

Feature = Callable[[Cluster, Raw], None]

CONSTRAINTS: Final[Mapping[str, Feature]] = {
    "resources": constraints.resources,
    "ports": constraints.ports,
    "nodeaffinity": constraints.node_affinity,
    "taints": constraints.taints,
    "spread": constraints.spread,
    "podaffinity": constraints.pod_affinity,
}
"""Those that need no further objects, so that a case of another family may have them, too."""

FAMILIES: Final[Mapping[str, tuple[Feature, ...]]] = {
    **{name: (feature,) for name, feature in CONSTRAINTS.items()},
    "gates": (constraints.gates,),
    "volumes": (volumes,),
    "limits": (limits,),
    "devices": (devices,),
    "preemption": (preemption,),
    "configurations": (),
    "extenders": (lambda cluster, target: extenders(cluster),),
    "mixed": (),
}


def case(seed: int, number: int, minor: int) -> Raw:
    """Return the case of this seed and number; families take turns."""
    family = tuple(FAMILIES)[number % len(FAMILIES)]
    draw = Draw(f"{seed}/{family}/{number}")
    nodes = draw.randint(2, 12) if draw.chance(30) else draw.randint(20, 100)
    cluster = cluster_of(draw, minor, nodes, crowded=family == "preemption")
    if family == "configurations" or draw.chance(10):
        configuration(cluster)
    target = pod(cluster, name="target")
    for feature in FAMILIES[family]:
        feature(cluster, target)
    mixed = family in ("configurations", "mixed")
    for name, feature in CONSTRAINTS.items():
        if name != family and draw.chance(50 if mixed else 12):
            feature(cluster, target)
    return {
        "id": f"{family}/{seed}-{number}",
        "family": family,
        "config": cluster.config,
        "objects": cluster.objects,
        "pod": target,
    }
