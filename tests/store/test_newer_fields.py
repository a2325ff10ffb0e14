"""Tests of fields of pods and nodes that 1.34 lacks or drops, and that the scheduler reads in 1.36."""

import json
from typing import Any

import pytest

from kschedd.api.schemas.decoding import decode
from kschedd.api.schemas.schema import ALL_RULES, type_named
from kschedd.config.versions.kube_versions import V1_34, V1_35, V1_36, V1_37, KubernetesVersion
from kschedd.config.versions.rules import RULES
from kschedd.registry.warnings.objects import creation_warnings, update_warnings
from kschedd.store.errors import Invalid, StrictDecodingError
from kschedd.store.field_validation import known_fields
from kschedd.store.importing import Importer
from kschedd.store.store import Store

RESTARTS = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
NODE_STATUS = {"declaredFeatures": ["RestartAllContainersOnContainerExits"]}
POD_STATUS = {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}}


def store(version: KubernetesVersion) -> Store:
    return Store(now=lambda: 0.0, rules=version.rules)


def node(**status: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": status}


def pod(**status: Any) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "i",
        "restartPolicy": "Never",
        "restartPolicyRules": [RESTARTS],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    spec = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "data", "image": {"reference": "r", "pullPolicy": "Never"}}],
    }
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}
    return {**raw, "status": status} if status else raw


def test_a_pods_image_volumes_and_restart_rules_are_kept_by_1_36_and_dropped_by_1_34() -> None:
    kept, dropped = (store(version).create(pod()).raw["spec"] for version in (V1_36, V1_34))
    [container] = kept["containers"]
    assert container["restartPolicyRules"] == [RESTARTS]
    assert container["restartPolicy"] == "Never"
    assert container["volumeMounts"] == [{"name": "data", "mountPath": "/data"}]
    assert kept["volumes"] == [{"name": "data", "image": {"reference": "r", "pullPolicy": "Never"}}]
    [container] = dropped["containers"]
    assert not container.keys() & {"restartPolicyRules", "restartPolicy", "volumeMounts"}
    assert "volumes" not in dropped


def test_each_field_is_kept_by_its_rule_alone() -> None:
    one = V1_34.with_rule("fields_of_1_35", V1_36)
    spec = store(one).create(pod()).raw["spec"]
    assert "volumes" in spec
    assert "restartPolicyRules" in spec["containers"][0]


@pytest.mark.parametrize(
    ("version", "kept"),
    [
        (V1_34, set()),
        (V1_35, {"hostnameOverride", "fileKeyRef"}),
        (V1_37, {"hostnameOverride", "fileKeyRef", "clusterTrustBundle"}),
    ],
    ids=["1.34", "1.35", "1.37"],
)
def test_fields_of_pods_are_kept_where_their_gates_are_on(version: KubernetesVersion, kept: set[str]) -> None:
    raw = pod()
    plain = {"name": "c", "image": "i"}  # 1.34 drops the reference, and rejects the rest
    source = {"fileKeyRef": {"volumeName": "files", "path": "env", "key": "A"}}
    raw["spec"] |= {
        "hostnameOverride": "db.example.com",
        "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "valueFrom": source}]}] if kept else [plain],
        "volumes": [
            {"name": "files", "emptyDir": {}},
            {"name": "trust", "projected": {"sources": [{"clusterTrustBundle": {"name": "b", "path": "ca.pem"}}]}},
        ],
    }
    text = json.dumps(store(version).create(raw).raw["spec"])
    assert {field for field in ("hostnameOverride", "fileKeyRef", "clusterTrustBundle") if f'"{field}"' in text} == kept


