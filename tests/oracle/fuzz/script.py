"""Random operations of a trace."""

import copy
from collections.abc import Mapping
from typing import Final

from tests.oracle.fuzz.cases import CONSTRAINTS
from tests.oracle.fuzz.cluster import Cluster, node, pod
from tests.oracle.fuzz.constraints import gates
from tests.oracle.fuzz.devices import claims, taint_rule
from tests.oracle.fuzz.draws import Raw
from tests.oracle.fuzz.preemption import preemption
from tests.oracle.fuzz.volumes import bound_volume

_WEIGHTS: Final[Mapping[str, int]] = {
    "pod": 8,
    "advance": 6,
    "delete": 3,
    "resize": 2,
    "copies": 1,
    "node": 1,
    "relabel": 1,
    "taint": 1,
    "ungate": 1,
    "drop": 1,
    "relabel_pod": 1,
    "run": 1,
    "budget": 1,
    "devices": 1,
}
OPERATIONS = tuple(name for name, weight in _WEIGHTS.items() for _ in range(weight))
_BY_HAND = (*OPERATIONS, *("run",) * 8)
"""Those of a trace in which the scheduler does not run by itself."""
_OF_API = ("pod", "delete", "resize", "relabel", "taint", "relabel_pod", "drop", "node")
"""Those that may happen during an attempt."""
_CODES = (409, 500, 503, 429, 403)
_SENT_AGAIN = (500, 503)


class Script:
    """The operations of one trace. It knows the names that it has used, but not the effects of the scheduler."""

    operations: tuple[str, ...] = OPERATIONS

    def __init__(self, cluster: Cluster, *, autorun: bool = True) -> None:
        self._cluster = cluster
        names = self.operations if autorun else _BY_HAND
        self._operations = (*names, "fail") if cluster.draw.chance(40) else names
        self._pictured = {one["metadata"]["name"] for one in cluster.nodes if "images" in one["status"]}
        self._draw = cluster.draw
        self._pods = list(cluster.pods)
        self._nodes = cluster.node_names

    def operation(self) -> list[Raw]:
        """Return one operation, after operations that create the objects that it needs."""
        return self._one(self._draw.choice(self._operations))

    def _one(self, name: str) -> list[Raw]:
        found: list[Raw] = getattr(self, f"_{name}")()
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
        if self._classes() and draw.chance(30):
            claims(cluster, created)
        if draw.chance(20):
            preemption(cluster, created)
            created["status"].pop("nominatedNodeName", None)
        if draw.chance(15):
            gates(cluster, created)
        new = [*cluster.others[before[0] :], *cluster.pods[before[1] :]]
        self._pods.append(created)
        return [{"op": "create", "object": one} for one in (*self._unknown(new), created)]

    def _unknown(self, objects: list[Raw]) -> list[Raw]:
        """Exclude pending pods and PodDisruptionBudgets whose names exist."""
        return [one for one in objects if one["kind"] not in ("Pod", "PodDisruptionBudget")]

    def _advance(self) -> list[Raw]:
        return [{"op": "advance", "seconds": self._draw.choice((0.5, 1, 1, 2, 5, 10, 31, 310))}]

    def _run(self) -> list[Raw]:
        """Run the scheduler, sometimes for a few cycles only, with operations during the first cycle."""
        draw, operation = self._draw, Raw(op="run")
        if draw.chance(50):
            operation["cycles"] = draw.randint(1, 3)
        if draw.chance(25) and not self._classes():
            operation["hold"] = True  # an operation during the first cycle may cause preemption of the pod being bound
        if draw.chance(70 if "hold" in operation else 30):
            operation["during"] = self._one("pod" if draw.chance(50) else draw.choice(_OF_API))
        return [operation]

    def _copies(self) -> list[Raw]:
        """Create pods that differ only in their names, as those of one workload."""
        *before, created = self._pod()
        others = []
        for _ in range(self._draw.randint(1, 6)):
            other = copy.deepcopy(created)
            metadata = other["object"]["metadata"]
            metadata["name"] = f"p{self._cluster.number():03}"
            metadata["uid"] = f"{metadata['namespace']}-{metadata['name']}"
            self._pods.append(other["object"])
            others.append(other)
        return [*before, created, *others]

    def _fail(self) -> list[Raw]:
        """Make the scheduler's next requests with one verb fail."""
        draw, codes, most = self._draw, _CODES, 4
        verb = draw.choice(("bind", "patch", "delete") if self._cluster.minor >= 36 else ("bind", "patch"))
        if verb == "patch" and self._cluster.minor < 36:
            codes, most = _SENT_AGAIN, 3  # the victim's condition is written at the last retry
        return [{"op": "fail", "verb": verb, "code": draw.choice(codes), "times": draw.randint(1, most)}]

    def _classes(self) -> bool:
        return any(one["kind"] == "DeviceClass" for one in self._cluster.others)

    def _devices(self) -> list[Raw]:
        """Change the devices: delete or taint a slice, delete a claim, or add a rule that taints devices."""
        draw, cluster = self._draw, self._cluster
        if not self._classes():
            return self._advance()
        if cluster.minor >= 37 and draw.chance(30):
            return [{"op": "create", "object": taint_rule(cluster)}]
        kind = draw.choice(("ResourceSlice", "ResourceSlice", "ResourceClaim"))
        known = [one for one in cluster.others if one["kind"] == kind]
        if not known:
            return self._advance()
        found = draw.choice(known)
        names = {key: found["metadata"][key] for key in ("namespace", "name") if key in found["metadata"]}
        if kind == "ResourceClaim" or draw.chance(50):
            cluster.others.remove(found)
            return [{"op": "delete", "kind": kind, **names}]
        if not (devices := copy.deepcopy(found["spec"].get("devices"))):
            return self._advance()
        draw.choice(devices)["attributes"]["model"] = {"string": draw.choice(("t4", "a100"))}
        return [{"op": "patch", "kind": kind, **names, "patch": {"spec": {"devices": devices}}}]

    def _delete(self) -> list[Raw]:
        if not self._pods:
            return self._advance()
        metadata = self._pods.pop(self._draw.randrange(len(self._pods)))["metadata"]
        return [{"op": "delete", "kind": "Pod", "name": metadata["name"], "namespace": metadata["namespace"]}]

    def _node(self) -> list[Raw]:
        created = node(self._draw, f"node-{100 + self._cluster.number()}", ["zone-a", "zone-b"])
        created["status"].pop("images", None)  # kube-scheduler recounts images only on nodes that change
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
        bare = [name for name in self._nodes if name not in self._pictured]  # as above
        if len(self._nodes) < 2 or not bare:
            return self._node()
        name = self._draw.choice(bare)
        self._nodes.remove(name)
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
        """Change the labels of a pod, which other pods' selectors may match."""
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
