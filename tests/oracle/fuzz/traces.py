"""Random traces: a small cluster, and 20 to 60 operations with pods, nodes, volumes, budgets and time."""

from tests.oracle.fuzz.cases import CONSTRAINTS
from tests.oracle.fuzz.cluster import Cluster, cluster_of, node, pod
from tests.oracle.fuzz.configurations import configuration
from tests.oracle.fuzz.constraints import gates
from tests.oracle.fuzz.draws import Draw, Raw
from tests.oracle.fuzz.preemption import preemption
from tests.oracle.fuzz.volumes import bound_volume

OPERATIONS = (
    *("pod",) * 8,
    *("advance",) * 6,
    *("resize",) * 2,
    *("delete",) * 3,
    *("node", "relabel", "taint", "ungate", "drop", "relabel_pod", "run", "budget"),
)


def trace(seed: int, number: int, minor: int) -> Raw:
    """Return the trace of this seed and number."""
    draw = Draw(f"{seed}/traces/{number}")
    cluster = cluster_of(draw, minor, draw.randint(1, 8), crowded=draw.chance(50))
    if draw.chance(25):
        configuration(cluster)
    objects = cluster.objects
    script = Script(cluster)
    operations = [script.operation() for _ in range(draw.randint(20, 60))]
    return {
        "id": f"traces/{seed}-{number}",
        "family": "traces",
        "config": cluster.config,
        "feature_gates": {},
        "graceful_deletion": draw.chance(30),
        "autorun": draw.chance(85),
        "objects": objects,
        "ops": [operation for some in operations for operation in some],
    }


class Script:
    """The operations of one trace. It knows the names that were given out, not what the scheduler did to them."""

    operations = OPERATIONS

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._draw = cluster.draw
        self._pods = list(cluster.pods)
        self._nodes = cluster.node_names

    def operation(self) -> list[Raw]:
        """Return one operation, after those that create what it needs."""
        found: list[Raw] = getattr(self, f"_{self._draw.choice(self.operations)}")()
        return found

    def _pod(self) -> list[Raw]:
        draw, cluster = self._draw, self._cluster
        before = len(cluster.others), len(cluster.pods)
        created = pod(cluster, large=draw.chance(50))
        for name, feature in CONSTRAINTS.items():
            if name not in ("ports", "podaffinity") and draw.chance(10):
                feature(cluster, created)
        if draw.chance(15):
            cluster_pods, cluster.pods = cluster.pods, []
            CONSTRAINTS[draw.choice(("ports", "podaffinity"))](cluster, created)
            cluster.pods = cluster_pods
        if draw.chance(10):
            bound_volume(cluster, created)
        if draw.chance(20):
            preemption(cluster, created)
            created["status"].pop("nominatedNodeName", None)
        if draw.chance(15):
            gates(cluster, created)
        new = [*cluster.others[before[0] :], *cluster.pods[before[1] :]]
        self._pods.append(created)
        return [{"op": "create", "object": one} for one in (*self._unknown(new), created)]

    def _unknown(self, objects: list[Raw]) -> list[Raw]:
        """Leave out pending pods and budgets of a name that exists."""
        return [one for one in objects if one["kind"] not in ("Pod", "PodDisruptionBudget")]

    def _advance(self) -> list[Raw]:
        return [{"op": "advance", "seconds": self._draw.choice((0.5, 1, 1, 2, 5, 10, 31, 310))}]

    def _run(self) -> list[Raw]:
        return [{"op": "run"}]

    def _delete(self) -> list[Raw]:
        if not self._pods:
            return self._advance()
        metadata = self._pods.pop(self._draw.randrange(len(self._pods)))["metadata"]
        return [{"op": "delete", "kind": "Pod", "name": metadata["name"], "namespace": metadata["namespace"]}]

    def _node(self) -> list[Raw]:
        created = node(self._draw, f"node-{100 + self._cluster.number()}", ["zone-a", "zone-b"])
        created["status"].pop("images", None)  # kube-scheduler counts images anew only on nodes that change
        self._nodes.append(created["metadata"]["name"])
        return [{"op": "create", "object": created}]

    def _patch_node(self, patch: Raw) -> list[Raw]:
        if not self._nodes:
            return self._node()
        return [{"op": "patch", "kind": "Node", "name": self._draw.choice(self._nodes), "patch": patch}]

    def _resize(self) -> list[Raw]:
        amounts = {"cpu": self._draw.cpu(1000, 16000), "memory": self._draw.memory(4096, 32768), "pods": "110"}
        return self._patch_node({"status": {"allocatable": amounts}})

    def _relabel(self) -> list[Raw]:
        labels = {"disk": self._draw.choice(("ssd", "hdd", None)), "generation": self._draw.choice(("1", "7", None))}
        return self._patch_node({"metadata": {"labels": labels}})

    def _taint(self) -> list[Raw]:
        taint = {"key": "spot", "effect": "NoSchedule"}
        return self._patch_node({"spec": {"taints": [taint] if self._draw.chance(50) else None}})

    def _drop(self) -> list[Raw]:
        if len(self._nodes) < 2:
            return self._node()
        name = self._nodes.pop(self._draw.randrange(len(self._nodes)))
        return [{"op": "delete", "kind": "Node", "name": name}]

    def _patch_pod(self, found: Raw, patch: Raw) -> list[Raw]:
        metadata = found["metadata"]
        names = {"name": metadata["name"], "namespace": metadata["namespace"]}
        return [{"op": "patch", "kind": "Pod", **names, "patch": patch}]

    def _ungate(self) -> list[Raw]:
        gated = [one for one in self._pods if one["spec"].get("schedulingGates")]
        if not gated:
            return self._advance()
        return self._patch_pod(self._draw.choice(gated), {"spec": {"schedulingGates": None}})

    def _relabel_pod(self) -> list[Raw]:
        """Change the labels of a pod, on which others' selectors depend."""
        if not self._pods:
            return self._advance()
        return self._patch_pod(self._draw.choice(self._pods), {"metadata": {"labels": self._draw.labels()}})

    def _budget(self) -> list[Raw]:
        before = len(self._cluster.others)
        pods = list(self._cluster.pods)
        preemption(self._cluster, pod(self._cluster))
        self._cluster.pods[:] = pods
        budgets = self._cluster.others[before:]
        for one in budgets:
            one["metadata"]["name"] += f"-{self._cluster.number()}"
            one["metadata"]["uid"] += f"-{self._cluster.number()}"
        return [{"op": "create", "object": one} for one in budgets] or self._advance()
