"""Tests of DynamicResources: verdicts, reservations, writes, releases and hints for pods with and without claims."""

import random
import subprocess
import sys
from typing import Any

import attrs
import pytest

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.feature_gates import defaults
from kschedd.config.versions.kube_versions import V1_34, V1_37
from kschedd.config.versions.rules import Rules
from kschedd.devices.allocation.allocator import Allocator
from kschedd.devices.allocation.known_allocations import KnownAllocations
from kschedd.devices.allocation.solution import Allocation
from kschedd.devices.claims import allocation
from kschedd.devices.dra_manager import DRAManager
from kschedd.devices.pools.allocated import held_devices
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import QUEUE, QUEUE_SKIP, ActionType, EventResource
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.status import SKIP, Code, Status
from kschedd.framework.writes import Plan
from kschedd.plugins.devices.dynamicresources import DynamicResources, DynamicResourcesArgs
from kschedd.store.patches.merging import merge_patch
from kschedd.store.writes import Patch
from tests.devices.made import (
    DRIVER,
    allocated,
    claim_raw,
    class_raw,
    device,
    exact,
    first_of,
    node,
    slice_of,
    subrequest,
)
from tests.devices.test_allocator_1_37 import taint_rule

FINALIZER = "resource.kubernetes.io/delete-protection"
GPU_CLASS = class_raw("gpu", f'device.driver == "{DRIVER}"')


def pod(*claims: str, name: str = "p", uid: str = "", statuses: Any = None, template: str = "") -> Pod:
    """Return a pod that refers to these claims, or whose claims are created from `template`."""
    entries = [
        {"name": c, "resourceClaimTemplateName": template} if template else {"name": c, "resourceClaimName": c}
        for c in claims
    ]
    return Pod.from_raw(
        {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"},
            "spec": {"containers": [{"name": "c"}], "resourceClaims": entries} if entries else {"containers": []},
            "status": {"resourceClaimStatuses": statuses} if statuses is not None else {},
        }
    )


def claim(name: str, *requests: Any, meta: Any = None, **more: Any) -> Object:
    raw = claim_raw(name, *(requests or (exact("r"),)), **more)
    return parse({**raw, "metadata": {**raw["metadata"], **(meta or {})}})


class ScenarioCluster:
    """A cluster of two nodes with two GPUs each, the plugin, and a watch whose events the test delivers."""

    def __init__(self, *objects: Object, rules: Rules = V1_34.default_rules, **gates: bool) -> None:
        self.cluster = SchedulerCache()
        self.cluster.load([node("n1"), node("n2"), parse(GPU_CLASS)])
        self.cluster.load(slice_of(name, device("g0", model="a"), device("g1", model="b")) for name in ("n1", "n2"))
        self.cluster.load(objects)
        self.handle = Handle(self.cluster, {**defaults(V1_34.gates), **gates}, rules=rules)
        self.plugin = DynamicResources.from_args(DynamicResourcesArgs(), self.handle)

    def start(self, of: Pod) -> tuple[CycleState, Status | None]:
        state = CycleState()
        return state, self.plugin.pre_filter(state, of, self.cluster)

    def verdicts(self, state: CycleState, of: Pod) -> list[Status | None]:
        table = self.cluster.table
        return [self.plugin.filter(state, of, NodeInfo(table, table.row_of[name])) for name in ("n1", "n2")]

    def placed(self, of: Pod, on: str = "n1") -> CycleState:
        """Reserve the pod on the node and return the state of the attempt."""
        state, answer = self.start(of)
        assert answer is None
        self.verdicts(state, of)
        assert self.plugin.reserve(state, of, on) is None
        return state

    def write(self, plan: Any) -> None:
        """Execute a plan's writes, and deliver their events to the cluster."""
        for one in plan.writes:
            assert isinstance(one, Patch)
            current = self.cluster.get(one.kind, f"{one.namespace}/{one.name}")
            assert current is not None
            self.cluster.put(parse(merge_patch(current.raw, one.patch)))

    def claim(self, name: str) -> Object:
        found = self.cluster.get("ResourceClaim", f"default/{name}")
        assert found is not None
        return found


def refusal(code: Code, *reasons: str) -> Status:
    return Status(code, reasons)


UNRESOLVABLE = Code.UNSCHEDULABLE_AND_UNRESOLVABLE

# -- pods without claims --------------------------------------------------------------------------------------