@pytest.mark.parametrize(("raw", "status"), [(node(**NODE_STATUS), NODE_STATUS), (pod(**POD_STATUS), POD_STATUS)])
def test_a_status_has_fields_in_1_36_that_1_34_does_not_know(raw: dict[str, Any], status: dict[str, Any]) -> None:
    known, warnings = known_fields(raw, "Strict", store(V1_36))
    assert (known, warnings) == (raw, ())
    known, warnings = known_fields(raw, "Warn", store(V1_34))
    assert known["status"] == {}
    assert [warning.partition(";")[0] for warning in warnings] == [f'unknown field "status.{name}"' for name in status]
    with pytest.raises(StrictDecodingError):
        known_fields(raw, "Strict", store(V1_34))


def test_what_1_34_does_not_know_is_not_proposed_by_it() -> None:
    [fault] = decode(node(declaredFeature=["X"])).faults
    assert "declaredFeatures" not in str(fault)
    [fault] = decode(node(declaredFeature=["X"]), ALL_RULES).faults
    assert "declaredFeatures" in str(fault)


def test_a_patch_of_the_status_sets_them_in_1_36_alone() -> None:
    change = {"status": NODE_STATUS}
    new, old = store(V1_36), store(V1_34)
    for made in (new, old):
        made.create(node())
    found, _ = new.patch("Node", "", "n1", change, subresource="status")
    assert found.status["declaredFeatures"] == NODE_STATUS["declaredFeatures"]
    with pytest.raises(Invalid, match="unknown field"):
        old.patch("Node", "", "n1", change, subresource="status")


def test_objects_of_a_dump_keep_them_under_any_version() -> None:
    refused: list[Any] = []
    given = [node(**NODE_STATUS), pod(**POD_STATUS)]
    for raw in given:
        raw["metadata"]["uid"] = f"u-{raw['kind']}"
    note = lambda *each: refused.append(each)  # noqa: E731
    objects = Importer(lambda: 0.0).take([(raw, None) for raw in given], note, note)
    assert refused == []
    assert objects[0].status["declaredFeatures"] == NODE_STATUS["declaredFeatures"]
    assert {field: objects[1].status[field] for field in POD_STATUS} == POD_STATUS
    assert objects[1].raw["spec"]["volumes"] == pod()["spec"]["volumes"]
    made = Store(now=lambda: 0.0, objects=objects, rules=V1_34.rules)
    found, warnings = made.patch("Node", "", "n1", {"metadata": {"labels": {"a": "b"}}})
    assert (found.status["declaredFeatures"], warnings) == (NODE_STATUS["declaredFeatures"], ())


@pytest.mark.parametrize(("version", "kept"), [(V1_34, False), (V1_36, False), (V1_37, True)])
def test_a_csi_driver_may_ask_for_nodes_that_have_it_by_1_37(version: KubernetesVersion, kept: bool) -> None:
    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": "csi.example.com"},
        "spec": {"preventPodSchedulingIfMissing": True},
    }
    known, warnings = known_fields(driver, "Warn", Store(now=lambda: 0.0, rules=version.default_rules))
    assert bool(warnings) is (version is V1_34)  # 1.36 has the field behind a gate that is off
    assert known["spec"] == (driver["spec"] if kept else {})


@pytest.mark.parametrize(
    ("version", "warned", "kept"),
    [
        pytest.param(V1_34, ["serviceAccountTokenInSecrets"], [], id="1.34"),
        pytest.param(V1_35, [], ["serviceAccountTokenInSecrets"], id="1.35"),
    ],
)
def test_a_field_that_came_with_a_release_is_kept_from_then_on(
    version: KubernetesVersion, warned: list[str], kept: list[str]
) -> None:
    raw = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "a.b"}}
    spec = {"serviceAccountTokenInSecrets": True}
    known, warnings = known_fields({**raw, "spec": spec}, "Warn", store(version))
    assert [warning.split('"')[1] for warning in warnings] == [f"spec.{name}" for name in warned]
    assert list(known["spec"]) == kept


def test_1_37_defaults_whether_pods_need_the_driver() -> None:
    raw = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "a.b"}, "spec": {}}
    made = [Store(now=lambda: 0.0, rules=one.default_rules).create(raw).spec for one in (V1_36, V1_37)]
    assert [spec.get("preventPodSchedulingIfMissing") for spec in made] == [None, False]


