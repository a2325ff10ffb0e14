"""Random traces that resize running pods: deferred, increased, decreased, completed, or infeasible on the node."""

from tests.oracle.fuzz.cluster import Cluster, cluster_of
from tests.oracle.fuzz.draws import Draw, Raw
from tests.oracle.fuzz.script import OPERATIONS, Script

_OPERATIONS = (*OPERATIONS, *("grow",) * 10, *("settle",) * 3, *("forbid", "run", "advance") * 2)


def resize_trace(seed: int, number: int, minor: int) -> Raw:
    """Return the trace of this seed and number."""
    draw = Draw(f"{seed}/resizes/{number}")
    cluster = cluster_of(draw, minor, draw.randint(1, 5), crowded=True)
    for one in cluster.nodes:
        one["status"].pop("images", None)  # kube-scheduler recounts images only on nodes that change
    script = ResizeScript(cluster)
    objects = cluster.objects
    operations = [script.operation() for _ in range(draw.randint(15, 45))]
    return {
        "id": f"resizes/{seed}-{number}",
        "family": "traces",
        "config": cluster.config,
        "feature_gates": {"InPlacePodVerticalScalingSchedulerPreemption": True},
        "graceful_deletion": draw.chance(30),
        "autorun": draw.chance(70),
        "objects": objects,
        "ops": [operation for some in operations for operation in some],
    }


class ResizeScript(Script):
    """The operations of one trace with resized pods."""

    operations = _OPERATIONS

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._running = [one for one in cluster.pods if one["spec"].get("nodeName")]

    def _grow(self) -> list[Raw]:
        """Change the request of a running pod; its kubelet defers it, reports it infeasible, or reports nothing."""
        draw = self._draw
        if not self._running:
            return self._advance()
        found = draw.choice(self._running)
        [container] = found["spec"]["containers"][:1]
        before = container["resources"]["requests"]
        container = {**container, "resources": {"requests": {**before, "cpu": draw.cpu(100, 9000)}}}
        if draw.chance(30):
            container["resources"]["requests"]["memory"] = draw.memory(64, 8192)
        reason = draw.choice(("Deferred", "Deferred", "Deferred", "Deferred", "Infeasible", ""))
        pending = {"type": "PodResizePending", "status": "True", "reason": reason}
        reported = {"name": "c0", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
        reported |= {"allocatedResources": before, "resources": {"requests": before}}
        status = {"conditions": [pending] if reason else [], "containerStatuses": [reported]}
        return self._patch_pod(found, {"spec": {"containers": [container]}, "status": status})

    def _settle(self) -> list[Raw]:
        """Complete the resize of a running pod, as its kubelet does."""
        if not self._running:
            return self._advance()
        return self._patch_pod(self._draw.choice(self._running), {"status": {"conditions": []}})

    def _forbid(self) -> list[Raw]:
        policy = {"disableResizePreemption": ["PodResize"]} if self._draw.chance(60) else None
        return self._patch_node({"spec": {"podPreemptionPolicy": policy}})
