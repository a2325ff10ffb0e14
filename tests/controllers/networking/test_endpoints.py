"""Tests of the Endpoints and EndpointSlices of Services with a selector."""

from typing import Any

import pytest

from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.networking.endpoints import Endpoints
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.running.turns import take_turn
from kschedd.store.cluster_api import listed
from kschedd.store.objects.log import WatchEvent
from kschedd.store.store import Store
from tests.store.manifests import Clock, node

NOW = 1_700_000_000.0


class Cluster:
    """A store with the endpoints controller, whose pods get the status that a kubelet would write."""

    def __init__(self) -> None:
        self.clock = Clock(NOW)
        self.store = Store(now=self.clock, seed=6)
        self.controller = Endpoints()
        self.runner = ControllerRunner(self.store, [self.controller, GarbageCollector()])
        labels = {"metadata": {"labels": {"topology.kubernetes.io/zone": "a"}}}
        self.store.create(node("n1"))
        self.store.merge_patch("Node", "", "n1", labels)
        self.store.create(node("n2"))

    def service(self, name: str = "web", **spec: Any) -> None:
        spec = {"selector": {"app": "web"}, "ports": [{"port": 80}], **spec}
        raw = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
        self.store.create(raw)
        self.runner.run_until_idle()

    def pod(
        self, name: str, ip: str | tuple[str, ...] = "", *, ready: bool = True, app: str = "web", **spec: Any
    ) -> None:
        container = {"name": "c", "image": "i", "ports": spec.pop("container_ports", [])}
        whole = {"nodeName": "n1", "containers": [container], **spec}
        raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}}, "spec": whole}
        self.store.create(raw)
        if ip:
            ips = (ip,) if isinstance(ip, str) else ip
            self.status(name, phase="Running", podIP=ips[0], podIPs=[{"ip": each} for each in ips], **_ready(ready))
        self.runner.run_until_idle()

    def status(self, name: str, **status: Any) -> None:
        self.store.patch_status("Pod", "default", name, status)
        self.runner.run_until_idle()

    def subsets(self, name: str = "web") -> list[dict[str, Any]]:
        """Return the subsets with only the names of pods and the ports."""
        found = []
        for subset in self.store.get("Endpoints", "default", name).raw.get("subsets") or ():
            named = {
                field: [each["targetRef"]["name"] for each in subset[field]]
                for field in ("addresses", "notReadyAddresses")
                if subset.get(field)
            }
            found.append({**named, "ports": [port["port"] for port in subset.get("ports") or ()]})
        return found

    def slices(self, family: str = "IPv4") -> list[Any]:
        return [each for each in self.store.list("EndpointSlice") if each.raw["addressType"] == family]

    def endpoints(self) -> dict[str, dict[str, Any]]:
        return {e["targetRef"]["name"]: e for each in self.slices() for e in each.raw.get("endpoints") or ()}


def _ready(is_ready: bool) -> dict[str, Any]:
    at = "2023-11-14T22:13:20Z"
    return {"conditions": [{"type": "Ready", "status": "True" if is_ready else "False", "lastTransitionTime": at}]}


