"""Tests that reported statuses are validated for every kind and on every path."""

from typing import Any

import pytest

from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.kinds import KINDS
from kschedd.api.text.times import duration_s, seconds, stamp
from kschedd.registry.strategy import strategy_of
from kschedd.store.errors import Invalid
from kschedd.store.store import Store
from tests.store.manifests import Clock, node, pod, workload

Raw = dict[str, Any]
CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
}


@pytest.fixture
def store() -> Store:
    return Store(now=Clock())


WRONG = [
    pytest.param(pod(), {"startTime": "soon"}, "status.startTime", id="pod-start-time"),
    pytest.param(pod(), {"startTime": ""}, "status.startTime", id="pod-start-time-empty"),
    pytest.param(
        pod(),
        {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "soon"}]},
        "status.conditions[0].lastTransitionTime",
        id="condition-time",
    ),
    pytest.param(
        pod(), {"containerStatuses": [{"name": "app", "restartCount": "x"}]}, "restartCount", id="restart-count"
    ),
    pytest.param(node(), {"conditions": ["x"]}, "status.conditions[0]", id="node-condition-is-text"),
    pytest.param(node(), {"allocatable": {"cpu": "-1"}}, "status.allocatable", id="negative-allocatable"),
    pytest.param(node(), {"allocatable": {"cpu": "lots"}}, "status.allocatable.cpu", id="no-quantity"),
    pytest.param(workload("Deployment"), {"conditions": ["x"]}, "status.conditions[0]", id="deployment-conditions"),
    pytest.param(workload("Deployment"), {"collisionCount": "x"}, "status.collisionCount", id="collision-count"),
    pytest.param(workload("ReplicaSet"), {"replicas": 2**31}, "status.replicas", id="beyond-32-bits"),
    pytest.param(CLAIM, {"reservedFor": ["x"]}, "status.reservedFor[0]", id="reserved-for"),
    pytest.param(CLAIM, "x", "status", id="status-is-text"),
]


@pytest.mark.parametrize(("manifest", "status", "path"), WRONG)
def test_a_status_of_wrong_types_is_refused_on_every_path(store: Store, manifest: Raw, status: Any, path: str) -> None:
    made = store.create(manifest)
    whole = {**made.raw, "status": status}
    where = (made.kind, made.namespace, made.name)
    ways = [
        lambda: store.merge_patch(*where, {"status": status}, subresource="status"),
        lambda: store.update_status(whole),
        lambda: store.update(whole, with_status=True),
        lambda: store.apply({**whole, "metadata": manifest["metadata"]}, restore=True),
        lambda: store.create(
            {**manifest, "status": status, "metadata": {**manifest["metadata"], "name": "x"}}, restore=True
        ),
    ]
    for way in ways:
        with pytest.raises(Invalid) as refusal:
            way()
        assert path in str(refusal.value)
    assert store.get(*where) is made


def test_every_kind_with_a_status_has_types_for_it() -> None:
    with_status = [kind.name for kind in KINDS if strategy_of(kind.name).status]
    assert len(with_status) > 15
    assert [kind for kind in with_status if "status" not in (schema_for({"kind": kind}) or ())] == []


def test_nulls_in_a_status_stand_for_absent_fields(store: Store) -> None:
    store.create(pod())
    ready = {"type": "Ready", "status": "True", "reason": None, "lastProbeTime": None}
    changed = store.merge_patch("Pod", "default", "web", {"status": {"conditions": [ready]}}, subresource="status")
    times = {"lastProbeTime": None, "lastTransitionTime": None}  # printed always
    assert changed.status["conditions"] == [{"type": "Ready", "status": "True", **times}]
    with pytest.raises(Invalid, match=r"status.conditions\[1\].Type: Invalid value: \"\": name part must be non-empty"):
        store.merge_patch("Pod", "default", "web", {"status": {"conditions": [ready, None]}}, subresource="status")


@pytest.mark.parametrize("grace", [10**12, 2**63 - 1, 2**40])
def test_a_grace_period_beyond_all_bounds_is_counted_as_in_go(store: Store, grace: int) -> None:
    store.create(pod(nodeName="node-1", terminationGracePeriodSeconds=grace))
    now = store.now
    marked = store.delete("Pod", "default", "web")
    assert marked.metadata["deletionTimestamp"] == stamp(now + duration_s(grace))
    assert marked.metadata["deletionGracePeriodSeconds"] == grace
    sooner = store.delete("Pod", "default", "web", grace_period_s=5)
    assert seconds(sooner.metadata["deletionTimestamp"]) - now == pytest.approx(5, abs=1)


def test_the_generation_stays_where_there_is_no_higher_one(store: Store) -> None:
    raw = workload("Deployment")
    raw["metadata"]["generation"] = 2**63 - 1
    store.create(raw, restore=True)
    changed = store.merge_patch("Deployment", "default", "web", {"spec": {"replicas": 1}})
    assert changed.metadata["generation"] == 2**63 - 1


def test_no_two_objects_have_one_uid(store: Store) -> None:
    first, second = pod("a"), pod("b")
    first["metadata"]["uid"] = second["metadata"]["uid"] = "11111111-1111-1111-1111-111111111111"
    made = [store.create(raw, restore=True) for raw in (first, second)]
    assert made[0].uid == first["metadata"]["uid"]
    assert made[1].uid != made[0].uid
    store.delete("Pod", "default", "a")
    assert store.create(first, restore=True).uid == first["metadata"]["uid"]


def test_no_rule_says_what_disrupted_pods_are_called(store: Store) -> None:
    meta = {"name": "b", "namespace": "default"}
    store.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": {}})
    status = {"disruptedPods": {"No Name": "2026-01-01T00:00:00Z"}}
    reported = store.patch_status("PodDisruptionBudget", "default", "b", status)
    assert reported.raw["status"]["disruptedPods"] == status["disruptedPods"]


def test_a_binding_names_a_node_that_could_be_there(store: Store) -> None:
    store.create(pod())
    with pytest.raises(Invalid, match=r"target\.name: Invalid value"):
        store.bind("default", "web", "No Node")


def test_a_pod_asks_for_less_than_nothing(store: Store) -> None:
    with pytest.raises(Invalid, match="must be greater than or equal to"):
        store.create(pod(resources={"requests": {"cpu": "-1"}}, cpu=None))


def test_a_grace_period_beyond_64_bits_is_refused(store: Store) -> None:
    store.create(pod(nodeName="node-1"))
    with pytest.raises(Invalid, match="must be a 64-bit integer"):
        store.delete("Pod", "default", "web", grace_period_s=2**64 - 1)
