"""Tests that the REST API has the version name and the fields of the selected Kubernetes version."""

import pytest

from kschedd.config.versions.kube_versions import V1_34, V1_36, KubernetesVersion
from tests.apiserver.asking import asking

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"declaredFeatures": ["UserNamespacesHostNetworkSupport"]},
}


@pytest.mark.parametrize(
    ("version", "answer"), [(V1_34, ("34", "33", "v1.34.9")), (V1_36, ("36", "35", "v1.36.3"))], ids=("1.34", "1.36")
)
async def test_version(version: KubernetesVersion, answer: tuple[str, ...]) -> None:
    async with asking(version=version) as api:
        found = (await api.ask("GET", "/version")).json
    assert (found["minor"], found["minCompatibilityMinor"], found["gitVersion"]) == answer
    assert found["major"] == "1"


@pytest.mark.parametrize(("version", "known"), [(V1_34, False), (V1_36, True)], ids=("1.34", "1.36"))
async def test_fields_of_the_version(version: KubernetesVersion, known: bool) -> None:
    async with asking(version=version) as api:
        document = (await api.ask("GET", "/openapi/v3/api/v1")).json
        strict = await api.ask("POST", "/api/v1/nodes?fieldValidation=Strict", NODE)
    fields = document["components"]["schemas"]["io.k8s.api.core.v1.NodeStatus"]["properties"]
    assert ("declaredFeatures" in fields, strict.status) == ((True, 201) if known else (False, 400))
