"""Tests of the usage of quotas when objects are created and deleted."""

from typing import Any

import pytest

from kschedd.controllers.quotas import Quotas
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.errors import Forbidden
from kschedd.store.store import Store
from tests.store.manifests import Clock, pod


class Cluster:
    def __init__(self, **hard: str) -> None:
        self.clock = Clock()
        self.store = Store(now=self.clock)
        self.runner = ControllerRunner(self.store, [Quotas()])
        self.hard = {name.replace("_", "."): quantity for name, quantity in hard.items()}

    def limit(self, **spec: Any) -> None:
        meta = {"name": "q", "namespace": "default"}
        raw = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": self.hard, **spec}}
        self.store.create(raw)
        self.runner.run_until_idle()

    def make(self, name: str, cpu: str) -> None:
        resources = {"requests": {"cpu": cpu}}
        self.store.create({**pod(name), "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}})

    @property
    def status(self) -> Any:
        self.runner.run_until_idle()
        return self.store.get("ResourceQuota", "default", "q").status

    @property
    def used(self) -> Any:
        return self.status["used"]


def test_a_new_quota_counts_what_is_there_and_admission_what_comes() -> None:
    cluster = Cluster(pods="3", requests_cpu="1")
    cluster.make("a", "250m")
    cluster.limit()
    assert cluster.status == {"hard": {"pods": "3", "requests.cpu": "1"}, "used": {"pods": "1", "requests.cpu": "250m"}}
    cluster.make("b", "750m")
    assert cluster.used == {"pods": "2", "requests.cpu": "1"}
    with pytest.raises(Forbidden, match=r"exceeded quota: q, requested: requests.cpu=1m, used: requests.cpu=1, "):
        cluster.make("c", "1m")


def test_what_is_deleted_is_taken_off() -> None:
    cluster = Cluster(pods="2", requests_cpu="1")
    cluster.limit()
    for name in "ab":
        cluster.make(name, "500m")
    cluster.store.delete("Pod", "default", "a", grace_period_s=0)
    assert cluster.used == {"pods": "1", "requests.cpu": "500m"}
    cluster.make("c", "500m")
    assert cluster.used == {"pods": "2", "requests.cpu": "1"}


def test_what_went_before_the_quota_was_counted_is_not_taken_off() -> None:
    cluster = Cluster(pods="2")
    for name in "ab":
        cluster.make(name, "1")
    meta = {"name": "q", "namespace": "default"}
    cluster.store.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {"pods": "2"}}}
    )
    cluster.store.delete("Pod", "default", "a", grace_period_s=0)
    assert cluster.used == {"pods": "1"}


def test_a_pod_that_has_ended_counts_as_an_object_only() -> None:
    cluster = Cluster(pods="2", requests_cpu="1")
    cluster.hard["count/pods"] = "5"
    cluster.limit()
    cluster.make("a", "500m")
    cluster.store.patch_status("Pod", "default", "a", {"phase": "Succeeded"})
    assert cluster.used == {"count/pods": "1", "pods": "0", "requests.cpu": "0"}
    cluster.store.delete("Pod", "default", "a", grace_period_s=0)
    assert cluster.used == {"count/pods": "0", "pods": "0", "requests.cpu": "0"}


def test_a_changed_spec_is_counted_anew() -> None:
    cluster = Cluster(pods="2")
    cluster.limit()
    cluster.make("a", "500m")
    cluster.store.merge_patch("ResourceQuota", "default", "q", {"spec": {"hard": {"requests.cpu": "2", "pods": None}}})
    assert cluster.status == {"hard": {"requests.cpu": "2"}, "used": {"requests.cpu": "500m"}}


def test_only_what_is_in_scope_counts() -> None:
    cluster = Cluster(pods="2")
    cluster.limit(scopes=["BestEffort"])
    cluster.make("a", "500m")
    cluster.store.delete("Pod", "default", "a", grace_period_s=0)
    assert cluster.used == {"pods": "0"}


def test_a_quota_that_is_gone_is_forgotten() -> None:
    cluster = Cluster(pods="1")
    cluster.limit()
    cluster.make("a", "1")
    cluster.store.delete("ResourceQuota", "default", "q")
    cluster.make("b", "1")
    cluster.limit()
    assert cluster.used == {"pods": "2"}


def test_what_a_pod_asks_for_less_after_a_resize_is_taken_off() -> None:
    cluster = Cluster(requests_cpu="4")
    cluster.limit()
    cluster.make("a", "2")
    for cpu in ("1", "3"):
        resized = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}}
        cluster.store.merge_patch("Pod", "default", "a", resized, subresource="resize")
        assert cluster.used == {"requests.cpu": cpu}
    cluster.store.delete("Pod", "default", "a", grace_period_s=0)
    assert cluster.used == {"requests.cpu": "0"}


@pytest.mark.parametrize(
    ("scope", "before", "after"),
    [pytest.param("Terminating", "0", "1", id="into-it"), pytest.param("NotTerminating", "1", "0", id="out-of-it")],
)
def test_a_pod_that_changes_its_scope_counts_where_it_is(scope: str, before: str, after: str) -> None:
    cluster = Cluster(pods="2")
    cluster.limit(scopes=[scope])
    cluster.make("a", "1")
    assert cluster.used == {"pods": before}
    cluster.store.merge_patch("Pod", "default", "a", {"spec": {"activeDeadlineSeconds": 60}})
    assert cluster.used == {"pods": after}
    cluster.store.delete("Pod", "default", "a", grace_period_s=0)
    assert cluster.used == {"pods": "0"}


def test_a_pod_that_is_not_gone_in_time_counts_as_an_object_only() -> None:
    cluster = Cluster(pods="2", requests_cpu="1")
    cluster.hard["count/pods"] = "5"
    cluster.limit()
    for name in "ab":
        cluster.make(name, "500m")
    cluster.store.bind("default", "a", "n1")
    cluster.store.delete("Pod", "default", "a", grace_period_s=30)
    cluster.store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}})
    cluster.store.delete("ConfigMap", "default", "a")  # of the same name
    cluster.clock.now += 59
    assert cluster.used == {"count/pods": "2", "pods": "2", "requests.cpu": "1"}
    cluster.clock.now += 1
    assert cluster.used == {"count/pods": "2", "pods": "1", "requests.cpu": "500m"}
    cluster.store.delete("Pod", "default", "a", grace_period_s=0)
    assert cluster.used == {"count/pods": "1", "pods": "1", "requests.cpu": "500m"}
    assert cluster.runner.next_deadline is None
