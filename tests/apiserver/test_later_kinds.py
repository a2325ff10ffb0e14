"""Tests of kinds that 1.36 and 1.37 introduced: served by those releases, unknown to earlier ones."""

from typing import Any

import pytest

from kschedd.config.versions.kube_versions import V1_35, V1_36, V1_37
from tests.apiserver.asking import asking

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CERTIFICATES = "/apis/certificates.k8s.io/v1"
MIGRATIONS = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
POLICIES = f"{ADMISSION}/mutatingadmissionpolicies"
BINDINGS = f"{ADMISSION}/mutatingadmissionpolicybindings"
BUNDLES = f"{CERTIFICATES}/clustertrustbundles"
REQUESTS = f"{CERTIFICATES}/namespaces/default/podcertificaterequests"
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
MUTATION = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/spec/x'}]"}}
SPECS: dict[str, dict[str, Any]] = {
    POLICIES: {
        "matchConstraints": {"resourceRules": [RULE]},
        "mutations": [MUTATION],
        "reinvocationPolicy": "Never",
    },
    BINDINGS: {"policyName": "p", "matchResources": {}},
    BUNDLES: {"signerName": "example.com/ca", "trustBundle": PEM},
    REQUESTS: {
        **{"signerName": "example.com/ca", "podName": "p", "podUID": "1", "serviceAccountName": "default"},
        **{"serviceAccountUID": "2", "nodeName": "n", "nodeUID": "3", "stubPKCS10Request": "AA=="},
    },
    MIGRATIONS: {"resource": {"group": "apps", "resource": "deployments"}},
}
KINDS = {
    POLICIES: "MutatingAdmissionPolicy",
    BINDINGS: "MutatingAdmissionPolicyBinding",
    BUNDLES: "ClusterTrustBundle",
    REQUESTS: "PodCertificateRequest",
    MIGRATIONS: "StorageVersionMigration",
}


def made(path: str, **changed: Any) -> dict[str, Any]:
    api_version = "/".join(path.split("/")[2:4])
    spec = {**SPECS[path], **changed}
    return {"apiVersion": api_version, "kind": KINDS[path], "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize("path", SPECS)
async def test_an_object_is_stored_and_read(path: str) -> None:
    async with asking(version=V1_37) as api:
        stored = await api.create(path, made(path))
        assert {key: stored["spec"][key] for key in SPECS[path] if key not in ("matchConstraints", "matchResources")}
        assert stored["metadata"].get("generation") == (1 if path in (POLICIES, BINDINGS) else None)
        assert (await api.get(f"{path}/x"))["spec"] == stored["spec"]


async def test_defaults_are_set() -> None:
    async with asking(version=V1_37) as api:
        policy = (await api.create(POLICIES, made(POLICIES)))["spec"]
        assert policy["failurePolicy"] == "Fail"
        assert policy["matchConstraints"] == {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "resourceRules": [{**RULE, "scope": "*"}],
        }
        assert (await api.create(REQUESTS, made(REQUESTS)))["spec"]["maxExpirationSeconds"] == 86400


async def test_each_release_has_its_kinds() -> None:
    served = {}
    for version in (V1_35, V1_36, V1_37):
        async with asking(version=version) as api:
            served[version.name] = [path for path in SPECS if (await api.ask("GET", path)).status == 200]
    assert served == {"1.35": [], "1.36": [POLICIES, BINDINGS], "1.37": list(SPECS)}


async def test_they_are_listed_with_their_group() -> None:
    async with asking(version=V1_37) as api:
        listed = {each["name"]: each for each in (await api.get(CERTIFICATES))["resources"]}
        assert listed["clustertrustbundles"]["namespaced"] is False
        assert listed["podcertificaterequests/status"]["verbs"] == ["get", "patch", "update"]
        assert "certificatesigningrequests" in listed
        groups = [each["name"] for each in (await api.get("/apis"))["groups"]]
        assert groups.count("certificates.k8s.io") == groups.count("storagemigration.k8s.io") == 1


@pytest.mark.parametrize(
    ("path", "changed", "fields"),
    [
        (POLICIES, {"mutations": []}, {"spec.mutations"}),
        (POLICIES, {"reinvocationPolicy": "Often"}, {"spec.reinvocationPolicy"}),
        (POLICIES, {"mutations": [{"patchType": "Merge"}]}, {"spec.mutations[0].patchType"}),
        (POLICIES, {"mutations": [{"patchType": "JSONPatch"}]}, {"spec.mutations[0].jsonPatch"}),
        (
            POLICIES,
            {"mutations": [{**MUTATION, "applyConfiguration": {"expression": "{}"}}]},
            {"spec.mutations[0].applyConfiguration"},
        ),
        (
            POLICIES,
            {"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": " "}}]},
            {"spec.mutations[0].jsonPatch.expression"},
        ),
        (
            POLICIES,
            {"matchConstraints": {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}},
            {"spec.matchConstraints.resourceRules.operations"},
        ),
        (BINDINGS, {"policyName": ""}, {"spec.policyName"}),
        (BUNDLES, {"trustBundle": "none"}, {"spec.trustBundle"}),
        (BUNDLES, {"signerName": "no-domain"}, {"spec.signerName"}),
        (REQUESTS, {"podUID": "", "nodeName": "UP"}, {"spec.podUID", "spec.nodeName"}),
        (REQUESTS, {"maxExpirationSeconds": 60}, {"spec.maxExpirationSeconds"}),
        (MIGRATIONS, {"resource": {"group": "A_"}}, {"spec.resource.resource", "spec.resource.group"}),
    ],
)
async def test_a_bad_value_is_rejected(path: str, changed: dict[str, Any], fields: set[str]) -> None:
    async with asking(version=V1_37) as api:
        answer = await api.ask("POST", path, made(path, **changed))
        assert answer.status == 422
        assert {cause["field"] for cause in answer.json["details"]["causes"]} == fields


@pytest.mark.parametrize(
    ("path", "changed", "field"),
    [
        (BUNDLES, {"signerName": "example.com/other"}, "spec.signerName"),
        (REQUESTS, {"podName": "q"}, "spec"),
        (MIGRATIONS, {"resource": {"group": "apps", "resource": "replicasets"}}, "spec"),
    ],
)
async def test_a_fixed_value_cannot_be_changed(path: str, changed: dict[str, Any], field: str) -> None:
    async with asking(version=V1_37) as api:
        stored = await api.create(path, made(path))
        stored["spec"].update(changed)
        answer = await api.ask("PUT", f"{path}/x", stored)
        assert answer.status == 422
        assert {cause["field"] for cause in answer.json["details"]["causes"]} == {field}
