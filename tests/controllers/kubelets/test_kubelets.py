import pytest

from kschedd.api.pods import Pod
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.store import Store
from tests.store.manifests import Clock, node, pod


class SchedulerCache:
    def __init__(self) -> None:
        self.clock = Clock()
        self.store = Store(now=self.clock)
        self.settling = ControllerRunner(self.store, [Kubelets()])

    def pod(self, name: str = "web") -> Pod:
        found = self.store.get("Pod", "default", name)
        assert isinstance(found, Pod)
        return found

    def run(self, annotations: dict[str, str] | None = None, **spec: object) -> None:
        raw = pod(**spec)
        raw["metadata"]["annotations"] = annotations or {}
        self.store.create(raw)
        self.store.bind("default", "web", "node-1")
        self.settling.run_until_idle()

    def passes(self, seconds: float) -> None:
        self.clock.now += seconds
        self.settling.run_until_idle()


@pytest.fixture
def cluster() -> SchedulerCache:
    cluster = SchedulerCache()
    cluster.store.create(node())
    cluster.settling.run_until_idle()
    return cluster


def test_a_node_without_conditions_gets_ready(cluster: SchedulerCache) -> None:
    status = cluster.store.get("Node", "", "node-1").status
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    assert status["allocatable"]["cpu"] == "4"


def test_a_nodes_own_conditions_stay(cluster: SchedulerCache) -> None:
    cluster.store.create(node("node-2", conditions={"Ready": "False"}))
    cluster.store.create(node("node-3", conditions={"DiskPressure": "True"}))
    cluster.settling.run_until_idle()
    assert len(cluster.store.get("Node", "", "node-2").status["conditions"]) == 1
    three = {c["type"]: c["status"] for c in cluster.store.get("Node", "", "node-3").status["conditions"]}
    assert (three["DiskPressure"], three["Ready"]) == ("True", "True")


def test_a_pod_with_a_node_runs(cluster: SchedulerCache) -> None:
    cluster.run()
    status = cluster.pod().status
    assert (status["phase"], status["startTime"]) == ("Running", "2023-11-14T22:13:20Z")
    assert {c["type"] for c in status["conditions"] if c["status"] == "True"} >= {"Ready", "PodScheduled"}
    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": "2023-11-14T22:13:20Z"}}
    assert status["podIP"].startswith("10.")
    version = cluster.store.version
    cluster.settling.run_until_idle()
    assert cluster.store.version == version


@pytest.mark.parametrize("annotations", [{}, {"kschedd.io/run-seconds": "9"}])
def test_a_pod_has_an_address_of_each_family_of_its_node(cluster: SchedulerCache, annotations: dict[str, str]) -> None:
    ips = ("172.16.0.4", "fd00:172:16::4")
    listed = [{"type": "InternalIP", "address": each} for each in ips]
    cluster.store.patch_status("Node", "", "node-1", {"addresses": listed})
    cluster.run(annotations)
    status = cluster.pod().status
    assert (status["hostIP"], status["hostIPs"]) == (ips[0], [{"ip": each} for each in ips])
    first, second = (each["ip"] for each in status["podIPs"])
    assert first == status["podIP"]
    assert first.startswith("10.")
    assert second.startswith("fd00:10::")


def test_a_pod_in_the_hosts_network_has_the_hosts_addresses(cluster: SchedulerCache) -> None:
    ips = [{"ip": "fd00:172:16::4"}, {"ip": "172.16.0.4"}]
    listed = [{"type": "InternalIP", "address": each["ip"]} for each in ips]
    cluster.store.patch_status("Node", "", "node-1", {"addresses": listed})
    cluster.run(hostNetwork=True)
    assert cluster.pod().status["podIPs"] == cluster.pod().status["hostIPs"] == ips


def test_nothing_starts_on_a_node_that_is_not_ready_or_not_there(cluster: SchedulerCache) -> None:
    cluster.store.create(node("down", conditions={"Ready": "False"}))
    for name, node_name in (("one", "down"), ("two", "nowhere")):
        cluster.store.create(pod(name))
        cluster.store.bind("default", name, node_name)
    cluster.settling.run_until_idle()
    assert (cluster.pod("one").phase, cluster.pod("two").phase) == ("Pending", "Pending")
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    cluster.store.merge_patch("Node", "", "down", ready, subresource="status")
    cluster.store.create(node("nowhere"))
    cluster.settling.run_until_idle()
    assert (cluster.pod("one").phase, cluster.pod("two").phase) == ("Running", "Running")