def test_tokens_in_secrets_need_requests_for_tokens() -> None:
    raw = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "a.b"}}
    spec = {"serviceAccountTokenInSecrets": True}
    with pytest.raises(Invalid, match="is set but no tokenRequests are specified"):
        store(V1_35).create({**raw, "spec": spec})
    made = store(V1_35).create({**raw, "spec": {**spec, "tokenRequests": [{"audience": "a"}]}})
    assert made.spec["serviceAccountTokenInSecrets"] is True


@pytest.mark.parametrize(("version", "unknown"), [(V1_36, True), (V1_37, False)], ids=str)
def test_a_field_whose_gate_is_off_is_known_and_dropped(version: KubernetesVersion, unknown: bool) -> None:
    raw = pod()
    raw["spec"]["evictionResponders"] = [{"name": "example.com/mover", "priority": 1}]
    raw["spec"]["containers"][0]["volumeMounts"][0]["bindMountOptions"] = ["noexec"]
    known, warnings = known_fields(raw, "Warn", store(version))
    assert len(warnings) == (2 if unknown else 0)
    assert "evictionResponders" not in known["spec"]
    assert known["spec"]["containers"][0]["volumeMounts"] == [{"name": "data", "mountPath": "/data"}]


def test_the_schema_names_rules_that_there_are() -> None:
    named = ("NodeSpec", "NodeStatus", "PodSpec", "PodStatus", "storage.v1.CSIDriverSpec")
    types = [type_named(name) for name in named]
    assert {rule for fields in types for rule in fields.rules.values()} == ALL_RULES
    assert set(RULES) >= ALL_RULES


def test_a_node_forbids_preemption_for_resizes_where_the_gate_is_on() -> None:
    raw = node()
    raw["spec"] = {"podPreemptionPolicy": {"disableResizePreemption": ["example.com/a"]}}
    under = V1_37.rules.under({"InPlacePodVerticalScalingSchedulerPreemption": True})
    assert Store(now=lambda: 0.0, rules=under).create(raw).spec == raw["spec"]
    known, warnings = known_fields(raw, "Warn", Store(now=lambda: 0.0, rules=V1_37.default_rules))
    assert (known["spec"], warnings) == ({}, ())


@pytest.mark.parametrize(
    ("owners", "fault"),
    [
        pytest.param(["a", "b/"], "disableResizePreemption[1]: Invalid value", id="no-label-key"),
        pytest.param(["a", "a"], "disableResizePreemption[1]: Duplicate value", id="twice"),
        pytest.param([f"a{n}" for n in range(21)], "Too many: 21: must have at most 20 items", id="too-many"),
    ],
)
def test_owners_that_forbid_it_are_label_keys(owners: list[str], fault: str) -> None:
    under = V1_37.rules.under({"InPlacePodVerticalScalingSchedulerPreemption": True})
    made = Store(now=lambda: 0.0, rules=under)
    spec = {"podPreemptionPolicy": {"disableResizePreemption": owners}}
    with pytest.raises(Invalid) as refused:
        made.create({**node(), "spec": spec})
    assert fault in str(refused.value)
    made.create(node())
    with pytest.raises(Invalid) as refused:
        made.merge_patch("Node", "", "n1", {"spec": spec})
    assert fault in str(refused.value)


@pytest.mark.parametrize(
    ("features", "fault"),
    [
        pytest.param(["lower"], "must start with an UpperCamelCase segment", id="form"),
        pytest.param(["A" * 254], "must be no more than 253 characters", id="length"),
        pytest.param(["B", "A"], 'status.declaredFeatures[1]: Invalid value: "A": list must be sorted', id="order"),
        pytest.param(["A", "A"], 'status.declaredFeatures[1]: Duplicate value: "A"', id="twice"),
    ],
)
def test_the_features_that_a_node_declares_are_sorted_names(features: list[str], fault: str) -> None:
    with pytest.raises(Invalid) as refused:
        store(V1_36).create(node(declaredFeatures=features))
    assert fault in str(refused.value)
    assert store(V1_36).create(node(declaredFeatures=["A", "B/c"])).status["declaredFeatures"] == ["A", "B/c"]


