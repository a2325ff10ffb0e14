"""Differences between the device allocation of 1.37 and 1.36: one test for each rule, with and without it."""

from typing import Any

import attrs
import pytest

from kschedd.api.objects import Object, parse
from kschedd.devices.allocation.allocator import Allocator
from kschedd.devices.allocation.results import allocations
from kschedd.devices.allocation.solution import AllocationError
from kschedd.devices.claims import read_claim
from kschedd.devices.pools.allocated import AllocatedState, held_devices
from kschedd.devices.pools.capacity import CapacityError, consumed_capacity
from kschedd.devices.pools.inventory import Inventory
from kschedd.devices.pools.taint_rules import TaintedSlices, changes_taints
from kschedd.devices.rules import DeviceRules
from tests.devices.made import DRIVER, claim_raw, class_raw, device, exact, node, slice_of
from tests.devices.test_allocator_1_36 import RULES, shared, used

CLASSES = {"gpu": parse(class_raw("gpu")), "set": parse(class_raw("set", config=[{"opaque": {"driver": "x"}}]))}


def given(
    rules: DeviceRules, claim: dict[str, Any], slices: list[Object], held: list[Any] | None = None
) -> list[str] | None:
    made = allocator(rules, claim, slices, held)
    solution = made.allocate(node("n1"))
    return None if solution is None else [one.device.id.name for of_claim in solution.given for one in of_claim]


def allocator(
    rules: DeviceRules, claim: dict[str, Any], slices: list[Object], held: list[Any] | None = None
) -> Allocator:
    in_use = [one for results in held or [] for one in held_devices({"devices": {"results": [results]}})]
    claims = (read_claim(parse(claim)),)
    return Allocator(claims, AllocatedState.of(in_use), CLASSES.get, Inventory().updated(slices), rules)


def by(name: str, slices: list[Object], claim: dict[str, Any], held: list[Any] | None = None) -> tuple[Any, Any]:
    """Return the devices that are given without the rule, and with it."""
    return given(RULES, claim, slices, held), given(attrs.evolve(RULES, **{name: True}), claim, slices, held)


def test_all_includes_devices_that_are_too_full_and_fails() -> None:
    slices = [slice_of("n1", shared("a"), shared("b"))]
    claim = claim_raw("c", exact("r", allocationMode="All", capacity={"requests": {"memory": "6Gi"}}))
    full = used("a", shareID="s", consumedCapacity={"memory": "7Gi"})
    assert by("all_needs_capacity", slices, claim, [full]) == (["b"], None)
    small = [slice_of("n1", shared("a", "1Gi"), shared("b"))]
    assert by("all_needs_capacity", small, claim) == (["b"], ["b"]), "one too small by itself is left out"


def test_every_device_of_a_request_is_distinct() -> None:
    slices = [slice_of("n1", device("a", numa=0), device("b", numa=1), device("c", numa=0))]
    claim = claim_raw("c", exact("r", count=3), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])
    assert by("distinct_by_device", slices, claim) == (["a", "b", "c"], None)


def test_counters_of_two_drivers_with_one_pool_name_are_apart() -> None:
    def pool(driver: str) -> list[Object]:
        counters = [{"name": "m", "counters": {"mem": {"value": "1"}}}]
        consumes = [{"counterSet": "m", "counters": {"mem": {"value": "1"}}}]
        one = slice_of(f"{driver}-d", {**device(driver), "consumesCounters": consumes}, pool="p", driver=driver, of=2)
        where = {"nodeName": "n1"}
        held = slice_of(f"{driver}-c", pool="p", driver=driver, of=2, sharedCounters=counters, **where)
        return [parse({**one.raw, "spec": {**one.spec, **where}}), held]

    claim = claim_raw("c", exact("r", count=2))
    assert by("pool_counters_apart", [*pool("x"), *pool("y")], claim) == (None, ["x", "y"])


def test_a_shared_device_in_use_consumes_counters_once() -> None:
    counters = slice_of("c", pool="n1", of=2, sharedCounters=[{"name": "m", "counters": {"mem": {"value": "1"}}}])
    consumes = {"consumesCounters": [{"counterSet": "m", "counters": {"mem": {"value": "1"}}}]}
    raw = {**counters.raw, "spec": {**counters.spec, "nodeName": "n1"}}
    slices = [slice_of("n1", {"name": "a", "allowMultipleAllocations": True, **consumes}, of=2), parse(raw)]
    share = used("a", shareID="s")
    assert by("counters_charged_once", slices, claim_raw("c", exact("r")), [share]) == (None, ["a"])


def test_counter_slices_keep_to_the_nodes_they_select() -> None:
    counters = slice_of("c", pool="n2", nodeName="n2", sharedCounters=[{"name": "m", "counters": {}}], of=3)
    claim = claim_raw("c", exact("r", allocationMode="All"))
    slices = [slice_of("n1", device("a")), counters]
    with pytest.raises(AllocationError, match=r"pool gpu\.example\.com/n2 is currently being updated"):
        given(RULES, claim, slices)
    assert given(attrs.evolve(RULES, counter_slices_have_nodes=True), claim, slices) == ["a"]


