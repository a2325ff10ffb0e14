"""Tests with cases from pkg/kubelet/preemption/preemption_test.go."""

import pytest

from kschedd.controllers.kubelets.preemption import NoVictimsError, distance, victims
from tests.controllers.kubelets.pods import mib, pod

CRITICAL = 2_000_000_000


def _guaranteed(name: str, cpu: str, memory: str) -> object:
    amounts = {"cpu": cpu, "memory": memory}
    return pod(name, amounts, amounts)


PODS = {
    "cluster-critical": pod("cluster-critical", {"cpu": "100m", "memory": "100Mi"}, priority=CRITICAL),
    "node-critical": pod("node-critical", {"cpu": "100m", "memory": "100Mi"}, priority=CRITICAL + 100),
    "best-effort": pod("best-effort"),
    "burstable": pod("burstable", {"cpu": "100m", "memory": "100Mi"}),
    "high-burstable": pod("high-burstable", {"cpu": "300m", "memory": "300Mi"}),
    "guaranteed": _guaranteed("guaranteed", "100m", "100Mi"),
    "high-guaranteed": _guaranteed("high-guaranteed", "300m", "300Mi"),
}
ALL_BUT_CRITICAL = ("best-effort", "burstable", "high-burstable", "guaranteed", "high-guaranteed")


def lacking(cpu: int, memory: int, pods: int) -> dict[str, int]:
    amounts = {"cpu": cpu, "memory": mib(memory), "pods": pods}
    return {name: amount for name, amount in amounts.items() if amount}


@pytest.mark.parametrize(
    ("preemptor", "there", "needed", "chosen"),
    [
        pytest.param("cluster-critical", (), (0, 0, 0), [], id="nothing-needed"),
        pytest.param("cluster-critical", (), (0, 0, 1), None, id="no-pods"),
        pytest.param("cluster-critical", ("burstable",), (100, 100, 1), ["burstable"], id="just-enough"),
        pytest.param("cluster-critical", ("burstable",), (200, 200, 2), None, id="not-enough"),
        pytest.param("cluster-critical", ("cluster-critical",), (0, 0, 1), None, id="no-critical-pod-for-its-equal"),
        pytest.param("cluster-critical", ("best-effort",), (0, 1, 0), None, id="best-effort-frees-no-memory"),
        pytest.param(
            "cluster-critical", ("burstable", "best-effort"), (0, 0, 1), ["best-effort"], id="best-effort-goes-first"
        ),
        pytest.param(
            "cluster-critical", ("burstable", "guaranteed"), (0, 0, 1), ["burstable"], id="burstable-before-guaranteed"
        ),
        pytest.param(
            "cluster-critical",
            ("best-effort", "high-burstable", "burstable"),
            (100, 100, 0),
            ["burstable"],
            id="the-smaller-one-if-it-is-enough",
        ),
        pytest.param(
            "cluster-critical",
            ("best-effort", "burstable", "high-burstable"),
            (150, 150, 0),
            ["high-burstable"],
            id="the-larger-one-if-not",
        ),
        pytest.param(
            "cluster-critical", ALL_BUT_CRITICAL, (350, 350, 0), ["high-burstable", "burstable"], id="several"
        ),
        pytest.param(
            "cluster-critical",
            ALL_BUT_CRITICAL,
            (0, 550, 0),
            ["high-burstable", "high-guaranteed"],
            id="guaranteed-where-there-is-no-other-way-and-no-burstable-too-many",
        ),
        pytest.param(
            "node-critical", ("cluster-critical",), (100, 0, 0), ["cluster-critical"], id="for-a-more-critical-pod"
        ),
        pytest.param("cluster-critical", ("node-critical",), (100, 0, 0), None, id="not-for-a-less-critical-pod"),
    ],
)
def test_victims(preemptor: str, there: tuple[str, ...], needed: tuple[int, int, int], chosen: list[str]) -> None:
    asking = PODS[preemptor]
    pods = [PODS[name] for name in there]
    if chosen is None:
        with pytest.raises(NoVictimsError, match="no set of running pods found to reclaim resources"):
            victims(asking, pods, lacking(*needed))
    else:
        assert [pod.name for pod in victims(asking, pods, lacking(*needed))] == chosen


def test_what_is_said_where_nobody_can_make_way() -> None:
    with pytest.raises(NoVictimsError) as raised:
        victims(PODS["cluster-critical"], [], {"cpu": 500})
    assert str(raised.value).endswith("reclaim resources: [(res: cpu, q: 500), ]")


@pytest.mark.parametrize(
    ("needed", "name", "away"),
    [
        ((0, 0, 0), "burstable", 0),
        ((100, 100, 1), "best-effort", 2),
        ((100, 100, 1), "burstable", 0),
        ((50, 50, 0), "burstable", 0),
    ],
)
def test_distance(needed: tuple[int, int, int], name: str, away: float) -> None:
    assert distance(lacking(*needed), PODS[name]) == away
