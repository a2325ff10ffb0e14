"""Tests of nodes that their cloud must initialize, and of the labels that kubelets set."""

from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.kubelets.node_labels import missing_labels
from kschedd.controllers.nodes.cloud_nodes import CLOUD_PROVIDER, INIT_SECONDS, TAINT, CloudNodes
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.errors import Conflict, NotFound
from kschedd.store.store import Store
from kschedd.store.writes import Patch, Write
from tests.store.manifests import Clock, node

START = 1_700_000_000.0


@pytest.mark.parametrize(
    ("provider", "delay", "annotations", "initialized_at"),
    [
        pytest.param("", None, {}, 0, id="no-cloud"),
        pytest.param("external", 30.0, {}, 30, id="by-options"),
        pytest.param("external", 0.0, {}, 0, id="at-once"),
        pytest.param("external", None, {}, None, id="never-by-itself"),
        pytest.param("", None, {CLOUD_PROVIDER: "external", INIT_SECONDS: "12"}, 12, id="by-annotations"),
        pytest.param("external", 30.0, {INIT_SECONDS: "5"}, 5, id="the-annotation-is-nearer"),
        pytest.param("external", 30.0, {INIT_SECONDS: "soon"}, 30, id="one-that-cannot-be-read"),
        pytest.param("external", 30.0, {INIT_SECONDS: "-1"}, 30, id="negative-seconds"),
        pytest.param("external", 30.0, {CLOUD_PROVIDER: "none"}, 0, id="a-node-of-no-cloud-among-them"),
        pytest.param("", 30.0, {}, 0, id="a-delay-alone-does-nothing"),
    ],
)
def test_a_clouds_node_is_tainted_until_it_is_initialized(
    provider: str, delay: float | None, annotations: dict[str, str], initialized_at: float | None
) -> None:
    clock = Clock()
    store = Store(now=clock)
    runner = ControllerRunner(store, [CloudNodes(provider, delay), Kubelets()])
    other = {"key": "dedicated", "effect": "NoSchedule"}
    made = node(taints=[other])
    made["metadata"]["annotations"] = annotations
    store.create(made)
    for elapsed in range(0, 40):
        clock.now = START + elapsed
        runner.run_until_idle()
        tainted = initialized_at is None or elapsed < initialized_at
        assert store.get("Node", "", "node-1").spec["taints"] == ([other, TAINT] if tainted else [other])
    assert runner.next_deadline is None


def test_a_node_that_has_registered_is_not_tainted_again() -> None:
    store = Store(now=Clock())
    ControllerRunner(store, [Kubelets()])
    store.create(node(conditions={"Ready": "True"}))
    ControllerRunner(store, [CloudNodes("external", None)]).run_until_idle()
    assert store.get("Node", "", "node-1").spec.get("taints") is None


def test_a_delay_goes_on_after_a_restart() -> None:
    clock = Clock()
    store = Store(now=clock)
    store.create(node())
    ControllerRunner(store, [CloudNodes("external", 30.0), Kubelets()]).run_until_idle()
    clock.now += 20
    runner = ControllerRunner(store, [CloudNodes("external", 30.0), Kubelets()])
    runner.run_until_idle()
    assert runner.next_deadline == START + 30


def test_a_node_that_another_client_initializes_has_no_deadline() -> None:
    store = Store(now=Clock())
    runner = ControllerRunner(store, [CloudNodes("external", 30.0), Kubelets()])
    store.create(node())
    runner.run_until_idle()
    assert runner.next_deadline == START + 30
    store.merge_patch("Node", "", "node-1", {"spec": {"taints": None}})
    runner.run_until_idle()
    assert runner.next_deadline is None


