"""Tests of rules for Services, statuses and updates that each concern few objects; each row is a rule of upstream's."""

from typing import Any

import pytest

from kschedd.registry.validation import default_and_validate
from kschedd.registry.validation_update import validate_status_update, validate_update
from kschedd.store.errors import Invalid
from kschedd.store.store import Store
from tests.api.objects import Raw, named, pod

VALUES = "regex used for validation is"
IMMUTABLE = "Forbidden: field is immutable when `immutable` is set"
RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
HINTS, MODE = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"


def service(annotations: Raw | None = None, **spec: Any) -> Raw:
    raw = named("Service", spec={"ports": [{"port": 80}], **spec})
    raw["metadata"]["annotations"] = annotations or {}
    return raw


def refused(act: Any) -> list[str]:
    with pytest.raises(Invalid) as refusal:
        act()
    return [str(fault) for fault in refusal.value.faults]


def volume(**spec: Any) -> Raw:
    ports = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    return named("PersistentVolume", spec={**ports, **spec})


@pytest.mark.parametrize(
    ("raw", "faults"),
    [
        pytest.param(
            service({HINTS: "a", MODE: "b"}),
            [
                f'metadata.annotations[{MODE}]: Invalid value: "b": must match annotations[{HINTS}] when both are '
                "specified"
            ],
            id="two-names-of-one-annotation",
        ),
        pytest.param(
            service({RANGES: "10.0.0.0/8, x"}),
            [
                f"metadata.annotations[{RANGES}]: Forbidden: may only be used when `type` is 'LoadBalancer'",
                f'metadata.annotations[{RANGES}]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 '
                "or 2001:db8::/64)",
            ],
            id="ranges-by-annotation",
        ),
        pytest.param(
            named("Node", spec={"podCIDRs": ["10.0.0.0/24", "x"]}),
            [
                'spec.podCIDRs[1]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
                "spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:failed to "
                'parse cidr value:"x" with error:invalid CIDR address: x',
                'spec.podCIDRs: Invalid value: ["10.0.0.0/24","x"]: may specify no more than one CIDR for each IP '
                "family",
            ],
            id="one-range-of-two-is-none",
        ),
        pytest.param(
            named("Node") | {"metadata": {"name": "n", "annotations": {AVOID: "none"}}},
            [
                f"metadata.annotations.AvoidPods: Invalid value: \"{AVOID}\": invalid character 'o' in literal null "
                "(expecting 'u')"
            ],
            id="avoided-pods-that-are-no-json",
        ),
        pytest.param(
            named("Node") | {"metadata": {"name": "n", "annotations": {AVOID: "true"}}},
            [
                f'metadata.annotations.AvoidPods: Invalid value: "{AVOID}": json: cannot unmarshal bool into Go value '
                "of type v1.AvoidPods"
            ],
            id="avoided-pods-that-are-no-object",
        ),
        pytest.param(
            named("Node", spec={"taints": [{"key": "a", "value": "-" + "x" * 64, "effect": "NoSchedule"}]}),
            [
                f'metadata.taints[0].value: Invalid value: "-{"x" * 64}": must be no more than 63 characters;a valid '
                "label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
                "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
                f"{VALUES} '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
            ],
            id="one-fault-for-each-value-of-a-taint",
        ),
        pytest.param(
            named("Node", spec={"podCIDRs": ["10.0.0.0/24", "10.0.0.0/24"]}),
            [
                'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.0.0/24"]: may specify no more than one CIDR for '
                "each IP family",
            ],
            id="ranges-of-pods-twice",
        ),
        pytest.param(
            volume(hostPath={"path": "/.."}, persistentVolumeReclaimPolicy="Recycle"),
            [
                "spec.hostPath.path: Invalid value: \"/..\": must not contain '..'",
                "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
            ],
            id="the-root-of-a-host-is-not-recycled",
        ),
        pytest.param(
            volume(cinder={"volumeID": "a", "secretRef": {}}, flexVolume={"driver": ""}),
            [
                "spec.cinder.secretRef.name: Required value",
                "spec.cinder.secretRef.namespace: Required value",
                "spec.flexVolume.driver: Required value",
            ],
            id="a-flex-volume-beside-another",
        ),
        pytest.param(
            volume(csi={"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"name": "A", "namespace": "n"}}),
            [
                'spec.csi.nodePublishSecretRef.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist '
                "of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
                f"character (e.g. 'example.com', {VALUES} "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ],
            id="secrets-of-csi-are-named-in-full",
        ),
        pytest.param(
            named(
                "PersistentVolumeClaim",
                spec={"accessModes": ["ReadWriteOncePod", "X"], "resources": {"requests": {"storage": "1"}}},
            ),
            [
                'spec.accessModes: Unsupported value: "X": supported values: "ReadOnlyMany", "ReadWriteMany", '
                '"ReadWriteOnce", "ReadWriteOncePod"'
            ],
            id="an-unknown-mode-does-not-exclude",
        ),
    ],
)
def test_an_object_is_refused_for(raw: Raw, faults: list[str]) -> None:
    assert [str(fault) for fault in default_and_validate(raw).faults] == faults


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param(
            {"clusterIP": "None", "clusterIPs": ["None", "10.0.0.3"]},
            ['spec.clusterIPs: Invalid value: ["None","10.0.0.3"]: \'None\' must be the first and only value'],
            id="headless-and-not",
        ),
        pytest.param(
            {"clusterIP": "fd00::1"},
            ['spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster'],
            id="an-address-of-another-family",
        ),
        pytest.param(
            {"ipFamilies": ["IPv4", "IPv6"], "type": "Foo"},
            [
                "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or "
                "'PreferDualStack' when multiple IP families are specified"
            ],
            id="two-families-are-asked-for-and-nothing-else-is-looked-at",
        ),
    ],
)
def test_addresses_that_the_cluster_has_not(spec: Raw, faults: list[str]) -> None:
    assert refused(lambda: Store().create(service(**spec))) == faults


