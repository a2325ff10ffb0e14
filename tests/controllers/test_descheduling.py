"""Tests of the descheduler that runs as a controller."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kschedd.api.objects import Object, parse
from kschedd.api.text.times import stamp
from kschedd.controllers.copies import copy_of
from kschedd.controllers.descheduling import Descheduler
from kschedd.descheduler.policy import read_policy
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.store.errors import TooManyRequests
from kschedd.store.writes import Create, Evict, Write

NOW = 1_800_000_000.0
POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
{MORE}
profiles:
- name: age
  pluginConfig:
  - {name: DefaultEvictor, args: {}}
  - {name: PodLifeTime, args: {maxPodLifeTimeSeconds: 600}}
  plugins: {deschedule: {enabled: [PodLifeTime]}}
"""
NODE = "{apiVersion: v1, kind: Node, metadata: {name: %s}, status: {allocatable: {cpu: '8', memory: 8Gi, pods: '9'}}}"
WEB = """{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2,
 selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [
 {name: a, image: a}]}}}}"""
BUDGET = """{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 1,
 selector: {matchLabels: {app: web}}}}"""


def policy_text(more: str = "") -> str:
    return POLICY.replace("{MORE}", more)


class Objects:
    """A view of nodes and pods, with the number of times that all pods were read."""

    def __init__(self, nodes: int, pods: int) -> None:
        status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "500"}}
        self.nodes: list[Object] = [
            parse({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{i}"}, "status": status})
            for i in range(nodes)
        ]
        self.pods: list[Object] = [
            parse(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": f"p{i}",
                        "namespace": "default",
                        "uid": f"u{i}",
                        "creationTimestamp": stamp(NOW - 3600),
                        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "o"}],
                    },
                    "spec": {"nodeName": f"n{i % nodes}", "containers": [{"name": "a", "image": "a"}]},
                    "status": {"phase": "Running"},
                }
            )
            for i in range(pods)
        ]
        self.read = 0

    def present(self, kind: str, namespace: str | None = None) -> Sequence[Sequence[Object]]:
        self.read += kind == "Pod"
        return [{"Node": self.nodes, "Pod": self.pods}.get(kind, [])]

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        return next((pod for pod in self.pods if pod.name == name), None)


def turns(controller: Descheduler, view: Objects, most: int = 1_000) -> list[list[Write]]:
    """Return the writes of each turn until the end of the cycle."""
    found: list[list[Write]] = []
    while (controller.next_deadline or 0.0) <= NOW and len(found) < most:
        found.append(controller.reconcile((), view, NOW))
    return found


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    (tmp_path / "policy.yaml").write_text(policy_text())
    made = ScenarioCluster(tmp_path)
    made.do("controllers --descheduler policy.yaml --descheduling-interval 5m", "")
    made.do("apply", "\n---\n".join([NODE % "n1", NODE % "n2", WEB, BUDGET]))
    return made


def ages(cluster: ScenarioCluster) -> list[str]:
    return sorted(cluster.do("get pods --no-headers", "").split()[4::5])


def test_each_interval_has_a_cycle(cluster: ScenarioCluster) -> None:
    cluster.do("advance 14m", "")
    assert ages(cluster) == ["14m", "14m"], "the cycle after 10 minutes finds no older pod"
    cluster.do("advance 2m", "")
    assert ages(cluster) == ["16m", "60s"], "the budget allows one eviction"
    cluster.do("advance 5m", "")
    assert ages(cluster) == ["60s", "6m"]


def test_an_eviction_is_recorded_as_by_the_real_descheduler(cluster: ScenarioCluster) -> None:
    cluster.do("advance 16m", "")
    events = [line for line in cluster.do("get events", "").splitlines() if "descheduler" in line]
    assert len(events) == 1
    assert "PodLifeTime" in events[0]
    assert events[0].endswith(" node by sigs.k8s.io/descheduler")


def test_rejected_evictions_are_recorded_if_the_policy_enables_this() -> None:
    limited = read_policy(policy_text("evictionFailureEventNotification: true\nmaxNoOfPodsToEvictTotal: 1"), "p")
    view = Objects(2, 3)
    controller = Descheduler(limited, 300.0)
    *_, writes = turns(controller, view)
    (evict,) = (write for write in writes if isinstance(write, Evict))
    (event,) = (write.raw for write in writes if isinstance(write, Create))
    assert event["reason"] == "EvictionFailed"
    assert event["message"].endswith("by sigs.k8s.io/descheduler failed: total eviction limit exceeded (1)")
    (late,) = controller.on_refused(evict, TooManyRequests("default/p0", "not now"), view, NOW)
    assert isinstance(late, Create)
    assert late.raw["message"].endswith("Cannot evict pod as it would violate the pod's disruption budget.")
    silent = Descheduler(read_policy(policy_text(), "p"), 300.0)
    assert silent.on_refused(evict, TooManyRequests("default/p0", "not now"), view, NOW) == []


def test_a_long_cycle_takes_several_turns_and_decides_by_its_begin() -> None:
    view = Objects(10, 3_000)
    controller = Descheduler(read_policy(policy_text(), "p"), 300.0)
    first = controller.reconcile((), view, NOW)
    view.pods = []
    *between, last = turns(controller, view)
    assert first == []
    assert len(between) > 3
    assert not any(between), "the last turn evicts"
    assert len(last) == 3_000
    assert view.read == 1
    assert controller.next_deadline == NOW + 300


def test_a_copy_begins_a_cycle_in_progress_again() -> None:
    view = Objects(10, 3_000)
    controller = Descheduler(read_policy(policy_text(), "p"), 300.0)
    controller.reconcile((), view, NOW)
    controller.reconcile((), view, NOW)
    copied = copy_of(controller)
    assert turns(copied, view)[-1] == turns(controller, view)[-1]
    assert view.read == 2, "the copy reads the objects of the fork"


def test_missed_cycles_are_skipped() -> None:
    controller = Descheduler(read_policy(policy_text(), "p"), 300.0)
    turns(controller, Objects(2, 0))
    assert controller.next_deadline == NOW + 300
    assert controller.reconcile((), Objects(2, 0), NOW + 299) == []
    controller.reconcile((), Objects(2, 0), NOW + 1_000)
    assert controller.next_deadline == NOW + 1_000 + 300


def test_a_policy_that_cannot_be_used_is_a_fault_of_the_controller() -> None:
    unknown = policy_text().replace(
        "DefaultEvictor, args: {}", "DefaultEvictor, args: {priorityThreshold: {name: gold}}"
    )
    controller = Descheduler(read_policy(unknown, "p"), 300.0)
    with pytest.raises(Exception, match="gold"):
        turns(controller, Objects(2, 0))
    assert controller.next_deadline == NOW + 300, "the next interval tries again"
