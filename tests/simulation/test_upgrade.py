"""Tests of decisions that another version changes, and of the rule responsible, with fake judges."""

from collections.abc import Collection
from typing import Any

from kschedd.answers import plain
from kschedd.config.versions.kube_versions import V1_34, V1_34_1, V1_36, KubernetesVersion
from kschedd.printing.reports.comparison import as_text
from kschedd.simulation.comparing.comparison import PodOutcome, PodOutcomes
from kschedd.simulation.comparing.upgrade import compare_versions


def _compared(*given: Any) -> Any:
    return plain(compare_versions(*given))


class Told:
    """A judge with fixed rules, which counts its calls."""

    def __init__(self) -> None:
        self.requests: list[Collection[str] | None] = []

    def __call__(self, version: KubernetesVersion, keys: Collection[str] | None) -> PodOutcomes:
        self.requests.append(keys)
        rules = version.rules
        return {
            "d/same": PodOutcome("n1"),
            "d/moves": PodOutcome("n2" if rules.balance_before_and_after else "n1"),
            "d/words": PodOutcome("", "said so" if rules.untolerated_taints_unnamed else "said"),
            "d/either": PodOutcome("n2" if rules.devices_scored or rules.image_volumes_scored else "n1"),
            "d/both": PodOutcome("n2" if rules.devices_scored and rules.declared_features else "n1"),
            "d/lost": PodOutcome("" if rules.portworx_volumes_counted else "n1", "no" * rules.portworx_volumes_counted),
            "d/found": PodOutcome("n1" if rules.device_taints else "", "no" * (not rules.device_taints)),
        }


def test_each_pod_that_differs_is_told_with_the_rules_that_do_it_by_themselves() -> None:
    found = _compared(Told(), V1_34_1, V1_36)
    assert found["versions"] == ["1.34.1", "1.36"]
    assert (found["pods"], found["pending"]) == (7, [2, 2])
    assert {pod["pod"]: (pod["change"], pod["rules"]) for pod in found["different"]} == {
        "d/moves": ("moved", ["balance_before_and_after"]),
        "d/words": ("message", ["untolerated_taints_unnamed"]),
        "d/either": ("moved", ["image_volumes_scored", "devices_scored"]),
        "d/both": ("moved", ["devices_scored", "declared_features"]),
        "d/lost": ("pending", ["portworx_volumes_counted"]),
        "d/found": ("placed", ["device_taints"]),
    }
    assert {rule["rule"]: rule["pods"] for rule in found["rules"]} == {
        "": 1,
        "balance_before_and_after": 1,
        "devices_scored": 1,
        "image_volumes_scored": 1,
        "portworx_volumes_counted": 1,
        "untolerated_taints_unnamed": 1,
        "device_taints": 1,
    }


def test_rules_that_both_versions_have_are_not_tried() -> None:
    found = _compared(Told(), V1_34, V1_36)
    assert "d/words" not in {pod["pod"] for pod in found["different"]}


def test_only_pods_that_differ_are_looked_at_again() -> None:
    judge = Told()
    _compared(judge, V1_34, V1_36)
    assert judge.requests[:2] == [None, None]
    differing = {"d/moves", "d/either", "d/both", "d/lost", "d/found"}
    assert all(keys is not None and differing.issuperset(keys) for keys in judge.requests[2:])


def test_without_a_difference_no_rule_is_tried() -> None:
    judge = Told()
    found = _compared(judge, V1_34, V1_34)
    assert (found["different"], found["rules"], len(judge.requests)) == ([], [], 2)


def test_rules_that_matter_only_together_are_named() -> None:
    found = _compared(Told(), V1_34, V1_36)
    together = {pod["pod"]: pod["rules"] for pod in found["different"] if pod["together"]}
    assert together == {"d/both": ["devices_scored", "declared_features"]}
    assert {rule["rule"]: rule["pods"] for rule in found["rules"]}[""] == 1
    assert "devices_scored and declared_features together" in as_text(found, 10)


class Numbers:
    """A judge of many pods, of which a rule moves one in ten; it counts its decisions."""

    def __init__(self) -> None:
        self.decided = 0

    def __call__(self, version: KubernetesVersion, keys: Collection[str] | None) -> PodOutcomes:
        names = [f"d/{number}" for number in range(10_000)] if keys is None else keys
        self.decided += len(names)
        moved = "n2" if version.rules.balance_before_and_after else "n1"
        return {name: PodOutcome(moved if name.endswith("7") else "n1") for name in names}


def test_pods_that_differ_are_decided_about_twice_more_where_a_usual_rule_does_it() -> None:
    judge = Numbers()
    found = _compared(judge, V1_34, V1_36)
    assert [(rule["rule"], rule["pods"]) for rule in found["rules"]] == [("balance_before_and_after", 1000)]
    assert judge.decided == 20_000 + 2 * 1000


def test_an_unusual_rule_is_looked_for_among_the_pods_that_it_changes() -> None:
    requests: list[int] = []

    def judge(version: KubernetesVersion, keys: Collection[str] | None) -> PodOutcomes:
        names = [f"d/{number}" for number in range(1_000)] if keys is None else list(keys)
        requests.append(len(names))
        usual = version.rules.balance_before_and_after
        return {
            name: PodOutcome("n2" if usual or (name == "d/7" and version.rules.device_taints) else "n1")
            for name in names
        }

    found = _compared(judge, V1_34, V1_36)
    assert [(rule["rule"], rule["pods"]) for rule in found["rules"]] == [
        ("balance_before_and_after", 1000),
        ("device_taints", 1),
    ]
    assert requests[:4] == [1000] * 4
    assert set(requests[4:]) == {1}