BALANCER = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": True}


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        pytest.param(
            service(**BALANCER, loadBalancerClass="a/b"),
            service(**BALANCER, loadBalancerClass="a/c"),
            ['spec.loadBalancerClass: Invalid value: "a/c": may not change once set'],
            id="the-class-of-a-balancer",
        ),
        pytest.param(
            service(**BALANCER, externalTrafficPolicy="Local", healthCheckNodePort=30001),
            service(**BALANCER, externalTrafficPolicy="Local", healthCheckNodePort=30002),
            ["spec.healthCheckNodePort: Forbidden: field is immutable"],
            id="where-a-balancer-asks",
        ),
        pytest.param(
            named("ConfigMap", data={"a": "b"}, immutable=True),
            named("ConfigMap", data={"a": "c"}, binaryData={"d": "ZQ=="}),
            [f"{field}: {IMMUTABLE}" for field in ("immutable", "data", "binaryData")],
            id="what-is-said-to-be-immutable",
        ),
        pytest.param(
            named("Node", spec={"externalID": "a"}),
            named("Node", spec={"externalID": "b"}),
            ["spec.externalID: Forbidden: may not be updated"],
            id="the-external-name-of-a-node",
        ),
        pytest.param(
            named("ResourceQuota", spec={"scopes": ["Terminating", "NotBestEffort"]}),
            named("ResourceQuota", spec={"scopes": ["NotBestEffort", "Terminating"]}),
            [],
            id="scopes-in-another-order",
        ),
        pytest.param(
            volume(csi={"driver": "d", "volumeHandle": "h"}),
            volume(
                csi={
                    "driver": "d",
                    "volumeHandle": "h",
                    "controllerExpandSecretRef": {"name": "a", "namespace": "b"},
                }
            ),
            [],
            id="the-secret-to-expand-a-volume-comes-later",
        ),
    ],
)
def test_an_update_is_refused_for(old: Raw, new: Raw, faults: list[str]) -> None:
    before, after = (default_and_validate(raw).raw for raw in (old, new))
    assert [str(fault) for fault in validate_update(before, after)] == faults