def test_a_patch_that_conflicts_with_another_change_is_made_again() -> None:
    store, controller, conflict = Store(now=Clock()), CloudNodes("external", 5.0), Conflict("Node", "node-1")
    created = store.create(node())

    def refused(write: Write, now: float) -> Patch:
        """Return the patch that follows a conflict with a new label."""
        changed = store.merge_patch("Node", "", "node-1", {"metadata": {"labels": {"at": str(now)}}})
        [again] = controller.on_refused(write, conflict, store, now)
        assert isinstance(again, Patch)
        assert again.patch["metadata"]["resourceVersion"] == str(changed.resource_version)
        return again

    [adds] = controller.reconcile(store.watch(None, created.resource_version - 1).take(), store, START)
    assert controller.on_refused(adds, NotFound("Node", "node-1"), store, START) == []
    again = refused(adds, START)
    assert again.patch["spec"] == {"taints": [TAINT]}
    store.merge_patch("Node", "", "node-1", again.patch)
    [removes] = controller.reconcile([], store, START + 5)
    assert refused(removes, START + 5).patch["spec"] == {"taints": None}


HOST = {"kubernetes.io/hostname": "node-1"}
LINUX = {"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux"}
AMD64 = {"kubernetes.io/arch": "amd64", "beta.kubernetes.io/arch": "amd64"}


@pytest.mark.parametrize(
    ("labels", "info", "missing"),
    [
        pytest.param({}, {}, {**HOST, **LINUX, **AMD64}, id="none"),
        pytest.param(
            {},
            {"operatingSystem": "windows", "architecture": "arm64"},
            {
                **HOST,
                "kubernetes.io/os": "windows",
                "beta.kubernetes.io/os": "windows",
                "kubernetes.io/arch": "arm64",
                "beta.kubernetes.io/arch": "arm64",
            },
            id="of-its-node-info",
        ),
        pytest.param({**HOST, **LINUX, **AMD64}, {}, {}, id="all-there"),
        pytest.param(
            {"kubernetes.io/hostname": "other", "kubernetes.io/os": "windows"},
            {"operatingSystem": "linux"},
            {**AMD64, "beta.kubernetes.io/os": "windows"},
            id="what-is-stated-stays",
        ),
        pytest.param(
            {
                **HOST,
                **LINUX,
                **AMD64,
                "failure-domain.beta.kubernetes.io/zone": "z",
                "failure-domain.beta.kubernetes.io/region": "r",
                "beta.kubernetes.io/instance-type": "m5.large",
            },
            {},
            {
                "topology.kubernetes.io/zone": "z",
                "topology.kubernetes.io/region": "r",
                "node.kubernetes.io/instance-type": "m5.large",
            },
            id="old-names-of-what-the-cloud-says",
        ),
    ],
)
def test_the_labels_of_a_node(labels: dict[str, str], info: dict[str, Any], missing: dict[str, str]) -> None:
    made = node()
    made["metadata"]["labels"] = labels
    made["status"]["nodeInfo"] = info
    assert missing_labels(Node.from_raw(made)) == missing


def test_a_clouds_node_gets_the_labels_that_its_annotations_state_when_it_is_initialized() -> None:
    clock = Clock()
    store = Store(now=clock)
    runner = ControllerRunner(store, [CloudNodes("external", 5.0), Kubelets()])
    made = node()
    made["metadata"]["labels"] = {"topology.kubernetes.io/region": "own"}
    made["metadata"]["annotations"] = {
        "kschedd.io/cloud-zone": "eu-1a",
        "kschedd.io/cloud-region": "eu-1",
        "kschedd.io/cloud-instance-type": "m5.large",
    }
    store.create(made)
    runner.run_until_idle()
    assert "topology.kubernetes.io/zone" not in store.get("Node", "", "node-1").labels
    clock.now += 5.0
    runner.run_until_idle()
    labels = store.get("Node", "", "node-1").labels
    assert labels["topology.kubernetes.io/region"] == "own"
    for names, text in (
        (("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"), "eu-1a"),
        (("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"), "m5.large"),
    ):
        assert {labels[name] for name in names} == {text}
