"""Tests that the cost of lint is proportional to the number of objects, also for rules that look up other objects."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kschedd.config.versions.kube_releases import Release
from kschedd.lint.linting import lint
from kschedd.lint.rules import LintRule
from kschedd.lint.subjects import LintedObject
from tests.cost import GROWTH, growth_of
from tests.full_run import every
from tests.metering import metered


@pytest.fixture(autouse=True, scope="module")
def _metered() -> Iterator[None]:
    with metered():
        yield


def _object(kind: str, name: str, spec: dict[str, Any], labels: dict[str, str]) -> LintedObject:
    return LintedObject(
        {"kind": kind, "apiVersion": "v1", "metadata": {"name": name, "labels": labels}, "spec": spec}, "x"
    )


def _budgets(place: int) -> Iterator[LintedObject]:
    labels = {"app": f"a{place}"}
    yield _object("PodDisruptionBudget", f"b{place}", {"minAvailable": 1, "selector": {"matchLabels": labels}}, {})
    yield _object("Pod", f"p{place}", {}, labels)


def _affinities(place: int) -> Iterator[LintedObject]:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": f"none{place}"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    yield _object("Pod", f"p{place}", {"affinity": {"podAffinity": required}}, {"app": f"a{place}"})


def _nodes(place: int) -> Iterator[LintedObject]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    yield _object("Node", f"n{place}", {"taints": [{"key": "a", "effect": "NoSchedule"}]}, {"zone": "a"})
    yield _object("Pod", f"p{place}", {"affinity": affinity, "tolerations": [{"key": "b"}], "nodeName": "x"}, {})


def _claims(place: int) -> Iterator[LintedObject]:
    yield _object("StorageClass", f"s{place}", {}, {})
    yield _object("PersistentVolume", f"v{place}", {"storageClassName": f"s{place}"}, {})
    yield _object("PersistentVolumeClaim", f"c{place}", {"storageClassName": "none"}, {})


def _slices(place: int) -> Iterator[LintedObject]:
    pool = {"name": f"pool{place}", "resourceSliceCount": 2}
    spec = {"driver": "d", "pool": pool, "sharedCounters": [{"name": "c"}], "devices": [{"name": "d0"}]}
    yield _object("ResourceSlice", f"s{place}", spec, {})
    yield _object("DeviceClass", f"c{place}", {"extendedResourceName": f"e{place}"}, {})
    yield _object("DeviceTaintRule", f"r{place}", {"taint": {"key": "a", "effect": "NoExecute"}}, {})
    yield _object("PriorityClass", f"pc{place}", {}, {})
    yield _object("CSIDriver", f"d{place}", {"storageCapacity": True}, {})


@pytest.mark.parametrize("make", every(2, [_budgets, _affinities, _nodes, _claims, _slices]))
def test_twice_the_objects_cost_twice(make: Callable[[int], Iterator[LintedObject]]) -> None:
    def work(size: int) -> Callable[[], Any]:
        objects = [each for place in range(size) for each in make(place)]
        return lambda: lint(objects, Release(36), target=Release(38), complete=True)

    assert growth_of(work, 200) < GROWTH


class CountedText(str):
    searches = 0

    def __contains__(self, part: object) -> bool:
        CountedText.searches += 1
        return super().__contains__(part)  # type: ignore[operator]


def test_comments_of_a_list_are_looked_for_once() -> None:
    text = CountedText("# kschedd: ignore=pdb-nil-selector")
    raw = {"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "b"}, "spec": {}}
    result = lint([LintedObject(raw, "x", text=text) for _ in range(9)], Release(37))
    assert (result.ignored, result.findings) == (9, [])
    assert CountedText.searches == 1


def test_rules_about_fields_that_a_pod_lacks_do_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []
    monkeypatch.setattr(LintRule, "hits", lambda rule, subject, known: runs.append(rule.code) or [])
    lint([_object("Pod", "p", {"tolerations": []}, {})], Release(37))
    assert "toleration-gt" in runs
    assert "affinity-nil-selector" not in runs
    assert "gates-gone-137" in runs
