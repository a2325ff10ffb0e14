"""Tests that NodeResourcesFit and NodeResourcesBalancedAllocation give the same results as the plain rules."""

import math
import statistics
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.loading.load import default_config
from kschedd.config.scoring_args import ResourceWeight, ShapePoint, piecewise_linear
from kschedd.config.versions.kube_versions import V1_34, V1_36, KubernetesVersion
from kschedd.devices.dra_manager import DRAManager
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import QUEUE, QUEUE_SKIP, ActionType, ClusterEvent, EventResource
from kschedd.framework.handle import Handle
from kschedd.framework.placements import PlacedPods, Placement
from kschedd.framework.status import SKIP, Code
from kschedd.plugins.resources.noderesources_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ScoringStrategy,
)
from kschedd.plugins.resources.noderesourcesbalancedallocation import NodeResourcesBalancedAllocation
from kschedd.plugins.resources.noderesourcesfit import NodeResourcesFit
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from tests.full_run import examples

GPU = "example.com/gpu"
RESOURCES = ("cpu", "memory", "ephemeral-storage", GPU)


def node(name: str, **allocatable: str) -> Node:
    names = {"gpu": GPU, "storage": "ephemeral-storage"}
    amounts = {names.get(key, key): amount for key, amount in {"pods": "110", **allocatable}.items()}
    return Node.from_raw({"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}})


def pod(name: str, *containers: dict[str, str], on: str = "", **spec: Any) -> Pod:
    stated = [
        {"name": f"c{place}", "image": "i", "resources": {"requests": requests}}
        for place, requests in enumerate(containers)
    ]
    raw = {"containers": stated, **spec, **({"nodeName": on} if on else {})}
    return Pod.from_raw({"kind": "Pod", "metadata": {"name": name, "namespace": "d", "uid": name}, "spec": raw})


amounts = st.sampled_from(["0", "1", "2", "4"])
requests = st.dictionaries(st.sampled_from(RESOURCES), amounts, max_size=4)
# Amounts that do not fit into an int64, or whose sums or products do not.
HUGE = ("0", "1", "4", "4e18", "9223372036854775807", "9223372036854775800", "8Ei", "5E", "12345678901234567k", "7e16")
huge_requests = st.lists(
    st.dictionaries(st.sampled_from(RESOURCES), st.sampled_from(HUGE), max_size=4), min_size=1, max_size=3
)


def int64(number: int) -> int:
    """Return the part of the number that Go's int64 keeps."""
    return (number + 2**63) % 2**64 - 2**63


def go_divided(dividend: int, divisor: int) -> int:
    """Towards zero."""
    return int64(abs(dividend) // abs(divisor) * (1 if (dividend < 0) == (divisor < 0) else -1))


@st.composite
def clusters(draw: st.DrawFn, *, huge: bool = False) -> SchedulerCache:
    cluster = SchedulerCache()
    some = st.sampled_from(HUGE) if huge else st.sampled_from(["0", "3", "8"])
    for place in range(draw(st.integers(1, 5))):
        has = draw(st.dictionaries(st.sampled_from(RESOURCES), some, max_size=4))
        raw = {**has, "pods": draw(st.sampled_from(["1", "2", "110"]))}
        meta = {"name": f"n{place}"}
        cluster.put(Node.from_raw({"kind": "Node", "metadata": meta, "status": {"allocatable": raw}}))
        for number in range(draw(st.integers(0, 2))):
            containers = draw(huge_requests) if huge else [draw(requests)]
            cluster.put(pod(f"p{place}-{number}", *containers, on=f"n{place}"))
    return cluster


def fit(**args: Any) -> NodeResourcesFit:
    return NodeResourcesFit.from_args(NodeResourcesFitArgs(**args), Handle(SchedulerCache(), rules=V1_34.default_rules))


def plain_fit(incoming: Pod, where: Node, there: list[Pod]) -> tuple[Code, set[str]] | None:
    """Return the result of upstream's fitsRequest for one node."""
    lacking, hopeless = set(), False
    if len(there) + 1 > where.allocatable.get("pods", 0):
        lacking.add("Too many pods")
    for name, requests in incoming.requests.items():
        has = where.allocatable.get(name, 0)
        used = int64(sum(other.requests.get(name, 0) for other in there))
        compared = requests != 0 if name == GPU else requests > 0
        if compared and requests > int64(has - used):
            lacking.add(f"Insufficient {name}")
            hopeless = hopeless or requests > has
    if not lacking:
        return None
    return Code.UNSCHEDULABLE_AND_UNRESOLVABLE if hopeless else Code.UNSCHEDULABLE, lacking


@settings(max_examples=examples(150), deadline=None)
@given(clusters(), requests)
def test_fit_in_columns_says_what_the_plain_rule_says(cluster: SchedulerCache, requests: dict[str, str]) -> None:
    compare_fit(cluster, pod("new", requests))


@settings(max_examples=examples(150), deadline=None)
@given(clusters(huge=True), huge_requests)
def test_fit_wraps_around_as_the_plain_rule_does(cluster: SchedulerCache, requests: list[dict[str, str]]) -> None:
    compare_fit(cluster, pod("new", *requests))


def compare_fit(cluster: SchedulerCache, incoming: Pod) -> None:
    plugin, table = fit(), cluster.table
    rows = table.order
    codes = plugin.filter_rows(CycleState(), incoming, table, rows)
    answer = [0] * len(rows) if codes is None else codes.tolist()
    for row, code in zip(rows.tolist(), answer, strict=True):
        where = table.nodes[row]
        assert where is not None
        wanted = plain_fit(incoming, where, table.pods[row])
        if wanted is None:
            assert code == 0
        else:
            status = plugin.code_status(CycleState(), incoming, code)
            assert (status.code, set(status.reasons)) == wanted


@pytest.mark.parametrize("count", [1, 32, 33, 60, 61, 62, 63, 64, 65, 130])
def test_fit_names_exactly_what_is_lacking_however_many_resources_are_asked_for(count: int) -> None:
    names = [f"example.com/r{number:03}" for number in range(count)]
    full = dict.fromkeys(names, "2")
    machine = SchedulingMachine(default_config(version=V1_34))
    for name, has in {
        "last": {**full, names[-1]: "0"},
        "none": {},
        "ends": {**full, names[0]: "0", names[-1]: "0"},
        "busy": full,
    }.items():
        machine.cluster.put(node(name, **has))
    machine.cluster.put(pod("there", {names[-1]: "2"}, on="busy"))
    incoming = pod("new", dict.fromkeys(names, "1"))
    result = drive(machine.begin(incoming, {}))
    assert isinstance(result, FitError)
    assert result.diagnosis.verdicts is not None
    statuses = dict(result.diagnosis.verdicts.by_node())
    scarce = {"last": names[-1:], "none": names, "ends": sorted({names[0], names[-1]}), "busy": names[-1:]}
    for name, lacking in scarce.items():
        status = statuses[name]
        assert status is not None
        assert list(status.reasons) == [f"Insufficient {resource}" for resource in lacking]
        assert status.code == (Code.UNSCHEDULABLE if name == "busy" else Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
    times = {resource: sum(resource in lacking for lacking in scarce.values()) for resource in names}
    reported = sorted(f"{number} Insufficient {resource}" for resource, number in times.items())
    assert ", ".join(reported) in result.message
    machine.cluster.put(node("good", **full))
    assert isinstance(drive(machine.begin(incoming, {})), ScheduleResult)


def test_thousands_of_rows_are_judged_as_each_of_them_alone() -> None:
    cluster = SchedulerCache()
    for place in range(3000):
        cluster.put(node(f"n{place}", cpu=str(place % 5), memory=f"{place % 3}Gi", pods=str(place % 4)))
    table, plugin, incoming = cluster.table, fit(), pod("p", {"cpu": "2", "memory": "2Gi"})
    rows = np.random.default_rng(1).permutation(2900)[:1500].astype(np.int64)
    codes = plugin.filter_rows(CycleState(), incoming, table, rows)
    assert codes is not None
    alone = [plugin.filter_rows(CycleState(), incoming, table, rows[place : place + 1]) for place in range(len(rows))]
    assert codes.tolist() == [0 if code is None else code.item(0) for code in alone]


def test_a_code_can_be_said_after_many_other_shapes_of_pods() -> None:
    plugin, cluster = fit(), SchedulerCache()
    cluster.put(node("n", cpu="1"))
    incoming = pod("new", {"cpu": "2"})
    rows = cluster.table.order
    codes = plugin.filter_rows(CycleState(), incoming, cluster.table, rows)
    assert codes is not None
    for number in range(4097):
        plugin.filter_rows(CycleState(), pod("other", {"cpu": f"{number + 3}m"}), cluster.table, rows)
    assert plugin.code_status(CycleState(), incoming, codes.item()).reasons == ("Insufficient cpu",)


def plain_average(strategy: ScoringStrategy, incoming: Pod, where: Node, there: list[Pod]) -> int:
    total = weights = 0
    for resource in strategy.resources:
        name, weight = resource.name, resource.weight
        requests = incoming.pod_spec.fit_score_requests.get(name, 0)
        if name == GPU and not requests:
            continue
        used = int64(sum(_counted(other, name) for other in there) + requests)
        has = where.allocatable.get(name, 0)
        if not has:
            continue
        if strategy.type == "LeastAllocated":
            score = 0 if used > has else go_divided(int64(int64(has - used) * 100), has)
        elif strategy.type == "MostAllocated":
            score = go_divided(int64(min(used, has) * 100), has)
        else:
            percent = 100 if used > has else go_divided(int64(used * 100), has)
            score = piecewise_linear(strategy.shape, percent)
            if not score:
                continue
        total = int64(total + int64(score * weight))
        weights += weight
    if not weights:
        return 0
    return math.floor(total / weights + 0.5) if strategy.shape else go_divided(total, weights)


def _counted(other: Pod, name: str) -> int:
    if name in ("cpu", "memory"):
        return other.nonzero_requests[name == "memory"]
    return other.requests.get(name, 0)


@pytest.mark.parametrize("name", ["pods", "widgets"])
def test_a_requested_resource_that_is_not_a_scalar_is_not_scored(name: str) -> None:
    cluster = SchedulerCache()
    cluster.put(node("n", cpu="4", **{name: "4"}))
    strategy = ScoringStrategy("MostAllocated", (ResourceWeight("cpu"), ResourceWeight(name)), ())
    incoming = pod("p", {"cpu": "1", name: "4"})
    scores = fit(scoring_strategy=strategy).score_rows(CycleState(), incoming, cluster.table, cluster.table.order)
    assert scores.tolist() == [25]


def test_existing_pods_without_requests_use_defaults_in_the_score_of_fit_and_nothing_in_the_balance() -> None:
    cluster = SchedulerCache()
    cluster.put(node("n", cpu="1", memory="1000Mi"))
    cluster.put(pod("there", {}, on="n"))
    incoming, table = pod("p", {"cpu": "500m", "memory": "300Mi"}), cluster.table
    strategy = ScoringStrategy("MostAllocated", (ResourceWeight("cpu"), ResourceWeight("memory")), ())
    scores = fit(scoring_strategy=strategy).score_rows(CycleState(), incoming, table, table.order)
    assert scores.tolist() == [((500 + 100) // 10 + (300 + 200) // 10) // 2]
    balance = balanced(("cpu", "memory")).score_rows(CycleState(), incoming, table, table.order)
    assert balance.tolist() == [100 - (50 - 30) // 2]


SHAPE = (ShapePoint(0, 0), ShapePoint(40, 10), ShapePoint(100, 3))


strategies = st.builds(
    lambda kind, names, weights: ScoringStrategy(
        kind[0], tuple(ResourceWeight(*pair) for pair in zip(names[:3], weights, strict=True)), kind[1]
    ),
    st.sampled_from([("LeastAllocated", ()), ("MostAllocated", ()), ("RequestedToCapacityRatio", SHAPE)]),
    st.permutations(RESOURCES),
    st.lists(st.integers(1, 100), min_size=3, max_size=3),
)


@settings(max_examples=examples(150), deadline=None)
@given(clusters(), requests, strategies)
def test_fit_scores_as_the_plain_rule_does(
    cluster: SchedulerCache, requests: dict[str, str], strategy: ScoringStrategy
) -> None:
    compare_fit_scores(cluster, pod("new", requests), strategy)


@settings(max_examples=examples(200), deadline=None)
@given(clusters(huge=True), huge_requests, strategies)
def test_fit_scores_wrap_around_as_the_plain_rule_does(
    cluster: SchedulerCache, requests: list[dict[str, str]], strategy: ScoringStrategy
) -> None:
    compare_fit_scores(cluster, pod("new", *requests), strategy)


def compare_fit_scores(cluster: SchedulerCache, incoming: Pod, strategy: ScoringStrategy) -> None:
    plugin, table = fit(scoring_strategy=strategy), cluster.table
    scores = plugin.score_rows(CycleState(), incoming, table, table.order)
    for row, score in zip(table.order.tolist(), scores.tolist(), strict=True):
        where = table.nodes[row]
        assert where is not None
        assert score == plain_average(strategy, incoming, where, table.pods[row])


def plain_balance(names: tuple[str, ...], incoming: Pod, where: Node, there: list[Pod], *, placed: bool = True) -> int:
    fractions = []
    for name in names:
        requests = incoming.requests.get(name, 0)
        has = where.allocatable.get(name, 0)
        if not has or (name == GPU and not requests):
            continue
        used = int64(sum(other.requests.get(name, 0) for other in there) + (requests if placed else 0))
        fractions.append(min(float(used) / float(has), 1.0))
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = math.sqrt(squares / len(fractions))
    else:
        deviation = 0.0
    score = int((1 - deviation) * 100)
    return score if score == int64(score) else -(2**63)


@settings(max_examples=examples(150), deadline=None)
@given(clusters(), requests, st.integers(1, 4))
def test_balance_in_columns_is_the_plain_standard_deviation(
    cluster: SchedulerCache, requests: dict[str, str], many: int
) -> None:
    compare_balance(cluster, pod("new", requests), RESOURCES[:many])


@settings(max_examples=examples(150), deadline=None)
@given(clusters(huge=True), huge_requests, st.integers(1, 4))
def test_balance_wraps_around_as_the_plain_rule_does(
    cluster: SchedulerCache, requests: list[dict[str, str]], many: int
) -> None:
    compare_balance(cluster, pod("new", *requests), RESOURCES[:many])


def compare_balance(cluster: SchedulerCache, incoming: Pod, names: tuple[str, ...]) -> None:
    args = NodeResourcesBalancedAllocationArgs(tuple(ResourceWeight(name) for name in names))
    plugin = NodeResourcesBalancedAllocation.from_args(args, Handle(SchedulerCache(), rules=V1_34.default_rules))
    table = cluster.table
    scores = plugin.score_rows(CycleState(), incoming, table, table.order)
    for row, score in zip(table.order.tolist(), scores.tolist(), strict=True):
        where = table.nodes[row]
        assert where is not None
        best_effort = not any(incoming.requests.get(name) for name in names)
        assert score == (0 if best_effort else plain_balance(names, incoming, where, table.pods[row]))


@pytest.mark.parametrize(
    ("requests", "score"),
    [
        pytest.param({"cpu": "2", "memory": "2Gi"}, 100, id="even"),
        pytest.param({"cpu": "4"}, 50, id="one-full-and-one-empty"),
        pytest.param({"cpu": "1", "memory": "3Gi"}, 75, id="in-between"),
    ],
)
def test_the_balance_of_a_node_is_100_less_half_of_the_difference(requests: dict[str, str], score: int) -> None:
    cluster = SchedulerCache()
    for name in "ab":
        cluster.put(node(name, cpu="4", memory="4Gi"))
    scores = balanced(("cpu", "memory")).score_rows(
        CycleState(), pod("p", requests), cluster.table, cluster.table.order
    )
    assert scores.tolist() == [score, score]


def test_the_balance_over_three_resources_is_100_less_their_standard_deviation() -> None:
    cluster = SchedulerCache()
    cluster.put(node("n", cpu="10", memory="10", storage="10"))
    incoming = pod("p", {"cpu": "1", "memory": "5", "ephemeral-storage": "9"})
    scores = balanced(RESOURCES[:3]).score_rows(CycleState(), incoming, cluster.table, cluster.table.order)
    assert scores.tolist() == [math.floor(100 - 100 * statistics.pstdev([0.1, 0.5, 0.9]))]


def test_a_balance_beyond_int64_is_the_lowest_int64() -> None:
    cluster = SchedulerCache()
    cluster.put(node("n", cpu="1", memory="1"))
    cluster.put(pod("there", {"memory": "9223372036854775807"}, on="n"))
    incoming = pod("p", {"cpu": "1", "memory": "10"})  # the sum of the memory overflows
    scores = balanced(("cpu", "memory")).score_rows(CycleState(), incoming, cluster.table, cluster.table.order)
    assert scores.tolist() == [-(2**63)]


@pytest.mark.parametrize("provided", [False, True])
def test_devices_are_counted_by_a_rule(provided: bool) -> None:
    handle = Handle(SchedulerCache(), rules=attrs.evolve(V1_34.default_rules, extended_resources=provided))
    args = NodeResourcesBalancedAllocationArgs()
    plugins = (
        NodeResourcesBalancedAllocation.from_args(args, handle),
        NodeResourcesFit.from_args(NodeResourcesFitArgs(), handle),
    )
    for plugin in plugins:
        assert plugin._devices is (handle.shared(DRAManager) if provided else None)


@settings(max_examples=25, deadline=None)
@given(clusters(), requests, st.integers(1, 4))
def test_by_1_36_the_change_of_the_balance_counts(cluster: SchedulerCache, requests: dict[str, str], many: int) -> None:
    incoming, names, table = pod("new", requests), RESOURCES[:many], cluster.table
    if not any(incoming.requests.get(name) for name in names):
        return
    scores = balanced(names, V1_36).score_rows(CycleState(), incoming, table, table.order)
    for row, score in zip(table.order.tolist(), scores.tolist(), strict=True):
        where, there = table.nodes[row], table.pods[row]
        assert where is not None
        after, before = (plain_balance(names, incoming, where, there, placed=placed) for placed in (True, False))
        assert score == 50 + int((50 + after - before) / 2)


def balanced(names: Sequence[str], version: KubernetesVersion = V1_34) -> NodeResourcesBalancedAllocation:
    args = NodeResourcesBalancedAllocationArgs(tuple(ResourceWeight(name) for name in names))
    return NodeResourcesBalancedAllocation.from_args(args, Handle(SchedulerCache(), rules=version.default_rules))


@pytest.mark.parametrize(("requests", "skips"), [({}, True), ({GPU: "1"}, True), ({"cpu": "1"}, False)])
def test_a_pod_that_requests_none_of_the_resources_is_not_balanced(requests: dict[str, str], skips: bool) -> None:
    answer = balanced(("cpu", "memory")).pre_score(CycleState(), pod("p", requests), None, np.zeros(0, dtype=np.int64))
    assert answer is (SKIP if skips else None)


def devices_for(*resources: str) -> Any:
    """Return devices of DeviceClasses that provide these resources."""
    return SimpleNamespace(resolver=SimpleNamespace(classes=lambda: dict.fromkeys(resources)), stamp=7)


def test_stored_scores_are_valid_while_the_devices_of_their_resources_are() -> None:
    cluster = SchedulerCache()
    cluster.put(Object.from_raw({"kind": "DeviceClass", "metadata": {"name": "c"}}))
    classes = cluster.versions.latest("DeviceClass")
    assert classes != 0
    for devices, of_fit, of_balance in [
        (None, 0, 0),
        (devices_for(), classes, 0),
        (devices_for("example.com/other"), classes, 0),
        (devices_for("example.com/other", "cpu"), 7, 7),
    ]:
        assert attrs.evolve(fit(), devices=devices).cache_key(cluster) == of_fit
        assert attrs.evolve(balanced(("memory", "cpu")), devices=devices).cache_key(cluster) == of_balance


@pytest.mark.parametrize(
    ("group", "there", "score"),
    [
        pytest.param([], [], 0, id="empty"),
        pytest.param([{"cpu": "1"}], [], (25 + 0) // 2, id="the-pods-of-the-group-count"),
        pytest.param([], [{"cpu": "2", "memory": "1Gi"}], (50 + 25) // 2, id="and-those-that-run-there"),
        pytest.param([{"cpu": "9", "memory": "9Gi"}], [], 100, id="up-to-the-whole"),
        pytest.param([{"cpu": "1", GPU: "1"}], [], (25 + 0 + 50) // 3, id="a-requested-extended-resource-counts"),
        pytest.param(
            [{"cpu": "1", GPU: "1"}],
            [{"cpu": "1", "memory": "1Gi", GPU: "1"}],
            (50 + 25 + 100) // 3,
            id="with-what-is-used-of-it",
        ),
        pytest.param([{"cpu": "1", "widgets": "1"}], [], (25 + 0) // 2, id="other-resources-do-not-count"),
    ],
)
def test_a_placement_is_scored_by_its_utilization(group: list[Any], there: list[Any], score: int) -> None:
    cluster = SchedulerCache()
    for name in "ab":
        cluster.put(node(name, cpu="2", memory="2Gi", gpu="1", widgets="1"))
    cluster.put(node("without-resources"))
    cluster.put(pod("not-counted", {"cpu": "1", "memory": "1Gi", GPU: "1"}, on="without-resources"))
    for number, requests in enumerate(there):
        cluster.put(pod(f"there{number}", requests, on="b"))
    weights = tuple(ResourceWeight(name) for name in ("cpu", "memory", GPU, "example.com/nowhere", "widgets"))
    plugin = fit(scoring_strategy=ScoringStrategy("LeastAllocated", weights, ()))
    pods = [pod(f"g{number}", {"memory": "0", **requests}) for number, requests in enumerate(group)]
    placed = PlacedPods(Placement("all", cluster.table.order), pods)
    nothing = fit(scoring_strategy=ScoringStrategy("LeastAllocated", (ResourceWeight("example.com/nowhere"),), ()))
    assert nothing._placement_score(placed, cluster.table) == 0
    [found] = plugin.score_placements(
        Object.from_raw({"kind": "PodGroup", "metadata": {"name": "g"}}), [placed], cluster.table
    )
    assert found == score


def test_ignored_resources_and_groups_are_not_compared() -> None:
    cluster = SchedulerCache()
    cluster.put(node("n", cpu="1"))
    incoming = pod("new", {GPU: "4", "vendor.io/nic": "1"})
    plugin = fit(ignored_resources=("vendor.io/nic",), ignored_resource_groups=("example.com",))
    assert plugin.filter_rows(CycleState(), incoming, cluster.table, cluster.table.order) is None


@pytest.mark.parametrize(
    ("percent", "score"),
    [
        pytest.param(0, 0, id="first-corner"),
        pytest.param(20, 50, id="halfway-up"),
        pytest.param(40, 100, id="middle-corner"),
        pytest.param(41, 99, id="just-past-it-truncated-towards-zero"),
        pytest.param(100, 30, id="last-corner"),
    ],
)
def test_the_score_between_two_corners_lies_on_the_line(percent: int, score: int) -> None:
    assert piecewise_linear(SHAPE, percent) == score


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, node("n", cpu="2", memory="1"), QUEUE, id="new-node-that-is-large-enough"),
        pytest.param(None, node("n", cpu="1", memory="1"), QUEUE_SKIP, id="new-node-too-small-even-when-empty"),
        pytest.param(
            node("n", cpu="2", memory="1"), node("n", cpu="4", memory="1"), QUEUE, id="a-requested-resource-grew"
        ),
        pytest.param(
            node("n", cpu="2", memory="1"), node("n", cpu="2", memory="9"), QUEUE_SKIP, id="another-resource-grew"
        ),
        pytest.param(node("n", cpu="2", pods="1"), node("n", cpu="2", pods="2"), QUEUE, id="more-pods-are-allowed"),
    ],
)
def test_fit_is_woken_by_nodes_that_may_help(old: Node | None, new: Node, hint: Any) -> None:
    assert fit()._after_node(pod("waiting", {"cpu": "2"}), old, new) is hint


def changed(requests: dict[str, str], **parts: Any) -> Pod:
    made = pod("other", requests, on=parts.pop("on", "n"))
    return Pod.from_raw({**made.raw, **parts})


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(changed({"cpu": "1"}), None, QUEUE, id="a-deleted-pod"),
        pytest.param(changed({"cpu": "1"}, on=""), None, QUEUE_SKIP, id="not-one-without-a-node"),
        pytest.param(
            changed({"cpu": "1"}, on="", status={"nominatedNodeName": "n"}), None, QUEUE, id="but-a-nominated-one"
        ),
        pytest.param(changed({"cpu": "2"}), changed({"cpu": "1"}), QUEUE, id="a-pod-that-shrank"),
        pytest.param(changed({"cpu": "1"}), changed({"cpu": "2"}), QUEUE_SKIP, id="not-one-that-grew"),
        pytest.param(changed({"memory": "2"}), changed({"memory": "1"}), QUEUE_SKIP, id="in-another-resource"),
        pytest.param(changed({"cpu": "2"}, on=""), changed({"cpu": "1"}, on=""), QUEUE_SKIP, id="without-a-node"),
        pytest.param(pod("waiting", {"cpu": "4"}), pod("waiting", {"cpu": "2"}), QUEUE, id="its-own-change"),
    ],
)
def test_fit_is_woken_by(old: Pod, new: Pod | None, hint: Any) -> None:
    assert fit()._after_pod(pod("waiting", {"cpu": "2"}), old, new) is hint


def test_a_resize_is_woken_by_its_own_node_only() -> None:
    plugin = attrs.evolve(fit(), resizes_preempt=True)
    status = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}
    waiting = Pod.from_raw({**pod("waiting", {"cpu": "2"}, on="n").raw, "status": status})
    for name, hint in [("n", QUEUE), ("m", QUEUE_SKIP)]:
        assert plugin._after_node(waiting, None, node(name, cpu="4")) is hint
        assert plugin._after_pod(waiting, changed({"cpu": "1"}, on=name), None) is hint
        assert plugin._after_pod(waiting, changed({"cpu": "1"}, on=name), changed({"cpu": "2"}, on=name)) is hint
    for each, scale_up, alike in [(plugin, ActionType.UPDATE_POD_SCALE_UP, False), (fit(), ActionType(0), True)]:
        of_pods, of_nodes = each.events_to_register()
        expected = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN | scale_up
        assert (of_pods.event, of_pods.by_signature) == (ClusterEvent(EventResource.POD, expected), alike)
        expected = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        assert (of_nodes.event, of_nodes.by_signature) == (ClusterEvent(EventResource.NODE, expected), alike)


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, node("n", cpu="2"), QUEUE, id="a-node-whose-devices-may-provide-it"),
        pytest.param(None, node("n", cpu="2", gpu="1"), QUEUE_SKIP, id="not-a-node-that-has-too-few"),
        pytest.param(None, node("n", cpu="2", gpu="2"), QUEUE, id="a-node-that-has-it"),
        pytest.param(node("n", cpu="2"), node("n", cpu="2", memory="1"), QUEUE, id="any-change-of-such-a-node"),
        pytest.param(
            node("n", cpu="2", gpu="2"), node("n", cpu="2", gpu="2", memory="1"), QUEUE_SKIP, id="not-of-others"
        ),
    ],
)
def test_a_pod_that_may_use_devices_is_woken_by(old: Node | None, new: Node, hint: Any) -> None:
    plugin = attrs.evolve(fit(), devices=devices_for(GPU))
    assert plugin._after_node(pod("waiting", {"cpu": "1", GPU: "2"}), old, new) is hint


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, GPU, QUEUE, id="that-provides-the-resource"),
        pytest.param("", GPU, QUEUE, id="that-begins-to-provide-it"),
        pytest.param(GPU, GPU, QUEUE_SKIP, id="not-if-it-did-before"),
        pytest.param(None, "example.com/other", QUEUE_SKIP, id="not-of-another-resource"),
    ],
)
def test_fit_is_woken_by_a_device_class(old: str | None, new: str, hint: Any) -> None:
    plugin = attrs.evolve(fit(), devices=devices_for(GPU))
    _, _, of_classes = plugin.events_to_register()
    changed = ActionType.ADD | ActionType.UPDATE
    assert of_classes.event == ClusterEvent(EventResource.DEVICE_CLASS, changed)
    before, after = (
        None
        if resource is None
        else Object.from_raw(
            {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {"extendedResourceName": resource}}
        )
        for resource in (old, new)
    )
    assert of_classes.hint is not None
    assert of_classes.hint(pod("waiting", {GPU: "1"}), before, after) is hint
    implicit = pod("waiting", {"deviceclass.resource.kubernetes.io/c": "1"})
    assert of_classes.hint(implicit, before, after) is (QUEUE if old is None else QUEUE_SKIP)


def test_stored_statuses_and_requests_are_bounded() -> None:
    plugin, cluster = fit(), SchedulerCache()
    cluster.put(node("n", cpu="1"))
    for number in range(1100):
        incoming = pod("p", {"cpu": f"{number + 2000}m"})
        codes = plugin.filter_rows(CycleState(), incoming, cluster.table, cluster.table.order)
        assert codes is not None
        first, again = (plugin.code_status(CycleState(), incoming, codes.item()) for _ in range(2))
        assert first is again
        plugin._after_node(incoming, None, node("n", cpu="9"))
    for stored in (plugin._wants, plugin._statuses, plugin._looked_at):
        assert 0 < len(stored) <= 1024
