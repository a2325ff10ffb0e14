"""Tests of the APIServices that the API server registers for its own groups."""

from typing import Any

import pytest

from kschedd.config.versions.kube_versions import V1_34, V1_37, KubernetesVersion
from tests.apiserver.asking import TABLE, asking

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


@pytest.mark.parametrize("version", [V1_34, V1_37], ids=str)
async def test_each_served_version_has_an_available_service(version: KubernetesVersion) -> None:
    async with asking(version=version) as api:
        listed = {each["metadata"]["name"]: each for each in (await api.get(SERVICES))["items"]}
        served = {"v1."}
        for group in (await api.get("/apis"))["groups"]:
            served |= {f"{each['version']}.{group['name']}" for each in group["versions"]}
        assert set(listed) == served - {"v1beta1.metrics.k8s.io", "v1.apiregistration.k8s.io"}
        assert all(each["status"]["conditions"][0]["status"] == "True" for each in listed.values())
        assert listed["v2.autoscaling"]["spec"] == {
            **{"group": "autoscaling", "version": "v2"},
            **{"groupPriorityMinimum": 17500, "versionPriority": 30},
        }
        rows = (await api.get(SERVICES, accept=TABLE))["rows"]
        assert [row["cells"][:3] for row in rows if row["cells"][0] == "v1."] == [["v1.", "Local", "True"]]


async def test_definitions_have_services_too() -> None:
    async with asking() as api:
        await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        found = await api.get(f"{SERVICES}/v1.example.com")
        assert found["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
        assert (found["spec"]["groupPriorityMinimum"], found["spec"]["versionPriority"]) == (1000, 100)


async def test_they_are_selected_and_paged_like_other_objects() -> None:
    async with asking() as api:
        named = await api.get(f"{SERVICES}?fieldSelector=metadata.name%3Dv1.apps")
        assert [each["metadata"]["name"] for each in named["items"]] == ["v1.apps"]
        managed = "kube-aggregator.kubernetes.io/automanaged"
        assert (await api.get(f"{SERVICES}?labelSelector=!{managed}"))["items"] == []
        everything = [each["metadata"]["name"] for each in (await api.get(SERVICES))["items"]]
        names, cont = [], ""
        while True:
            page = await api.get(f"{SERVICES}?limit=10&continue={cont}")
            names += [each["metadata"]["name"] for each in page["items"]]
            cont = page["metadata"].get("continue", "")
            if not cont:
                break
        assert names == everything == sorted(everything)


async def test_a_stored_service_replaces_the_computed_one() -> None:
    async with asking() as api:
        spec = {"group": "apps", "version": "v1", "groupPriorityMinimum": 5, "versionPriority": 6}
        own = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.apps"}}
        await api.create(SERVICES, {**own, "spec": spec})
        listed = [each for each in (await api.get(SERVICES))["items"] if each["metadata"]["name"] == "v1.apps"]
        assert [each["spec"]["versionPriority"] for each in listed] == [6]
        assert (await api.get(f"{SERVICES}/v1.apps"))["spec"]["groupPriorityMinimum"] == 5


async def test_computed_services_cannot_be_deleted() -> None:
    async with asking() as api:
        assert (await api.ask("DELETE", f"{SERVICES}/v1.apps")).status == 404
        assert (await api.get(f"{SERVICES}/v1.apps"))["metadata"]["name"] == "v1.apps"
