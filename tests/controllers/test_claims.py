"""Tests of the ResourceClaim controller with a store and the garbage collector."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.storage.claims import POD_CLAIM, ResourceClaims, generated_base
from kschedd.store.store import Store

FINALIZER = "resource.kubernetes.io/delete-protection"
REQUESTS = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "tmpl", "namespace": "default"},
    "spec": {"metadata": {"labels": {"app": "x"}, "annotations": {"note": "y"}}, "spec": REQUESTS},
}


class SchedulerCache:
    def __init__(self) -> None:
        self.store = Store(now=lambda: 1_000.0)
        self.store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        controllers: list[Controller] = [ResourceClaims(), GarbageCollector()]
        self.settling = ControllerRunner(self.store, controllers)

    def create(self, raw: dict[str, Any]) -> Object:
        made = self.store.create(raw)
        self.settling.run_until_idle()
        return made

    def status(self, kind: str, name: str, status: dict[str, Any]) -> None:
        self.store.merge_patch(kind, "default", name, {"status": status}, subresource="status")
        self.settling.run_until_idle()

    def delete(self, kind: str, name: str) -> None:
        self.store.delete(kind, "default", name, grace_period_s=0)
        self.settling.run_until_idle()

    def bind(self, name: str) -> None:
        self.store.bind("default", name, "n1")
        self.settling.run_until_idle()

    def claims(self) -> list[Object]:
        return list(self.store.list("ResourceClaim"))

    def messages(self) -> list[str]:
        return [event.raw["message"] for event in self.store.list("Event")]

    def use(self, claim: str, *pods: Object) -> None:
        """Write the changes that the scheduler makes when it allocates a claim for these pods."""
        self.store.merge_patch("ResourceClaim", "default", claim, {"metadata": {"finalizers": [FINALIZER]}})
        result = {"request": "r", "driver": "d", "pool": "n1", "device": "g0"}
        entries = [{"resource": "pods", "name": pod.name, "uid": pod.uid} for pod in pods]
        self.status("ResourceClaim", claim, {"allocation": {"devices": {"results": [result]}}, "reservedFor": entries})


@pytest.fixture
def cluster() -> SchedulerCache:
    return SchedulerCache()


def pod(name: str = "p", *, template: str = "", claim: str = "") -> dict[str, Any]:
    entry = {"name": "dev", "resourceClaimTemplateName": template} if template else {"name": "dev"}
    if claim:
        entry["resourceClaimName"] = claim
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "x", "resources": {"claims": [{"name": "dev"}]}}],
            "resourceClaims": [entry],
        },
    }


def claim(name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": REQUESTS}


def test_claim_is_made_from_the_template_and_noted_in_the_pod(cluster: SchedulerCache) -> None:
    cluster.create(TEMPLATE)
    owner = cluster.create(pod(template="tmpl"))
    [made] = cluster.claims()
    assert made.name.startswith("p-dev-")
    assert (made.labels, made.annotations) == ({"app": "x"}, {"note": "y", POD_CLAIM: "dev"})
    assert made.owner is not None
    assert made.owner.uid == owner.uid
    assert made.spec["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu"
    noted = cluster.store.get("Pod", "default", "p").status["resourceClaimStatuses"]
    assert noted == [{"name": "dev", "resourceClaimName": made.name}]


def test_missing_template_is_told_once_and_its_arrival_serves_the_pod(cluster: SchedulerCache) -> None:
    cluster.create(pod(template="tmpl"))
    cluster.status("Pod", "p", {"phase": "Pending"})
    assert cluster.messages() == [
        'PodResourceClaim dev: resource claim template "tmpl": resourceclaimtemplates.resource.k8s.io "tmpl" not found'
    ]
    cluster.create(TEMPLATE)
    assert len(cluster.claims()) == 1


def test_pod_that_names_its_claim_gets_none_made(cluster: SchedulerCache) -> None:
    cluster.create(pod(claim="mine"))
    assert cluster.claims() == []


def test_deleted_claim_is_made_again_while_the_pod_is_there(cluster: SchedulerCache) -> None:
    cluster.create(TEMPLATE)
    cluster.create(pod(template="tmpl"))
    [first] = cluster.claims()
    cluster.delete("ResourceClaim", first.name)
    [second] = cluster.claims()
    assert second.uid != first.uid
    noted = cluster.store.get("Pod", "default", "p").status["resourceClaimStatuses"]
    assert noted == [{"name": "dev", "resourceClaimName": second.name}]


def test_generated_claim_goes_with_its_pod_even_while_allocated(cluster: SchedulerCache) -> None:
    cluster.create(TEMPLATE)
    owner = cluster.create(pod(template="tmpl"))
    [made] = cluster.claims()
    cluster.use(made.name, owner)
    cluster.bind("p")
    cluster.delete("Pod", "p")
    assert cluster.claims() == []


def test_generated_claim_of_a_finished_pod_is_released_and_deleted(cluster: SchedulerCache) -> None:
    cluster.create(TEMPLATE)
    owner = cluster.create(pod(template="tmpl"))
    [made] = cluster.claims()
    cluster.use(made.name, owner)
    cluster.bind("p")
    cluster.status("Pod", "p", {"phase": "Succeeded"})
    assert cluster.claims() == []
    assert cluster.store.get("Pod", "default", "p").name == "p"


def test_shared_claim_is_free_again_after_its_last_pod(cluster: SchedulerCache) -> None:
    cluster.create(claim("shared"))
    pods = [cluster.create(pod(name, claim="shared")) for name in ("p", "q")]
    cluster.use("shared", *pods)
    cluster.bind("p")
    cluster.bind("q")
    cluster.delete("Pod", "p")
    [left] = cluster.claims()
    assert [entry["name"] for entry in left.status["reservedFor"]] == ["q"]
    assert left.status["allocation"]
    cluster.delete("Pod", "q")
    [left] = cluster.claims()
    assert not left.status.get("allocation")
    assert not left.status.get("reservedFor")
    assert not left.metadata.get("finalizers")


def test_pod_of_the_same_name_does_not_keep_a_reservation(cluster: SchedulerCache) -> None:
    cluster.create(claim("shared"))
    old = cluster.create(pod(claim="shared"))
    cluster.use("shared", old)
    cluster.delete("Pod", "p")
    cluster.create(pod(claim="shared"))
    [left] = cluster.claims()
    assert not left.status.get("allocation")


def test_deleted_claim_waits_for_its_user(cluster: SchedulerCache) -> None:
    cluster.create(claim("shared"))
    user = cluster.create(pod(claim="shared"))
    cluster.use("shared", user)
    cluster.bind("p")
    cluster.delete("ResourceClaim", "shared")
    [left] = cluster.claims()
    assert left.deleting
    cluster.delete("Pod", "p")
    assert cluster.claims() == []


def test_pod_bound_past_the_scheduler_is_reserved(cluster: SchedulerCache) -> None:
    cluster.create(claim("shared"))
    first = cluster.create(pod(claim="shared"))
    cluster.use("shared", first)
    cluster.bind("p")
    cluster.create(pod("q", claim="shared"))
    cluster.bind("q")
    [left] = cluster.claims()
    assert [entry["name"] for entry in left.status["reservedFor"]] == ["p", "q"]


def test_reservation_for_something_else_is_left_alone(cluster: SchedulerCache) -> None:
    cluster.create(claim("shared"))
    entry = {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "u"}
    cluster.status("ResourceClaim", "shared", {"allocation": {}, "reservedFor": [entry]})
    [left] = cluster.claims()
    assert left.status["reservedFor"] == [entry]


def test_generated_names_are_cut_in_proportion() -> None:
    assert generated_base("web", "gpu") == "web-gpu-"
    cut = generated_base("p" * 90, "c" * 30)
    assert len(cut) <= 58
    assert cut.count("p") > cut.count("c") > 10
