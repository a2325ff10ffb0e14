"""Cluster IPs and node ports of Services."""

from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from kschedd.store.errors import ApiError
from kschedd.store.service_addresses import NODE_PORTS
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
    assert sorted(map(ip_address, given)) == hosts[1:]  # the first is the API server's
    with pytest.raises(ApiError, match="range is full"):
        store.create(service("more"))


def test_a_service_that_states_a_low_node_port_finds_it_free(store: Store) -> None:
    others = [store.create(service(f"s{number}", "NodePort")).spec["ports"][0]["nodePort"] for number in range(3)]
    assert min(others) == NODE_PORTS[0] + 86
    assert len(set(others)) == 3
    made = store.create(service("mine", "NodePort", port=NODE_PORTS[0]))
    assert made.spec["ports"][0]["nodePort"] == NODE_PORTS[0]