def test_pod_without_claims_passes_and_has_nothing_to_give_back() -> None:
    world, plain = ScenarioCluster(), pod()
    assert world.plugin.pre_enqueue(plain) is None
    state, answer = world.start(plain)
    assert answer is SKIP
    assert world.plugin.reserve(state, plain, "n1") is None
    assert world.plugin.pre_bind_pre_flight(state, plain, "n1") is SKIP
    assert world.plugin.pre_bind(state, plain, "n1") is None
    result = world.plugin.post_filter(state, plain, world.cluster, None)
    assert result.status == refusal(Code.UNSCHEDULABLE, "no new claims to deallocate")


def test_post_filter_errs_where_pre_filter_was_not_reached() -> None:
    world = ScenarioCluster()
    result = world.plugin.post_filter(CycleState(), pod(), world.cluster, None)
    assert result.status == refusal(Code.ERROR, "not found")


@pytest.mark.parametrize("module", ["kschedd.plugins.devices.dynamicresources", "kschedd.commands.studies.simulate"])
def test_cel_is_not_loaded_before_a_device_is_asked(module: str) -> None:
    code = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('kschedd.cel.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "kschedd.cel.errors"


# -- the gate -------------------------------------------------------------------------------------------------

_MADE = [{"name": "c", "resourceClaimName": "made"}]


@pytest.mark.parametrize(
    ("of", "there", "reason"),
    [
        pytest.param(
            pod("c", template="t"), None, 'pod "default/p": ResourceClaim not created yet', id="template-not-served"
        ),
        pytest.param(pod("c"), None, 'could not find ResourceClaim "default/c"', id="claim-missing"),
        pytest.param(
            pod("c"),
            claim("c", meta={"deletionTimestamp": "2025-01-01T00:00:00Z"}),
            'resourceclaim "c" is being deleted',
            id="claim-deleted",
        ),
        pytest.param(
            pod("c", template="t", statuses=_MADE),
            claim("made"),
            "ResourceClaim default/made was not created for pod default/p (pod is not owner)",
            id="claim-of-another-pod",
        ),
        pytest.param(
            Pod.from_raw(
                {
                    "kind": "Pod",
                    "metadata": {"name": "p", "namespace": "default", "uid": "u"},
                    "spec": {"resourceClaims": [{"name": "c"}]},
                }
            ),
            None,
            'pod "default/p", spec.resourceClaim "c": none of the supported fields are set',
            id="entry-of-an-unknown-kind",
        ),
    ],
)
def test_pod_is_kept_out_of_the_queue(of: Pod, there: Object | None, reason: str) -> None:
    world = ScenarioCluster(*([there] if there else []))
    assert world.plugin.pre_enqueue(of) == refusal(UNRESOLVABLE, reason)
    assert world.start(of)[1] == refusal(UNRESOLVABLE, reason)


def test_entry_that_needs_no_claim_is_passed_over() -> None:
    world, of = ScenarioCluster(), pod("c", template="t", statuses=[{"name": "c"}])
    assert world.plugin.pre_enqueue(of) is None
    assert world.start(of)[1] is SKIP


@pytest.mark.parametrize(
    ("request_", "code", "reason"),
    [
        pytest.param(
            exact("r", device_class="ghost"), UNRESOLVABLE, "request r: device class ghost does not exist", id="class"
        ),
        pytest.param(
            first_of("r", subrequest("a"), subrequest("b", device_class="ghost")),
            UNRESOLVABLE,
            "request r/b: device class ghost does not exist",
            id="class-of-an-alternative",
        ),
        pytest.param(
            exact("r", device_class=""), Code.ERROR, "request r: unsupported request type", id="no-class-named"
        ),
        pytest.param(
            {"name": "r"},
            UNRESOLVABLE,
            "resource claim default/c, request r: unknown request type",
            id="request-of-an-unknown-kind",
        ),
    ],
)
def test_request_that_no_node_can_meet(request_: dict[str, Any], code: Code, reason: str) -> None:
    assert ScenarioCluster(claim("c", request_)).start(pod("c"))[1] == refusal(code, reason)


# -- nodes ----------------------------------------------------------------------------------------------------


def test_nodes_without_enough_free_devices_are_refused() -> None:
    world = ScenarioCluster(
        claim("used", status=allocated("g0", on_node="n1", reserved=("x",))), claim("c", exact("r", count=2))
    )
    state, answer = world.start(pod("c"))
    assert answer is None
    assert world.verdicts(state, pod("c")) == [refusal(UNRESOLVABLE, "cannot allocate all claims"), None]


def test_allocated_claim_ties_the_pod_to_its_node() -> None:
    world = ScenarioCluster(claim("c", status=allocated("g0", on_node="n2")))
    state, _ = world.start(pod("c"))
    assert world.verdicts(state, pod("c")) == [refusal(UNRESOLVABLE, "resourceclaim not available on the node"), None]


@pytest.mark.parametrize(
    "users",
    [
        pytest.param([f"u{n}" for n in range(255)], id="room-for-one-more"),
        pytest.param([f"u{n}" for n in range(256)], id="as-many-as-may"),
        pytest.param(["uid-p", *(f"u{n}" for n in range(255))], id="the-pod-is-one-of-them"),
    ],
)
def test_pre_filter_lets_pods_pass_however_many_users_a_claim_has(users: list[str]) -> None:
    """The API server refuses the reservation."""
    status = allocated("g0", on_node="n1")
    status["reservedFor"] = [{"resource": "pods", "name": uid, "uid": uid} for uid in users]
    assert ScenarioCluster(claim("c", status=status)).start(pod("c"))[1] is None


@pytest.mark.parametrize(
    ("timeout_s", "reason"),
    [
        pytest.param(0.001, "timed out trying to allocate devices", id="too-short"),
        pytest.param(1.0, None, id="long-enough"),
    ],
)
def test_a_search_for_devices_ends_with_the_filter_timeout(timeout_s: float, reason: str | None) -> None:
    devices = slice_of("n1", *(device(f"g{number}") for number in range(8)))
    world = ScenarioCluster(claim("c", exact("r", count=8)), devices)
    world.plugin = DynamicResources.from_args(DynamicResourcesArgs(filter_timeout_s=timeout_s), world.handle)
    state, _ = world.start(pod("c"))
    of_n1, _ = world.verdicts(state, pod("c"))
    assert (of_n1 and of_n1.message) == reason


def test_selector_that_fails_is_an_error_on_the_node() -> None:
    world = ScenarioCluster(claim("c", exact("r", f'device.attributes["{DRIVER}"].colour == "red"')))
    state, _ = world.start(pod("c"))
    first, _ = world.verdicts(state, pod("c"))
    assert first is not None
    assert first.code == Code.ERROR
    assert first.message == ("claim default/c: selector #0: CEL runtime error: no such key: colour")


def test_device_class_and_slices_may_change_between_cycles() -> None:
    world = ScenarioCluster(claim("c", exact("r", count=3)))
    state, _ = world.start(pod("c"))
    assert None not in world.verdicts(state, pod("c"))
    world.cluster.put(slice_of("n2", device("g0"), device("g1"), device("g2")))
    state, _ = world.start(pod("c"))
    assert world.verdicts(state, pod("c"))[1] is None
    world.cluster.put(parse(class_raw("gpu", "false")))
    state, _ = world.start(pod("c"))
    assert None not in world.verdicts(state, pod("c"))


# -- reserve, write, give back --------------------------------------------------------------------------------


def test_devices_of_a_reserved_pod_are_gone_for_others_until_unreserved() -> None:
    world = ScenarioCluster(claim("a", exact("r", count=2)), claim("b", exact("r", count=2)))
    state = world.placed(pod("a"))
    other, _ = world.start(pod("b", name="q"))
    assert world.verdicts(other, pod("b", name="q")) == [refusal(UNRESOLVABLE, "cannot allocate all claims"), None]
    world.plugin.unreserve(state, pod("a"), "n1")
    other, _ = world.start(pod("b", name="q"))
    assert world.verdicts(other, pod("b", name="q")) == [None, None]


def test_a_second_unreserve_does_not_free_the_devices_of_another_pod() -> None:
    world = ScenarioCluster(claim("a", exact("r", count=2)), claim("b", exact("r", count=2)))
    state = world.placed(pod("a"))
    world.plugin.unreserve(state, pod("a"), "n1")
    world.placed(pod("a", name="q"))
    world.plugin.unreserve(state, pod("a"), "n1")
    other, _ = world.start(pod("b", name="r"))
    assert world.verdicts(other, pod("b", name="r"))[0] == refusal(UNRESOLVABLE, "cannot allocate all claims")


@pytest.mark.parametrize("seed", range(6))
def test_what_is_known_of_nodes_is_what_would_be_found_anew(seed: int) -> None:
    chance = random.Random(seed)
    requests = (exact("r"), exact("r", count=2), exact("r", f'device.attributes["{DRIVER}"].model == "b"'))
    world = ScenarioCluster(*(claim(f"c{number}", requests[number % 3]) for number in range(9)))
    manager = world.handle.shared(DRAManager)
    placed: dict[str, CycleState] = {}

    def outcome(of: Pod) -> tuple[object, ...]:
        state, answer = world.start(of)
        if answer is not None:
            return (answer,)
        verdicts = world.verdicts(state, of)
        plans = []
        for name, verdict in zip(("n1", "n2"), verdicts, strict=True):
            if verdict is None:
                assert world.plugin.reserve(state, of, name) is None
                plan = world.plugin.pre_bind(state, of, name)
                assert isinstance(plan, Plan)
                plans.append([attrs.asdict(write) for write in plan.writes])
                world.plugin.unreserve(state, of, name)
        return verdicts, plans

    for _ in range(60):
        number = chance.randrange(9)
        of = pod(f"c{number}", name=f"p{number}")
        known = outcome(of)
        manager.known = KnownAllocations()
        assert known == outcome(of)
        held = (allocation(one) for one in world.cluster.of_kind("ResourceClaim").values())
        by_claims = {one.device for each in held for one in held_devices(each)}
        assert manager.allocated().whole >= by_claims
        assert len(manager.allocated().whole - by_claims) <= 2 * len(placed)
        if of.name in placed:
            world.plugin.unreserve(placed.pop(of.name), of, "n1")
        elif len(known) == 2 and isinstance(known[0], list) and known[0][0] is None:
            placed[of.name] = world.placed(of)
        if chance.random() < 0.2:
            devices = [device(f"g{n}", model=chance.choice("ab")) for n in range(chance.randrange(1, 4))]
            world.cluster.put(slice_of("n2", *devices))
        if chance.random() < 0.2:  # devices that both nodes can use
            devices = [device(f"r{n}", model=chance.choice("ab")) for n in range(chance.randrange(3))]
            world.cluster.put(slice_of("rack", *devices, allNodes=True))
        if chance.random() < 0.2:
            world.cluster.put(node(chance.choice(("n1", "n2")), zone=chance.choice("ab")))
        if chance.random() < 0.5:  # somebody else's claim
            on, what = chance.choice(("n1", "n2", "rack")), chance.choice(("g0", "g1", "r0"))
            other = claim(f"of-others-{chance.randrange(3)}", status=allocated(what, on_node=on))
            (world.cluster.put if chance.random() < 0.6 else world.cluster.remove)(other)


def test_devices_that_were_given_back_before_anybody_looked_are_free() -> None:
    world = ScenarioCluster(claim("a", exact("r", count=2)), claim("b", exact("r", count=2)))
    of = pod("a")
    plan = world.plugin.pre_bind(world.placed(of), of, "n1")
    world.write(plan)
    held = world.claim("a")
    world.cluster.put(parse({**held.raw, "status": {}}))  # the pod is gone already
    other, _ = world.start(pod("b", name="q"))
    assert world.verdicts(other, pod("b", name="q")) == [None, None]


def test_a_claim_that_was_deallocated_before_anybody_looked_can_be_allocated_again() -> None:
    world, of = ScenarioCluster(claim("a")), pod("a")
    world.write(world.plugin.pre_bind(world.placed(of), of, "n1"))
    world.cluster.put(claim("a"))  # the pod is gone already
    _, answer = world.start(pod("a", name="q"))
    assert answer is None


def test_a_reservation_that_ended_before_anybody_looked_is_not_written_again() -> None:
    world = ScenarioCluster(claim("a"))
    first, second = pod("a"), pod("a", name="q")
    world.write(world.plugin.pre_bind(world.placed(first), first, "n1"))
    held = world.claim("a")
    world.cluster.put(parse({**held.raw, "status": {**held.raw["status"], "reservedFor": []}}))
    world.write(world.plugin.pre_bind(world.placed(second), second, "n1"))
    assert [entry["name"] for entry in world.claim("a").status["reservedFor"]] == ["q"]


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the nodes that are searched for devices."""
    nodes: list[str] = []
    allocate = Allocator.allocate

    def noted(allocator: Allocator, node: Node, *more: Any) -> Allocation | None:
        nodes.append(node.name)
        return allocate(allocator, node, *more)

    monkeypatch.setattr(Allocator, "allocate", noted)
    return nodes


def test_nodes_are_searched_once_for_claims_that_ask_for_the_same(searched: list[str]) -> None:
    world = ScenarioCluster(claim("a"), claim("b"), claim("c", exact("r", count=2)))
    for name in "ab":
        state, _ = world.start(pod(name))
        assert world.verdicts(state, pod(name)) == [None, None]
    assert searched == ["n1", "n2"]
    world.cluster.put(node("n2"))  # another object of that node, with the same devices
    state, _ = world.start(pod("b"))
    world.verdicts(state, pod("b"))
    assert searched == ["n1", "n2"]
    state, _ = world.start(pod("c"))
    world.verdicts(state, pod("c"))
    assert searched == ["n1", "n2", "n1", "n2"]
    # Of claims that share what they ask for each has results of its own.
    assert world.plugin.reserve(state, pod("c"), "n1") is None
    state, _ = world.start(pod("b"))
    assert world.verdicts(state, pod("b"))[0] == refusal(UNRESOLVABLE, "cannot allocate all claims")
    assert searched == ["n1", "n2", "n1", "n2", "n1"], "where nothing has changed nobody looks again"


def test_nodes_with_the_same_devices_are_searched_once(searched: list[str]) -> None:
    world = ScenarioCluster(claim("a"))
    for name in ("n1", "n2"):
        world.cluster.remove(slice_of(name))
    world.cluster.put(slice_of("rack", device("g0"), allNodes=True))
    state, _ = world.start(pod("a"))
    assert world.verdicts(state, pod("a")) == [None, None]
    assert searched == ["n1"]


def test_claim_being_allocated_makes_other_pods_wait() -> None:
    world = ScenarioCluster(claim("a"))
    world.placed(pod("a"))
    _, answer = world.start(pod("a", name="q"))
    assert answer == refusal(UNRESOLVABLE, "resource claim default/a is in the process of being allocated")


def test_pre_bind_writes_finalizer_allocation_and_reservation() -> None:
    world = ScenarioCluster(claim("a", exact("r", f'device.attributes["{DRIVER}"].model == "b"')))
    state = world.placed(pod("a"), on="n2")
    plan = world.plugin.pre_bind(state, pod("a"), "n2")
    assert [getattr(one, "subresource", None) for one in plan.writes] == ["", "status"]
    world.write(plan)
    written = world.claim("a")
    assert written.metadata["finalizers"] == [FINALIZER]
    assert written.status["allocation"]["devices"]["results"] == [
        {"request": "r", "driver": DRIVER, "pool": "n2", "device": "g1"}
    ]
    assert written.status["reservedFor"] == [{"resource": "pods", "name": "p", "uid": "uid-p"}]
    # Seen by the watch, the claim can be shared, and only where its device is.
    other, answer = world.start(pod("a", name="q"))
    assert answer is None
    assert world.verdicts(other, pod("a", name="q"))[1] is None


def test_two_pods_that_bind_at_once_both_stay_in_a_shared_claim() -> None:
    world = ScenarioCluster(claim("a", status=allocated("g0", on_node="n1")))
    plans = []
    for name in ("p", "q"):
        state = world.placed(pod("a", name=name))
        plans.append(world.plugin.pre_bind(state, pod("a", name=name), "n1"))
    for plan in plans:
        world.write(plan)
    assert [entry["name"] for entry in world.claim("a").status["reservedFor"]] == ["p", "q"]


def test_pod_already_in_its_claim_has_nothing_to_write() -> None:
    world = ScenarioCluster(claim("a", status=allocated("g0", on_node="n1", reserved=("p",))))
    state = world.placed(pod("a"))
    assert world.plugin.pre_bind(state, pod("a"), "n1") is None


def test_pre_bind_stops_where_the_claim_changed_meanwhile() -> None:
    world = ScenarioCluster(claim("a"), claim("b"))
    state = world.placed(pod("a", "b"))
    world.cluster.put(claim("a", status=allocated("g1", on_node="n2")))
    answer = world.plugin.pre_bind(state, pod("a", "b"), "n1")
    assert answer == refusal(Code.ERROR, "claim default/a got allocated elsewhere in the meantime")
    world.cluster.remove(world.claim("a"))
    answer = world.plugin.pre_bind(state, pod("a", "b"), "n1")
    assert answer == refusal(Code.ERROR, "claim default/a got deleted in the meantime")


def test_unreserve_takes_a_written_reservation_back() -> None:
    world = ScenarioCluster(claim("a"))
    state = world.placed(pod("a"))
    world.write(world.plugin.pre_bind(state, pod("a"), "n1"))
    plan = world.plugin.unreserve(state, pod("a"), "n1")
    assert plan is not None
    world.write(plan)
    assert "reservedFor" not in world.claim("a").status
    assert world.claim("a").status["allocation"]


def test_unreserve_takes_back_a_reservation_that_the_watch_has_not_shown_yet() -> None:
    world = ScenarioCluster(claim("a"))
    state = world.placed(pod("a"))
    assert isinstance(world.plugin.pre_bind(state, pod("a"), "n1"), Plan)
    plan = world.plugin.unreserve(state, pod("a"), "n1")
    assert plan is not None
    [write] = plan.writes
    assert isinstance(write, Patch)
    assert write.patch["status"] == {"reservedFor": None}


def test_unreserve_writes_nothing_for_a_claim_that_was_not_reserved() -> None:
    world = ScenarioCluster(claim("a"))
    state = world.placed(pod("a"))
    assert world.plugin.unreserve(state, pod("a"), "n1") is None
    state = world.placed(pod("a"))
    world.cluster.put(claim("a", status=allocated("g0", on_node="n1", reserved=("p", "q"))))
    plan = world.plugin.unreserve(state, pod("a"), "n1")
    assert plan is not None, "another attempt reserved it for the pod"
    world.write(plan)
    assert [entry["name"] for entry in world.claim("a").status["reservedFor"]] == ["q"]


def test_pod_that_fits_nowhere_gives_back_its_own_claim() -> None:
    # It holds a device on n1, but its other claim can only be met on n2.
    held = claim("a", status=allocated("g0", on_node="n1", reserved=("p",)))
    used = claim("used", status=allocated("g1", on_node="n1", reserved=("x",)))
    world = ScenarioCluster(held, used, claim("b"))
    both = pod("a", "b")
    state, _ = world.start(both)
    assert None not in world.verdicts(state, both)
    result = world.plugin.post_filter(state, both, world.cluster, None)
    assert result.status == refusal(Code.UNSCHEDULABLE, "deallocation of ResourceClaim completed")
    assert [isinstance(write, Patch) and write.guarded for write in result.writes] == [True], "for this version only"
    world.write(result)
    assert not world.claim("a").status
    state, _ = world.start(both)
    assert world.verdicts(state, both)[1] is None


def test_claim_that_others_use_is_not_given_back() -> None:
    world = ScenarioCluster(claim("a", status=allocated("g0", on_node="n3", reserved=("p", "other"))))
    state, _ = world.start(pod("a"))
    world.verdicts(state, pod("a"))
    result = world.plugin.post_filter(state, pod("a"), world.cluster, None)
    assert (result.status, result.writes) == (refusal(Code.UNSCHEDULABLE, "still not schedulable"), ())


def test_switched_off_it_does_nothing() -> None:
    world = ScenarioCluster(DynamicResourceAllocation=False)
    assert world.plugin.pre_enqueue(pod("c")) is None
    state, answer = world.start(pod("c"))
    assert answer is SKIP
    assert world.plugin.post_filter(state, pod("c"), world.cluster, None).status.message == "plugin disabled"
    assert world.plugin.events_to_register() == []


# -- events ---------------------------------------------------------------------------------------------------


def hint(world: ScenarioCluster, resource: EventResource) -> Any:
    [found] = [entry for entry in world.plugin.events_to_register() if entry.event.resource is resource]
    assert found.event.action & (ActionType.ADD | ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return found.hint


def test_claim_that_comes_wakes_the_pod_that_names_it() -> None:
    mine, other = claim("c"), claim("other")
    world = ScenarioCluster(mine, other)
    after = hint(world, EventResource.RESOURCE_CLAIM)
    assert after(pod("c"), None, mine) is QUEUE
    assert after(pod("c"), None, other) is QUEUE_SKIP
    assert after(pod("c", "missing"), None, mine) is QUEUE_SKIP


def test_any_claim_that_gives_devices_back_wakes_all_who_wait() -> None:
    mine, free = claim("c"), claim("other")
    held = claim("other", status=allocated("g0", on_node="n1"))
    after = hint(ScenarioCluster(mine, free), EventResource.RESOURCE_CLAIM)
    assert after(pod("c"), held, free) is QUEUE
    assert after(pod("c"), free, held) is QUEUE_SKIP


def test_a_claim_that_ends_with_its_devices_wakes_pods_by_1_37() -> None:
    free, held = claim("other"), claim("other", status=allocated("g0", on_node="n1"))
    by_1_34, by_1_37 = (ScenarioCluster(claim("c"), rules=one.default_rules) for one in (V1_34, V1_37))
    after = hint(by_1_37, EventResource.RESOURCE_CLAIM)
    assert after(pod("c"), held, None) is QUEUE
    assert after(pod("c"), free, None) is QUEUE_SKIP
    [registered, of_1_34] = [
        next(one for one in world.plugin.events_to_register() if one.event.resource is EventResource.RESOURCE_CLAIM)
        for world in (by_1_37, by_1_34)
    ]
    assert registered.concerns is not None
    assert registered.concerns(pod("c").signature, held, None) is None
    assert registered.concerns(pod("c").signature, free, None) == ()
    assert not of_1_34.event.action & ActionType.DELETE


def test_only_a_changed_status_of_the_own_claim_matters() -> None:
    before = claim("c")
    guarded = claim("c", meta={"finalizers": [FINALIZER]})
    held = claim("c", status=allocated("g0", on_node="n1"))
    after = hint(ScenarioCluster(held), EventResource.RESOURCE_CLAIM)
    assert after(pod("c"), before, guarded) is QUEUE_SKIP
    assert after(pod("c"), before, held) is QUEUE


def test_the_pods_that_a_claim_concerns_are_all_that_it_wakes() -> None:
    owned = {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]}
    named, made, free = claim("c"), claim("made", meta=owned), claim("other")
    held = claim("other", status=allocated("g0", on_node="n1"))
    world = ScenarioCluster(named, made, free)
    [registered] = [
        entry for entry in world.plugin.events_to_register() if entry.event.resource is EventResource.RESOURCE_CLAIM
    ]
    assert registered.hint is not None
    assert registered.concerns is not None
    pods = [
        pod("c"),
        pod("c", name="q"),
        pod("other"),
        pod("c", template="t"),
        pod("c", template="t", statuses=_MADE),
        pod("c", name="q", template="t", statuses=_MADE),
    ]
    woken = 0
    for old, new in ((None, named), (None, made), (None, free), (free, held), (held, free), (made, made)):
        for of in pods:
            concerned = registered.concerns(of.signature, old, new)
            answer = registered.hint(of, old, new)
            assert answer is QUEUE_SKIP or concerned is None or of.key in concerned
            woken += answer is QUEUE
    assert woken > 5
    assert registered.concerns(pods[3].signature, None, made) == ("default/p",)
    assert registered.concerns(pods[3].signature, None, named) == ()


def test_name_of_a_made_claim_wakes_its_pod() -> None:
    waiting = pod("c", template="t")
    served = pod("c", template="t", statuses=_MADE)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    world = ScenarioCluster(claim("made", meta={"ownerReferences": [owner]}))
    after = hint(world, EventResource.POD)
    assert after(waiting, waiting, served) is QUEUE
    assert after(waiting, waiting, waiting) is QUEUE_SKIP
    assert after(pod("c", name="q", template="t"), waiting, served) is QUEUE_SKIP


def test_a_taint_rule_that_changes_devices_wakes_pods_by_1_37() -> None:
    world = ScenarioCluster(rules=V1_37.default_rules)
    [registered] = [one for one in world.plugin.events_to_register() if one.event.resource.value == "DeviceTaintRule"]
    after = registered.hint
    assert after is not None
    rule, elsewhere = taint_rule("r", device="g0"), taint_rule("r", device="none")
    assert after(pod("c"), None, rule) is QUEUE
    assert after(pod("c"), rule, None) is QUEUE
    assert after(pod("c"), None, elsewhere) is QUEUE_SKIP
    assert after(pod("c"), rule, rule) is QUEUE_SKIP
