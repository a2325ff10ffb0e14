"""Tests of the differences between the 1.36 and the 1.34 allocator: counters, shares, taints, constraints, pools."""

from typing import Any

import pytest

from kschedd.api.objects import Object, parse
from kschedd.devices.allocation.allocator import Allocator
from kschedd.devices.allocation.results import allocations
from kschedd.devices.allocation.solution import AllocationError, NodeFailure
from kschedd.devices.claims import read_claim
from kschedd.devices.pools.allocated import AllocatedState, held_devices
from kschedd.devices.pools.inventory import Inventory
from kschedd.devices.rules import DeviceRules
from tests.devices.made import (
    DRIVER,
    claim_raw,
    class_raw,
    device,
    exact,
    first_of,
    node,
    slice_of,
    slice_raw,
    subrequest,
)

RULES = DeviceRules(
    incomplete_pools_passed_over=True,
    invalid_pools_passed_over=True,
    alternatives_kept_apart=True,
    partitionable_devices=True,
    consumable_capacity=True,
    device_taints=True,
    binding_conditions=True,
)
CLASSES = {"gpu": parse(class_raw("gpu", f'device.driver == "{DRIVER}"')), "any": parse(class_raw("any"))}


def allocator(*claims: dict[str, Any], slices: list[Object], used: list[Any] | None = None) -> Allocator:
    held = [one for results in used or [] for one in held_devices({"devices": {"results": [results]}})]
    return Allocator(
        tuple(read_claim(parse(raw)) for raw in claims),
        AllocatedState.of(held),
        CLASSES.get,
        Inventory().updated(slices),
        RULES,
    )


def given(made: Allocator, on: str = "n1") -> list[str] | None:
    """Return the devices allocated on a node, in order of allocation, or None if the allocation fails."""
    solution = made.allocate(node(on, zone="a"))
    return None if solution is None else [one.device.id.name for claim in solution.given for one in claim]


