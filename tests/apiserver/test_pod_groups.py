"""Tests of PodGroups and Workloads over HTTP: patches as for built-in kinds, and kube-apiserver's columns."""

from typing import Any

import pytest

from kschedd.config.versions.kube_versions import V1_37
from tests.apiserver.asking import STRATEGIC, TABLE, asking

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
GATES = {"GenericWorkload": True}
GANG = {"gang": {"minCount": 2}}


def group(name: str, **spec: Any) -> dict[str, Any]:
    kind = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": name}}
    return {**kind, "spec": {"schedulingPolicy": GANG, **spec}}


def condition(kind: str, held: str, reason: str) -> dict[str, Any]:
    at = "2025-01-01T00:00:00Z"
    return {"type": kind, "status": held, "reason": reason, "message": "", "lastTransitionTime": at}


async def test_a_strategic_patch_merges_the_conditions_of_a_group_by_type() -> None:
    async with asking(version=V1_37, gates=GATES) as api:
        await api.create(GROUPS, group("g"))
        for kind in ("PodGroupInitiallyScheduled", "DisruptionTarget", "PodGroupInitiallyScheduled"):
            patch = {"status": {"conditions": [condition(kind, "True", "Scheduled")]}}
            assert (await api.ask("PATCH", f"{GROUPS}/g/status", patch, content_type=STRATEGIC)).status == 200
        conditions = (await api.get(f"{GROUPS}/g"))["status"]["conditions"]
        assert sorted(one["type"] for one in conditions) == ["DisruptionTarget", "PodGroupInitiallyScheduled"]


async def test_a_custom_resource_takes_no_strategic_patch() -> None:
    names = {"kind": "PodGroup", "plural": "podgroups"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    meta = {"name": "podgroups.example.com"}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta}
    async with asking(version=V1_37) as api:
        await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {**definition, "spec": spec})
        path = "/apis/example.com/v1/namespaces/default/podgroups"
        await api.create(path, {"apiVersion": "example.com/v1", "kind": "PodGroup", "metadata": {"name": "g"}})
        assert (await api.ask("PATCH", f"{path}/g", {"spec": {}}, content_type=STRATEGIC)).status == 415


@pytest.mark.parametrize(
    ("spec", "conditions", "cells"),
    [
        pytest.param({}, [], ["Gang", "<none>", "Pending"], id="new"),
        pytest.param(
            {"schedulingPolicy": {"basic": {}}, "workloadRef": {"workloadName": "w", "templateName": "t"}},
            [condition("PodGroupInitiallyScheduled", "True", "Scheduled")],
            ["Basic", "w", "Scheduled"],
            id="scheduled",
        ),
        pytest.param(
            {},
            [condition("PodGroupInitiallyScheduled", "False", "Unschedulable")],
            ["Gang", "<none>", "Unschedulable"],
            id="unschedulable",
        ),
        pytest.param(
            {},
            [
                condition("PodGroupInitiallyScheduled", "True", "Scheduled"),
                condition("DisruptionTarget", "True", "PreemptionByScheduler"),
            ],
            ["Gang", "<none>", "PreemptionByScheduler"],
            id="preempted",
        ),
    ],
)
async def test_the_table_says_of_a_group_what_became_of_it(
    spec: dict[str, Any], conditions: list[dict[str, Any]], cells: list[str]
) -> None:
    async with asking(version=V1_37, gates=GATES) as api:
        await api.create(GROUPS, group("g", **spec))
        patch = {"status": {"conditions": conditions}}
        assert (await api.ask("PATCH", f"{GROUPS}/g/status", patch, content_type=STRATEGIC)).status == 200
        table = (await api.ask("GET", GROUPS, accept=TABLE)).json
        assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Policy", "Workload", "Status", "Age"]
        assert table["rows"][0]["cells"][:4] == ["g", *cells]
