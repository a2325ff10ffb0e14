"""Tests of the search for devices: the first solution in order, compared with an exhaustive search, and errors."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.objects import Object, parse
from kschedd.devices.allocation.allocator import Allocator
from kschedd.devices.allocation.results import allocations
from kschedd.devices.allocation.solution import AllocationError, NodeFailure
from kschedd.devices.claims import Claim, read_claim
from kschedd.devices.pools.allocated import AllocatedState, Held
from kschedd.devices.pools.inventory import Device, DeviceId, Inventory
from kschedd.devices.pools.on_node import candidates_of
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
    subrequest,
)
from tests.full_run import examples

NODE = node("n1")
MODEL = f'device.attributes["{DRIVER}"].model'
NUMA = {"constraints": [{"matchAttribute": f"{DRIVER}/numa"}]}


def allocator(
    claims: list[dict[str, Any]], slices: list[Object], *, used: tuple[str, ...] = (), classes: Any = None, **more: Any
) -> Allocator:
    known = {c["metadata"]["name"]: parse(c) for c in classes or [class_raw("gpu", f'device.driver == "{DRIVER}"')]}
    return Allocator(
        tuple(read_claim(parse(raw)) for raw in claims),
        AllocatedState.of(Held(DeviceId(DRIVER, "n1", name)) for name in used),
        known.get,
        Inventory().updated(slices),
        **more,
    )


def names(made: Allocator) -> list[list[str]] | None:
    """Return `request=device` for each device that a claim gets on the node."""
    solution = made.allocate(NODE)
    if solution is None:
        return None
    return [[f"{g.request.full_name(g.subrequest)}={g.device.id.name}" for g in given] for given in solution.given]


GPUS = slice_of(
    "n1",
    device("g0", model="a100", numa=0, memory="80Gi"),
    device("g1", model="t4", numa=1, memory="16Gi"),
    device("g2", model="a100", numa=1, memory="40Gi"),
    device("g3", model="a100", numa=1, memory="80Gi"),
)


def test_takes_the_first_free_devices_in_order() -> None:
    claims = [claim_raw("c", exact("r", count=2)), claim_raw("d", exact("s"))]
    assert names(allocator(claims, [GPUS])) == [["r=g0", "r=g1"], ["s=g2"]]


def test_devices_in_use_are_passed_over() -> None:
    assert names(allocator([claim_raw("c", exact("r"))], [GPUS], used=("g0", "g1"))) == [["r=g2"]]


def test_selectors_of_class_and_request_both_hold() -> None:
    classes = [class_raw("big", f'device.capacity["{DRIVER}"].memory.compareTo(quantity("60Gi")) >= 0')]
    request = exact("r", f'{MODEL} == "a100" && device.attributes["{DRIVER}"].numa == 1', device_class="big")
    assert names(allocator([claim_raw("c", request)], [GPUS], classes=classes)) == [["r=g3"]]


def test_goes_back_when_a_later_request_would_find_nothing() -> None:
    # The first request prefers g0, but the second request can only use g0.
    classes = [class_raw("gpu"), class_raw("only-g0", f'{MODEL} == "a100" && device.attributes["{DRIVER}"].numa == 0')]
    claim = claim_raw("c", exact("any"), exact("fixed", device_class="only-g0"))
    assert names(allocator([claim], [GPUS], classes=classes)) == [["any=g1", "fixed=g0"]]


def test_match_attribute_keeps_devices_together() -> None:
    claim = claim_raw("c", exact("r", f'{MODEL} == "a100"', count=2), **NUMA)
    assert names(allocator([claim], [GPUS])) == [["r=g2", "r=g3"]]


def test_constraint_concerns_only_the_requests_it_names() -> None:
    constraint = [{"matchAttribute": f"{DRIVER}/numa", "requests": ["x", "y"]}]
    claim = claim_raw("c", exact("free"), exact("x"), exact("y"), constraints=constraint)
    assert names(allocator([claim], [GPUS])) == [["free=g0", "x=g1", "y=g2"]]


def test_device_without_the_attribute_satisfies_no_constraint() -> None:
    bare = slice_of("n1", device("g0"), device("g1", numa=0))
    assert names(allocator([claim_raw("c", exact("r"), **NUMA)], [bare])) == [["r=g1"]]


def test_all_takes_every_matching_device() -> None:
    claim = claim_raw("c", exact("r", f'{MODEL} == "a100"', allocationMode="All"))
    assert names(allocator([claim], [GPUS])) == [["r=g0", "r=g2", "r=g3"]]


def test_all_fails_if_one_of_them_is_in_use_or_there_is_none() -> None:
    every = claim_raw("c", exact("r", allocationMode="All"))
    none = claim_raw("c", exact("r", f'{MODEL} == "h100"', allocationMode="All"))
    assert names(allocator([every], [GPUS], used=("g2",))) is None
    assert names(allocator([none], [GPUS])) is None


def test_all_against_a_constraint_is_an_error() -> None:
    claim = claim_raw("c", exact("r", allocationMode="All"), **NUMA)
    with pytest.raises(AllocationError) as error:
        names(allocator([claim], [GPUS]))
    assert str(error.value) == (
        f"claim default/c, request r: cannot add device {DRIVER}/n1/g1 "
        "because a claim constraint would not be satisfied"
    )


def test_first_alternative_that_can_be_met_is_taken() -> None:
    request = first_of(
        "r",
        subrequest("h", f'{MODEL} == "h100"'),
        subrequest("a", f'{MODEL} == "a100"', count=2),
        subrequest("t", f'{MODEL} == "t4"'),
    )
    assert names(allocator([claim_raw("c", request)], [GPUS])) == [["r/a=g0", "r/a=g2"]]
    assert names(allocator([claim_raw("c", request)], [GPUS], used=("g0", "g3"))) == [["r/t=g1"]]


ALL = {"allocationMode": "All"}


@pytest.mark.parametrize(
    ("alternatives", "used", "given"),
    [
        pytest.param(
            [subrequest("a", f'{MODEL} == "h100"', **ALL), subrequest("b", f'{MODEL} == "t4"', **ALL)],
            (),
            None,
            id="the-second-of-two-has-the-matches-of-the-first",
        ),
        pytest.param(
            [subrequest("a", f'{MODEL} == "h100"'), subrequest("b", f'{MODEL} == "t4"', **ALL)],
            (),
            [["r/b=g1"]],
            id="not-if-the-first-wants-a-number",
        ),
        pytest.param(
            [
                subrequest("a", f'{MODEL} == "h100"', **ALL),
                subrequest("b", f'{MODEL} == "h100"', **ALL),
                subrequest("c", f'{MODEL} == "t4"', **ALL),
            ],
            (),
            None,
            id="the-third-has-its-own-but-is-then-tried-as-the-first-which-has-none",
        ),
        pytest.param(
            [
                subrequest("a", f'{MODEL} == "h100"'),
                subrequest("b", f'{MODEL} == "h100"'),
                subrequest("c", f'{MODEL} == "a100"', **ALL),
            ],
            ("g2",),
            [["r/c=g0"]],
            id="one-is-enough-where-the-first-wants-one",
        ),
        pytest.param(
            [subrequest("a", f'{MODEL} == "a100"', count=4), subrequest("b", f'{MODEL} == "t4"', **ALL)],
            (),
            [["r/b=g1", "r/a=g0", "r/a=g2", "r/a=g3"]],
            id="the-rest-of-what-the-first-wants-is-added",
        ),
        pytest.param(
            [subrequest("a", count=3), subrequest("b", f'{MODEL} == "t4"', **ALL)],
            ("g1",),
            [["r/a=g0", "r/a=g2", "r/a=g3"]],
            id="an-earlier-alternative-that-can-be-met-is-taken",
        ),
    ],
)
def test_all_devices_in_a_later_alternative_as_upstream_mistakes_it(
    alternatives: list[dict[str, Any]], used: tuple[str, ...], given: list[list[str]] | None
) -> None:
    claim = claim_raw("c", first_of("r", *alternatives))
    assert names(allocator([claim], [GPUS], used=used)) == given


def test_a_second_alternative_may_ask_for_more_than_a_claim_holds() -> None:
    """Check the first alternative's number of devices late, as upstream; the check is not reverted."""
    claim = claim_raw("c", first_of("r", subrequest("a", count=33), subrequest("b", **ALL)))
    with pytest.raises(AllocationError, match=r"^allocation max size exceeded$"):
        names(allocator([claim], [GPUS]))