@pytest.mark.parametrize(
    ("rule", "claim", "before", "after"),
    [
        pytest.param(
            "claim_limit_by_request",
            claim_raw("c", exact("r", count=20), exact("s", count=20)),
            "claim default/c: number of requested devices 40 exceeds the claim limit of 32",
            "claim default/c, request s: adding 20 devices exceeds the claim limit of 32, "
            "with 20 already accounted for",
            id="limit",
        ),
        pytest.param(
            "selector_errors_name_device",
            claim_raw("c", exact("r", f'device.attributes["{DRIVER}"].model == "x"')),
            "claim default/c: selector #0: CEL runtime error: no such key: model",
            "claim default/c: selector #0 on device gpu.example.com/n1/a: CEL runtime error: no such key: model. "
            "consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
            "for optional fields",
            id="selector",
        ),
    ],
)
def test_errors_have_the_words_of_the_release(rule: str, claim: dict[str, Any], before: str, after: str) -> None:
    texts = []
    for rules in (RULES, attrs.evolve(RULES, **{rule: True})):
        with pytest.raises(AllocationError) as error:
            given(rules, claim, [slice_of("n1", device("a"))])
        texts.append(str(error.value))
    assert texts == [before, after]


def test_a_request_beyond_64_bits_is_an_error() -> None:
    by_steps = {"value": "10E", "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "1"}}}
    rules = attrs.evolve(RULES, capacity_representable=True)
    with pytest.raises(CapacityError) as error:
        consumed_capacity({"memory": "9223372036854775809"}, {"memory": by_steps}, rules)
    why = "capacity request cannot be represented in the device's range arithmetic"
    assert str(error.value) == f'capacity "memory": {why}: request 9223372036854775809 exceeds MaxInt64'
    with pytest.raises(CapacityError, match="capacity value is negative"):
        consumed_capacity({}, {"memory": {"value": "-1"}}, rules)


@pytest.mark.parametrize(
    ("fractional", "step", "requests", "before", "after"),
    [
        (False, "1Ki", "1025", "1025", "1025"),
        (False, "1k", "1023", "2001", "2001"),
        (False, "1024", "1024", "1025", "1025"),
        (False, "1023", "1024", "1Ki", "1024"),
        (False, "500m", "1200m", "2", "2"),
        (True, "500m", "1200m", "1500m", "1500m"),
    ],
)
def test_steps_decide_the_consumed_amount_and_its_format(
    fractional: bool, step: str, requests: str, before: str, after: str
) -> None:
    policy = {"default": "1", "validRange": {"min": "1", "step": step}}
    capacities: Any = {"memory": {"value": "10k", "requestPolicy": policy}}
    for by_step, consumed in ((False, before), (True, after)):
        rules = attrs.evolve(RULES, fractional_capacity=fractional, capacity_formatted_by_step=by_step)
        assert consumed_capacity({"memory": requests}, capacities, rules) == {"memory": consumed}


@pytest.mark.parametrize(
    ("named", "before", "after"),
    [
        (["r", "s"], [["r", "s"], ["r", "s"]], [None]),
        (["r"], [["r"]], [["r"]]),
        ([], [None], [None]),
    ],
)
def test_a_configuration_is_written_once(named: list[str], before: list[Any], after: list[Any]) -> None:
    config = {"opaque": {"driver": "y"}, **({"requests": named} if named else {})}
    claim = claim_raw("c", exact("r", device_class="set"), exact("s", device_class="set"), config=[config])
    made = allocator(RULES, claim, [slice_of("n1", device("a"), device("b"))])
    solution = made.allocate(node("n1"))
    assert solution is not None

    def requests_of(collapsed: bool) -> list[Any]:
        [written] = allocations(solution, made.claims, made.classes, "n1", collapsed=collapsed)
        return [(one["source"], one.get("requests")) for one in written["devices"]["config"]]

    assert requests_of(False) == [("FromClass", ["r", "s"]), *(("FromClaim", each) for each in before)]
    assert requests_of(True) == [("FromClass", None), *(("FromClaim", each) for each in after)]


def taint_rule(name: str, **selector: Any) -> Object:
    spec = {"deviceSelector": selector.get("selector", selector), "taint": {"key": name, "effect": "NoSchedule"}}
    return parse(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": name}, "spec": spec}
    )


@pytest.mark.parametrize(
    ("selector", "tainted"),
    [
        pytest.param({}, ["a", "b"], id="empty-selects-every-device"),
        pytest.param({"selector": None}, [], id="without-selector-none"),
        pytest.param({"driver": DRIVER}, ["a", "b"], id="driver"),
        pytest.param({"driver": "other"}, [], id="other-driver"),
        pytest.param({"pool": "n1", "device": "b"}, ["b"], id="device-of-pool"),
        pytest.param({"pool": "n2", "device": "b"}, [], id="device-of-another-pool"),
    ],
)
def test_a_taint_rule_taints_the_devices_it_selects(selector: dict[str, Any], tainted: list[str]) -> None:
    own = {"taints": [{"key": "own", "effect": "None"}]}
    one, slices = slice_of("n1", device("a"), {**device("b"), **own}), TaintedSlices()
    rules = [taint_rule("rule", **selector)]
    [read] = slices.of([one], rules)
    found = {raw["name"]: [taint["key"] for taint in raw.get("taints") or ()] for raw in read.spec["devices"]}
    assert found == {"a": ["rule"] * ("a" in tainted), "b": ["own", *(["rule"] if "b" in tainted else [])]}
    assert [read] == list(slices.of([one], rules)), "the same object as long as nothing changes"
    assert changes_taints([one], None, *rules) is bool(tainted)
    assert changes_taints([one], *rules, None) is bool(tainted)


def test_a_rule_that_taints_the_same_devices_alike_changes_nothing() -> None:
    one = slice_of("n1", device("a"), device("b"))
    every, of_driver, of_b = taint_rule("rule"), taint_rule("rule", driver=DRIVER), taint_rule("rule", device="b")
    assert not changes_taints([one], every, of_driver)
    assert changes_taints([one], every, of_b)
    assert changes_taints([one], of_b, taint_rule("other", device="b"))
    assert not changes_taints([], None, every)
