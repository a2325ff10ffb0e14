"""Tests of unresponsive kubelets, failed zones, and the resulting NoExecute taints, in virtual time."""

from collections.abc import Sequence
from typing import Any

import pytest

from kschedd.api.conditions import condition, is_true
from kschedd.api.text.times import seconds, stamp
from kschedd.controllers.kubelets.heartbeats import NODE_LEASES, Heartbeats
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.kubelets.state import KUBELET
from kschedd.controllers.nodes.nodelifecycle import NodeLifecycle
from kschedd.controllers.nodes.nodetaints import NodeTaints
from kschedd.controllers.nodes.zones import FULL, NORMAL, PARTIAL, NodeLifecycleConfig
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.running.controller import Controller
from kschedd.store.errors import Conflict, NotFound
from kschedd.store.store import Store
from kschedd.store.writes import Delete, Patch
from tests.store.manifests import Clock, node, pod

START = 1_700_000_000.0  # a multiple of the period between checks
UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"


class Cluster:
    def __init__(self, config: NodeLifecycleConfig | None = None) -> None:
        self.clock = Clock(START)
        self.store = Store(now=self.clock)
        self.config = config
        self.restart()

    def restart(self) -> None:
        self.lifecycle = NodeLifecycle(self.config)
        controllers: Sequence[Controller] = (Heartbeats(), NodeTaints(), self.lifecycle, Kubelets())
        self.runner = ControllerRunner(self.store, controllers)

    def add(self, *names: str, zone: str = "", kubelet: str = "", conditions: dict[str, str] | None = None) -> None:
        for name in names:
            made = node(name, conditions=conditions)
            made["metadata"]["labels"] = {"topology.kubernetes.io/zone": zone} if zone else {}
            made["metadata"]["annotations"] = {KUBELET: kubelet} if kubelet else {}
            self.store.create(made)
        self.runner.run_until_idle()

    def add_zone(self, zone: str, size: int) -> list[str]:
        names = [f"{zone}-{number:03}" for number in range(size)]
        self.add(*names, zone=zone)
        return names

    def kubelet(self, state: str | None, *names: str) -> None:
        for name in names:
            self.store.merge_patch("Node", "", name, {"metadata": {"annotations": {KUBELET: state}}})
        self.runner.run_until_idle()

    def state_ready(self, status: str, *names: str) -> None:
        for name in names:
            conditions = [{"type": "Ready", "status": status}]
            self.store.merge_patch("Node", "", name, {"status": {"conditions": conditions}}, subresource="status")
        self.runner.run_until_idle()

    def run_to(self, elapsed_s: float) -> None:
        self.runner.run_until_idle()
        while (due := self.runner.next_deadline) is not None and due <= START + elapsed_s:
            self.clock.now = due
            self.runner.run_until_idle()
        self.clock.now = START + elapsed_s

    def ready(self, name: str) -> str:
        found = condition(self.store.get("Node", "", name).status, "Ready")
        return str((found or {}).get("status"))

    def taints(self, name: str) -> dict[str, float]:
        """Return the NoExecute taints of the node, with the seconds since the start at which they were added."""
        taints = self.store.get("Node", "", name).spec.get("taints") or ()
        return {each["key"]: seconds(each["timeAdded"]) - START for each in taints if each["effect"] == "NoExecute"}

    def tainted_at(self, names: Sequence[str]) -> list[float]:
        return sorted(at for name in names for at in self.taints(name).values())

    def states(self) -> dict[str, str]:
        return {name.rpartition("\x00:")[2]: zone.state for name, zone in self.lifecycle.zones.items()}


def test_a_cluster_in_which_all_is_well_has_nothing_to_wait_for() -> None:
    cluster = Cluster()
    cluster.add("a", "b", zone="z")
    assert cluster.runner.next_deadline is None
    assert cluster.states() == {"z": NORMAL}


def test_each_kubelet_renews_its_lease() -> None:
    cluster = Cluster()
    cluster.add("a")
    version = cluster.store.version
    for elapsed, renewed in ((0, 0), (9, 0), (10, 10), (47, 40), (3605, 3600)):
        cluster.run_to(elapsed)
        (lease,) = cluster.store.list("Lease", NODE_LEASES)
        assert lease.spec["renewTime"] == f"{stamp(START + renewed)[:-1]}.000000Z"
    assert (lease.spec["holderIdentity"], lease.spec["leaseDurationSeconds"]) == ("a", 40)
    assert lease.metadata["ownerReferences"][0]["name"] == "a"
    assert cluster.store.version == version, "nothing is written"


