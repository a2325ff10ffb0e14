"""Tests of the Events that controllers record: their limits, their contents and their expiry."""

from collections.abc import Sequence
from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.controllers.copies import copy_of
from kschedd.controllers.event_expiry import TTL_S, EventExpiry
from kschedd.controllers.jobs.cronjobs import CronJobs
from kschedd.controllers.jobs.jobs import Jobs
from kschedd.controllers.object_events import EventRecorder
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.workloads.daemonsets import DaemonSets
from kschedd.controllers.workloads.deployments import Deployments
from kschedd.controllers.workloads.replicasets import ReplicaSets
from kschedd.controllers.workloads.statefulsets import StatefulSets
from kschedd.store.cluster_api import perform
from kschedd.store.errors import NotFound
from kschedd.store.store import Store
from kschedd.store.writes import Create, Patch, Write
from tests.controllers.workloads.clusters import WorkloadCluster
from tests.store.manifests import Clock

NOW = 1_700_000_000.0
ABOUT = Object.from_raw(
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "default", "uid": "u-1"}}
)


def recorded(recorder: EventRecorder, message: str, now: float = NOW, reason: str = "SuccessfulCreate") -> list[Write]:
    return recorder.event(ABOUT, reason, message, now)


def test_an_event_names_its_object_and_component() -> None:
    (write,) = EventRecorder("replicaset-controller").event(ABOUT, "FailedCreate", "no", NOW, warning=True)
    assert isinstance(write, Create)
    raw = dict(write.raw)
    assert raw.pop("metadata")["namespace"] == "default"
    assert raw == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "namespace": "default",
            "uid": "u-1",
            "resourceVersion": "0",
        },
        "reason": "FailedCreate",
        "message": "no",
        "type": "Warning",
        "source": {"component": "replicaset-controller"},
        "reportingComponent": "replicaset-controller",
        "reportingInstance": "",
        "firstTimestamp": "2023-11-14T22:13:20Z",
        "lastTimestamp": "2023-11-14T22:13:20Z",
        "count": 1,
    }


def test_names_are_ordered_by_time_and_equal_in_equal_runs() -> None:
    def names(component: str) -> list[str]:
        recorder = EventRecorder(component)
        return [write.raw["metadata"]["name"] for m in "abc" for write in recorded(recorder, m) if _creates(write)]

    assert names("c") == names("c")
    assert names("c") == sorted(set(names("c")))
    assert not set(names("c")) & set(names("d"))
    assert names("c")[0].startswith("web.17979cfe")


def test_an_equal_event_increments_the_count() -> None:
    recorder = EventRecorder("c")
    (first,) = recorded(recorder, "again")
    assert _creates(first)
    (second,) = recorded(recorder, "again", NOW + 5)
    assert isinstance(second, Patch)
    assert (second.namespace, second.name) == ("default", first.raw["metadata"]["name"])
    assert second.patch == {"count": 2, "lastTimestamp": "2023-11-14T22:13:25Z", "message": "again"}


def test_the_tenth_different_message_is_combined() -> None:
    recorder = EventRecorder("c")
    writes = [write for number in range(12) for write in recorded(recorder, f"pod {number}")]
    assert [_message(write) for write in writes[:9]] == [f"pod {number}" for number in range(9)]
    assert _creates(writes[9])
    assert _message(writes[9]) == "(combined from similar events): pod 9"
    combined = [write.patch for write in writes[10:] if isinstance(write, Patch)]
    assert [(each["count"], each["message"]) for each in combined] == [
        (2, "(combined from similar events): pod 10"),
        (3, "(combined from similar events): pod 11"),
    ]


def test_after_ten_quiet_minutes_messages_are_separate_again() -> None:
    recorder = EventRecorder("c")
    for number in range(10):
        recorded(recorder, f"pod {number}")
    (write,) = recorded(recorder, "pod 10", NOW + 601)
    assert _message(write) == "pod 10"


def test_a_component_writes_25_events_about_an_object_and_then_one_in_five_minutes() -> None:
    recorder = EventRecorder("c")
    assert sum(len(recorded(recorder, f"pod {number}")) for number in range(1000)) == 25
    assert recorded(recorder, "later", NOW + 299) == []
    assert len(recorded(recorder, "later still", NOW + 301)) == 1
    other = Object.from_raw({**ABOUT.raw, "metadata": {**ABOUT.metadata, "name": "other", "uid": "u-2"}})
    assert len(recorder.event(other, "SuccessfulCreate", "first", NOW)) == 1


