"""Tests of admission by the state of a namespace: LimitRanges, ResourceQuotas, annotations; enabled plugins."""

from typing import Any

import pytest

from kschedd.store.admission.chain import NOT_DONE, PLUGINS, Admission, UnknownAdmissionPlugin, configured_plugins
from kschedd.store.errors import ApiError, Forbidden, Invalid
from kschedd.store.store import Store
from tests.store.manifests import Clock, pod


def store_with(*objects: dict[str, Any], **plugins: bool) -> Store:
    store = Store(now=Clock(), admission=Admission(plugins))
    for each in objects:
        made = store.create(each)
        if each.get("status"):
            store.update({**made.raw, "status": each["status"]}, subresource="status")
    return store


def limit_range(*limits: dict[str, Any], name: str = "lim") -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": list(limits)}}


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": used or dict.fromkeys(hard, "0")},
    }


def containers(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None) -> list[dict[str, Any]]:
    resources = {"requests": requests or {}, "limits": limits or {}}
    return [{"name": "c", "image": "i", "resources": resources}]


def attributes(name: str, requests: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {**pod(name), "spec": {"containers": containers(requests), **spec}}


def used(store: Store) -> Any:
    return store.get("ResourceQuota", "default", "q").status["used"]


def test_a_limit_range_made_later_counts_for_pods_made_later() -> None:
    store = store_with()
    assert "cpu" not in store.create(attributes("a")).spec["containers"][0]["resources"].get("requests", {})
    store.create(limit_range({"type": "Container", "defaultRequest": {"cpu": "100m"}}))
    made = store.create(attributes("b"))
    assert made.spec["containers"][0]["resources"]["requests"] == {"cpu": "100m"}
    reported = made.metadata["annotations"]["kubernetes.io/limit-ranger"]
    assert reported == "LimitRanger plugin set: cpu request for container c"
    store.delete("LimitRange", "default", "lim")
    assert "annotations" not in store.create(attributes("c")).metadata


def test_a_container_without_a_name_is_refused_by_validation_where_it_gets_defaults() -> None:
    store = store_with(limit_range({"type": "Container", "defaultRequest": {"cpu": "100m"}}))
    with pytest.raises(Invalid, match=r"spec\.containers\[0\]\.name: Required value"):
        store.create({**pod("a"), "spec": {"containers": [{"image": "i"}]}})


def test_limits_of_one_namespace_are_not_another_s() -> None:
    store = store_with(limit_range({"type": "Container", "min": {"cpu": "3"}}))
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    big = attributes("a", {"cpu": "2"})
    with pytest.raises(Forbidden, match="minimum cpu usage per Container is 3, but request is 2"):
        store.create(big)
    assert store.create({**big, "metadata": {"name": "a", "namespace": "other"}}).namespace == "other"


def test_every_limit_that_is_crossed_is_named() -> None:
    store = store_with(limit_range({"type": "Pod", "max": {"cpu": "1", "memory": "1Gi"}}))
    with pytest.raises(Forbidden) as refusal:
        store.create({**pod("a"), "spec": {"containers": containers(limits={"cpu": "2", "memory": "2Gi"})}})
    cpu, memory = (f"maximum {name} usage per Pod is {most}, but limit is {limit}" for name, most, limit in (
        ("cpu", "1", "2"), ("memory", "1Gi", "2Gi")))  # fmt: skip
    assert str(refusal.value) == f'pods "a" is forbidden: [{cpu}, {memory}]'


def test_a_quota_counts_what_is_admitted_and_refuses_what_does_not_fit() -> None:
    store = store_with(quota({"pods": "2", "requests.cpu": "1"}))
    store.create(attributes("a", {"cpu": "600m"}))
    assert used(store) == {"pods": "1", "requests.cpu": "600m"}
    with pytest.raises(Forbidden) as refusal:
        store.create(attributes("b", {"cpu": "500m"}))
    why = "exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1"
    assert str(refusal.value) == f'pods "b" is forbidden: {why}'
    assert used(store) == {"pods": "1", "requests.cpu": "600m"}


def test_a_dry_run_asks_the_quota_and_does_not_count() -> None:
    store = store_with(quota({"pods": "1"}))
    store.create(attributes("a"), dry_run=True)
    assert used(store) == {"pods": "0"}


def test_the_quota_is_written_before_the_object_that_it_counts() -> None:
    store = store_with(quota({"count/configmaps": "1", "count/jobs.batch": "1"}))
    made = store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    assert store.get("ResourceQuota", "default", "q").resource_version < made.resource_version == store.version
    spec = {"template": {"spec": {"containers": containers(), "restartPolicy": "Never"}}}
    job = store.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec})
    assert job.metadata["resourceVersion"] == str(store.version)


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        pytest.param({"scopes": ["BestEffort"]}, True, id="best-effort"),
        pytest.param({"scopes": ["NotBestEffort"]}, False, id="not-best-effort"),
        pytest.param({"scopes": ["NotTerminating"]}, True, id="not-terminating"),
        pytest.param({"scopes": ["Terminating"]}, False, id="terminating"),
        pytest.param({"scopes": ["PriorityClass"]}, False, id="any-class"),
        pytest.param({"scopes": ["CrossNamespacePodAffinity"]}, False, id="affinity"),
    ],
)
def test_a_quota_counts_pods_of_its_scopes(spec: dict[str, Any], counts: bool) -> None:
    store = store_with(quota({"pods": "1"}, **spec))
    store.create(attributes("a"))
    assert used(store) == {"pods": "1" if counts else "0"}


