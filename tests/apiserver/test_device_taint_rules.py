"""Tests that DeviceTaintRules are served by 1.37 and unknown to earlier versions."""

from typing import Any

import pytest

from kschedd.config.versions.kube_versions import V1_34, V1_36, V1_37, KubernetesVersion
from tests.apiserver.asking import TABLE, asking

GROUP = "/apis/resource.k8s.io/v1"
RULES = f"{GROUP}/devicetaintrules"


def rule(**spec: Any) -> dict[str, Any]:
    taint = {"key": "example.com/broken", "value": "yes", "effect": "NoSchedule"}
    spec = {"deviceSelector": {"driver": "gpu.example.com"}, "taint": taint, **spec}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": spec}


async def test_the_kind_is_listed_beside_those_that_all_versions_have() -> None:
    async with asking(version=V1_37) as api:
        listed = {each["name"]: each for each in (await api.get(GROUP))["resources"]}
        assert {"deviceclasses", "resourceclaims", "resourceslices", "devicetaintrules"} <= set(listed)
        assert listed["devicetaintrules"]["namespaced"] is False
        assert listed["devicetaintrules/status"]["verbs"] == ["get", "patch", "update"]
        groups = [each["name"] for each in (await api.get("/apis"))["groups"]]
        assert groups.count("resource.k8s.io") == 1


@pytest.mark.parametrize("version", [V1_34, V1_36], ids=str)
async def test_a_version_without_the_rule_does_not_know_the_kind(version: KubernetesVersion) -> None:
    async with asking(version=version) as api:
        assert (await api.ask("POST", RULES, rule())).status == 404


async def test_a_rule_is_stored_and_shown_with_its_taint() -> None:
    async with asking(version=V1_37) as api:
        made = await api.create(RULES, rule())
        taint = rule()["spec"]["taint"]
        assert made["spec"] == {
            **rule()["spec"],
            "taint": {**taint, "timeAdded": made["metadata"]["creationTimestamp"]},
        }
        assert made["metadata"]["generation"] == 1
        table = (await api.ask("GET", RULES, accept=TABLE)).json
        names = [column["name"] for column in table["columnDefinitions"]]
        assert names == ["Name", "Key", "Value", "Effect", "TimeAdded", "Age"]
        assert table["rows"][0]["cells"][:4] == ["r", "example.com/broken", "yes", "NoSchedule"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"deviceSelector": {"driver": "UP_"}}, "spec.deviceSelector.driver", id="driver"),
        pytest.param({"deviceSelector": {"pool": ""}}, "spec.deviceSelector.pool", id="pool"),
        pytest.param({"deviceSelector": {"pool": "-"}}, "spec.deviceSelector.pool", id="part-of-pool"),
        pytest.param({"deviceSelector": {"device": "a.b"}}, "spec.deviceSelector.device", id="device"),
        pytest.param({"taint": {"key": "", "effect": "None"}}, "spec.taint.key", id="key"),
        pytest.param({"taint": {"key": "a/b/c", "effect": "None"}}, "spec.taint.key", id="parts-of-key"),
        pytest.param({"taint": {"key": "k", "effect": "PreferNoSchedule"}}, "spec.taint.effect", id="effect"),
        pytest.param({"taint": {"key": "k"}}, "spec.taint.effect", id="no-effect"),
    ],
)
async def test_a_rule_with_a_bad_value_is_rejected(spec: dict[str, Any], field: str) -> None:
    async with asking(version=V1_37) as api:
        answer = await api.ask("POST", RULES, rule(**spec))
        assert answer.status == 422
        assert {cause["field"] for cause in answer.json["details"]["causes"]} == {field}