def test_too_many_devices_for_a_later_claim_is_no_error() -> None:
    first = claim_raw("c", exact("x"))
    second = claim_raw("d", first_of("r", subrequest("a", count=33), subrequest("b", f'{MODEL} == "t4"', **ALL)))
    assert names(allocator([first, second], [GPUS])) is None


def test_admin_access_shares_devices_but_not_within_its_claim() -> None:
    claim = claim_raw("c", exact("look", adminAccess=True, count=4))
    assert names(allocator([claim], [GPUS], used=("g0", "g1"))) == [["look=g0", "look=g1", "look=g2", "look=g3"]]
    too_many = claim_raw("c", exact("look", adminAccess=True, count=5))
    assert names(allocator([too_many], [GPUS])) is None


def test_devices_of_switched_off_features_are_not_given_out() -> None:
    odd = slice_of(
        "n1",
        {"name": "part", "consumesCounters": [{"counterSet": "x", "counters": {}}]},
        {"name": "slow", "bindingConditions": ["ready"]},
        device("plain"),
    )
    assert names(allocator([claim_raw("c", exact("r"))], [odd])) == [["r=plain"]]


def test_incomplete_pool_serves_requests_for_some_but_not_for_all() -> None:
    half = slice_of("n1", device("g0"), of=2)
    assert names(allocator([claim_raw("c", exact("r"))], [half])) == [["r=g0"]]
    why = f"asks for all devices, but resource pool {DRIVER}/n1 is currently being updated"
    with pytest.raises(AllocationError, match=why):
        names(allocator([claim_raw("c", exact("r", allocationMode="All"))], [half]))