@pytest.mark.parametrize(
    ("kind", "status", "faults"),
    [
        pytest.param(
            "Namespace",
            {"phase": "Terminating"},
            ["status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"],
            id="a-namespace-that-is-not-deleted",
        ),
        pytest.param(
            "Service",
            {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "1.2.3.4", "ipMode": "VIP"}]}},
            [
                "status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set",
                "status.loadBalancer.ingress[1].ipMode: Forbidden: may not be specified when `ip` is not set",
                'status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP '
                "address",
            ],
            id="where-a-service-is-reached",
        ),
    ],
)
def test_a_status_is_refused_for(kind: str, status: Raw, faults: list[str]) -> None:
    old = {**named(kind), "spec": {"type": "LoadBalancer"}}
    assert [str(fault) for fault in validate_status_update(old, {**old, "status": status})] == faults


@pytest.mark.parametrize(
    ("meta", "faults"),
    [
        pytest.param({"labels": {"a b": "c"}}, ["metadata.labels"] * 3, id="labels-are-looked-at-three-times"),
        pytest.param({"finalizers": ["bad"]}, ["metadata.finalizers[0]"], id="finalizers-once"),
        pytest.param(
            {"annotations": {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}},
            ["metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]"],
            id="annotations-that-may-not-be-added",
        ),
    ],
)
def test_the_metadata_of_an_update_of_a_status(meta: Raw, faults: list[str]) -> None:
    store = Store()
    made = store.create(pod() | {"metadata": {"name": "p"}})
    changed = {**made.raw, "metadata": {**made.metadata, **meta}}
    found = refused(lambda: store.update(changed, subresource="status"))
    assert [fault.partition(": ")[0] for fault in found] == faults


def test_observed_generations_are_kept_where_they_are_not_stated() -> None:
    store = Store()
    made = store.create(pod() | {"metadata": {"name": "p"}})
    ready = {"type": "Ready", "status": "True"}
    seen = {"observedGeneration": 1, "conditions": [{**ready, "observedGeneration": 1}]}
    made = store.update({**made.raw, "status": seen}, subresource="status")
    after = store.update({**made.raw, "status": {"conditions": [ready]}}, subresource="status")
    assert after.status["observedGeneration"] == 1
    assert after.status["conditions"][0]["observedGeneration"] == 1


def test_an_update_of_a_csi_driver_is_looked_at_as_a_new_one_is() -> None:
    store = Store()
    made = store.create(named("CSIDriver", "storage.k8s.io/v1", spec={}))
    tokens = [{"audience": "a", "expirationSeconds": 1}]
    spec = {**made.spec, "volumeLifecycleModes": ["Own"], "tokenRequests": tokens, "fsGroupPolicy": "Own"}
    found = refused(lambda: store.update({**made.raw, "spec": spec}))
    assert sorted(": ".join(fault.split(": ")[:2]) for fault in found) == [
        "spec.fsGroupPolicy: Unsupported value",
        "spec.tokenRequests[0].expirationSeconds: Invalid value",
        "spec.volumeLifecycleModes: Invalid value",
        "spec.volumeLifecycleModes: Unsupported value",
    ]


def test_each_finalizer_of_a_namespace_that_is_finalized_has_its_path() -> None:
    store = Store()
    made = store.create(named("Namespace"))
    spec = {"finalizers": ["kubernetes", "mine"]}
    found = refused(lambda: store.update({**made.raw, "spec": spec}, subresource="finalize"))
    assert [fault.partition(": ")[0] for fault in found] == ["spec.finalizers[1]"]


def test_the_group_of_a_claim_s_source_is_looked_at_where_none_was_stated() -> None:
    source = {"kind": "Foo", "name": "f", "apiGroup": "example.com"}
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
    store = Store()

    def with_group(made: Any) -> list[str]:
        spec = {**made.raw["spec"], "dataSourceRef": {**source, "apiGroup": "A_B"}}
        return [line.partition(":")[0] for line in refused(lambda: store.update({**made.raw, "spec": spec}))]

    stated = store.create(named("PersistentVolumeClaim", spec={**storage, "dataSourceRef": source}))
    bare = named("PersistentVolumeClaim", spec=storage)
    bare["metadata"]["name"] = "y"
    assert "spec.dataSourceRef.apiGroup" not in with_group(stated)
    assert "spec.dataSourceRef.apiGroup" in with_group(store.create(bare))
