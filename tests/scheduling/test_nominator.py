"""Tests of nominations: which pods are nominated to which nodes, after any changes (nominator.go)."""

import pytest

from kschedd.api.pods import Pod
from kschedd.scheduling.nominations.nominator import Nominator


def pod(name: str, nominated: str = "", node: str = "", uid: str = "") -> Pod:
    meta = {"name": name, "namespace": "d", "uid": uid or f"uid-{name}"}
    status = {"nominatedNodeName": nominated} if nominated else {}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": {"nodeName": node}, "status": status})


def names(nominator: Nominator) -> dict[str, list[str]]:
    """Return the names of the nominated pods by node, after a check that all views agree."""
    found = {node: [each.name for each in pods] for node, pods in nominator.by_node().items() if pods}
    assert {node: [each.name for each in pods.values()] for node, pods in nominator.nodes.items()} == found
    assert {node: [each.name for each in nominator.on_node(node)] for node in found} == found
    by_uid = {each.uid: node for node, pods in nominator.by_node().items() for each in pods}
    assert nominator.node_by_uid() == by_uid
    assert nominator.nominated == nominator.by_node()
    assert all(nominator.node_of(uid) == node for uid, node in by_uid.items())
    assert bool(nominator) is bool(found)
    return found


def test_pods_are_nominated_in_order_to_the_node_of_their_status_or_another() -> None:
    nominator = Nominator()
    assert names(nominator) == {}
    nominator.add(pod("a", "n1"))
    nominator.add(pod("b", "n2"), "n1")
    nominator.add(pod("c"))
    nominator.add(pod("d", "n1"), "")
    assert names(nominator) == {"n1": ["a", "b"]}
    assert (nominator.node_of("uid-c"), nominator.on_node("n2")) == ("", ())
    nominator.add(pod("a", "n2"))
    assert names(nominator) == {"n1": ["b"], "n2": ["a"]}
    nominator.add(pod("b", "n1"), "")
    assert names(nominator) == {"n2": ["a"]}


def test_each_change_has_a_version() -> None:
    nominator = Nominator()
    nominator.remove(pod("a"))
    nominator.left_queue("uid-a")
    nominator.add(pod("a"))
    assert nominator.version == 0
    nominator.add(pod("a", "n1"))
    assert nominator.version == 1
    nominator.left_queue("uid-a")
    assert nominator.version == 2
    nominator.remove(pod("a"))
    assert nominator.version == 3


@pytest.mark.parametrize(
    ("stored", "nominated"),
    [
        pytest.param(None, {}, id="a-deleted-pod-is-not"),
        pytest.param(pod("a", node="n2"), {}, id="a-bound-pod-is-not"),
        pytest.param(pod("a"), {"n1": ["a"]}, id="a-pending-pod-is"),
    ],
)
def test_only_pending_pods_are_nominated(stored: Pod | None, nominated: dict[str, list[str]]) -> None:
    requested: list[str] = []
    nominator = Nominator(lambda key: requested.append(key) or stored)
    nominator.add(pod("a", "n1"))
    assert names(nominator) == nominated
    assert requested == ["d/a"]


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param("n1", pod("a"), pod("a"), "n1", id="kept-if-neither-version-names-a-node"),
        pytest.param("", pod("a"), pod("a"), "", id="none-to-keep"),
        pytest.param("n1", pod("a", "n1"), pod("a"), "", id="cleared"),
        pytest.param("n1", pod("a"), pod("a", "n2"), "n2", id="changed"),
        pytest.param("n1", pod("a", "n1"), pod("a", "n1", uid="other"), "n1", id="of-another-pod-of-the-name"),
    ],
)
def test_an_update_of_a_pod(before: str, old: Pod, new: Pod, after: str) -> None:
    nominator = Nominator()
    nominator.add(old, before)
    nominator.update(old, new)
    assert names(nominator) == ({after: ["a"]} if after else {})
    assert nominator.node_of(new.uid) == after
    assert after == "" or nominator.on_node(after) == (new,)


def test_of_a_pod_that_left_the_queue_only_the_name_counts() -> None:
    nominator = Nominator()
    nominator.add(pod("a", "n1"))
    nominator.left_queue("uid-a")
    assert names(nominator) == {"n1": ["a"]}
    [left] = nominator.on_node("n1")
    assert (left.key, left.uid, left.nominated_node_name) == ("d/a", "uid-a", "")


def test_a_copy_has_nominations_of_its_own() -> None:
    nominator, copied = Nominator(), Nominator()
    nominator.add(pod("a", "n1"))
    copied.copy_of(nominator)
    nominator.add(pod("b", "n1"))
    assert (names(copied), copied.version) == ({"n1": ["a"]}, 1)