def ask(*requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return claim_raw("c", *(requests or (exact("r"),)), **more)


def used(name: str, *, pool: str = "n1", **more: Any) -> dict[str, Any]:
    return {"request": "r", "driver": DRIVER, "pool": pool, "device": name, **more}


# -- shared counters ---------------------------------------------------------------------------------------------------


def counters(name: str, *, driver: str = DRIVER, pool: str = "n1", of: int = 2, **amounts: str) -> Object:
    raw = slice_raw(name, pool=pool, driver=driver, of=of, allNodes=True)
    raw["spec"]["sharedCounters"] = [{"name": "set", "counters": {key: {"value": v} for key, v in amounts.items()}}]
    return parse(raw)


def part(name: str, **amounts: str) -> dict[str, Any]:
    consumed = {key: {"value": value} for key, value in amounts.items()}
    return {"name": name, "consumesCounters": [{"counterSet": "set", "counters": consumed}]}


PARTS = slice_of("n1", part("half", mem="5"), part("other", mem="5"), part("third", mem="5"), pool="n1", of=2)
MEMORY = counters("counters", mem="10")


def test_partitions_are_given_out_while_their_counters_last() -> None:
    assert given(allocator(ask(exact("r", count=2)), slices=[PARTS, MEMORY])) == ["half", "other"]
    assert given(allocator(ask(exact("r", count=3)), slices=[PARTS, MEMORY])) is None


def test_allocated_partitions_consume_counters_on_other_nodes_too() -> None:
    mine = slice_of("n1", part("a", mem="6"), pool="p", of=3, nodeName="n1")
    theirs = slice_of("n2", part("b", mem="5"), pool="p", of=3, nodeName="n2")
    slices = [mine, theirs, counters("counters", pool="p", of=3, mem="10")]
    assert given(allocator(ask(), slices=slices)) == ["a"]
    assert given(allocator(ask(), slices=slices, used=[used("b", pool="p")])) is None


def test_two_drivers_with_one_pool_name_share_counters() -> None:
    slices = [
        slice_of("one", part("a", mem="6"), pool="n1", of=2, nodeName="n1"),
        counters("one-counters", mem="10"),
        slice_of("two", part("b", mem="6"), pool="n1", of=2, driver="z.example.com", nodeName="n1"),
        counters("two-counters", driver="z.example.com", mem="10"),
    ]
    both = exact("r", device_class="any", count=2)
    assert given(allocator(ask(both), slices=slices)) is None


@pytest.mark.parametrize(
    ("slices", "why"),
    [
        pytest.param([slice_of("n1", device("d"), device("d"))], "device named twice", id="device-twice"),
        pytest.param([slice_of("n1", part("d", mem="1"))], "no such set", id="no-counter-set"),
        pytest.param([PARTS, counters("counters", other="1")], "no such counter", id="no-counter"),
        pytest.param(
            [slice_of("n1", device("d"), of=3), counters("a", of=3, mem="1"), counters("b", of=3, mem="1")],
            "set twice",
            id="counter-set-twice",
        ),
    ],
)
def test_invalid_pools_are_passed_over_and_said_if_nothing_fits(slices: list[Object], why: str) -> None:
    fine = slice_of("other", device("e"), nodeName="n1")
    assert given(allocator(ask(), slices=[*slices, fine])) == ["e"], why
    with pytest.raises(NodeFailure, match="invalid resource pools were encountered"):
        given(allocator(ask(), slices=slices))


def test_incomplete_pools_give_nothing_and_refuse_all() -> None:
    slices = [slice_of("n1", device("d"), of=2)]
    assert given(allocator(ask(), slices=slices)) is None
    with pytest.raises(AllocationError, match="asks for all devices, but resource pool"):
        given(allocator(ask(exact("r", allocationMode="All")), slices=slices))


def test_an_incomplete_pool_with_counters_refuses_all_on_every_node() -> None:
    elsewhere = [counters("elsewhere", pool="p", of=3, mem="1")]
    mine = slice_of("n1", device("d"))
    assert given(allocator(ask(), slices=[mine, *elsewhere])) == ["d"]
    with pytest.raises(AllocationError, match=r"resource pool gpu.example.com/p is currently being updated"):
        given(allocator(ask(exact("r", allocationMode="All")), slices=[mine, *elsewhere]))


def test_devices_with_nodes_of_their_own() -> None:
    zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]}
    devices: list[dict[str, Any]] = [
        {"name": "elsewhere", "nodeName": "n2"},
        {"name": "zone", "nodeSelector": zone},
        {"name": "here", "nodeName": "n1"},
        {"name": "all", "allNodes": True},
    ]
    slices = [slice_of("fabric", *devices, perDeviceNodeSelection=True)]
    assert given(allocator(ask(exact("r", allocationMode="All")), slices=slices)) == ["here", "all"]
    assert given(allocator(ask(exact("r", count=2)), slices=slices), on="n2") == ["elsewhere", "all"]


def test_pools_are_in_the_order_of_their_names_and_those_with_binding_conditions_last() -> None:
    slices = [
        slice_of("1", device("z"), pool="z", nodeName="n1"),
        slice_of("2", {"name": "b", "bindingConditions": ["ready"]}, pool="b", nodeName="n1"),
        slice_of("3", device("c"), pool="c", nodeName="n1"),
    ]
    made = allocator(ask(exact("r", count=3)), slices=slices)
    assert given(made) == ["c", "z", "b"]


# -- consumable capacity -----------------------------------------------------------------------------------------------


def shared(name: str, memory: str = "10Gi", **more: Any) -> dict[str, Any]:
    return {**device(name, memory=memory), "allowMultipleAllocations": True, **more}


def wants(memory: str, **more: Any) -> dict[str, Any]:
    return exact("r", capacity={"requests": {"memory": memory}}, **more)


def test_a_device_is_shared_while_its_capacity_lasts() -> None:
    slices = [slice_of("n1", shared("a"), shared("b"))]
    share = used("a", shareID="s", consumedCapacity={"memory": "7Gi"})
    assert given(allocator(ask(wants("3Gi")), slices=slices, used=[share])) == ["a"]
    assert given(allocator(ask(wants("4Gi")), slices=slices, used=[share])) == ["b"]
    assert given(allocator(ask(wants("6Gi")), ask(wants("4Gi")), slices=slices, used=[])) == ["a", "a"]
    assert given(allocator(ask(), slices=slices, used=[share])) == ["b"], "without a request all is consumed"


