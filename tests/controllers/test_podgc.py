"""Tests of pods that no other component would delete.

Expected results are from upstream's gc_controller.go and its tests.
"""

from typing import Any

import pytest

from kschedd.api.conditions import condition
from kschedd.controllers.podgc import PodGarbageCollector
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.objects.log import DELETED
from kschedd.store.store import Store
from tests.store.manifests import Clock, node, pod

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


class Cluster:
    def __init__(self, threshold: int = 12_500) -> None:
        self.clock = Clock()
        self.store = Store(now=self.clock)
        self.runner = ControllerRunner(self.store, [PodGarbageCollector(threshold)])
        self.last = self.store.watch(("Pod",))

    def pods(self) -> list[str]:
        self.runner.run_until_idle()
        return [each.name for each in self.store.list("Pod")]

    def gone(self) -> dict[str, Any]:
        """Return the last status of each deleted pod."""
        return {event.new.name: event.new.status for event in self.last.take() if event.type == DELETED}

    def after(self, seconds: float) -> list[str]:
        self.runner.run_until_idle()
        end = self.clock.now + seconds
        while (due := self.runner.next_deadline) is not None and due <= end:
            self.clock.now = max(due, self.clock.now)
            self.runner.run_until_idle()
        self.clock.now = end
        return self.pods()


def test_pods_of_a_node_that_is_gone_go_after_the_quarantine() -> None:
    cluster = Cluster()
    for name in ("node-1", "node-2"):
        cluster.store.create(node(name))
        cluster.store.create(pod(f"on-{name}", nodeName=name))
        cluster.store.delete("Node", "", name)
    cluster.store.create(node("node-2"))
    assert cluster.after(39) == ["on-node-1", "on-node-2"]
    assert cluster.after(1) == ["on-node-2"]
    status = cluster.gone()["on-node-1"]
    assert status["phase"] == "Failed"
    target = condition(status, "DisruptionTarget") or {}
    assert (target["status"], target["reason"], target["message"]) == (
        "True",
        "DeletionByPodGC",
        "PodGC: node no longer exists",
    )
    assert cluster.runner.next_deadline is None


def test_a_node_that_comes_back_within_the_quarantine_keeps_its_pods() -> None:
    cluster = Cluster()
    cluster.store.create(node("node-1"))
    cluster.store.create(pod(nodeName="node-1"))
    cluster.store.delete("Node", "", "node-1")
    assert cluster.after(30) == ["web"]
    cluster.store.create(node("node-1"))
    assert cluster.after(1000) == ["web"]


def test_a_pod_of_a_node_that_never_was_is_an_orphan_too() -> None:
    cluster = Cluster()
    cluster.store.create(pod(nodeName="nowhere"))
    assert cluster.after(39) == ["web"]
    assert cluster.after(1) == []


def test_a_finished_orphan_keeps_its_phase() -> None:
    cluster = Cluster()
    cluster.store.create({**pod(nodeName="nowhere"), "status": {"phase": "Succeeded"}}, restore=True)
    assert cluster.after(40) == []
    assert cluster.gone()["web"]["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("taints", "ready", "deleting", "goes"),
    [
        pytest.param([OUT_OF_SERVICE], "Unknown", True, True, id="terminating-on-a-node-out-of-service"),
        pytest.param([OUT_OF_SERVICE], "False", True, True, id="not-ready"),
        pytest.param([OUT_OF_SERVICE], "True", True, False, id="the-node-is-ready"),
        pytest.param([OUT_OF_SERVICE], "Unknown", False, False, id="not-terminating"),
        pytest.param([], "Unknown", True, False, id="without-the-taint"),
        pytest.param([{**OUT_OF_SERVICE, "effect": "NoSchedule"}], "Unknown", True, True, id="whatever-its-effect"),
    ],
)
@pytest.mark.parametrize("tainted_first", [True, False])
def test_nodes_out_of_service(taints: list[Any], ready: str, deleting: bool, goes: bool, tainted_first: bool) -> None:
    cluster = Cluster()
    cluster.store.create(node("node-1", conditions={"Ready": ready}, taints=taints if tainted_first else []))
    cluster.store.create(pod(nodeName="node-1"))
    cluster.pods()
    if deleting:
        cluster.store.delete("Pod", "default", "web")
    cluster.pods()
    if not tainted_first:
        cluster.store.merge_patch("Node", "", "node-1", {"spec": {"taints": taints or None}})
    assert cluster.pods() == ([] if goes else ["web"])


def test_a_terminating_pod_without_a_node_has_failed() -> None:
    cluster = Cluster()
    held = pod()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    cluster.store.create(held)
    cluster.store.delete("Pod", "default", "web")
    assert cluster.pods() == ["web"]
    assert cluster.store.get("Pod", "default", "web").status["phase"] == "Failed"
    cluster.store.merge_patch("Pod", "default", "web", {"metadata": {"finalizers": None}})
    assert cluster.pods() == []


@pytest.mark.parametrize(
    ("phases", "threshold", "left"),
    [
        pytest.param(["Failed", "Succeeded"], 0, "ab", id="zero-turns-it-off"),
        pytest.param(["Failed", "Succeeded"], 1, "b", id="oldest-first"),
        pytest.param(["Failed", "Succeeded"], 5, "ab", id="too-few"),
        pytest.param(["Running", "Failed", "Succeeded"], 1, "ac", id="running-ones-do-not-count"),
        pytest.param(["Pending", "Unknown", "Failed"], 1, "abc", id="only-finished-ones-count"),
        pytest.param(["Succeeded", "Failed", "Evicted"], 2, "ab", id="evicted-ones-first"),
        pytest.param(["Evicted", "Failed", "Evicted", "Succeeded"], 1, "d", id="evicted-then-the-oldest"),
    ],
)
def test_finished_pods_over_the_threshold(phases: list[str], threshold: int, left: str) -> None:
    cluster = Cluster(threshold)
    for name, phase in zip("abcd", phases, strict=False):
        status = {"phase": "Failed", "reason": "Evicted"} if phase == "Evicted" else {"phase": phase}
        cluster.store.create({**pod(name), "status": status}, restore=True)
        cluster.clock.now += 1
    assert cluster.after(20) == list(left)


def test_pods_of_equal_age_go_by_name() -> None:
    cluster = Cluster(1)
    for name in "cab":
        cluster.store.create({**pod(name), "status": {"phase": "Failed"}}, restore=True)
    assert cluster.after(20) == ["c"]
    assert cluster.runner.next_deadline is None


def test_many_orphans_go_in_turns_at_one_moment() -> None:
    cluster = Cluster()
    for number in range(120):
        cluster.store.create(pod(f"pod-{number}", nodeName="nowhere"))
    assert cluster.after(40) == []