@pytest.mark.parametrize(
    ("stopped_at", "unknown_at"),
    [
        pytest.param(0, 55, id="renewed-at-that-moment"),
        pytest.param(9, 55, id="just-before-the-next-renewal"),
        pytest.param(10, 65, id="just-after-it"),
        pytest.param(60, 115, id="later"),
    ],
)
def test_a_silent_node_is_unknown_after_the_grace_period(stopped_at: float, unknown_at: float) -> None:
    cluster = Cluster()
    cluster.add("a", "b")
    cluster.run_to(stopped_at)
    cluster.kubelet("stopped", "a")
    cluster.run_to(unknown_at - 1)
    assert cluster.ready("a") == "True"
    cluster.run_to(unknown_at)
    found = {each["type"]: each for each in cluster.store.get("Node", "", "a").status["conditions"]}
    for type_ in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"):
        assert {key: found[type_][key] for key in ("status", "reason", "message", "lastTransitionTime")} == {
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": stamp(START + unknown_at),
        }
    assert found["Ready"]["lastHeartbeatTime"] == stamp(START)
    assert cluster.taints("a") == {}
    cluster.run_to(unknown_at + 5)
    assert cluster.taints("a") == {UNREACHABLE: unknown_at + 5}
    assert cluster.ready("b") == "True"
    (event,) = cluster.store.list("Event")
    assert event.raw["message"] == "Node a status is now: NodeNotReady"


def test_a_node_that_comes_back_in_time_is_never_unknown() -> None:
    cluster = Cluster()
    cluster.add("a", "b")
    cluster.kubelet("stopped", "a")
    cluster.run_to(54)
    cluster.kubelet(None, "a")
    cluster.run_to(1000)
    assert cluster.ready("a") == "True"
    assert cluster.store.list("Event") == []


def test_a_node_that_comes_back_loses_its_taints_and_its_pods_are_ready_again() -> None:
    cluster = Cluster()
    cluster.add("a", "b")
    cluster.store.create(pod(nodeName="a"))
    cluster.store.create(pod("gated", nodeName="a", readinessGates=[{"conditionType": "example.com/open"}]))
    cluster.run_to(10)
    assert is_true(cluster.store.get("Pod", "default", "web").status, "Ready")
    cluster.kubelet("stopped", "a")
    cluster.run_to(200)
    silent = condition(cluster.store.get("Pod", "default", "web").status, "Ready")
    assert silent == {
        "type": "Ready",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": stamp(START + 65),
        "observedGeneration": 1,
    }
    reported = [each.raw for each in cluster.store.list("Event") if each.raw["involvedObject"]["name"] == "web"]
    assert [(each["type"], each["reason"], each["message"]) for each in reported] == [
        ("Warning", "NodeNotReady", "Node is not ready")
    ]
    cluster.kubelet(None, "a")
    assert cluster.ready("a") == "True"
    assert is_true(cluster.store.get("Pod", "default", "web").status, "Ready")
    assert not is_true(cluster.store.get("Pod", "default", "gated").status, "Ready")
    assert cluster.taints("a") == {UNREACHABLE: 70}
    cluster.run_to(205)
    assert cluster.taints("a") == {}
    assert cluster.store.get("Node", "", "a").spec.get("taints") is None
    assert cluster.runner.next_deadline is None


def test_pods_neither_end_nor_go_while_the_kubelet_is_stopped() -> None:
    cluster = Cluster()
    cluster.add("a", "b")
    short = pod("short", nodeName="a", restartPolicy="Never")
    short["metadata"]["annotations"] = {"kschedd.io/run-seconds": "20"}
    cluster.store.create(short)
    cluster.store.create(pod("leaving", nodeName="a"))
    cluster.run_to(5)
    cluster.store.delete("Pod", "default", "leaving", grace_period_s=10)
    cluster.kubelet("stopped", "a")
    cluster.run_to(45)
    assert cluster.store.get("Pod", "default", "short").status["phase"] == "Running"
    assert cluster.store.get("Pod", "default", "leaving").deleting
    cluster.kubelet(None, "a")
    cluster.run_to(46)
    assert cluster.store.get("Pod", "default", "short").status["phase"] == "Succeeded"
    assert cluster.store.find("Pod", "default", "leaving") is None


