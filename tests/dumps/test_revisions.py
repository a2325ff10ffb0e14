"""Workloads of a dump without their revisions stay as they are where the status says that a rollout is complete."""

from typing import Any

import pytest

from tests.dumps.objects import kept, node, pod, uid
from tests.dumps.test_loading import _loaded, _prepared

Raw = dict[str, Any]
LABELS = {"app": "db"}


def _template(image: str = "registry.example/c:1") -> Raw:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}]}}


def _pods(kind: str, *hashes: str) -> list[Raw]:
    """Pods of the workload `db`, one on each node, that name these revisions."""
    pods = []
    for number, digest in enumerate(hashes):
        labels = {**LABELS, "controller-revision-hash": digest}
        if kind == "StatefulSet":
            labels["statefulset.kubernetes.io/pod-name"] = f"db-{number}"
        made = pod(f"db-{number}", 100 + number, f"n{number}", owner=(kind, "db", 900), labels=labels)
        made["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        pods.append(made)
    return pods


def _stateful_set(current: str, update: str, generation: int = 1, **spec: Any) -> Raw:
    status = {"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
    status |= {"currentRevision": current, "updateRevision": update}
    wanted = {"replicas": 3, "serviceName": "db", "selector": {"matchLabels": LABELS}, "template": _template(), **spec}
    meta = {"generation": generation}
    return kept("StatefulSet", "db", 900, api="apps/v1", namespace="default", spec=wanted, status=status, metadata=meta)


def _daemon_set(updated: int) -> Raw:
    counts = dict.fromkeys(("currentNumberScheduled", "desiredNumberScheduled", "numberReady", "numberAvailable"), 3)
    status = {**counts, "observedGeneration": 1, "updatedNumberScheduled": updated}
    spec = {"selector": {"matchLabels": LABELS}, "template": _template()}
    return kept(
        "DaemonSet", "db", 900, api="apps/v1", namespace="default", spec=spec, status=status, metadata={"generation": 1}
    )


NODES = [node(f"n{number}", 1 + number) for number in range(3)]


def _uids(*raws: Raw) -> list[str]:
    simulation = _loaded(*NODES, *raws)
    simulation.advance(simulation.now + 600)
    return [one.uid for one in simulation.store.list("Pod") if not one.deleting]


@pytest.mark.parametrize(
    ("workload", "hashes"),
    [
        pytest.param(_stateful_set("db-old", "db-old"), ["db-old"] * 3, id="stateful set"),
        pytest.param(_daemon_set(3), ["5f7"] * 3, id="daemon set"),
    ],
)
def test_pods_of_a_complete_rollout_stay(workload: Raw, hashes: list[str]) -> None:
    assert _uids(workload, *_pods(workload["kind"], *hashes)) == [uid(100), uid(101), uid(102)]


def test_a_rollout_that_has_not_ended_goes_on_where_it_is() -> None:
    workload = _stateful_set("db-old", "db-new")
    uids = _uids(workload, *_pods("StatefulSet", "db-old", "db-old", "db-new"))
    assert uids[2] == uid(102)
    assert not {uid(100), uid(101)} & {*uids}
    assert uid(101) in _uids(_daemon_set(1), *_pods("DaemonSet", "old", "new", "old"))


def test_a_partition_keeps_the_pods_below_it_and_their_template() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    workload = _stateful_set("db-old", "db-new", updateStrategy=strategy, template=_template("registry.example/c:2"))
    pods = _pods("StatefulSet", "db-old", "db-old", "db-new")
    assert _uids(workload, *pods) == [uid(100), uid(101), uid(102)]
    simulation = _loaded(*NODES, workload, *pods)
    simulation.store.delete("Pod", "default", "db-0", grace_period_s=0)
    simulation.advance(simulation.now + 60)
    again = simulation.store.get("Pod", "default", "db-0")
    assert again.spec["containers"][0]["image"] == "registry.example/c:1"
    assert again.labels["controller-revision-hash"] == "db-old"


def test_a_template_that_its_controller_has_not_observed_is_rolled_out() -> None:
    workload = _stateful_set("db-old", "db-old", generation=2, template=_template("registry.example/c:2"))
    uids = _uids(workload, *_pods("StatefulSet", *["db-old"] * 3))
    assert len(uids) == 3
    assert not {uid(100), uid(101), uid(102)} & {*uids}


def test_revisions_of_the_dump_are_taken_instead() -> None:
    owner = [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": uid(900), "controller": True}]
    data = {"spec": {"template": {**_template(), "$patch": "replace"}}}
    revision = kept(
        "ControllerRevision",
        "db-old",
        50,
        api="apps/v1",
        namespace="default",
        data=data,
        revision=4,
        metadata={"ownerReferences": owner},
    )
    prepared = _prepared(*NODES, revision, _stateful_set("db-old", "db-old"), *_pods("StatefulSet", *["db-old"] * 3))
    assert prepared.assumptions.texts() == []


def test_a_deployment_without_its_replica_set_makes_no_other_one() -> None:
    labels = {**LABELS, "pod-template-hash": "abc"}
    pods = [pod(f"db-abc-{n}", 100 + n, "n0", owner=("ReplicaSet", "db-abc", 800), labels=labels) for n in range(2)]
    status = {"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": _template()}
    meta = {"generation": 3, "annotations": {"deployment.kubernetes.io/revision": "7"}}
    raw = kept("Deployment", "db", 900, api="apps/v1", namespace="default", spec=spec, status=status, metadata=meta)
    simulation = _loaded(*NODES, raw, *pods)
    assert [one.uid for one in simulation.store.list("Pod")] == [uid(100), uid(101)]
    (replica_set,) = simulation.store.list("ReplicaSet")
    assert replica_set.annotations["deployment.kubernetes.io/revision"] == "7"
    deployment = simulation.store.get("Deployment", "default", "db")
    assert deployment.annotations["deployment.kubernetes.io/revision"] == "7"