def test_a_cluster_s_dump_is_not_counted_again() -> None:
    store = store_with(quota({"pods": "1"}, {"pods": "1"}))
    assert store.create(attributes("a"), restore=True).name == "a"
    assert used(store) == {"pods": "1"}


def test_a_claim_grows_only_where_its_class_allows_it() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "s"}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "v"}, "spec": spec}
    fixed = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}, "provisioner": "a/b"}
    store = store_with(fixed, {**claim, "spec": {**spec, "volumeName": "pv"}, "status": {"phase": "Bound"}})
    larger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    with pytest.raises(Forbidden, match="the storageclass that provisions the pvc must support resize"):
        store.merge_patch("PersistentVolumeClaim", "default", "v", larger)
    store.merge_patch("StorageClass", "", "s", {"allowVolumeExpansion": True})
    grown = store.merge_patch("PersistentVolumeClaim", "default", "v", larger)
    assert grown.spec["resources"]["requests"] == {"storage": "2Gi"}


@pytest.mark.parametrize("on", [True, False])
def test_claims_are_protected_from_birth(on: bool) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "v"}, "spec": spec}
    made = store_with(StorageObjectInUseProtection=on).create(claim)
    assert made.metadata.get("finalizers") == (["kubernetes.io/pvc-protection"] if on else None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("bad", "invalid character 'b' looking for beginning of value", id="no-json"),
        pytest.param("[", "unexpected end of JSON input", id="ends-early"),
        pytest.param("nope", "invalid character 'o' in literal null (expecting 'u')", id="nearly-a-word"),
        pytest.param("{}", "json: cannot unmarshal object into Go value of type []v1.Toleration", id="no-list"),
        pytest.param("[1]", "json: cannot unmarshal number into Go value of type v1.Toleration", id="of-numbers"),
    ],
)
def test_an_annotation_that_cannot_be_read_refuses_the_pod(text: str, words: str) -> None:
    annotations = {"scheduler.alpha.kubernetes.io/defaultTolerations": text}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "annotations": annotations}}
    store = store_with(namespace, PodTolerationRestriction=True)
    with pytest.raises(ApiError) as refusal:
        store.create({**attributes("a"), "metadata": {"name": "a", "namespace": "n"}})
    assert refusal.value.code == 500
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("env", "invalid selector: [env]"),
        ("a b=c", '<nil>: Invalid value: "a b": name part must consist of'),
        ("=c", '<nil>: Invalid value: "": name part must be non-empty; name part must consist of'),
        ("env=a b", '[env]: Invalid value: "a b": a valid label must be an empty string or consist of'),
    ],
)
def test_a_node_selector_of_a_namespace_that_is_none_refuses_the_pod(text: str, words: str) -> None:
    annotations = {"scheduler.alpha.kubernetes.io/node-selector": text}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "annotations": annotations}}
    store = store_with(namespace, PodNodeSelector=True)
    with pytest.raises(ApiError) as refusal:
        store.create({**attributes("a"), "metadata": {"name": "a", "namespace": "n"}})
    assert refusal.value.code == 500
    assert str(refusal.value).startswith(words)