def test_a_deleted_pod_stays_for_its_grace_period(cluster: SchedulerCache) -> None:
    cluster.run(terminationGracePeriodSeconds=10)
    cluster.store.delete("Pod", "default", "web")
    cluster.settling.run_until_idle()
    assert cluster.settling.next_deadline == cluster.clock.now + 10
    cluster.passes(9)
    assert cluster.pod().deleting
    cluster.passes(1)
    assert cluster.store.find("Pod", "default", "web") is None
    assert cluster.settling.next_deadline is None


def test_of_very_many_pods_that_end_at_once_the_rest_is_left_to_the_next_turn(cluster: SchedulerCache) -> None:
    kubelets = Kubelets()
    cluster.settling = ControllerRunner(cluster.store, [kubelets])
    for number in range(55):
        cluster.store.create(node(f"n{number}"))
    for number in range(1100):
        cluster.store.create(pod(f"p{number}", terminationGracePeriodSeconds=10))
        cluster.store.bind("default", f"p{number}", f"n{number % 55}")
    cluster.settling.run_until_idle()
    for number in range(1100):
        cluster.store.delete("Pod", "default", f"p{number}")
    cluster.settling.run_until_idle()
    now = cluster.clock.now + 10
    writes = [kubelets.reconcile([], cluster.store, now) for _ in range(3)]
    assert list(map(len, writes)) == [1000, 100, 0]


def test_a_deletion_asked_for_in_the_future_counts_from_the_start_of_the_kubelets(cluster: SchedulerCache) -> None:
    """The machine's clock was set back while the daemon was stopped, so the deletion time is in the future.

    A kubelet counts deletionGracePeriodSeconds from its observation of the deletion (pkg/kubelet/pod_workers.go,
    calculateEffectiveGracePeriod), regardless of deletionTimestamp.
    """
    cluster.run(terminationGracePeriodSeconds=10)
    cluster.store.delete("Pod", "default", "web")
    cluster.settling.run_until_idle()
    cluster.clock.now -= 5 * 3600
    cluster.settling = ControllerRunner(cluster.store, [Kubelets()])
    cluster.passes(0)
    cluster.passes(9)
    assert cluster.pod().deleting
    cluster.passes(1)
    assert cluster.store.find("Pod", "default", "web") is None


def test_a_pod_may_end_sooner_than_its_grace_period(cluster: SchedulerCache) -> None:
    cluster.run({"kschedd.io/termination-seconds": "2"})
    cluster.store.delete("Pod", "default", "web")
    cluster.passes(2)
    assert cluster.store.find("Pod", "default", "web") is None


@pytest.mark.parametrize("seconds", ["0.5", "60"])
def test_an_annotation_ends_a_pod_well(cluster: SchedulerCache, seconds: str) -> None:
    cluster.clock.now += 0.7
    cluster.run({"kschedd.io/run-seconds": seconds}, restartPolicy="Never")
    cluster.passes(float(seconds) - 0.1)
    assert cluster.pod().phase == "Running"
    cluster.passes(0.1)
    assert cluster.pod().phase == "Succeeded"
    assert cluster.pod().status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert cluster.settling.next_deadline is None


def test_an_annotation_that_is_no_number_ends_nothing(cluster: SchedulerCache) -> None:
    cluster.run({"kschedd.io/run-seconds": "soon"})
    assert cluster.settling.next_deadline is None
    assert cluster.pod().phase == "Running"


def test_a_node_gets_the_hostname_label_it_lacks(cluster: SchedulerCache) -> None:
    named = node("node-2", conditions={"Ready": "False"})
    named["metadata"]["labels"] = {"kubernetes.io/hostname": "other"}
    cluster.store.create(named)
    cluster.settling.run_until_idle()
    labels = {n.name: n.labels["kubernetes.io/hostname"] for n in cluster.store.list("Node")}
    assert labels == {"node-1": "node-1", "node-2": "other"}
