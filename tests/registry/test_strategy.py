"""Tests of the fields that are set, dropped and counted when an object is created and updated."""

from typing import Any

import pytest

from kschedd.config.versions.rules import RULES
from kschedd.registry.strategy import prepare_create, prepare_status, prepare_update

ALL = frozenset(RULES)
NOW = "2025-01-01T00:00:00Z"
Raw = dict[str, Any]


def made(kind: str, **parts: Any) -> Raw:
    return prepare_create(kind, {"kind": kind, "metadata": {"name": "x"}, **parts}, NOW)


def test_a_status_is_not_created_but_with_a_node() -> None:
    status = {"replicas": 3}
    assert made("ReplicaSet", spec={}, status=status)["status"] == {}
    assert made("Node", status={"phase": "x"})["status"] == {"phase": "x"}


@pytest.mark.parametrize(("kind", "born"), [("Pod", 1), ("Job", 1), ("Service", None), ("Node", None)])
def test_a_generation_is_for_kinds_whose_changes_are_counted(kind: str, born: int | None) -> None:
    assert made(kind, spec={})["metadata"].get("generation") == born


def test_a_change_of_the_spec_is_counted_one_of_the_status_is_not() -> None:
    old = made("Deployment", spec={"replicas": 1})
    changed = prepare_update("Deployment", {**old, "spec": {"replicas": 2}}, old, NOW)
    assert changed["metadata"]["generation"] == 2
    assert prepare_status("Deployment", {**old, "status": {"replicas": 1}}, old, NOW)["metadata"]["generation"] == 1


def test_annotations_of_a_deployment_count_as_they_are_copied_to_its_replica_sets() -> None:
    old = made("Deployment", spec={})
    noted = {**old, "metadata": {**old["metadata"], "annotations": {"a": "b"}}}
    assert prepare_update("Deployment", noted, old, NOW)["metadata"]["generation"] == 2
    old = made("ReplicaSet", spec={})
    noted = {**old, "metadata": {**old["metadata"], "annotations": {"a": "b"}}}
    assert prepare_update("ReplicaSet", noted, old, NOW)["metadata"]["generation"] == 1


GENERATION = "deprecated.daemonset.template.generation"


@pytest.mark.parametrize("stated", ["9" * 5000, str(2**63), "0", "-1", "²", "x"])
def test_the_template_of_a_daemon_set_is_the_first_where_no_number_is_stated(stated: str) -> None:
    daemon_set = {"kind": "DaemonSet", "metadata": {"name": "x", "annotations": {GENERATION: stated}}, "spec": {}}
    new = prepare_create("DaemonSet", daemon_set, NOW)
    assert new["metadata"]["annotations"][GENERATION] == "1"


def test_a_change_of_the_template_counts_from_nothing_where_no_number_was_kept() -> None:
    old = {"kind": "DaemonSet", "metadata": {"name": "x", "annotations": {GENERATION: "x"}}, "spec": {}}
    changed = prepare_update("DaemonSet", {**old, "spec": {"template": {"spec": {"hostIPC": True}}}}, old, NOW)
    assert changed["metadata"]["annotations"][GENERATION] == "1"


def test_a_volume_is_pending_since_its_birth() -> None:
    assert made("PersistentVolume", spec={})["status"] == {"phase": "Pending", "lastPhaseTransitionTime": NOW}


def test_a_namespace_keeps_its_finalizers_through_an_update() -> None:
    old = made("Namespace")
    assert old["spec"] == {"finalizers": ["kubernetes"]}
    assert prepare_update("Namespace", {**old, "spec": {}}, old, NOW)["spec"] == {"finalizers": ["kubernetes"]}


def test_fields_of_features_that_are_off_are_dropped_unless_the_old_object_has_them() -> None:
    pod = {"containers": [{"name": "c", "lifecycle": {"stopSignal": "SIGTERM"}}]}
    new = made("ReplicaSet", spec={"template": {"spec": pod}})
    assert new["spec"]["template"]["spec"] == {"containers": [{"name": "c"}]}
    old = {"kind": "ReplicaSet", "metadata": {"name": "x"}, "spec": {"template": {"spec": pod}}}
    assert prepare_update("ReplicaSet", dict(old), old, NOW)["spec"]["template"]["spec"] == pod


def test_labels_of_a_deployment_are_not_for_an_update_of_its_status() -> None:
    old = made("Deployment", spec={})
    requests = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}, "status": {"replicas": 1}}
    assert "labels" not in prepare_status("Deployment", requests, old, NOW)["metadata"]
    old = made("ReplicaSet", spec={})
    requests = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}, "status": {"replicas": 1}}
    assert prepare_status("ReplicaSet", requests, old, NOW)["metadata"]["labels"] == {"a": "b"}


def test_replicas_that_terminate_are_not_counted_yet() -> None:
    old = made("Deployment", spec={})
    requests = {**old, "status": {"replicas": 1, "terminatingReplicas": 1}}
    assert prepare_status("Deployment", requests, old, NOW)["status"] == {"replicas": 1}
    assert prepare_status("Deployment", requests, requests, NOW)["status"] == requests["status"]


