"""Addresses and system information that kubelets report for new nodes."""

from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.kubelets.node_info import reported
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.store import Store
from tests.store.manifests import Clock, node


def registered(*nodes: Raw) -> list[Raw]:
    store = Store(now=Clock())
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
    first = reported(there, "1.37.2", ())["addresses"][0]["address"]
    second = reported(there, "1.37.2", {first})["addresses"][0]["address"]
    assert first != second