def test_invalid_pool_is_an_error_once_it_is_come_to() -> None:
    good, bad = slice_of("n1", device("g0")), slice_of("z", device("d"), device("d"), nodeName="n1")
    assert names(allocator([claim_raw("c", exact("r"))], [good, bad])) == [["r=g0"]]
    with pytest.raises(AllocationError, match="pool z is invalid: duplicate device name d"):
        names(allocator([claim_raw("c", exact("r", count=2))], [good, bad]))


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        pytest.param(
            claim_raw("c", exact("r", "device.driver ==")),
            "claim default/c: selector #0: CEL compile error: compilation failed: ERROR: <input>:1:17: Syntax error",
            id="selector-does-not-compile",
        ),
        pytest.param(
            claim_raw("c", exact("r", "true", f'device.attributes["{DRIVER}"].colour == "red"')),
            "claim default/c: selector #1: CEL runtime error: no such key: colour",
            id="selector-fails-on-a-device",
        ),
        pytest.param(
            claim_raw("c", exact("r", device_class="ghost")),
            "claim default/c, request r: could not retrieve device class ghost: "
            'deviceclass.resource.k8s.io "ghost" not found',
            id="class",
        ),
        pytest.param(
            claim_raw("c", exact("r", count=33)),
            "claim default/c: number of requested devices 33 exceeds the claim limit of 32",
            id="too-many-devices",
        ),
        pytest.param(
            claim_raw("c", exact("r"), constraints=[{"anyAttribute": "x/y"}]),
            "claim default/c, constraint #0: empty constraint (unsupported constraint type?)",
            id="unknown-constraint",
        ),
        pytest.param(
            claim_raw("c", exact("r", allocationMode="Some")),
            "claim default/c, request r: unsupported count mode Some",
            id="mode",
        ),
    ],
)
def test_error_has_upstreams_words(claim: dict[str, Any], why: str) -> None:
    with pytest.raises(AllocationError) as error:
        names(allocator([claim], [GPUS]))
    assert str(error.value).startswith(why)


