"""Tests of the EndpointSlices that mirror Endpoints objects of Services without a selector."""

from typing import Any

from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.networking.endpoints import Endpoints
from kschedd.controllers.networking.mirroring import EndpointSliceMirroring
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.store import Store
from tests.store.manifests import Clock

Raw = dict[str, Any]
SUBSET: Raw = {"addresses": [{"ip": "192.0.2.42"}], "ports": [{"name": "sql", "port": 5432}]}
CONTROLLER = "endpointslicemirroring-controller.k8s.io"


class Cluster:
    def __init__(self) -> None:
        self.store = Store(now=Clock(1_700_000_000.0), seed=6)
        controllers = (EndpointSliceMirroring(), Endpoints(), GarbageCollector())
        self.runner = ControllerRunner(self.store, controllers)

    def create(self, kind: str, labels: dict[str, str] | None = None, **rest: Any) -> None:
        meta = {"name": "db", "namespace": "default", "labels": labels or {}}
        self.store.create({"apiVersion": "v1", "kind": kind, "metadata": meta, **rest})
        self.runner.run_until_idle()

    def change(self, kind: str, patch: Raw) -> None:
        self.store.merge_patch(kind, "default", "db", patch)
        self.runner.run_until_idle()

    def delete(self, kind: str) -> None:
        self.store.delete(kind, "default", "db")
        self.runner.run_until_idle()

    @property
    def slices(self) -> list[Raw]:
        return [dict(each.raw) for each in self.store.list("EndpointSlice", "default")]

    @property
    def addresses(self) -> list[list[str]]:
        return [[each["addresses"][0] for each in slice_["endpoints"]] for slice_ in self.slices]


def mirrored(*subsets: Raw) -> Cluster:
    """Create a Service without a selector and its Endpoints."""
    cluster = Cluster()
    cluster.create("Service", spec={"ports": [{"port": 5432}]})
    assert cluster.slices == []
    cluster.create("Endpoints", labels={"team": "a"}, subsets=list(subsets or (SUBSET,)))
    return cluster


def test_endpoints_are_mirrored_into_a_slice_that_they_own() -> None:
    cluster = mirrored()
    (slice_,) = cluster.slices
    assert slice_["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "db",
        "endpointslice.kubernetes.io/managed-by": CONTROLLER,
    }
    assert slice_["metadata"]["name"].startswith("db-")
    assert [owner["kind"] for owner in slice_["metadata"]["ownerReferences"]] == ["Endpoints"]
    assert slice_["addressType"] == "IPv4"
    assert slice_["ports"] == [{"name": "sql", "port": 5432, "protocol": "TCP"}]
    assert slice_["endpoints"] == [{"addresses": ["192.0.2.42"], "conditions": {"ready": True}}]


def test_each_family_and_each_set_of_ports_has_a_slice() -> None:
    both = {"addresses": [{"ip": "192.0.2.42"}, {"ip": "2001:db8::1"}], "ports": [{"port": 1}]}
    unready = {"notReadyAddresses": [{"ip": "192.0.2.43", "hostname": "h"}], "ports": [{"port": 2}]}
    cluster = mirrored(both, unready)
    found = {(each["addressType"], each["ports"][0]["port"]): each["endpoints"] for each in cluster.slices}
    assert sorted(found) == [("IPv4", 1), ("IPv4", 2), ("IPv6", 1)]
    assert found["IPv4", 2] == [{"addresses": ["192.0.2.43"], "conditions": {"ready": False}, "hostname": "h"}]


def test_a_change_is_written_into_the_same_slice() -> None:
    cluster = mirrored()
    name = cluster.slices[0]["metadata"]["name"]
    cluster.change("Endpoints", {"subsets": [{"addresses": [{"ip": "192.0.2.50"}], "ports": [{"port": 6}]}]})
    assert [each["metadata"]["name"] for each in cluster.slices] == [name]
    assert cluster.addresses == [["192.0.2.50"]]
    assert [each["port"] for each in cluster.slices[0]["ports"]] == [6]


def test_a_changed_slice_is_restored() -> None:
    cluster = mirrored()
    name = cluster.slices[0]["metadata"]["name"]
    cluster.store.merge_patch("EndpointSlice", "default", name, {"endpoints": []})
    cluster.runner.run_until_idle()
    assert cluster.addresses == [["192.0.2.42"]]
    cluster.store.delete("EndpointSlice", "default", name)
    cluster.runner.run_until_idle()
    assert cluster.addresses == [["192.0.2.42"]]


def test_at_most_a_thousand_addresses_are_mirrored() -> None:
    many = [{"ip": f"10.0.{number // 250}.{number % 250 + 1}"} for number in range(1100)]
    cluster = mirrored({"addresses": many, "ports": [{"port": 1}]})
    assert [len(each) for each in cluster.addresses] == [1000]


def test_slices_disappear_with_their_reason() -> None:
    for end in (
        lambda cluster: cluster.delete("Endpoints"),
        lambda cluster: cluster.delete("Service"),
        lambda cluster: cluster.change("Service", {"spec": {"selector": {"app": "x"}}}),
        lambda cluster: cluster.change(
            "Endpoints", {"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}}
        ),
    ):
        cluster = mirrored()
        end(cluster)
        assert [each for each in cluster.slices if CONTROLLER in each["metadata"]["labels"].values()] == []


def test_endpoints_of_services_with_a_selector_are_not_mirrored() -> None:
    cluster = Cluster()
    cluster.create("Service", spec={"selector": {"app": "x"}, "ports": [{"port": 5432}]})
    managed = [each["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] for each in cluster.slices]
    assert managed == ["endpointslice-controller.k8s.io"]