def test_the_grace_period_begins_anew_after_a_restart() -> None:
    cluster = Cluster()
    cluster.add("a", "b")
    cluster.kubelet("stopped", "a")
    cluster.run_to(50)
    cluster.restart()
    cluster.run_to(104)
    assert cluster.ready("a") == "True"
    cluster.run_to(105)
    assert cluster.ready("a") == "Unknown"


def test_a_sign_of_the_future_is_noticed_now() -> None:
    """The machine's clock was set back while the daemon was stopped, so a heartbeat is in the future.

    Upstream's tryUpdateNodeHealth stores the time at which it noticed a renewal by its own clock, not the Lease's
    renewTime.
    """
    cluster = Cluster()
    cluster.add("a", "b")
    cluster.clock.now = START - 5 * 3600
    cluster.restart()
    cluster.runner.run_until_idle()
    cluster.kubelet("stopped", "a")
    cluster.run_to(-5 * 3600 + 49)
    assert cluster.ready("a") == "True"
    cluster.run_to(-5 * 3600 + 55)
    assert (cluster.ready("a"), cluster.ready("b")) == ("Unknown", "True")


def test_a_node_that_never_reported_has_its_own_words() -> None:
    cluster = Cluster()
    cluster.add("b")
    cluster.run_to(7)
    cluster.add("a", kubelet="stopped")
    cluster.run_to(69)
    assert cluster.ready("a") == "None"
    cluster.run_to(70)
    found = condition(cluster.store.get("Node", "", "a").status, "Ready") or {}
    assert (found["status"], found["reason"], found["message"], found["lastHeartbeatTime"]) == (
        "Unknown",
        "NodeStatusNeverUpdated",
        "Kubelet never posted node status.",
        stamp(START + 7),
    )


def test_a_node_whose_kubelet_nobody_simulates_is_as_it_is_stated() -> None:
    cluster = Cluster()
    cluster.add("a", kubelet="none", conditions={"Ready": "True"})
    cluster.add("b")
    cluster.run_to(10_000)
    assert cluster.ready("a") == "True"
    assert [lease.name for lease in cluster.store.list("Lease", NODE_LEASES)] == ["b"]
    cluster.state_ready("Unknown", "a")
    cluster.run_to(10_005)
    assert cluster.taints("a") == {UNREACHABLE: 10_005}
    cluster.state_ready("True", "a")
    cluster.run_to(10_010)
    assert cluster.taints("a") == {}


def test_a_heartbeat_by_hand_is_a_sign_of_a_stopped_kubelet_too() -> None:
    cluster = Cluster()
    cluster.add("a", "b")
    cluster.kubelet("stopped", "a")
    cluster.run_to(42)
    cluster.store.merge_patch("Lease", NODE_LEASES, "a", {"spec": {"renewTime": "2023-11-14T22:14:02.000000Z"}})
    cluster.run_to(94)
    assert cluster.ready("a") == "True"
    cluster.run_to(95)
    assert cluster.ready("a") == "Unknown"


def test_one_condition_taint_takes_the_place_of_the_other_at_once() -> None:
    cluster = Cluster()
    names = cluster.add_zone("z", 9)
    cluster.state_ready("False", *names[:3])
    cluster.run_to(26)
    assert cluster.tainted_at(names) == [5, 15, 25]
    cluster.state_ready("Unknown", *names[:3])
    cluster.run_to(30)
    assert [cluster.taints(name) for name in names[:3]] == [{UNREACHABLE: 30}] * 3


def test_a_node_whose_taint_was_refused_is_processed_by_the_next_check() -> None:
    cluster = Cluster()
    cluster.add("a", "b")
    for write, error, due in [
        (Delete("Node", "", "a"), Conflict("Node", "a"), None),
        (Patch("Node", "", "a", {}), NotFound("Node", "a"), None),
        (Patch("Pod", "default", "a", {}), Conflict("Pod", "a"), None),
        (Patch("Node", "", "a", {}), Conflict("Node", "a"), START + 15),
    ]:
        assert cluster.lifecycle.on_refused(write, error, cluster.store, START + 11) == []
        assert cluster.lifecycle.next_deadline == due


