"""Preemption by a pod: a crowded cluster, PodDisruptionBudgets of its possible victims, and nominated pods."""

from tests.oracle.fuzz.cluster import Cluster, pod
from tests.oracle.fuzz.draws import APPS, NAMESPACES, PRIORITIES, TIERS, Raw


def preemption(cluster: Cluster, preemptor: Raw) -> None:
    """Give the pod a large request and a high priority, and create PodDisruptionBudgets for the running pods."""
    draw = cluster.draw
    preemptor["spec"]["priority"] = draw.choice((50, 500, 2000))
    preemptor["spec"]["preemptionPolicy"] = "PreemptLowerPriority"
    preemptor["spec"]["containers"][0]["resources"]["requests"]["cpu"] = draw.cpu(2000, 9000)
    for number, namespace in enumerate(draw.some(NAMESPACES, 0, 3)):
        labels = {"app": draw.choice(APPS)} if draw.chance(70) else {"tier": draw.choice(TIERS)}
        allowed = draw.choice((0, 0, 1, 2))
        cluster.add(
            "PodDisruptionBudget",
            "policy/v1",
            f"budget-{number}",
            namespace,
            spec={"selector": {"matchLabels": labels}, "minAvailable": 1},
            status={
                "disruptionsAllowed": allowed,
                "currentHealthy": allowed + 1,
                "desiredHealthy": 1,
                "expectedPods": allowed + 1,
            },
        )
    for _ in range(draw.choice((0, 0, 1, 2))):
        nominated = pod(cluster)
        nominated["spec"]["priority"] = draw.choice(PRIORITIES)
        nominated["status"]["nominatedNodeName"] = draw.choice(cluster.node_names)
        cluster.pods.append(nominated)
    if draw.chance(10):
        preemptor["status"]["nominatedNodeName"] = draw.choice(cluster.node_names)