def test_without_details_a_repeated_failure_is_recorded_once() -> None:
    recorder = EventRecorder("c", detailed=False)
    error = NotFound("Pod", "p")
    assert len(recorder.failure(ABOUT, error, NOW, "FailedCreate", "p is missing")) == 1
    assert recorder.failure(ABOUT, error, NOW, "FailedCreate", "p is missing") == []
    assert len(recorder.failure(ABOUT, NotFound("Pod", "q"), NOW, "FailedCreate", "q is missing")) == 1


def test_a_copy_counts_for_itself() -> None:
    recorder = EventRecorder("c")
    recorded(recorder, "again")
    copied = copy_of(recorder)
    recorded(recorder, "again")
    (write,) = recorded(copied, "again")
    assert isinstance(write, Patch)
    assert write.patch["count"] == 2


# --- the controllers ---------------------------------------------------------------------------------------------


def workload(kind: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    spec_of_pod = {"containers": [{"name": "c", "image": "i"}], **({"restartPolicy": "Never"} if kind == "Job" else {})}
    template = {"metadata": {"labels": labels}, "spec": spec_of_pod}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    api_version = "batch/v1" if kind == "Job" else "apps/v1"
    whole = {**selector, "template": template, **spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": whole}


def told(cluster: WorkloadCluster, kind: str) -> list[tuple[str, str, str]]:
    events = [event.raw for event in cluster.store.list("Event") if event.raw["involvedObject"]["kind"] == kind]
    return sorted((each["source"]["component"], each["reason"], each["message"]) for each in events)


def test_a_deployment_tells_each_new_size_of_its_replica_sets() -> None:
    cluster = WorkloadCluster([Deployments(detailed_events=True), ReplicaSets()])
    cluster.store.create(workload("Deployment", replicas=2))
    cluster.rest()
    cluster.patch("Deployment", "web", {"spec": {"replicas": 1}})
    cluster.rest()
    (replica_set,) = cluster.store.list("ReplicaSet")
    assert [message for _, _, message in told(cluster, "Deployment")] == [
        f"Scaled down replica set {replica_set.name} from 2 to 1",
        f"Scaled up replica set {replica_set.name} from 0 to 2",
    ]
    assert told(cluster, "ReplicaSet") == []


@pytest.mark.parametrize(
    ("kind", "component"),
    [("ReplicaSet", "replicaset-controller"), ("DaemonSet", "daemonset-controller"), ("Job", "job-controller")],
)
def test_a_workload_tells_the_pods_that_it_creates_and_deletes(kind: str, component: str) -> None:
    controllers = [
        ReplicaSets(detailed_events=True),
        DaemonSets(detailed_events=True),
        Jobs(detailed_events=True),
    ]
    cluster = WorkloadCluster(controllers)
    spec = {"ReplicaSet": {"replicas": 1}, "DaemonSet": {}, "Job": {}}[kind]
    cluster.store.create(workload(kind, **spec))
    cluster.rest()
    (pod,) = cluster.pods()
    assert told(cluster, kind) == [(component, "SuccessfulCreate", f"Created pod: {pod.name}")]
    if kind == "ReplicaSet":
        cluster.patch(kind, "web", {"spec": {"replicas": 0}})
    elif kind == "DaemonSet":
        cluster.patch(kind, "web", {"spec": {"template": {"spec": {"nodeSelector": {"no": "such"}}}}})
    else:
        cluster.patch(kind, "web", {"spec": {"suspend": True}})
    cluster.rest()
    assert (component, "SuccessfulDelete", f"Deleted pod: {pod.name}") in told(cluster, kind)


def test_a_stateful_set_tells_its_pods_and_claims() -> None:
    cluster = WorkloadCluster([StatefulSets(detailed_events=True)])
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {}}}
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
    cluster.store.create(workload("StatefulSet", replicas=1, serviceName="web", volumeClaimTemplates=[claim]))
    cluster.rest()
    cluster.patch("StatefulSet", "web", {"spec": {"replicas": 0}})
    cluster.rest()
    assert told(cluster, "StatefulSet") == [
        ("statefulset-controller", "SuccessfulCreate", "Create Claim data-web-0 Pod web-0 in StatefulSet web success"),
        ("statefulset-controller", "SuccessfulCreate", "Create Pod web-0 in StatefulSet web successful"),
        ("statefulset-controller", "SuccessfulDelete", "Delete Pod web-0 in StatefulSet web successful"),
    ]


