"""Addresses and system information that kubelets report for new nodes."""

from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.kubelets.node_info import internal_ips, reported
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.creating.service_addresses import SERVICE_RANGE
from kschedd.store.store import Store
from tests.store.manifests import Clock, node


def registered(*nodes: Raw, ranges: str = SERVICE_RANGE) -> list[Raw]:
    store = Store(now=Clock(), service_range=ranges)
    for each in nodes:
        store.create(each)
    ControllerRunner(store, [Kubelets("1.37.2")]).run_until_idle()
    return [each.status for each in store.list("Node")]


def test_a_new_node_reports_addresses_and_its_system() -> None:
    status, other = registered(node("a"), node("b"))
    internal, hostname = status["addresses"]
    assert internal["type"] == "InternalIP"
    assert internal["address"].startswith("172.")
    assert internal["address"] != other["addresses"][0]["address"]
    assert hostname == {"type": "Hostname", "address": "a"}
    info = status["nodeInfo"]
    assert (info["kubeletVersion"], info["operatingSystem"], info["architecture"]) == ("v1.37.2", "linux", "amd64")
    assert len(info["machineID"]) == 32
    assert info["systemUUID"] != info["bootID"] != other["nodeInfo"]["bootID"]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}


def test_what_the_manifest_states_is_kept() -> None:
    stated = node("a")
    stated["status"]["addresses"] = [{"type": "InternalIP", "address": "192.168.0.4"}]
    (status,) = registered(stated)
    assert status["addresses"] == stated["status"]["addresses"]
    assert status["nodeInfo"]["osImage"] == "Simulated Linux (kschedd)"


def test_a_node_that_is_ready_already_is_left_alone() -> None:
    (status,) = registered(node("a", conditions={"Ready": "True"}))
    assert "addresses" not in status


def test_an_address_that_is_in_use_is_not_given_again() -> None:
    there = Node.from_raw({**node("a"), "metadata": {"name": "a", "uid": "u"}})
    assert isinstance(there, Node)
    first = reported(there, "1.37.2", ["IPv4"], ())["addresses"][0]["address"]
    second = reported(there, "1.37.2", ["IPv4"], {first})["addresses"][0]["address"]
    assert first != second


def test_a_node_of_a_dual_stack_cluster_reports_an_address_of_each_family() -> None:
    (status,) = registered(node("a"), ranges="fd00::/108,10.0.0.0/16")
    first, second, _ = (each["address"] for each in status["addresses"])
    assert first.startswith("fd00:172:16::")
    assert second.startswith("172.")


def test_the_first_internal_address_of_each_family_counts() -> None:
    def ips(*addresses: str) -> list[str]:
        listed = [{"type": "InternalIP", "address": each} for each in addresses]
        raw = {**node("a"), "status": {"addresses": [{"type": "ExternalIP", "address": "1.1.1.1"}, *listed]}}
        there = Node.from_raw(raw)
        assert isinstance(there, Node)
        return list(internal_ips(there))

    assert ips() == []
    assert ips("10.0.0.1", "10.0.0.2") == ["10.0.0.1"]
    assert ips("fd00::1", "fd00::2", "10.0.0.1", "10.0.0.2") == ["fd00::1", "10.0.0.1"]
