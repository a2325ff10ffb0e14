"""Tests with cases from pkg/kubelet/eviction/helpers_test.go and eviction_manager_test.go that rank pods.

A case contains pods as (name, request, usage, priority), in MiB or as counts of inodes and process ids, and the
expected order.
"""

import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.controllers.kubelets.ranking import (
    ASSUMED_MEMORY,
    ContainerUsage,
    EvictionCandidate,
    StarvedResource,
    ranked,
    usage_of,
)
from tests.controllers.kubelets.pods import MIB, mib, pod

Row = tuple[str, int, int | None, int]  # name, request, usage (None: no statistics), priority

LOW, MEDIUM, HIGH = -1, 0, 12_534
UPSTREAM = [  # eviction_manager_test.go, TestMemoryPressure_VerifyPodStatus and similar tests
    ("guaranteed-low-priority-high-usage", 1000, 900, LOW),
    ("below-requests", 100, 50, MEDIUM),
    ("above-requests", 100, 400, MEDIUM),
    ("high-priority-high-usage", 0, 900, HIGH),
    ("low-priority-high-usage", 100, 900, LOW),
]


def candidates(rows: list[Row], resource: StarvedResource) -> list[EvictionCandidate]:
    found = []
    requested = "memory" if resource == "memory" else "ephemeral-storage"
    for name, request, usage, priority in rows:
        requests = {requested: f"{request}Mi"} if request else None
        used = None
        if usage is not None:
            amount = usage if resource in ("pids", "inodes") else mib(usage)
            field = {"memory": "memory", "ephemeral-storage": "storage", "inodes": "inodes", "pids": "pids"}[resource]
            used = (ContainerUsage("app", **{field: amount}),)
        found.append(EvictionCandidate(pod(name, requests, priority=priority), used))
    return found


def order(rows: list[Row], resource: StarvedResource) -> list[str]:
    return [each.pod.name for each in ranked(candidates(rows, resource), resource)]


BY_EXCESS: list[tuple[str, list[Row], list[str]]] = [
    ("one-above-its-request-first", [("below", 200, 100, 0), ("above", 100, 200, 0)], ["above", "below"]),
    ("exactly-its-request-is-not-above", [("even", 100, 100, 0), ("above", 100, 101, 0)], ["above", "even"]),
    ("low-priority-first", [("low", 0, 1, -134), ("middle", 0, 1, 1), ("high", 0, 1, 9)], ["low", "middle", "high"]),
    ("whatever-the-order", [("high", 0, 1, 9), ("low", 0, 1, -134), ("middle", 0, 1, 1)], ["low", "middle", "high"]),
    (
        "most-above-its-request-first",
        [
            ("best-effort-high", 0, 500, 0),
            ("best-effort-low", 0, 300, 0),
            ("burstable-high", 100, 800, 0),
            ("burstable-low", 100, 300, 0),
            ("guaranteed-high", 1000, 800, 0),
            ("guaranteed-low", 1000, 200, 0),
        ],
        [
            "burstable-high",
            "best-effort-high",
            "best-effort-low",
            "burstable-low",
            "guaranteed-high",
            "guaranteed-low",
        ],
    ),
    (
        "above-then-priority-then-excess",
        [
            ("above-high-prio-high-usage", 0, 900, HIGH),
            ("above-high-prio-low-usage", 0, 50, HIGH),
            ("above-low-prio-high-usage", 0, 900, LOW),
            ("above-low-prio-low-usage", 0, 50, LOW),
            ("below-high-prio", 1000, 900, HIGH),
            ("below-low-prio", 1000, 50, LOW),
        ],
        [
            "above-low-prio-high-usage",
            "above-low-prio-low-usage",
            "above-high-prio-high-usage",
            "above-high-prio-low-usage",
            "below-low-prio",
            "below-high-prio",
        ],
    ),
    ("above-beats-priority", [("below", 1000, 900, LOW), ("above", 10, 20, HIGH)], ["above", "below"]),
    ("no-statistics-first", [("above", 0, 900, LOW), ("unknown", 0, None, HIGH)], ["unknown", "above"]),
    (
        "among-those-without-statistics-priority",
        [("b", 0, None, HIGH), ("a", 0, None, LOW), ("c", 0, 5, LOW)],
        ["a", "b", "c"],
    ),
    ("equals-stay-as-they-came", [("x", 100, 100, 0), ("a", 100, 100, 0), ("m", 100, 100, 0)], ["x", "a", "m"]),
    ("nothing-used-of-nothing", [("idle", 0, 0, 0), ("used", 0, 1, 0)], ["used", "idle"]),
    ("below-the-nearest-to-its-request-first", [("far", 100, 10, 0), ("near", 100, 90, 0)], ["near", "far"]),
    ("as-upstreams-manager-does", UPSTREAM, [
        "low-priority-high-usage",
        "above-requests",
        "high-priority-high-usage",
        "guaranteed-low-priority-high-usage",
        "below-requests",
    ]),
    ("nobody", [], []),
]  # fmt: skip