def test_a_node_that_is_gone_is_forgotten() -> None:
    cluster = Cluster()
    names = cluster.add_zone("z", 9)
    cluster.kubelet("stopped", *names[:3])
    cluster.run_to(60)
    assert [(one.node, one.what, one.at_s) for one in cluster.lifecycle.upcoming()] == [
        (names[1], "NoExecute", START + 70),
        (names[2], "NoExecute", START + 80),
    ]
    for name in names[:3]:
        cluster.store.delete("Node", "", name)
    cluster.runner.run_until_idle()
    assert cluster.lifecycle.upcoming() == []
    cluster.run_to(1000)
    assert cluster.states() == {"z": NORMAL}
    assert cluster.runner.next_deadline is None


def test_a_node_that_is_deleted_before_the_next_check_causes_no_check() -> None:
    cluster = Cluster()
    cluster.add("a", "b", "c")
    cluster.state_ready("False", "a")
    assert cluster.lifecycle.next_deadline == START + 5
    cluster.store.delete("Node", "", "a")
    cluster.runner.run_until_idle()
    assert cluster.lifecycle.next_deadline is None


def test_a_node_whose_deletion_is_not_observed_yet_gets_no_taint() -> None:
    cluster = Cluster()
    names = cluster.add_zone("z", 9)
    cluster.kubelet("stopped", *names[:2])
    cluster.run_to(60)
    assert [one.node for one in cluster.lifecycle.upcoming()] == [names[1]]
    cluster.store.delete("Node", "", names[1])
    assert cluster.lifecycle.reconcile([], cluster.store, START + 70) == []
    assert cluster.lifecycle.upcoming() == []


@pytest.mark.parametrize(
    ("sizes", "lost", "states", "tainted_at"),
    [
        pytest.param({"a": 3}, {"a": 1}, {"a": NORMAL}, {"a": [60]}, id="one-of-three"),
        pytest.param({"a": 3}, {"a": 2}, {"a": NORMAL}, {"a": [60, 70]}, id="two-of-three-one-after-the-other"),
        pytest.param({"a": 3}, {"a": 3}, {"a": FULL}, {"a": []}, id="the-only-zone-is-the-control-planes-fault"),
        pytest.param({"a": 4}, {"a": 3}, {"a": PARTIAL}, {"a": []}, id="a-small-zone-disrupted-in-part-stops"),
        pytest.param(
            {"a": 3, "b": 3}, {"a": 3}, {"a": FULL, "b": NORMAL}, {"a": [60, 70, 80]}, id="a-whole-zone-at-full-rate"
        ),
        pytest.param(
            {"a": 3, "b": 3, "c": 3},
            {"a": 3, "b": 3},
            {"a": FULL, "b": FULL, "c": NORMAL},
            {"a": [60, 70, 80], "b": [60, 70, 80]},
            id="each-zone-has-a-rate-of-its-own",
        ),
        pytest.param(
            {"a": 3, "b": 3}, {"a": 3, "b": 3}, {"a": FULL, "b": FULL}, {"a": [], "b": []}, id="all-zones-nobody"
        ),
        pytest.param(
            {"a": 3, "b": 5},
            {"a": 3, "b": 3},
            {"a": FULL, "b": PARTIAL},
            {"a": [60, 70, 80], "b": []},
            id="one-full-one-partial",
        ),
        pytest.param(
            {"a": 60}, {"a": 40}, {"a": PARTIAL}, {"a": [60, 160, 260]}, id="a-large-zone-disrupted-in-part-slows-down"
        ),
        pytest.param({"a": 60}, {"a": 4}, {"a": NORMAL}, {"a": [60, 70, 80, 90]}, id="few-of-many"),
    ],
)
def test_zones_and_their_rates(
    sizes: dict[str, int], lost: dict[str, int], states: dict[str, str], tainted_at: dict[str, list[float]]
) -> None:
    cluster = Cluster()
    names = {zone: cluster.add_zone(zone, size) for zone, size in sizes.items()}
    cluster.kubelet("stopped", *(name for zone, number in lost.items() for name in names[zone][:number]))
    cluster.run_to(300)
    assert cluster.states() == states
    assert {zone: cluster.tainted_at(names[zone]) for zone in tainted_at} == tainted_at


def test_a_zone_that_falls_further_stops_in_the_middle() -> None:
    cluster = Cluster()
    names = cluster.add_zone("z", 10)
    cluster.kubelet("stopped", *names[:5])
    cluster.run_to(75)
    assert cluster.tainted_at(names) == [60, 70]
    cluster.kubelet("stopped", *names[5:7])
    cluster.run_to(1000)
    assert cluster.states() == {"z": PARTIAL}
    assert cluster.tainted_at(names) == [60, 70, 80, 90, 100], "before the two are known to be silent"
    cluster.kubelet(None, *names[5:7])
    cluster.run_to(1100)
    assert cluster.states() == {"z": NORMAL}


