"""A search that uses the results of earlier searches finds the same as a search of all candidates."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pytest

from kschedd.api.objects import Object, parse
from kschedd.devices.allocation.allocator import Allocator
from kschedd.devices.allocation.known_allocations import KnownAllocations
from kschedd.devices.allocation.known_candidates import CandidatesOfRequest, KnownCandidates, RequestPlace
from kschedd.devices.allocation.results import allocations
from kschedd.devices.allocation.solution import Allocation, AllocationError, NodeFailure
from kschedd.devices.claims import Claim, read_claim
from kschedd.devices.pools.allocated import InUse
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
    selector,
    slice_raw,
    subrequest,
)
from tests.full_run import every

NODES = (node("n1", zone="a"), node("n2", zone="a"))
OF_1_36 = DeviceRules(
    incomplete_pools_passed_over=True,
    invalid_pools_passed_over=True,
    alternatives_kept_apart=True,
    partitionable_devices=True,
    consumable_capacity=True,
    device_taints=True,
)
CLASSES = {"gpu": parse(class_raw("gpu", f'device.driver == "{DRIVER}"'))}
MODEL_B = f'device.attributes["{DRIVER}"].model == "b"'  # fails on a device without a model
TAINT = {"key": "broken", "effect": "NoSchedule"}

TOO_LONG = 85  # a search of all candidates visits millions of combinations; the other seeds take milliseconds


class EveryCandidate(CandidatesOfRequest):
    def possible_from(self, start: int) -> Iterator[int]:
        return iter(range(start, len(self.possible)))

    def alike_from(self, start: int, alike: Sequence[int]) -> Iterator[int]:
        return iter(range(start, len(self.possible)))


class NothingKnown(KnownCandidates):
    """The plain search: all candidates are looked at, each time."""

    def of(self, place: RequestPlace) -> CandidatesOfRequest:
        return EveryCandidate.unknown(len(self.candidates.in_order))


def devices(chance: Random, slice_number: int) -> list[dict[str, Any]]:
    made = []
    for number in range(chance.randint(1, 5)):
        attributes: dict[str, Any] = {"numa": chance.randint(0, 1), "board": slice_number}
        if chance.random() < 0.9:
            attributes["model"] = chance.choice("ab")
        one = device(f"d{number}", **attributes)
        if chance.random() < 0.3:
            amount = {"value": str(chance.randint(1, 2))}
            one["consumesCounters"] = [{"counterSet": "set", "counters": {"memory": amount}}]
        if chance.random() < 0.3:
            one["capacity"] = {"bandwidth": {"value": str(chance.randint(1, 3))}}
            one["allowMultipleAllocations"] = True
        if chance.random() < 0.1:
            one["taints"] = [TAINT]
        made.append(one)
    return made


def slices(chance: Random) -> list[Object]:
    made = []
    for number in range(chance.randint(2, 8)):
        reach = chance.choice(({"allNodes": True}, {"allNodes": True}, {"nodeName": "n1"}, {"nodeName": "n2"}))
        missing = chance.random() < 0.05
        raw = slice_raw(f"p{number}", *devices(chance, number), of=3 if missing else 2, **reach)
        counters = slice_raw(f"p{number}-counters", pool=f"p{number}", of=3 if missing else 2, allNodes=True)
        counters["spec"]["sharedCounters"] = [{"name": "set", "counters": {"memory": {"value": "3"}}}]
        made += [parse(raw), parse(counters)]
    return made


def claim(chance: Random, name: str, rules: DeviceRules) -> Claim:
    def fields() -> dict[str, Any]:
        made: dict[str, Any] = {"count": chance.choice((1, 1, 2, 2, 3))}
        if chance.random() < 0.3:
            made["selectors"] = [selector(MODEL_B)]
        if chance.random() < 0.1:
            made = {"allocationMode": "All"}
        if rules.consumable_capacity and chance.random() < 0.2:
            made["capacity"] = {"requests": {"bandwidth": "1"}}
        if chance.random() < 0.2:
            made["tolerations"] = [{"operator": "Exists"}]
        return made

    requests = []
    for number in range(chance.randint(1, 2)):
        if chance.random() < 0.3:
            requests.append(first_of(f"r{number}", subrequest("s0", **fields()), subrequest("s1", **fields())))
        else:
            requests.append(exact(f"r{number}", **fields(), adminAccess=chance.random() < 0.1))
    attributes = [(kind, attribute) for kind in ("match", "distinct") for attribute in ("board", "numa", "model")]
    constraints: list[dict[str, Any]] = [
        {f"{kind}Attribute": f"{DRIVER}/{attribute}", "requests": chance.choice(([], ["r0"]))}
        for kind, attribute in chance.sample(attributes, chance.choice((0, 1, 1, 2)))
        if kind == "match" or rules.consumable_capacity
    ]
    return read_claim(parse(claim_raw(name, *requests, constraints=constraints)))


def outcome(allocate: Callable[..., Allocation | None], *args: Any) -> tuple[Any, Allocation | None]:
    try:
        found = allocate(*args)
    except (AllocationError, NodeFailure) as failure:
        return (type(failure), str(failure)), None
    if found is None:
        return None, None
    devices = [[(one.device.id, one.subrequest.name, one.share) for one in of_claim] for of_claim in found.given]
    return (devices, [[one.name for one in of_claim] for of_claim in found.chosen]), found


@pytest.mark.parametrize("rules", [pytest.param(DeviceRules(), id="1.34"), pytest.param(OF_1_36, id="1.36")])
@pytest.mark.parametrize("seed", every(6, [seed for seed in range(151) if seed != TOO_LONG]))
def test_what_is_known_changes_nothing_that_is_found(rules: DeviceRules, seed: int) -> None:
    chance = Random(seed)
    most_steps = chance.choice((0, 0, 3, 6, 10, 60))
    inventory, in_use, known = Inventory().updated(slices(chance)), InUse(), KnownAllocations()
    requests = [tuple(claim(chance, f"c{n}", rules) for n in range(chance.randint(1, 2))) for _ in range(2)]
    held: list[str] = []
    for number in range(chance.randint(8, 24)):
        for _ in range(chance.choice((0, 0, 0, 0, 1, 3))):
            if held:
                in_use.take_in_flight(held.pop(chance.randrange(len(held))), None)
        claims = chance.choice(requests)
        here = known.of(claims, most_steps, inventory, 0, in_use.pools)
        claims = here.sharing(claims)
        found: dict[str, Allocation] = {}
        for at in chance.sample(NODES, chance.randint(1, 2)):
            allocator = Allocator(claims, in_use.state, CLASSES.get, inventory, rules, most_steps)
            plainly, _ = outcome(allocator.allocate, at, claims, NothingKnown(allocator.candidates(at)))
            by_known, solution = outcome(here.allocate, allocator, at, claims)
            assert by_known == plainly
            if solution is not None:
                found[at.name] = solution
        if found:
            on = chance.choice(sorted(found))
            for of_claim, made in enumerate(allocations(found[on], claims, CLASSES.get, on)):
                held.append(f"default/{number}-{of_claim}")
                in_use.take_in_flight(held[-1], made)


def of_two_pools(*requests: dict[str, Any], constraint: str, devices: Any) -> Allocator:
    """`devices`: of each pool."""
    published = [parse(slice_raw(f"p{n}", *each, allNodes=True)) for n, each in enumerate(devices)]
    asked = read_claim(parse(claim_raw("c", *requests, constraints=[{"matchAttribute": f"{DRIVER}/{constraint}"}])))
    return Allocator((asked,), InUse().state, CLASSES.get, Inventory().updated(published), DeviceRules())


def test_a_selector_fails_on_a_device_that_could_not_match_the_first() -> None:
    first, other = device("d0", board=0, model="b"), device("d0", board=1)
    made = of_two_pools(exact("r", MODEL_B, count=2), constraint="board", devices=[[first], [other]])
    with pytest.raises(AllocationError, match="no such key: model"):
        made.allocate(NODES[0])


def test_a_selector_is_not_asked_about_a_device_that_the_search_has_taken() -> None:
    pool = [device("d0", board=0), device("d1", board=0, model="b")]
    made = of_two_pools(exact("r0"), exact("r1", MODEL_B), constraint="board", devices=[pool, []])
    found = made.allocate(NODES[0])
    assert found is not None
    assert [one.device.id.name for one in found.given[0]] == ["d0", "d1"]