@pytest.mark.parametrize("resource", ["memory", "ephemeral-storage"])
@pytest.mark.parametrize(("rows", "expected"), [pytest.param(rows, names, id=id_) for id_, rows, names in BY_EXCESS])
def test_memory_and_disk(rows: list[Row], expected: list[str], resource: StarvedResource) -> None:
    assert order(rows, resource) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([("few", 0, 10, 0), ("many", 0, 20, 0)], ["many", "few"], id="more-inodes-first"),
        pytest.param([("high", 0, 50, 1), ("low", 0, 5, 0)], ["low", "high"], id="priority-before-inodes"),
        pytest.param([("none", 0, 0, -5), ("some", 0, 1, 9)], ["some", "none"], id="any-inode-is-above-its-request"),
    ],
)
def test_inodes(rows: list[Row], expected: list[str]) -> None:
    assert order(rows, "inodes") == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([("few", 0, 10, 0), ("many", 0, 20, 0)], ["many", "few"], id="more-processes-first"),
        pytest.param([("high", 0, 500, 1), ("low", 0, 1, 0)], ["low", "high"], id="priority-before-processes"),
        pytest.param([("even", 0, 5, 0), ("also", 0, 5, 0)], ["even", "also"], id="equals-stay-as-they-came"),
        pytest.param([("known", 0, 9, 0), ("unknown", 0, None, 0)], ["unknown", "known"], id="no-statistics-first"),
        pytest.param(
            [("known", 0, 9, 0), ("unknown", 0, None, 1)], ["known", "unknown"], id="but-priority-before-that"
        ),
        pytest.param(
            [
                ("low-few", 0, 1, LOW),
                ("medium", 0, 9, MEDIUM),
                ("low-many", 0, 9, LOW),
                ("high", 0, 99, HIGH),
            ],
            ["low-many", "low-few", "medium", "high"],
            id="priority-then-processes",
        ),
    ],
)
def test_process_ids(rows: list[Row], expected: list[str]) -> None:
    assert order(rows, "pids") == expected


def test_usage_is_what_annotations_say_and_else_the_request() -> None:
    stated = pod("a", {"memory": "1Gi"}, annotations={"kschedd.io/memory-usage": "5Mi", "kschedd.io/pids.app": "7"})
    assert usage_of(stated) == (ContainerUsage("app", 5 * MIB, 0, 0, 7),)
    assert usage_of(pod("b", {"memory": "1Gi", "ephemeral-storage": "2"}))[0] == ContainerUsage(
        "app", 1024 * MIB, 2, 0, 1
    )
    assert usage_of(pod("c"))[0].memory == ASSUMED_MEMORY


def test_overhead_counts_only_beside_a_request() -> None:
    def with_overhead(name: str, request: str | None, usage: int) -> EvictionCandidate:
        made = pod(name, {"memory": request} if request else None)
        spec = {**made.raw["spec"], "overhead": {"memory": "100Mi"}}
        found = parse({**made.raw, "spec": spec})
        assert isinstance(found, Pod)
        return EvictionCandidate(found, (ContainerUsage("app", memory=mib(usage)),))

    below, bare = with_overhead("below", "100Mi", 150), with_overhead("bare", None, 50)
    assert [each.pod.name for each in ranked([below, bare], "memory")] == ["bare", "below"]
