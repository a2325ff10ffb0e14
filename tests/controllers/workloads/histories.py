"""Random histories of a cluster with workloads of one kind.

Pods run, fail, are relabeled, orphaned, given finalizers and deleted. Nodes are added and removed, specs change, owners
are created again under the same name, time passes, and the controllers restart.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.jobs.jobs import Jobs
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.templates import controller_reference
from kschedd.controllers.workloads.daemonsets import DaemonSets
from kschedd.controllers.workloads.deployments import Deployments
from kschedd.controllers.workloads.replicasets import ReplicaSets
from kschedd.controllers.workloads.statefulsets import StatefulSets
from kschedd.store.deletion import Propagation
from kschedd.store.errors import ApiError
from kschedd.store.store import Store
from tests.store.manifests import Clock, node, pod, workload

Raw = dict[str, Any]
NAMES: Final = ("web", "shop")
HASH: Final = "controller-revision-hash"


def replica_set(name: str, chance: random.Random) -> Raw:
    return workload("ReplicaSet", name, replicas=chance.randrange(5), minReadySeconds=0)


def deployment(name: str, chance: random.Random) -> Raw:
    return workload("Deployment", name, replicas=chance.randrange(6), revisionHistoryLimit=1)


def stateful_set(name: str, chance: random.Random) -> Raw:
    made = workload("StatefulSet", name, replicas=chance.randrange(6), serviceName=name)
    made["spec"]["podManagementPolicy"] = chance.choice(("Parallel", "OrderedReady"))
    made["spec"]["updateStrategy"] = chance.choice(ROLLING)
    if chance.randrange(3):
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        made["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
        made["spec"]["persistentVolumeClaimRetentionPolicy"] = a_retention(chance)
    return made


def a_retention(chance: random.Random) -> Raw:
    return {when: chance.choice(("Delete", "Retain")) for when in ("whenScaled", "whenDeleted")}


def daemon_set(name: str, chance: random.Random) -> Raw:
    made = workload("DaemonSet", name)
    del made["spec"]["replicas"]
    made["spec"]["updateStrategy"] = chance.choice(ROLLING_DAEMONS)
    if chance.randrange(2):
        made["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    return made


def job(name: str, chance: random.Random) -> Raw:
    indexed = chance.randrange(2)
    restarts = chance.choice(("Never", "OnFailure"))
    spec: Raw = {
        "parallelism": chance.randrange(5),
        "completions": chance.randrange(2, 8),
        "backoffLimit": chance.choice((1, 6)),
        "template": {"spec": {"restartPolicy": restarts, "containers": [{"name": "a", "image": "a"}]}},
    }
    if indexed:
        spec["completionMode"] = "Indexed"
        if chance.randrange(2):
            spec["successPolicy"] = {"rules": [{"succeededIndexes": "0-1", "succeededCount": 1}]}
        elif restarts == "Never" and chance.randrange(2):
            spec |= {"backoffLimitPerIndex": 1, "maxFailedIndexes": 2}
    elif restarts == "Never" and chance.randrange(2):
        rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        spec["podFailurePolicy"] = {"rules": [rule]}
    if chance.randrange(3) == 0:
        spec["manualSelector"] = True
        spec["selector"] = {"matchLabels": {"app": name}}
        spec["template"]["metadata"] = {"labels": {"app": name}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


ROLLING: Final = (
    {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
    {"type": "OnDelete"},
)
ROLLING_DAEMONS: Final = (
    {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
    {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "maxSurge": 0}},
    {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 2}},
    {"type": "OnDelete"},
)
WAYS: Final[tuple[Propagation, ...]] = ("Background", "Foreground", "Orphan")
MAKERS: Final[dict[str, Callable[[str, random.Random], Raw]]] = {
    "ReplicaSet": replica_set,
    "Deployment": deployment,
    "StatefulSet": stateful_set,
    "DaemonSet": daemon_set,
    "Job": job,
}


def controllers() -> list[Controller]:
    return [Deployments(), ReplicaSets(), DaemonSets(), StatefulSets(), Jobs(), GarbageCollector()]


class History:
    """One of a kind's: A random history; `step` makes a change, and `settle` lets the controllers react."""

    def __init__(self, kind: str, seed: int, nodes: int = 4) -> None:
        self.kind = kind
        self.chance = random.Random(f"{kind} {seed}")
        self.clock = Clock()
        self.store = Store(now=self.clock, seed=seed)
        self.runner = ControllerRunner(self.store, controllers())
        for number in range(nodes):
            self.store.create(node(f"n{number}"))
        for name in NAMES:
            self.store.create(MAKERS[kind](name, self.chance))
        self.settle()

    def settle(self) -> None:
        self.runner.run_until_idle()
        for _ in range(3):
            at = self.runner.next_deadline
            if at is None or at > self.clock.now + 2:
                return
            self.clock.now = max(at, self.clock.now)
            self.runner.run_until_idle()

    def restart(self) -> None:
        """Restart the controllers with the current objects."""
        self.runner = ControllerRunner(self.store, controllers())

    def any_of(self, kind: str) -> Object | None:
        found: Sequence[Object] = self.store.list(kind)
        return self.chance.choice(found) if found else None

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            for _ in range(self.chance.randrange(1, 4)):
                self.step()
            self.settle()

    def step(self) -> None:
        with suppress(ApiError):  # the API server rejects some random changes
            self.do_something()

    def do_something(self) -> None:
        chance = self.chance
        match chance.randrange(22):
            case 0 | 1 | 2 | 3 | 4:
                self.run_pod()
            case 5 | 6:
                self.end_pod()
            case 7 | 8:
                self.delete_pod()
            case 9:
                self.relabel_pod()
            case 10:
                self.create_orphan()
            case 11:
                self.orphan_pod()
            case 12 | 13 | 14:
                self.change_spec()
            case 15:
                self.change_nodes()
            case 16:
                self.clock.now += chance.choice((1, 7, 40, 700))
            case 17:
                self.replace_owner()
            case 18:
                self.change_claims()
            case 19 if not chance.randrange(3):
                self.restart()
            case 20 | 21:
                self.calm_down()

    # -- pods -------------------------------------------------------------------------------------------------------

    def run_pod(self) -> None:
        chosen, chance = self.any_of("Pod"), self.chance
        if chosen is None or chosen.status.get("phase") in ("Failed", "Succeeded"):
            return
        if not chosen.raw["spec"].get("nodeName") and chance.randrange(4):
            there = self.any_of("Node")
            wanted = chosen.pod_spec.required_node if isinstance(chosen, Pod) else None
            if there is not None:
                self.store.bind("default", chosen.name, wanted or there.name)
            return
        at = stamp(self.clock.now - chance.choice((0, 5, 40)))
        answer = {"type": "Ready", "status": chance.choice(("True", "True", "False")), "lastTransitionTime": at}
        counts = [{"name": "a", "image": "a", "imageID": "", "ready": True, "restartCount": chance.randrange(2)}]
        status = {"phase": "Running", "conditions": [answer]}
        if self.kind == "Job":
            status["containerStatuses"] = counts
        self.store.patch_status("Pod", "default", chosen.name, status)

    def calm_down(self) -> None:
        """Let all pods run, including newly created ones."""
        for _ in range(self.chance.randrange(1, 9)):
            self.settle()
            for each in self.store.list("Pod"):
                if each.deleting:
                    self.store.delete("Pod", "default", each.name, grace_period_s=0)
                elif each.status.get("phase") == "Pending":
                    at = stamp(self.clock.now)
                    answer = {"type": "Ready", "status": "True", "lastTransitionTime": at}
                    self.store.patch_status("Pod", "default", each.name, {"phase": "Running", "conditions": [answer]})
            self.clock.now += self.chance.choice((0, 11))

    def end_pod(self) -> None:
        chosen = self.any_of("Pod")
        if chosen is None or chosen.status.get("phase") in ("Failed", "Succeeded"):
            return
        status: Raw = {"phase": self.chance.choice(("Failed", "Succeeded"))}
        if not self.chance.randrange(3):
            status["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
        self.store.patch_status("Pod", "default", chosen.name, status)

    def delete_pod(self) -> None:
        chosen, chance = self.any_of("Pod"), self.chance
        if chosen is None:
            return
        if not chance.randrange(4):
            held = chosen.metadata.get("finalizers") or []
            after = [] if "example.com/held" in held else [*held, "example.com/held"]
            self.store.merge_patch("Pod", "default", chosen.name, {"metadata": {"finalizers": after or None}})
        self.store.delete("Pod", "default", chosen.name, grace_period_s=chance.choice((0, 30)))

    def relabel_pod(self) -> None:
        chosen = self.any_of("Pod")
        if chosen is not None:
            labels = {"app": self.chance.choice((*NAMES, "none"))}
            labels |= self.chance.choice(({}, {HASH: "other"}, {"pod-template-generation": "1"}))
            self.store.merge_patch("Pod", "default", chosen.name, {"metadata": {"labels": labels}})

    def create_orphan(self) -> None:
        owner = self.chance.choice(NAMES)
        name = f"orphan-{self.store.version}"
        if self.kind == "StatefulSet":
            name = f"{owner}-{self.chance.choice(('0', '1', '01', '7', '07', 'x'))}"
        orphan = pod(name, **({"nodeName": "n1"} if self.kind == "DaemonSet" else {}))
        orphan["metadata"]["labels"]["app"] = owner
        found = self.store.find(self.kind, "default", owner)
        if found is not None and not self.chance.randrange(3):  # as if another client had created it for its owner
            orphan["metadata"]["ownerReferences"] = [controller_reference(found)]
        self.store.create(orphan)

    def orphan_pod(self) -> None:
        chosen = self.any_of("Pod")
        if chosen is not None:
            self.store.merge_patch("Pod", "default", chosen.name, {"metadata": {"ownerReferences": None}})

    # -- owners, nodes, claims --------------------------------------------------------------------------------------

    def change_spec(self) -> None:
        name, chance = self.chance.choice(NAMES), self.chance
        image = {"template": {"spec": {"containers": [{"name": "app", "image": chance.choice(("a", "b", "c"))}]}}}
        changes: list[Raw]
        if self.kind == "Job":
            some = chance.randrange(6)
            changes = [{"parallelism": some}, {"suspend": bool(chance.randrange(2))}]
            changes.append({"parallelism": some, "completions": some})
        elif self.kind == "DaemonSet":
            selectors = ({"disk": "ssd"}, {"disk": None})
            changes = [image, {"template": {"spec": {"nodeSelector": chance.choice(selectors)}}}]
            changes += [{"updateStrategy": chance.choice(ROLLING_DAEMONS)}, {"minReadySeconds": chance.choice((0, 10))}]
        else:
            changes = [{"replicas": chance.randrange(7)}, {"minReadySeconds": chance.choice((0, 10))}]
        if self.kind == "StatefulSet":
            changes += [image, {"updateStrategy": chance.choice(ROLLING)}, {"ordinals": {"start": chance.randrange(3)}}]
            changes.append({"persistentVolumeClaimRetentionPolicy": a_retention(chance)})
        if self.kind == "Deployment":
            changes += [image, {"paused": bool(chance.randrange(2))}]
        self.store.merge_patch(self.kind, "default", name, {"spec": chance.choice(changes)})

    def change_nodes(self) -> None:
        chance = self.chance
        name = f"n{chance.randrange(6)}"
        there = self.store.find("Node", "", name)
        if there is None:
            self.store.create(node(name))
        elif not chance.randrange(3):
            self.store.delete("Node", "", name)
        elif chance.randrange(2):
            self.store.merge_patch("Node", "", name, {"metadata": {"labels": {"disk": chance.choice(("ssd", None))}}})
        else:
            effect = chance.choice(("NoSchedule", "NoExecute"))
            taints = chance.choice(([], [{"key": "k", "effect": effect}]))
            self.store.merge_patch("Node", "", name, {"spec": {"taints": taints}})

    def replace_owner(self) -> None:
        name, chance = self.chance.choice(NAMES), self.chance
        if self.store.find(self.kind, "default", name) is not None:
            self.store.delete(self.kind, "default", name, propagation=chance.choice(WAYS))
            if chance.randrange(2):
                self.settle()
        if self.store.find(self.kind, "default", name) is None:
            self.store.create(MAKERS[self.kind](name, chance))

    def change_claims(self) -> None:
        chosen = self.any_of("PersistentVolumeClaim")
        if chosen is None:
            return
        if self.chance.randrange(2):
            self.store.delete("PersistentVolumeClaim", "default", chosen.name)
        else:
            self.store.merge_patch(
                "PersistentVolumeClaim", "default", chosen.name, {"metadata": {"ownerReferences": None}}
            )

    # -- what came of it --------------------------------------------------------------------------------------------

    def reported(self) -> list[tuple[str, Raw]]:
        """Everything that the controllers wrote."""
        return [(event.type, dict(event.new.raw)) for event in self.store.written_after(0)]