def test_a_cron_job_tells_a_job_only_if_it_was_created() -> None:
    cluster = WorkloadCluster([CronJobs()])
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
    spec = {"schedule": "* * * * *", "jobTemplate": template}
    cluster.store.create({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": spec})
    quota = {"spec": {"hard": {"count/jobs.batch": "0"}}, "status": {"hard": {"count/jobs.batch": "0"}}}
    quota["status"]["used"] = {"count/jobs.batch": "0"}
    meta = {"name": "none"}
    cluster.store.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, **quota}, restore=True)
    cluster.step()
    cluster.clock.now += 60
    cluster.step()
    assert {reason for _, reason, _ in told(cluster, "CronJob")} == {"FailedCreate"}
    cluster.store.delete("ResourceQuota", "default", "none")
    cluster.clock.now += 60
    cluster.step()
    assert "SuccessfulCreate" in {reason for _, reason, _ in told(cluster, "CronJob")}


def test_a_repeated_event_that_was_deleted_is_created_again_with_its_count() -> None:
    cluster = WorkloadCluster([ReplicaSets(detailed_events=True)])
    raw = workload("ReplicaSet", replicas=1)
    raw["spec"]["template"]["spec"]["priorityClassName"] = "later"
    raw["spec"]["template"]["metadata"]["name"] = "fixed"
    cluster.store.create(raw)
    cluster.step()
    for event in cluster.store.list("Event"):
        cluster.store.delete("Event", "default", event.name)
    recorder = EventRecorder("c")
    replica_set = cluster.get("ReplicaSet", "web")
    (first,) = recorder.event(replica_set, "R", "same", NOW)
    perform(cluster.store, first)
    cluster.store.delete("Event", "default", first.raw["metadata"]["name"])
    runner = ControllerRunner(cluster.store, [_Repeating(recorder, replica_set)])
    runner.run_until_idle()
    (again,) = [event for event in cluster.store.list("Event") if event.raw["reason"] == "R"]
    assert (again.raw["count"], again.name) == (2, first.raw["metadata"]["name"])


class _Repeating(CronJobs):
    """A controller that repeats one Event in its first turn."""

    def __init__(self, recorder: EventRecorder, about: Object) -> None:
        super().__init__()
        self._writes = recorder.event(about, "R", "same", NOW)

    @property
    def next_deadline(self) -> float | None:
        return 0.0 if self._writes else None

    def reconcile(self, events: Sequence[Any], view: Any, now: float) -> list[Write]:
        writes, self._writes = self._writes, []
        return writes


# --- expiry --------------------------------------------------------------------------------------------------------


def test_an_event_expires_one_hour_after_its_last_change() -> None:
    clock = Clock(NOW)
    store = Store(now=clock)
    recorder = EventRecorder("c")
    runner = ControllerRunner(store, [EventExpiry()])
    perform(store, *recorded(recorder, "once"))
    perform(store, *recorded(recorder, "twice"))
    runner.run_until_idle()
    clock.now += 1800
    perform(store, *recorded(recorder, "twice", clock.now))
    runner.run_until_idle()
    clock.now = NOW + TTL_S + 10
    runner.run_until_idle()
    assert [event.raw["message"] for event in store.list("Event")] == ["twice"]
    assert runner.next_work is None  # virtual time does not advance only to expire Events
    clock.now += 1800
    runner.run_until_idle()
    assert store.list("Event") == []


def test_events_that_existed_at_the_start_expire_by_their_last_occurrence() -> None:
    clock = Clock(NOW)
    store = Store(now=clock)
    perform(store, *recorded(EventRecorder("c"), "old"))
    clock.now += 3000
    perform(store, *recorded(EventRecorder("c"), "young", clock.now))
    runner = ControllerRunner(store, [EventExpiry()])
    clock.now = NOW + TTL_S + 10
    runner.run_until_idle()
    assert [event.raw["message"] for event in store.list("Event")] == ["young"]


def _creates(write: Write) -> bool:
    return isinstance(write, Create)


def _message(write: Write) -> str:
    raw = write.raw if isinstance(write, Create) else {}
    return str(raw.get("message"))