def test_plugins_are_switched_by_name() -> None:
    on = configured_plugins(("PodNodeSelector",), ("LimitRanger", "EventRateLimit"))
    assert on == {"LimitRanger": False, "PodNodeSelector": True}
    assert configured_plugins(("LimitRanger",), ("LimitRanger",)) == {"LimitRanger": True}


@pytest.mark.parametrize(
    ("enable", "disable", "words"),
    [
        pytest.param(("Limits",), (), '"Limits" does not exist', id="unknown"),
        pytest.param((), ("Limits",), '"Limits" does not exist', id="unknown-off"),
        pytest.param(("EventRateLimit",), (), '"EventRateLimit" is not available here', id="not-done"),
    ],
)
def test_a_name_that_cannot_be_switched_is_answered_with_the_list(enable: Any, disable: Any, words: str) -> None:
    with pytest.raises(UnknownAdmissionPlugin) as refusal:
        configured_plugins(enable, disable)
    assert words in str(refusal.value)
    assert str(refusal.value).endswith(", ".join(PLUGINS))
    assert not NOT_DONE & PLUGINS.keys()


def test_a_missing_service_account_is_rejected_where_accounts_are_known() -> None:
    store = store_with()
    named = {"serviceAccountName": "bot"}
    store.create(attributes("a", **named))  # the namespace has no service account
    for name in ("other", "bot"):
        store.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}})
    store.create(attributes("b", **named))
    store.delete("ServiceAccount", "default", "bot")
    with pytest.raises(Forbidden) as refusal:
        store.create(attributes("c", **named))
    why = 'pods "c" is forbidden: error looking up service account default/bot: serviceaccount "bot" not found'
    assert str(refusal.value) == why
    store.create(attributes("d"))
    store.create(attributes("e", serviceAccountName="default"))
    store_with(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "other", "namespace": "default"}},
        ServiceAccount=False,
    ).create(attributes("a", **named))


def test_a_resize_gets_what_a_limit_range_adds_and_keeps_its_metadata() -> None:
    store = store_with()
    limits = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}]
    made = store.create({**pod("a"), "spec": {"containers": limits}})
    store.create(limit_range({"type": "Container", "default": {"cpu": "2"}}))
    resized = store.update(made.raw, subresource="resize")
    assert resized.spec["containers"][0]["resources"]["limits"] == {"cpu": "2", "memory": "1Gi"}
    assert resized.metadata.get("annotations") is None


@pytest.mark.parametrize(
    "plugin", ["DefaultTolerationSeconds", "ExtendedResourceToleration", "PodTolerationRestriction"]
)
def test_tolerations_are_not_added_by_a_resize(plugin: str) -> None:
    requests = {"cpu": "1", "example.com/gpu": "1"}
    born = store_with(DefaultTolerationSeconds=False).create(
        attributes("a", requests, **{"containers": containers(requests, {"example.com/gpu": "1"}), "nodeName": "n"})
    )
    store = Store(now=Clock(), admission=Admission({"DefaultTolerationSeconds": False, plugin: True}), objects=[born])
    assert "tolerations" not in store.update(born.raw, subresource="resize").spec
    assert store.update(born.raw).spec["tolerations"]


def test_anti_affinity_is_looked_at_in_whole_pods_only() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    born = store_with().create(attributes("a", affinity=affinity))
    store = Store(now=Clock(), admission=Admission({"LimitPodHardAntiAffinityTopology": True}), objects=[born])
    assert store.update(born.raw, subresource="resize") == born
    with pytest.raises(Forbidden, match=r"only key kubernetes\.io/hostname is allowed"):
        store.update(born.raw)
