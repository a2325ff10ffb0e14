"""Tests of cluster IPs and node ports of Services."""

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.store.creating.service_addresses import NODE_PORTS, networks_of
from kschedd.store.errors import ApiError, Invalid
from kschedd.store.store import Store

NETWORK = "10.9.0.0/27"


def service(name: str, kind: str = "ClusterIP", address: str = "", port: int = 0) -> dict[str, Any]:
    ports = [{"port": 80, **({"nodePort": port} if port else {})}]
    spec = {"type": kind, "ports": ports, **({"clusterIP": address} if address else {})}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


@pytest.fixture
def store() -> Store:
    return Store(now=lambda: 0.0, service_range=NETWORK)


def test_a_service_that_states_its_address_finds_it_free_though_others_came_before(store: Store) -> None:
    for number in range(12):
        store.create(service(f"s{number}"))
    assert store.create(service("dns", address="10.9.0.10")).spec["clusterIP"] == "10.9.0.10"


def test_every_address_is_given_out_once_before_the_range_is_full(store: Store) -> None:
    given = [store.create(service(f"s{number}")).spec["clusterIP"] for number in range(29)]
    hosts = list(ip_network(NETWORK).hosts())
    assert sorted(map(ip_address, given)) == hosts[1:]  # the first address is the API server's
    with pytest.raises(ApiError, match="range is full"):
        store.create(service("more"))


def test_services_without_an_address_take_none_from_others(store: Store) -> None:
    assert store.create(service("headless", address="None")).spec["clusterIPs"] == ["None"]
    first = next(iter(ip_network(NETWORK).hosts())) + 1
    assert [store.create(service(name)).spec["clusterIP"] for name in ("a", "b")] == [
        str(first + number) for number in (16, 17)
    ]


def test_a_service_that_states_a_low_node_port_finds_it_free(store: Store) -> None:
    others = [store.create(service(f"s{number}", "NodePort")).spec["ports"][0]["nodePort"] for number in range(3)]
    assert min(others) == NODE_PORTS[0] + 86
    assert len(set(others)) == 3
    made = store.create(service("mine", "NodePort", port=NODE_PORTS[0]))
    assert made.spec["ports"][0]["nodePort"] == NODE_PORTS[0]


def without_ports(name: str, *ports: int) -> dict[str, Any]:
    raw = service(name, "LoadBalancer")
    named = [{"name": f"p{number}", "port": 80 + number} for number in range(len(ports))]
    stated = [{**each, **({"nodePort": port} if port else {})} for each, port in zip(named, ports, strict=True)]
    raw["spec"] |= {"allocateLoadBalancerNodePorts": False, "ports": stated}
    return raw


def node_ports(made: Object) -> list[int | None]:
    return [port.get("nodePort") for port in made.spec["ports"]]


def test_a_balancer_that_wants_no_node_ports_keeps_those_it_states(store: Store) -> None:
    made = store.create(without_ports("s", 30001, 0))
    assert node_ports(made) == [30001, None]
    bare = without_ports("s", 0, 0)
    bare["metadata"]["resourceVersion"] = made.metadata["resourceVersion"]
    assert node_ports(store.update(bare)) == [30001, None]


def test_a_node_port_is_taken_though_its_service_wants_none(store: Store) -> None:
    store.create(without_ports("s", 30001))
    with pytest.raises(Invalid, match="provided port is already allocated"):
        store.create(without_ports("t", 30001))


def test_only_load_balancers_have_a_status_of_one(store: Store) -> None:
    reached = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4", "ipMode": "VIP"}]}}
    plain = store.create(service("plain"))
    with pytest.raises(Invalid, match=r"status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is"):
        store.update({**plain.raw, "status": reached}, subresource="status")
    made = store.create(service("s", "LoadBalancer"))
    reported = store.update({**made.raw, "status": reached}, subresource="status")
    changed = store.update({**reported.raw, "spec": {**reported.spec, "type": "ClusterIP"}})
    assert changed.raw["status"]["loadBalancer"] == {}


def stacked(name: str, policy: str, **spec: Any) -> dict[str, Any]:
    raw = service(name)
    raw["spec"] |= {"ipFamilyPolicy": policy, **spec}
    return raw


@pytest.fixture
def dual() -> Store:
    return Store(now=lambda: 0.0, service_range=f"{NETWORK},fd00:9::/108")


@pytest.mark.parametrize("policy", ["PreferDualStack", "RequireDualStack"])
def test_a_cluster_with_two_ranges_gives_a_service_an_address_of_each_family(dual: Store, policy: str) -> None:
    spec = dual.create(stacked("s", policy)).spec
    assert spec["ipFamilies"] == ["IPv4", "IPv6"]
    assert spec["clusterIPs"] == ["10.9.0.18", "fd00:9::102"]
    assert spec["clusterIP"] == "10.9.0.18"