def test_broken_class_is_named() -> None:
    with pytest.raises(AllocationError, match=r"^class gpu: selector #0: CEL compile error"):
        names(allocator([claim_raw("c", exact("r"))], [GPUS], classes=[class_raw("gpu", "nonsense(")]))


def test_features_that_are_off_are_refused() -> None:
    off = DeviceRules(admin_access=False, prioritized_list=False)
    with pytest.raises(AllocationError, match="admin access is requested, but the feature is disabled"):
        names(allocator([claim_raw("c", exact("r", adminAccess=True))], [GPUS], rules=off))
    with pytest.raises(AllocationError, match="has subrequests, but the DRAPrioritizedList feature is disabled"):
        names(allocator([claim_raw("c", first_of("r", subrequest("a")))], [GPUS], rules=off))


def test_hopeless_search_among_equals_ends_soon() -> None:
    many = slice_of("n1", *(device(f"g{n}", model="a100") for n in range(24)))
    claim = claim_raw("c", *(exact(f"r{n}") for n in range(8)), exact("none", f'{MODEL} == "h100"'))
    assert names(allocator([claim], [slice_of("n1", *(device(f"g{n}", model="a") for n in range(10)))])) is None
    with pytest.raises(NodeFailure, match=r"^timed out trying to allocate devices$"):
        names(allocator([claim], [many], most_steps=2_000))


def test_written_allocation_names_requests_configs_and_the_node() -> None:
    config = {"opaque": {"driver": DRIVER, "parameters": {"mode": "x"}}}
    classes = [class_raw("gpu", config=[config])]
    claim = claim_raw(
        "c",
        first_of("r", subrequest("h", f'{MODEL} == "h100"'), subrequest("t", f'{MODEL} == "t4"')),
        exact("s"),
        config=[{"requests": ["r/t"], **config}, {"requests": ["r/h"], **config}, config],
    )
    made = allocator([claim], [GPUS], classes=classes)
    solution = made.allocate(NODE)
    assert solution is not None
    [written] = allocations(solution, made.claims, made.classes, "n1")
    only = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    assert written == {
        "devices": {
            "results": [
                {"request": "r/t", "driver": DRIVER, "pool": "n1", "device": "g1"},
                {"request": "s", "driver": DRIVER, "pool": "n1", "device": "g0"},
            ],
            "config": [
                {"source": "FromClass", "requests": ["r/t", "s"], **config},
                {"source": "FromClaim", "requests": ["r/t"], **config},
                {"source": "FromClaim", **config},
            ],
        },
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only]}]},
    }


def test_devices_that_many_nodes_reach_leave_the_choice_open() -> None:
    zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
    shared, everywhere = slice_of("rack", device("d"), nodeSelector=zone), slice_of("net", device("e"), allNodes=True)
    here = node("n1", zone="a")
    for slices, selector in (([shared], zone), ([everywhere], None)):
        made = allocator([claim_raw("c", exact("r"))], slices)
        solution = made.allocate(here)
        assert solution is not None
        assert allocations(solution, made.claims, made.classes, "n1")[0].get("nodeSelector") == selector


# -- the rule in plain words: try every device for every place, in order, and keep the first that works out -------


