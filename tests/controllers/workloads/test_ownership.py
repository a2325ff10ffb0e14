"""Which pods a workload may adopt, found by labels, of which a pod may have very many."""

from typing import Any

import pytest

from kschedd.controllers.workloads.ownership import Ownership
from kschedd.store.store import Store
from tests.store.manifests import pod, workload


class Looked(dict[str, str]):
    """Labels that count how many were looked at, one by one or all together."""

    looked_at = 0

    def items(self) -> Any:
        Looked.looked_at += len(self)
        return super().items()

    def get(self, key: str, default: Any = None) -> Any:
        Looked.looked_at += 1
        return super().get(key, default)


@pytest.mark.parametrize("labels", [pytest.param(1, id="one-label"), pytest.param(1_000, id="very-many-labels")])
@pytest.mark.parametrize("pod_first", [pytest.param(True, id="pod-first"), pytest.param(False, id="workload-first")])
@pytest.mark.parametrize("expressions", [pytest.param(False, id="by-a-label"), pytest.param(True, id="by-expressions")])
def test_an_orphan_and_a_workload_find_each_other(labels: int, pod_first: bool, expressions: bool) -> None:
    store = Store(now=lambda: 0.0)
    orphan = pod("orphan")
    orphan["metadata"]["labels"] |= {f"l{number}": "" for number in range(labels - 1)}
    claims = workload("ReplicaSet")
    if expressions:
        claims["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "a"]}]}
    before = store.version
    for raw in (orphan, claims, workload("ReplicaSet", "other")) if pod_first else (claims, orphan):
        store.create(raw)
    ownership = Ownership({"ReplicaSet"}, "Pod")
    found = {
        key: None
        for event in store.written_after(before)
        for key in ownership.observe(event)
        if event.new.kind == ("ReplicaSet" if pod_first else "Pod")
    }
    key = ("ReplicaSet", "default", "web")
    assert key in found
    claimed = ownership.claim(store.get(*key), store)
    assert [each.name for each in claimed.dependents] == ["orphan"]
    store.merge_patch("Pod", "default", "orphan", {"metadata": {"labels": {"app": None}}})
    ownership.observe(store.written_after(store.version - 1)[0])
    assert ownership.claim(store.get(*key), store).dependents == []


def test_a_pod_of_very_many_labels_is_not_looked_at_label_by_label() -> None:
    store = Store(now=lambda: 0.0)
    for name in ("web", "shop"):
        store.create(workload("ReplicaSet", name))
    ownership = Ownership({"ReplicaSet"}, "Pod")
    for event in store.written_after(0):
        ownership.observe(event)
    raw = pod("orphan")
    raw["metadata"]["labels"] |= {f"l{number}": "" for number in range(5_000)}
    obj = store.create(raw)
    obj.labels = Looked(obj.labels)  # type: ignore[misc]
    Looked.looked_at = 0
    ownership.observe(store.written_after(store.version - 1)[0])
    assert Looked.looked_at < 20