def test_the_first_range_is_the_default_and_a_service_may_choose_the_order(dual: Store) -> None:
    assert dual.create(service("plain")).spec["clusterIPs"] == ["10.9.0.18"]
    assert dual.create(stacked("six", "SingleStack", ipFamilies=["IPv6"])).spec["clusterIPs"] == ["fd00:9::102"]
    reversed_order = dual.create(stacked("both", "PreferDualStack", ipFamilies=["IPv6"])).spec
    assert reversed_order["ipFamilies"] == ["IPv6", "IPv4"]
    assert reversed_order["clusterIPs"] == ["fd00:9::103", "10.9.0.19"]
    stated = dual.create({**stacked("stated", "RequireDualStack", clusterIP="fd00:9::7", clusterIPs=["fd00:9::7"])})
    assert stated.spec["ipFamilies"] == ["IPv6", "IPv4"]
    assert stated.spec["clusterIPs"] == ["fd00:9::7", "10.9.0.20"]


def test_a_service_gains_and_releases_its_second_address(dual: Store) -> None:
    dual.create(service("s"))
    gained = dual.merge_patch("Service", "default", "s", {"spec": {"ipFamilyPolicy": "RequireDualStack"}})
    assert gained.spec["clusterIPs"] == ["10.9.0.18", "fd00:9::102"]
    with pytest.raises(Invalid, match="must be 'SingleStack' to release the secondary IP family"):
        dual.merge_patch("Service", "default", "s", {"spec": {"ipFamilies": ["IPv4"]}})
    released = dual.merge_patch("Service", "default", "s", {"spec": {"ipFamilyPolicy": "SingleStack"}})
    assert (released.spec["clusterIPs"], released.spec["ipFamilies"]) == (["10.9.0.18"], ["IPv4"])
    assert dual.create(stacked("next", "RequireDualStack")).spec["clusterIPs"][1] == "fd00:9::102"


def test_an_address_in_use_or_outside_its_range_is_rejected_for_each_family(dual: Store) -> None:
    dual.create(stacked("s", "RequireDualStack"))
    taken = ["10.9.0.5", "fd00:9::102"]
    with pytest.raises(Invalid, match="failed to allocate IP fd00:9::102: provided IP is already allocated"):
        dual.create(stacked("t", "RequireDualStack", clusterIP=taken[0], clusterIPs=taken))
    outside = ["10.9.0.5", "fd00:8::1"]
    with pytest.raises(Invalid, match="The range of valid IPs is fd00:9::/108"):
        dual.create(stacked("t", "RequireDualStack", clusterIP=outside[0], clusterIPs=outside))


def test_a_service_that_prefers_two_families_changes_only_when_its_fields_change(store: Store, dual: Store) -> None:
    made = store.create(stacked("s", "PreferDualStack"))
    assert made.spec["clusterIPs"] == ["10.9.0.18"]
    store.service_range = dual.service_range  # the daemon is restarted with two ranges
    labelled = store.merge_patch("Service", "default", "s", {"metadata": {"labels": {"a": "b"}}})
    assert labelled.spec["clusterIPs"] == ["10.9.0.18"]
    required = store.merge_patch("Service", "default", "s", {"spec": {"ipFamilyPolicy": "RequireDualStack"}})
    assert required.spec["clusterIPs"] == ["10.9.0.18", "fd00:9::102"]


def test_a_cluster_with_one_range_rejects_other_families(store: Store) -> None:
    with pytest.raises(Invalid, match="this cluster is not configured for dual-stack services"):
        store.create(stacked("s", "RequireDualStack"))
    with pytest.raises(Invalid, match=r"spec.ipFamilies\[0\]: Invalid value: \"IPv6\": not configured on this cluster"):
        store.create(stacked("s", "SingleStack", ipFamilies=["IPv6"]))
    with pytest.raises(Invalid, match="IPv6 is not configured on this cluster"):
        store.create(service("s", address="fd00:9::7"))


def test_a_headless_service_without_a_selector_has_any_families(store: Store) -> None:
    assert store.create(service("h", address="None")).spec["ipFamilies"] == ["IPv4", "IPv6"]


def test_ranges_are_of_different_families() -> None:
    assert list(networks_of("fd00::/108,10.0.0.0/16")) == ["IPv6", "IPv4"]
    with pytest.raises(ValueError, match="more than one range of IPv4 addresses"):
        networks_of("10.0.0.0/16,10.1.0.0/16")
