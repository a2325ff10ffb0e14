"""Tests of finding the pods that a workload may adopt by labels; a pod may have very many labels."""

import random
from typing import Any

import pytest

from kschedd.controllers.workloads.ownership import Ownership
from kschedd.store.store import Store
from kschedd.store.writes import Patch
from tests.store.manifests import pod, workload


class Looked(dict[str, str]):
    """Labels that count their lookups, one by one or all together."""

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
    obj.labels = Looked(obj.labels)
    Looked.looked_at = 0
    ownership.observe(store.written_after(store.version - 1)[0])
    assert Looked.looked_at < 20


def test_what_does_not_concern_a_workload_changes_nothing() -> None:
    rng = random.Random(1)
    store = Store(now=lambda: 0.0)
    kinds = ("ReplicaSet", "DaemonSet")
    for kind in kinds:
        store.create(workload(kind))
    owners = [
        {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": store.get(kind, "default", "web").uid}
        for kind in kinds
    ]
    for turn in range(400):
        name = f"p{rng.randrange(20)}"
        references = [{**owner, "controller": rng.random() < 0.7} for owner in rng.sample(owners, rng.randrange(2))]
        meta = {"labels": {"app": rng.choice(("web", "shop"))}, "ownerReferences": references}
        if store.find("Pod", "default", name) is None:
            raw = pod(name)
            store.create({**raw, "metadata": {**raw["metadata"], **meta}})
        elif rng.random() < 0.2:
            store.delete("Pod", "default", name, grace_period_s=0)
        elif rng.random() < 0.5:
            store.merge_patch("Pod", "default", name, {"metadata": meta})
        else:
            store.patch_status("Pod", "default", name, {"message": str(turn)})
    told_all, told_some = Ownership({"ReplicaSet"}, "Pod"), Ownership({"ReplicaSet"}, "Pod")
    left_out = 0
    for event in store.written_after(0):
        keys = list(told_all.observe(event))
        if told_some.concerns(event):
            assert list(told_some.observe(event)) == keys
        else:
            left_out += 1
            assert not keys
        found = [set(each.candidates(event.new)) for each in (told_all, told_some)]
        assert found[0] == found[1]
    assert left_out > 100
    one = store.get("ReplicaSet", "default", "web")
    claimed = [each.claim(one, store) for each in (told_all, told_some)]
    assert list(map(repr, claimed[0].writes)) == list(map(repr, claimed[1].writes))
    assert [each.name for each in claimed[0].dependents] == [each.name for each in claimed[1].dependents]


def test_what_is_being_deleted_adopts_and_releases_nothing() -> None:
    store = Store(now=lambda: 0.0)
    claims = workload("ReplicaSet")
    claims["metadata"]["finalizers"] = ["example.com/held"]
    store.create(claims)
    store.create(pod("own"))
    ownership = Ownership({"ReplicaSet"}, "Pod")
    for event in store.written_after(0):
        ownership.observe(event)
    (adoption,) = ownership.claim(store.get("ReplicaSet", "default", "web"), store).writes
    assert isinstance(adoption, Patch)
    store.merge_patch("Pod", "default", "own", adoption.patch)
    store.merge_patch("Pod", "default", "own", {"metadata": {"labels": {"app": "other"}}})
    store.create(pod("orphan"))
    seen = store.version
    store.delete("ReplicaSet", "default", "web")
    for event in store.written_after(seen - 3):
        ownership.observe(event)
    deleting = store.get("ReplicaSet", "default", "web")
    assert deleting.deleting
    claimed = ownership.claim(deleting, store)
    assert [each.name for each in claimed.dependents] == ["own"]
    assert claimed.writes == []
    assert not ownership.may_adopt(deleting, store, lambda obj: True)