@pytest.mark.parametrize("kind", ["FlowSchema", "PriorityLevelConfiguration", "ServiceCIDR", "ResourceClaim"])
def test_an_update_of_the_status_leaves_what_describes_the_object(kind: str) -> None:
    old: Raw = {"kind": kind, "metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {}}
    meta = {"name": "a", "annotations": {"c": "d"}, "finalizers": ["e/f"], "ownerReferences": []}
    new = prepare_status(kind, {**old, "metadata": meta, "status": {"conditions": []}}, old, NOW)
    assert new["metadata"] == old["metadata"]
    assert new["status"] == {"conditions": []}


def test_labels_of_an_endpoint_slice_count_as_a_change() -> None:
    old: Raw = {"kind": "EndpointSlice", "metadata": {"name": "a", "generation": 1}, "endpoints": []}
    plain = {"name": "a", "annotations": {"a": "b"}, "labels": {}}
    assert "generation" not in prepare_update("EndpointSlice", {**old, "metadata": plain}, old, NOW)["metadata"]
    labeled = {**plain, "labels": {"a": "b"}}
    assert prepare_update("EndpointSlice", {**old, "metadata": labeled}, old, NOW)["metadata"]["generation"] == 2


def test_taints_of_devices_have_the_time_at_which_they_were_written() -> None:
    dated = {"key": "old", "effect": "NoSchedule", "timeAdded": "2024-01-01T00:00:00Z"}
    fresh = {"key": "new", "effect": "NoSchedule"}
    devices = [{"name": "a"}, {"name": "b", "taints": [dated, fresh]}]
    spec = prepare_create("ResourceSlice", {"metadata": {"name": "s"}, "spec": {"devices": devices}}, NOW, ALL)["spec"]
    assert spec["devices"] == [{"name": "a"}, {"name": "b", "taints": [dated, {**fresh, "timeAdded": NOW}]}]
    old = {"metadata": {"name": "r", "generation": 1}, "spec": {"taint": dated}}
    tainted = prepare_update("DeviceTaintRule", {**old, "spec": {"taint": fresh}}, old, NOW, ALL)
    assert tainted["spec"] == {"taint": {**fresh, "timeAdded": NOW}}
    assert tainted["metadata"]["generation"] == 2


def changed(kind: str, old: Raw, **parts: Any) -> Raw:
    return prepare_update(kind, {**old, **parts}, old, NOW)


def test_of_the_secrets_of_a_service_account_the_names_are_kept() -> None:
    secrets = [{"name": "a", "kind": "Secret", "namespace": "b"}, {"uid": "u"}]
    created = made("ServiceAccount", secrets=secrets)
    assert created["secrets"] == [{"name": "a"}, {}]
    assert changed("ServiceAccount", created, secrets=secrets)["secrets"] == [{"name": "a"}, {}]


def test_the_topology_of_endpoints_of_v1beta1_is_dropped() -> None:
    endpoints = [{"addresses": ["10.0.0.1"], "deprecatedTopology": {"a b": "c"}}, {"addresses": ["10.0.0.2"]}]
    created = made("EndpointSlice", endpoints=endpoints)
    assert created["endpoints"] == [{"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}]
    assert changed("EndpointSlice", created, endpoints=endpoints)["endpoints"] == created["endpoints"]


def test_a_plain_update_changes_the_status_of_a_service_cidr_alone() -> None:
    status = {"conditions": [{"type": "Ready"}]}
    for kind, kept in (("ServiceCIDR", status), ("Ingress", {})):
        assert changed(kind, made(kind, spec={}), status=status)["status"] == kept


@pytest.mark.parametrize(
    ("kind", "part", "before", "after", "generation"),
    [
        pytest.param("NetworkPolicy", "spec", {}, {"ingress": []}, 2, id="rules-of-a-policy"),
        pytest.param("NetworkPolicy", "spec", {}, {"podSelector": None}, 1, id="selector-of-a-policy"),
        pytest.param("Ingress", "spec", {}, {"rules": []}, 1, id="rules-of-an-ingress"),
        pytest.param("MutatingWebhookConfiguration", "webhooks", [{}], [{"rules": []}], 2, id="rules-of-a-webhook"),
    ],
)
def test_where_an_empty_list_is_a_change(kind: str, part: str, before: Any, after: Any, generation: int) -> None:
    new = changed(kind, made(kind, **{part: before}), **{part: after})
    assert new["metadata"]["generation"] == generation


def test_an_update_of_the_status_keeps_the_generation_of_a_template() -> None:
    old = made("DaemonSet", spec={})
    bare = {**old, "metadata": {"name": "x"}, "status": {}}
    assert prepare_status("DaemonSet", bare, old, NOW)["metadata"]["annotations"] == {GENERATION: "1"}


@pytest.mark.parametrize(
    ("status", "since"),
    [
        pytest.param({"phase": "Pending"}, NOW, id="same-phase"),
        pytest.param({"phase": "Pending", "lastPhaseTransitionTime": "T"}, "T", id="same-phase-another-time"),
        pytest.param({"phase": "Bound"}, "later", id="another-phase"),
        pytest.param({"phase": "Bound", "lastPhaseTransitionTime": NOW}, "later", id="another-phase-same-time"),
        pytest.param({"phase": "Bound", "lastPhaseTransitionTime": "T"}, "T", id="another-phase-another-time"),
    ],
)
def test_since_when_a_volume_has_its_phase(status: Raw, since: str) -> None:
    old = made("PersistentVolume", spec={})
    new = prepare_status("PersistentVolume", {**old, "status": status}, old, "later")
    assert new["status"]["lastPhaseTransitionTime"] == since
