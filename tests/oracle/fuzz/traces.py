"""Random traces: a cluster, and 20 to 60 operations with pods, nodes, volumes, devices, budgets, faults and time."""

from typing import Final

from tests.oracle.fuzz.cluster import Cluster, cluster_of
from tests.oracle.fuzz.configurations import configuration
from tests.oracle.fuzz.devices import in_use, pools
from tests.oracle.fuzz.draws import Draw, Raw
from tests.oracle.fuzz.extenders import extenders
from tests.oracle.fuzz.script import Script

_GATES: dict[str, tuple[int, int]] = {
    "SchedulerPopFromBackoffQ": (34, 37),
    "OpportunisticBatching": (35, 37),
    "NominatedNodeNameForExpectation": (35, 37),
    "DRADeviceTaints": (36, 36),
    "DRAConsumableCapacity": (36, 36),
    "DRAPartitionableDevices": (36, 37),
}
"""Gates that are on by default, and the first and last minor version in which a trace may turn each off."""

_ON: Final = ("SchedulerAsyncAPICalls",)
"""Gates that are off by default, which a trace may turn on."""


def trace(seed: int, number: int, minor: int) -> Raw:
    """Return the trace of this seed and number."""
    draw = Draw(f"{seed}/traces/{number}")
    nodes = draw.randint(20, 60) if draw.chance(15) else draw.randint(1, 8)
    cluster = cluster_of(draw, minor, nodes, crowded=draw.chance(50))
    if draw.chance(25):
        configuration(cluster)
    if draw.chance(15):
        extenders(cluster)
    if draw.chance(25):
        pools(cluster)
        in_use(cluster)
        _ready_at_once(cluster)
    objects = cluster.objects
    autorun = draw.chance(75)
    script = Script(cluster, autorun=autorun)
    operations = [script.operation() for _ in range(draw.randint(20, 60))]
    return {
        "id": f"traces/{seed}-{number}",
        "family": "traces",
        "config": cluster.config,
        "feature_gates": _gates(cluster) if draw.chance(15) else {},
        "graceful_deletion": draw.chance(30),
        "autorun": autorun,
        "objects": objects,
        "ops": [operation for some in operations for operation in some],
    }


def _ready_at_once(cluster: Cluster) -> None:
    """Remove what kube-scheduler waits for by the real clock: binding conditions, and claims that it creates itself."""
    for one in cluster.others:
        one.get("spec", {}).pop("extendedResourceName", None)
        for device in one.get("spec", {}).get("devices") or () if one["kind"] == "ResourceSlice" else ():
            device.pop("bindingConditions", None)
            device.pop("bindingFailureConditions", None)


def _gates(cluster: Cluster) -> dict[str, bool]:
    """Return one feature gate with its non-default value."""
    known = [name for name, (first, last) in _GATES.items() if first <= cluster.minor <= last]
    name = cluster.draw.choice((*known, *_ON))
    return {name: name in _ON}