CERTIFICATE = {"signerName": "example.com/s", "keyType": "ED25519", "credentialBundlePath": "a.pem"}


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        pytest.param({"podCertificate": {**CERTIFICATE, "userAnnotations": {"a.b/c": "d"}}}, [], id="good"),
        pytest.param(
            {"podCertificate": {**CERTIFICATE, "userAnnotations": {"c": "d"}}},
            ['.userAnnotations: Invalid value: "c": must be a domain-prefixed key (such as "acme.io/foo")'],
            id="annotations",
        ),
        pytest.param(
            {"podCertificate": {"signerName": "s", "keyType": "RSA"}},
            [
                '.signerName: Invalid value: "s": must be a fully qualified domain and path',
                '.keyType: Unsupported value: "RSA"',
                ".podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and",
            ],
            id="names",
        ),
        pytest.param(
            {"podCertificate": {**CERTIFICATE, "maxExpirationSeconds": 60}},
            [".maxExpirationSeconds: Invalid value: 60: if provided, maxExpirationSeconds must be >= 3600"],
            id="too-short",
        ),
        pytest.param(
            {"podCertificate": {**CERTIFICATE, "signerName": "kubernetes.io/s", "maxExpirationSeconds": 90_000}},
            [".maxExpirationSeconds: Invalid value: 90000: if provided, maxExpirationSeconds must be <= 86400"],
            id="too-long",
        ),
        pytest.param(
            {"podCertificate": {**CERTIFICATE, "keyPath": "a.pem"}},
            ['projected: Invalid value: "a.pem": conflicting duplicate paths'],
            id="one-path-twice",
        ),
        pytest.param(
            {"clusterTrustBundle": {"name": "b", "signerName": "example.com/s", "path": "../a"}},
            [
                ".clusterTrustBundle: Invalid value: {",
                "only one of name and signerName may be used",
                ".path: Invalid value: \"../a\": must not contain '..'",
            ],
            id="name-and-signer",
        ),
        pytest.param(
            {"clusterTrustBundle": {"name": "B_", "labelSelector": {}, "path": ""}},
            [
                '.name: Invalid value: "B_": not a valid clustertrustbundlename: ',
                "labelSelector must be unset if name is specified",
                ".path: Required value",
            ],
            id="name",
        ),
        pytest.param(
            {"clusterTrustBundle": {"path": "a"}},
            [".clusterTrustBundle: Required value: either name or signerName must be specified"],
            id="neither",
        ),
    ],
)
def test_certificates_in_volumes_are_validated_by_1_37(source: dict[str, Any], faults: list[str]) -> None:
    raw = pod()
    raw["spec"]["volumes"].append({"name": "trust", "projected": {"sources": [source]}})
    if not faults:
        kept = store(V1_37).create(raw).raw["spec"]["volumes"][1]["projected"]["sources"]
        assert kept == [source]
        return
    with pytest.raises(Invalid) as refused:
        store(V1_37).create(raw)
    for fault in faults:
        assert fault in str(refused.value)


@pytest.mark.parametrize(("version", "warned"), [(V1_34, False), (V1_35, True)], ids=str)
def test_tokens_of_a_csi_driver_that_are_not_in_secrets_are_warned_of(version: KubernetesVersion, warned: bool) -> None:
    raw = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "a.b"}}
    made = store(version).create({**raw, "spec": {"tokenRequests": [{"audience": "a"}]}})
    reported = creation_warnings(made, store(version).features)
    assert [text.partition(";")[0] for text in reported] == ["spec.serviceAccountTokenInSecrets is unset"] * warned
    assert update_warnings(made, made, store(version).features) == ()