def test_a_service_has_the_addresses_of_the_pods_that_it_selects() -> None:
    cluster = Cluster()
    cluster.pod("before", "10.0.0.1")
    cluster.service()
    cluster.pod("after", "10.0.0.2")
    cluster.pod("other", "10.0.0.3", app="other")
    cluster.pod("starting")
    assert cluster.subsets() == [{"addresses": ["before", "after"], "ports": [80]}]
    (only,) = cluster.slices()
    service = cluster.store.get("Service", "default", "web")
    pod = cluster.store.get("Pod", "default", "before")
    assert only.raw["endpoints"][0] == {
        "addresses": ["10.0.0.1"],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "targetRef": {"kind": "Pod", "namespace": "default", "name": "before", "uid": pod.uid},
        "nodeName": "n1",
        "zone": "a",
    }
    assert only.raw["ports"] == [{"name": "", "port": 80, "protocol": "TCP"}]
    assert only.name.startswith("web-")
    assert only.labels == {
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert [(each["kind"], each["uid"]) for each in only.metadata["ownerReferences"]] == [("Service", service.uid)]
    assert sorted(cluster.endpoints()) == ["after", "before"]


def test_pods_that_are_not_ready_are_listed_apart_unless_they_are_published() -> None:
    cluster = Cluster()
    cluster.service()
    cluster.service("all", publishNotReadyAddresses=True)
    cluster.pod("a", "10.0.0.1")
    cluster.pod("b", "10.0.0.2", ready=False)
    assert cluster.subsets() == [{"addresses": ["a"], "notReadyAddresses": ["b"], "ports": [80]}]
    assert cluster.subsets("all") == [{"addresses": ["a", "b"], "ports": [80]}]
    cluster.status("b", **_ready(True))
    assert cluster.subsets() == [{"addresses": ["a", "b"], "ports": [80]}]


def test_a_terminating_pod_stays_in_slices_only_and_an_ended_pod_in_none() -> None:
    cluster = Cluster()
    cluster.service()
    cluster.pod("a", "10.0.0.1")
    cluster.pod("b", "10.0.0.2")
    cluster.store.delete("Pod", "default", "a")
    cluster.runner.run_until_idle()
    assert cluster.subsets() == [{"addresses": ["b"], "ports": [80]}]
    assert cluster.endpoints()["a"]["conditions"] == {"ready": False, "serving": True, "terminating": True}
    cluster.status("b", phase="Succeeded")
    assert sorted(cluster.endpoints()) == ["a"]
    cluster.store.delete("Pod", "default", "a", grace_period_s=0)
    cluster.runner.run_until_idle()
    (only,) = cluster.slices()
    assert (only.raw.get("endpoints") or [], only.raw.get("ports") or []) == ([], [])
    assert cluster.subsets() == []


def test_named_ports_are_looked_up_in_each_pod() -> None:
    cluster = Cluster()
    ports = [{"name": "http", "port": 80, "targetPort": "web"}, {"name": "admin", "port": 81, "targetPort": 8081}]
    cluster.service(ports=ports)
    cluster.pod("a", "10.0.0.1", container_ports=[{"name": "web", "containerPort": 8080}])
    cluster.pod("b", "10.0.0.2", container_ports=[{"name": "web", "containerPort": 9090}])
    cluster.pod("c", "10.0.0.3")
    listed = {
        tuple(port["port"] for port in each.raw["ports"]): len(each.raw["endpoints"]) for each in cluster.slices()
    }
    assert {tuple(sorted(numbers)): count for numbers, count in listed.items()} == {
        (8080, 8081): 1,
        (8081, 9090): 1,
        (8081,): 1,
    }
    assert sorted(cluster.subsets(), key=lambda each: each["ports"]) == [
        {"addresses": ["a"], "ports": [8080]},
        {"addresses": ["a", "b", "c"], "ports": [8081]},
        {"addresses": ["b"], "ports": [9090]},
    ]


def test_a_headless_service_without_ports_has_addresses_and_hostnames() -> None:
    cluster = Cluster()
    cluster.service("db", clusterIP="None", ports=[])
    cluster.pod("db-0", "10.0.0.1", hostname="db-0", subdomain="db")
    assert cluster.subsets("db") == [{"addresses": ["db-0"], "ports": []}]
    assert cluster.endpoints()["db-0"]["hostname"] == "db-0"
    labels = cluster.store.get("Endpoints", "default", "db").labels
    assert (
        labels["service.kubernetes.io/headless"] == cluster.slices()[0].labels["service.kubernetes.io/headless"] == ""
    )


def test_a_dual_stack_service_has_slices_of_both_families() -> None:
    cluster = Cluster()
    families = {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}
    spec = {"clusterIP": "None", "selector": {"app": "web"}, **families}
    raw = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db"}, "spec": spec}
    cluster.store.create(raw, restore=True)  # this cluster creates only Services with one family
    cluster.pod("a", ("10.0.0.1", "fd00::1"))
    assert [each.raw["endpoints"][0]["addresses"] for each in cluster.slices("IPv6")] == [["fd00::1"]]
    assert [each.raw["endpoints"][0]["addresses"] for each in cluster.slices()] == [["10.0.0.1"]]
    assert cluster.store.get("Endpoints", "default", "db").raw["subsets"][0]["addresses"][0]["ip"] == "10.0.0.1"


@pytest.mark.parametrize(
    "spec",
    [{"selector": {}}, {"type": "ExternalName", "externalName": "example.com"}],
    ids=["without-a-selector", "external-name"],
)
def test_a_service_with_endpoints_of_others_gets_none(spec: dict[str, Any]) -> None:
    cluster = Cluster()
    cluster.pod("a", "10.0.0.1")
    cluster.service(**spec)
    assert cluster.store.list("Endpoints") == cluster.store.list("EndpointSlice") == []


def test_endpoints_are_deleted_with_their_service() -> None:
    cluster = Cluster()
    cluster.pod("a", "10.0.0.1")
    cluster.service()
    cluster.store.delete("Service", "default", "web")
    cluster.runner.run_until_idle()
    assert cluster.store.list("Endpoints") == cluster.store.list("EndpointSlice") == []


def test_deleted_and_changed_endpoints_are_restored() -> None:
    cluster = Cluster()
    cluster.pod("a", "10.0.0.1")
    cluster.service()
    cluster.store.delete("Endpoints", "default", "web")
    (only,) = cluster.slices()
    cluster.store.merge_patch("EndpointSlice", "default", only.name, {"endpoints": []})
    cluster.runner.run_until_idle()
    assert cluster.subsets() == [{"addresses": ["a"], "ports": [80]}]
    assert sorted(cluster.endpoints()) == ["a"]


def test_a_changed_selector_and_changed_labels_move_pods() -> None:
    cluster = Cluster()
    cluster.pod("a", "10.0.0.1")
    cluster.pod("b", "10.0.0.2", app="db")
    cluster.service()
    cluster.store.merge_patch("Service", "default", "web", {"spec": {"selector": {"app": "db"}}})
    cluster.runner.run_until_idle()
    assert sorted(cluster.endpoints()) == ["b"]
    cluster.store.merge_patch("Pod", "default", "a", {"metadata": {"labels": {"app": "db"}}})
    cluster.store.merge_patch("Pod", "default", "b", {"metadata": {"labels": {"app": None}}})
    cluster.runner.run_until_idle()
    assert sorted(cluster.endpoints()) == ["a"]


def test_labels_of_the_service_are_copied_and_removed() -> None:
    cluster = Cluster()
    cluster.service()
    cluster.store.merge_patch("Service", "default", "web", {"metadata": {"labels": {"team": "a"}}})
    cluster.runner.run_until_idle()
    assert cluster.slices()[0].labels["team"] == cluster.store.get("Endpoints", "default", "web").labels["team"] == "a"
    cluster.store.merge_patch("Service", "default", "web", {"metadata": {"labels": None}})
    cluster.runner.run_until_idle()
    assert "team" not in cluster.slices()[0].labels
    assert "team" not in cluster.store.get("Endpoints", "default", "web").labels


def test_a_slice_has_at_most_100_endpoints_and_others_do_not_change() -> None:
    cluster = Cluster()
    cluster.service()
    for number in range(230):
        cluster.pod(f"p{number:03}", f"10.0.{number // 200}.{number % 200 + 1}")
    rest(cluster)
    sizes = sorted(len(each.raw["endpoints"]) for each in cluster.slices())
    assert sum(sizes) == 230
    assert max(sizes) <= 100
    before = {each.name: each.resource_version for each in cluster.slices()}
    cluster.status("p000", **_ready(False))
    rest(cluster)
    after = {each.name: each.resource_version for each in cluster.slices()}
    assert sum(before[name] != version for name, version in after.items()) == 1


def test_an_endpoints_object_has_at_most_1000_addresses() -> None:
    cluster = Cluster()
    for number in range(1010):
        cluster.pod(f"p{number:04}", f"10.0.{number // 200}.{number % 200 + 1}", ready=number % 2 == 0)
    cluster.service()
    rest(cluster)
    found = cluster.store.get("Endpoints", "default", "web")
    (subset,) = found.raw["subsets"]
    assert (len(subset["addresses"]), len(subset["notReadyAddresses"])) == (505, 495)
    assert found.annotations["endpoints.kubernetes.io/over-capacity"] == "truncated"
    assert len(cluster.endpoints()) == 1010


def test_events_of_other_pods_are_not_delivered() -> None:
    cluster = Cluster()
    cluster.pod("a", "10.0.0.1")
    cluster.pod("other", "10.0.0.2", app="other")

    def concerns(name: str, change: dict[str, Any]) -> bool:
        old = cluster.store.get("Pod", "default", name)
        new = cluster.store.merge_patch("Pod", "default", name, change)
        return cluster.controller.concerns(WatchEvent("MODIFIED", old, new, new.resource_version))

    labels = {"metadata": {"labels": {"x": "1"}}}
    assert not concerns("a", labels)  # there are no Services
    cluster.service()
    assert not concerns("other", labels)
    assert not concerns("a", {"metadata": {"annotations": {"x": "1"}}})
    assert concerns("a", {"metadata": {"labels": {"x": "2"}}})


def test_a_service_with_many_pods_is_examined_at_intervals() -> None:
    cluster = Cluster()
    for number in range(200):
        cluster.pod(f"p{number:03}", f"10.0.0.{number + 1}")
    cluster.service()
    cluster.status("p000", **_ready(False))
    cluster.status("p001", **_ready(False))
    assert cluster.endpoints()["p001"]["conditions"]["serving"]
    due = cluster.runner.next_deadline
    assert due == NOW + 0.2
    cluster.clock.now = due
    cluster.runner.run_until_idle()
    assert not cluster.endpoints()["p001"]["conditions"]["serving"]


def test_a_turn_examines_few_pods_and_all_services_share_a_budget() -> None:
    cluster = Cluster()
    for number in range(200):
        cluster.pod(f"p{number:03}", f"10.0.0.{number + 1}")
    store, controller = cluster.store, Endpoints()
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    for number in range(12):
        store.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s{number}"}, "spec": spec})
    written = [len(store.list("Endpoints"))]
    events = listed(store, controller.kinds)
    while (due := controller.next_deadline) is None or due <= NOW:
        take_turn(controller, events, store)
        events = []
        written.append(len(store.list("Endpoints")))
    assert written == [0, 2, 4, 6]  # 250 pods in a turn, and 1000 pods at once
    while (due := controller.next_deadline) is not None:
        cluster.clock.now = due
        take_turn(controller, [], store)
    assert len(store.list("Endpoints")) == 12
    assert cluster.clock.now - NOW == pytest.approx((11 * 200 - 1000) / 4000, abs=1e-5)


def test_services_and_versions_share_the_endpoints_of_a_pod() -> None:
    cluster = Cluster()
    cluster.pod("a", "10.0.0.1")
    cluster.service("one")
    cluster.service("two")

    def shown() -> list[int]:
        objects = [*cluster.store.list("Endpoints"), *cluster.store.list("EndpointSlice")]
        first = [(each.raw.get("subsets") or [{"addresses": each.raw.get("endpoints")}])[0] for each in objects]
        return [id(each["addresses"][0]) for each in first]

    before = shown()
    assert [len(set(before[:2])), len(set(before[2:]))] == [1, 1]
    cluster.pod("b", "10.0.0.2")
    cluster.store.merge_patch("Pod", "default", "a", {"metadata": {"labels": {"x": "1"}}})
    cluster.runner.run_until_idle()
    assert [len(each.raw["subsets"][0]["addresses"]) for each in cluster.store.list("Endpoints")] == [2, 2]
    assert shown() == before


def test_events_of_own_writes_are_not_delivered() -> None:
    cluster = Cluster()
    cluster.service()
    cluster.pod("a", "10.0.0.1")
    own = cluster.store.get("Endpoints", "default", "web")
    assert not cluster.controller.concerns(WatchEvent("MODIFIED", own, own, own.resource_version))
    other = cluster.store.merge_patch("Endpoints", "default", "web", {"subsets": []})
    assert cluster.controller.concerns(WatchEvent("MODIFIED", own, other, other.resource_version))


def rest(cluster: Cluster) -> None:
    """Advance the time until no Service waits."""
    while (due := cluster.runner.next_deadline) is not None:
        cluster.clock.now = due
        cluster.runner.run_until_idle()
