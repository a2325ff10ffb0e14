"""Tests of the published slices that are visible to a node."""

from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.devices.pools.inventory import Inventory, InventoryError
from kschedd.devices.pools.on_node import Pool, candidates_of
from kschedd.devices.rules import DeviceRules
from tests.devices.made import device, node, slice_of

ZONE_A = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}


def pools(inventory: Inventory, on: Node) -> tuple[Pool, ...]:
    return candidates_of(inventory, on, DeviceRules()).pools


def seen(*slices: Object, on: Any = None) -> list[tuple[str, list[str], bool, str]]:
    """(pool, devices, incomplete, fault) of each pool that is available to the node n1 in zone a."""
    found = pools(Inventory().updated(slices), on or node("n1", zone="a"))
    return [(str(p), [d.id.name for d in p.devices()], p.incomplete, p.invalid) for p in found]


def test_slices_reach_a_node_by_name_selector_or_all() -> None:
    assert seen(
        slice_of("n1", device("own")),
        slice_of("n2", device("other")),
        slice_of("net", device("nic"), driver="net.example.com", allNodes=True),
        slice_of("rack", device("shared"), nodeSelector=ZONE_A),
        slice_of("per-device", device("x"), perDeviceNodeSelection=True),
    ) == [
        ("gpu.example.com/n1", ["own"], False, ""),
        ("net.example.com/net", ["nic"], False, ""),
        ("gpu.example.com/rack", ["shared"], False, ""),
    ]


def test_selector_that_does_not_match_hides_the_slice() -> None:
    assert seen(slice_of("rack", device("shared"), nodeSelector=ZONE_A), on=node("n1", zone="b")) == []


def test_newest_generation_counts() -> None:
    old = slice_of("s1", device("gone"), pool="p", nodeName="n1")
    new = slice_of("s2", device("here"), pool="p", generation=2, nodeName="n1")
    assert seen(old, new) == seen(new, old) == [("gpu.example.com/p", ["here"], False, "")]


def test_pool_without_all_its_slices_is_incomplete() -> None:
    assert seen(slice_of("n1", device("d"), of=2)) == [("gpu.example.com/n1", ["d"], True, "")]


def test_slices_that_only_other_nodes_reach_complete_a_pool() -> None:
    mine = slice_of("s1", device("d1"), pool="p", of=2, nodeName="n1")
    other = slice_of("s2", device("d2"), pool="p", of=2, nodeName="n2")
    assert seen(mine, other) == [("gpu.example.com/p", ["d1"], False, "")]


def test_pool_that_is_being_replaced_elsewhere_is_left_alone() -> None:
    old = slice_of("s1", device("d1"), pool="p", of=2, nodeName="n1")
    new = slice_of("s2", device("d2"), pool="p", of=2, generation=2, nodeName="n2")
    assert seen(old, new) == []


def test_two_devices_of_one_name_make_a_pool_invalid() -> None:
    assert seen(slice_of("n1", device("d"), device("d"))) == [
        ("gpu.example.com/n1", ["d", "d"], False, "duplicate device name d")
    ]


def test_unreadable_node_selector_is_an_error() -> None:
    broken = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Near"}]}]}
    with pytest.raises(InventoryError, match="failed to perform node selection for slice rack"):
        seen(slice_of("rack", device("d"), nodeSelector=broken))


def test_what_did_not_change_stays_the_same_device() -> None:
    kept, changed = slice_of("n1", device("a")), slice_of("n2", device("b"))
    first = Inventory().updated([kept, changed])
    second = first.updated([kept, slice_of("n2", device("b"), device("c"))])
    here, there = node("n1"), node("n2")
    assert pools(second, here)[0].slices[0].devices[0] is pools(first, here)[0].slices[0].devices[0]
    assert [d.id.name for d in pools(second, there)[0].slices[0].devices] == ["b", "c"]


def test_a_changed_node_is_looked_at_again() -> None:
    inventory = Inventory().updated([slice_of("rack", device("d"), nodeSelector=ZONE_A)])
    assert len(pools(inventory, node("n1", zone="a"))) == 1
    assert pools(inventory, node("n1", zone="b")) == ()