def test_what_a_search_gave_back_is_free_again() -> None:
    slices = [slice_of("n1", {**shared("a"), **part("a", mem="6")}, part("b", mem="6"), of=2), MEMORY]
    first = first_of("r", subrequest("both", count=2), subrequest("one"))
    assert given(allocator(ask(first), slices=slices)) == ["a"]


def test_a_share_says_what_it_consumes() -> None:
    made = allocator(ask(wants("3Gi")), slices=[slice_of("n1", shared("a"), nodeName="n1")])
    solution = made.allocate(node("n1"))
    assert solution is not None
    [result] = allocations(solution, made.claims, made.classes, "n1")[0]["devices"]["results"]
    assert result.pop("shareID")
    assert result == {**used("a"), "consumedCapacity": {"memory": "3Gi"}}


def test_selectors_may_ask_whether_a_device_is_shared() -> None:
    slices = [slice_of("n1", device("a", memory="1Gi"), shared("b"))]
    assert given(allocator(ask(exact("r", "device.allowMultipleAllocations")), slices=slices)) == ["b"]


def test_devices_given_out_whole_are_not_shared() -> None:
    slices = [slice_of("n1", shared("a"), device("b", memory="10Gi"))]
    assert given(allocator(ask(wants("3Gi")), slices=slices, used=[used("a")])) == ["b"]


@pytest.mark.parametrize(("numa", "fit"), [((0, 1), ["a", "b"]), ((0, 0), None)])
def test_requests_may_want_devices_that_differ(numa: tuple[int, int], fit: list[str] | None) -> None:
    slices = [slice_of("n1", device("a", numa=numa[0]), device("b", numa=numa[1]))]
    differ = {"constraints": [{"distinctAttribute": f"{DRIVER}/numa"}]}
    assert given(allocator(ask(exact("r"), exact("s"), **differ), slices=slices)) == fit


# -- taints ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("taint", "toleration", "fit"),
    [
        pytest.param({"key": "k", "effect": "NoSchedule"}, None, False, id="not-tolerated"),
        pytest.param({"key": "k", "effect": "NoExecute"}, None, False, id="no-execute"),
        pytest.param({"key": "k", "effect": "None"}, None, True, id="says-something-only"),
        pytest.param({"key": "k", "effect": "NoSchedule"}, {"key": "k", "operator": "Exists"}, True, id="exists"),
        pytest.param({"key": "k", "effect": "NoSchedule"}, {"operator": "Exists"}, True, id="every-key"),
        pytest.param(
            {"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "k", "value": "v"}, True, id="equal-by-default"
        ),
        pytest.param(
            {"key": "k", "value": "v", "effect": "NoSchedule"},
            {"key": "k", "operator": "Equal", "value": "w"},
            False,
            id="another-value",
        ),
        pytest.param(
            {"key": "k", "effect": "NoSchedule"},
            {"key": "k", "operator": "Exists", "effect": "NoExecute"},
            False,
            id="another-effect",
        ),
    ],
)
def test_taints_must_be_tolerated(taint: Any, toleration: Any, fit: bool) -> None:
    slices = [slice_of("n1", {"name": "d", "taints": [taint]})]
    tolerations: dict[str, Any] = {} if toleration is None else {"tolerations": [toleration]}
    assert (given(allocator(ask(exact("r", **tolerations)), slices=slices)) is not None) is fit


# -- alternatives ------------------------------------------------------------------------------------------------------


def test_each_alternative_has_its_own_devices_in_mode_all() -> None:
    model = f'device.attributes["{DRIVER}"].model == '
    slices = [slice_of("n1", device("a0", model="a"), device("b0", model="b"), device("b1", model="b"))]
    busy = [used("a0")]
    alternatives = first_of(
        "r",
        subrequest("first", f'{model}"a"', allocationMode="All"),
        subrequest("second", f'{model}"b"', allocationMode="All"),
    )
    assert given(allocator(ask(alternatives), slices=slices, used=busy)) == ["b0", "b1"]