def plain_search(made: Allocator) -> list[list[str]] | None:
    devices = [d for pool in candidates_of(made.inventory, NODE, made.rules).pools for d in pool.devices()]

    def fits(claim: Claim, given: list[tuple[str, Device]]) -> bool:
        return all(
            len({d.attribute(c["matchAttribute"]) for _, d in given}) < 2
            and None not in {d.attribute(c["matchAttribute"]) for _, d in given}
            for c in claim.constraints
        )

    def matching(request_wish: Any) -> list[Device]:
        wanted = request_wish.selectors[0]["cel"]["expression"].rpartition(" ")[2] if request_wish.selectors else None
        return [d for d in devices if wanted is None or f'"{d.attribute(f"{DRIVER}/model")[1]}"' == wanted]

    def solutions(places: list[tuple[int, int]], taken: list[list[tuple[str, Device]]]) -> Iterator[list[list[str]]]:
        if not places:
            yield [[f"{name}={d.id.name}" for name, d in given] for given in taken]
            return
        (c, r), rest = places[0], places[1:]
        request = made.claims[c].requests[r]
        for alternative in request.subrequests:
            yield from fill(alternative, request.full_name(alternative), alternative.count, c, rest, taken)

    def fill(alternative: Any, name: str, missing: int, c: int, rest: Any, taken: Any) -> Iterator[list[list[str]]]:
        if missing == 0:
            yield from solutions(rest, taken)
            return
        held = {d.id for given in taken for _, d in given} | made.in_use.whole
        for one in matching(alternative):
            given = [*taken[c], (name, one)]
            if one.id not in held and fits(made.claims[c], given):
                yield from fill(alternative, name, missing - 1, c, rest, [*taken[:c], given, *taken[c + 1 :]])

    places = [(c, r) for c, claim in enumerate(made.claims) for r in range(len(claim.requests))]
    return next(solutions(places, [[] for _ in made.claims]), None)


_MODELS = st.sampled_from(["a", "b"])
_DEVICES = st.lists(st.tuples(_MODELS, st.integers(0, 2)), min_size=1, max_size=6)
_WISHES = st.tuples(st.none() | _MODELS, st.integers(1, 3))
_REQUESTS = st.lists(st.lists(_WISHES, min_size=1, max_size=2), min_size=1, max_size=3)


@settings(max_examples=examples(150), deadline=None)
@given(_DEVICES, st.lists(st.tuples(_REQUESTS, st.booleans()), min_size=1, max_size=2), st.sets(st.integers(0, 5)))
def test_finds_what_the_plain_search_finds_first(devices: Any, wanted: Any, used: set[int]) -> None:
    def a_wish(name: str, model: str | None, count: int) -> dict[str, Any]:
        return subrequest(name, *([f'{MODEL} == "{model}"'] if model else []), count=count)

    slices = [slice_of("n1", *(device(f"g{n}", model=m, numa=numa) for n, (m, numa) in enumerate(devices)))]
    claims = [
        claim_raw(
            f"c{c}",
            *(
                first_of(f"r{r}", *(a_wish(f"s{s}", *one) for s, one in enumerate(subrequests)))
                for r, subrequests in enumerate(requests)
            ),
            **(NUMA if together else {}),
        )
        for c, (requests, together) in enumerate(wanted)
    ]
    made = allocator(claims, slices, used=tuple(f"g{n}" for n in used))
    assert names(made) == plain_search(made)


# -- the rule with "all devices" in alternatives, as 1.34.1 goes about it: one device after the other, by recursion ---


class TooManyError(Exception):
    """The error if a claim would have too many devices, whichever they are."""