def test_when_every_zone_is_down_all_nodes_lose_their_taints_until_one_is_back() -> None:
    cluster = Cluster()
    a, b = cluster.add_zone("a", 3), cluster.add_zone("b", 3)
    cluster.kubelet("stopped", *a)
    cluster.run_to(100)
    assert cluster.tainted_at(a) == [60, 70, 80]
    cluster.kubelet("stopped", *b)
    cluster.run_to(154)
    assert len(cluster.tainted_at(a)) == 3
    cluster.run_to(155)
    assert cluster.states() == {"a": FULL, "b": FULL}
    assert cluster.tainted_at([*a, *b]) == []
    cluster.run_to(5000)
    assert cluster.tainted_at([*a, *b]) == []
    assert cluster.runner.next_deadline is None
    cluster.kubelet(None, b[0])
    cluster.run_to(5100)
    # Both rates begin without a token, so the first node of each zone must wait as well.
    assert cluster.states() == {"a": FULL, "b": NORMAL}
    assert cluster.tainted_at(a) == [5015, 5025, 5035]
    assert cluster.tainted_at(b) == [5015, 5025]


def test_nodes_that_wait_for_a_taint_when_every_zone_is_down_wait_without_end_from_the_next_check_on() -> None:
    cluster = Cluster()
    names = cluster.add_zone("z", 4)
    cluster.kubelet("stopped", *names[:2])
    cluster.run_to(10)
    cluster.kubelet("stopped", *names[2:])
    cluster.run_to(64)
    assert [(one.node, one.what) for one in cluster.lifecycle.upcoming()][:1] == [(names[2], "Unknown")]
    assert (names[1], "NoExecute") in [(one.node, one.what) for one in cluster.lifecycle.upcoming()]
    cluster.run_to(65)
    assert cluster.states() == {"z": FULL}
    assert cluster.lifecycle.upcoming() == []
    cluster.run_to(70)
    assert {(one.node, one.what, one.at_s) for one in cluster.lifecycle.upcoming()} == {
        (name, "NoExecute", None) for name in names
    }


def test_excluded_nodes_do_not_count_but_are_tainted() -> None:
    cluster = Cluster()
    names = cluster.add_zone("a", 3)
    cluster.add_zone("b", 3)
    label = {"metadata": {"labels": {"node.kubernetes.io/exclude-disruption": ""}}}
    for name in names[1:]:
        cluster.store.merge_patch("Node", "", name, label)
    cluster.kubelet("stopped", *names[1:])
    cluster.run_to(300)
    assert cluster.states()["a"] == NORMAL
    assert cluster.tainted_at(names) == [60, 70]


def test_the_rates_are_options() -> None:
    config = NodeLifecycleConfig(
        node_monitor_period_s=1,
        node_monitor_grace_period_s=20,
        node_eviction_rate=1.0,
        secondary_node_eviction_rate=0.5,
        large_cluster_size_threshold=3,
        unhealthy_zone_threshold=0.3,
    )
    cluster = Cluster(config)
    names = cluster.add_zone("z", 10)
    cluster.kubelet("stopped", *names[:4])
    cluster.run_to(100)
    assert cluster.states() == {"z": PARTIAL}
    assert cluster.tainted_at(names) == [22, 24, 26, 28]


def test_many_nodes_and_pods_take_several_turns_at_one_moment() -> None:
    cluster = Cluster()
    names = cluster.add_zone("a", 150)
    cluster.add_zone("b", 200)
    for name in names:
        cluster.store.create(pod(f"on-{name}", nodeName=name))
    cluster.run_to(1)
    cluster.kubelet("stopped", *names)
    cluster.run_to(55)
    assert {cluster.ready(name) for name in names} == {"Unknown"}
    assert not any(is_true(each.status, "Ready") for each in cluster.store.list("Pod"))


def test_conditions_are_the_same_whatever_order_nodes_came_in() -> None:
    def run(names: list[str]) -> list[Any]:
        cluster = Cluster()
        cluster.add(*names)
        cluster.kubelet("stopped", *names[:1])
        cluster.run_to(100)
        return [sorted(cluster.taints(name)) for name in sorted(names)]

    assert run(["a", "b", "c"]) == [[UNREACHABLE], [], []]
    assert run(["c", "b", "a"]) == [[], [], [UNREACHABLE]]
