"""Tests of cluster IPs and node ports of Services."""

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.store.creating.service_addresses import NODE_PORTS
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