class PlainAllocation:
    """Upstream's search step by step; `given` and `taken` contain the taken devices."""

    def __init__(self, made: Allocator) -> None:
        self.made = made
        self.devices = [d for pool in candidates_of(made.inventory, NODE, made.rules).pools for d in pool.devices()]
        self.given: list[list[tuple[str, Device]]] = [[] for _ in made.claims]
        self.every = [[self._every(request.subrequests) for request in claim.requests] for claim in made.claims]

    def _every(self, subrequests: Any) -> list[list[Device]]:
        found: list[list[Device]] = []
        for place, alternative in enumerate(subrequests):
            if place == 1 and subrequests[0].mode == "All":
                found.append(found[0])  # upstream's entry of the first alternative
            else:
                found.append([d for d in self.devices if self._selects(alternative, d)])
        return found

    @staticmethod
    def _selects(alternative: Any, one: Device) -> bool:
        if not alternative.selectors:
            return True
        model = alternative.selectors[0]["cel"]["expression"].rpartition(" ")[2]
        value = one.attribute(f"{DRIVER}/model")
        return value is not None and f'"{value[1]}"' == model

    def _take(self, c: int, name: str, one: Device, *, must: bool) -> bool:
        if one.id in self.made.in_use or any(d.id == one.id for given in self.given for _, d in given):
            return False
        for constraint in self.made.claims[c].constraints:
            values = {d.attribute(constraint["matchAttribute"]) for _, d in [*self.given[c], (name, one)]}
            if len(values) > 1 or None in values:
                if must:
                    raise AllocationError("a constraint would not be satisfied")
                return False
        self.given[c].append((name, one))
        return True

    def run(self, c: int = 0, r: int = 0, s: int | None = None, number: int = 0) -> bool:
        """Return whether the rest can be allocated, from device `number` of alternative `s` (None: any) on."""
        if c == len(self.made.claims):
            return True
        requests = self.made.claims[c].requests
        if r == len(requests):
            try:
                return self.run(c + 1)
            except TooManyError:
                return False
        request = requests[r]
        if s is None:
            too_many = 0
            for which in range(len(request.subrequests)):
                try:
                    if self.run(c, r, which):
                        return True
                except TooManyError:
                    too_many += 1
            if too_many == len(request.subrequests):
                raise TooManyError
            return False
        alternative, every = request.subrequests[s], self.every[c][r][s]
        wants_all = alternative.mode == "All"
        count = len(every) if wants_all else alternative.count
        if wants_all and not every:
            return False
        if number >= count:
            return self.run(c, r + 1)
        if len(self.given[c]) + count - number > 32:
            raise TooManyError
        name = request.full_name(alternative)
        for one in [every[number]] if wants_all else self.devices:
            if not wants_all and not self._selects(alternative, one):
                continue
            if self._take(c, name, one, must=wants_all):
                done = False
                try:
                    done = self.run(c, r, 0 if wants_all else s, number + 1)
                finally:
                    if not done:
                        self.given[c].pop()
                if done:
                    return True
        return False

    def outcome(self) -> Any:
        try:
            done = self.run()
        except AllocationError:
            return "error"
        except TooManyError:
            return "error"
        return [[f"{name}={one.id.name}" for name, one in given] for given in self.given] if done else None


_ANY_WISHES = st.tuples(st.none() | _MODELS, st.sampled_from([1, 1, 2, 3, 33, None]))  # None: all devices
_ALTERNATIVES = st.lists(st.lists(_ANY_WISHES, min_size=1, max_size=3), min_size=1, max_size=2)


@settings(max_examples=examples(300), deadline=None)
@given(_DEVICES, st.lists(st.tuples(_ALTERNATIVES, st.booleans()), min_size=1, max_size=2), st.sets(st.integers(0, 5)))
def test_alternatives_with_all_devices_come_out_as_upstreams_own_steps(
    devices: Any, wanted: Any, used: set[int]
) -> None:
    def a_wish(name: str, model: str | None, count: int | None) -> dict[str, Any]:
        number: dict[str, Any] = {"allocationMode": "All"} if count is None else {"count": count}
        return subrequest(name, *([f'{MODEL} == "{model}"'] if model else []), **number)

    slices = [slice_of("n1", *(device(f"g{n}", model=m, numa=numa) for n, (m, numa) in enumerate(devices)))]
    claims = [
        claim_raw(
            f"c{c}",
            *(
                first_of(f"r{r}", *(a_wish(f"s{s}", *one) for s, one in enumerate(subrequests)))
                for r, subrequests in enumerate(requests)
            ),
            **(NUMA if together else {}),
        )
        for c, (requests, together) in enumerate(wanted)
    ]
    made = allocator(claims, slices, used=tuple(f"g{n}" for n in used))
    plain = PlainAllocation(made)
    least = [
        sum(
            min(len(e) if w.mode == "All" else w.count for w, e in zip(r.subrequests, every, strict=True))
            for r, every in zip(claim.requests, plain.every[c], strict=True)
        )
        for c, claim in enumerate(made.claims)
    ]
    try:
        found: Any = names(made)
    except AllocationError:
        found = "error"
    assert found == ("error" if max(least) > 32 else plain.outcome())
