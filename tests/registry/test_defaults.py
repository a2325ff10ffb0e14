"""Tests that objects get the API server's defaults and no other changes."""

import copy
from typing import Any

import pytest

from kschedd.registry.defaults import default, default_pod_spec, merge_label_keys, with_hostname
from kschedd.registry.pods.image_names import image_pull_policy

Raw = dict[str, Any]


def pod(**spec: Any) -> Raw:
    container = {"name": "c", "image": "nginx"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}


def container(**fields: Any) -> Raw:
    return {"name": "c", "image": "nginx", **fields}


def first(spec: Raw) -> Raw:
    found: Raw = spec["containers"][0]
    return found


def test_a_plain_pod() -> None:
    given = pod()
    before = copy.deepcopy(given)
    done = default(given)
    assert given == before
    assert done["metadata"]["namespace"] == "default"
    assert done["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "nginx",
                "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "resources": {},
            }
        ],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "enableServiceLinks": True,
    }
    assert done["status"] == {"phase": "Pending"}


def test_defaulting_twice_is_defaulting_once() -> None:
    once = default(pod(hostNetwork=True, volumes=[{"name": "v"}]))
    assert default(once) == once


def test_what_is_stated_stays_as_it_is() -> None:
    stated = pod(restartPolicy="Never", terminationGracePeriodSeconds=0, schedulerName="mine", futureField={"x": [1]})
    spec = default(stated)["spec"]
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"], spec["schedulerName"]) == ("Never", 0, "mine")
    assert spec["futureField"] == {"x": [1]}


def test_requests_come_from_limits_where_missing() -> None:
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    spec = default_pod_spec({"containers": [container(resources=resources)]})
    assert first(spec)["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_a_template_leaves_requests_to_its_pods() -> None:
    spec = {"containers": [container(resources={"limits": {"cpu": "1"}})], "hostNetwork": True}
    done = default_pod_spec(spec, template=True)
    assert "requests" not in first(done)["resources"]
    assert "enableServiceLinks" not in done


def test_quantities_are_stored_as_kubernetes_prints_them() -> None:
    requests = {"cpu": 0.5, "memory": "1024Mi", "example.com/x": 2, "ephemeral-storage": "1u"}
    spec = default_pod_spec({"containers": [container(resources={"requests": requests})], "overhead": {"cpu": "0.25"}})
    assert first(spec)["resources"]["requests"] == {
        "cpu": "500m",
        "memory": "1Gi",
        "example.com/x": "2",
        "ephemeral-storage": "1m",
    }
    assert spec["overhead"] == {"cpu": "250m"}


def test_ports() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "hostPort": 53}]
    spec = default_pod_spec({"containers": [container(ports=ports)]})
    assert first(spec)["ports"] == [{"containerPort": 80, "protocol": "TCP"}, ports[1]]
    spec = default_pod_spec({"containers": [container(ports=ports)], "hostNetwork": True})
    assert first(spec)["ports"][0] == {"containerPort": 80, "protocol": "TCP", "hostPort": 80}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.2", "IfNotPresent"),
        ("registry:5000/nginx", "Always"),
        ("registry:5000/nginx:1", "IfNotPresent"),
        ("app@sha256:" + "a" * 64, "IfNotPresent"),
        ("app:latest@sha256:" + "a" * 64, "Always"),
        ("Registry/app", "Always"),
        # A text that is not a valid image name has no tag.
        ("App", "IfNotPresent"),
        ("foo_bar", "Always"),
        ("-a", "IfNotPresent"),
        ("a..b", "IfNotPresent"),
        ("/abs/path", "IfNotPresent"),
        ("a b", "IfNotPresent"),
        ("x" * 254, "IfNotPresent"),
        ("f" * 64, "IfNotPresent"),
        ("app@sha256:abc", "IfNotPresent"),
    ],
)
def test_images_are_pulled_as_their_tags_say(image: str, policy: str) -> None:
    assert image_pull_policy(image) == policy


def test_what_is_stated_and_empty_gets_the_defaults_of_its_parts() -> None:
    probe = {"httpGet": {}}
    variable = {"name": "A", "valueFrom": {"fieldRef": {}}}
    spec = default(
        pod(
            containers=[container(livenessProbe=probe, lifecycle={"preStop": probe}, env=[variable])],
            volumes=[{}],
        )
    )["spec"]
    done = first(spec)
    assert done["livenessProbe"]["httpGet"] == {"path": "/", "scheme": "HTTP"}
    assert done["lifecycle"]["preStop"]["httpGet"] == {"path": "/", "scheme": "HTTP"}
    assert done["env"][0]["valueFrom"]["fieldRef"] == {"apiVersion": "v1"}
    assert spec["volumes"] == [{"emptyDir": {}}]


def test_zero_and_the_empty_text_are_kept_in_pointers() -> None:
    token = {"serviceAccountToken": {"path": "t", "expirationSeconds": 0}}
    volumes = [
        {"name": "c", "configMap": {"name": "c", "defaultMode": 0}},
        {"name": "p", "projected": {"sources": [token], "defaultMode": 0}},
        {"name": "d", "azureDisk": {"diskName": "d", "diskURI": "u", "kind": ""}},
    ]
    config, projected, disk = default(pod(volumes=volumes))["spec"]["volumes"]
    assert config["configMap"]["defaultMode"] == 0
    assert projected["projected"] == {"sources": [token], "defaultMode": 0}
    assert disk["azureDisk"]["kind"] == ""
    assert disk["azureDisk"]["cachingMode"] == "ReadWrite"


@pytest.mark.parametrize(
    ("stated", "name"),
    [
        ({"serviceAccount": "old"}, "old"),
        ({"serviceAccountName": "new"}, "new"),
        ({"serviceAccount": "old", "serviceAccountName": "new"}, "new"),
    ],
)
def test_both_names_of_the_service_account_are_the_same(stated: Raw, name: str) -> None:
    spec = default(pod(**stated))["spec"]
    assert (spec["serviceAccount"], spec["serviceAccountName"]) == (name, name)


@pytest.mark.parametrize(
    ("kind", "api_version", "spec", "path", "value"),
    [
        ("PersistentVolume", "v1", {"volumeMode": ""}, ("volumeMode",), ""),
        ("PersistentVolume", "v1", {"azureDisk": {}}, ("azureDisk", "kind"), "Shared"),
        ("PersistentVolume", "v1", {"scaleIO": {"gateway": "g"}}, ("scaleIO", "storageMode"), "ThinProvisioned"),
        ("PersistentVolume", "v1", {"scaleIO": {"gateway": "g"}}, ("scaleIO", "fsType"), "xfs"),
        ("Job", "batch/v1", {"completionMode": ""}, ("completionMode",), ""),
        (
            "Deployment",
            "apps/v1",
            {"strategy": {"rollingUpdate": {"maxSurge": ""}}},
            ("strategy", "rollingUpdate", "maxSurge"),
            "",
        ),
        ("CSIDriver", "storage.k8s.io/v1", {"fsGroupPolicy": ""}, ("fsGroupPolicy",), ""),
    ],
)
def test_an_empty_text_is_absent_only_where_go_has_no_pointer(
    kind: str, api_version: str, spec: Raw, path: tuple[str, ...], value: str
) -> None:
    found = default({"apiVersion": api_version, "kind": kind, "metadata": {"name": "n"}, "spec": spec})["spec"]
    for step in path:
        found = found[step]
    assert found == value


def test_volumes() -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}
    volumes = [
        {"name": "none"},
        {"name": "disk", "rbd": {"monitors": ["m"], "image": "i", "pool": "mine"}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": claim}},
    ]
    none, disk, own = default_pod_spec({"volumes": volumes})["volumes"]
    assert none == {"name": "none", "emptyDir": {}}
    assert (disk["rbd"]["pool"], disk["rbd"]["user"]) == ("mine", "admin")
    template = own["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert template["volumeMode"] == "Filesystem"
    assert template["resources"]["requests"] == {"storage": "1Gi"}


def test_pod_level_requests_come_from_containers_then_from_limits() -> None:
    sidecar = container(restartPolicy="Always", resources={"requests": {"cpu": "100m"}})
    start = container(resources={"requests": {"cpu": "1"}})
    spec = {
        "containers": [container(resources={"requests": {"cpu": "200m"}})],
        "initContainers": [sidecar, start],
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
    }
    # The sidecar runs at the same time as the next init container: 1100m in total.
    assert default_pod_spec(spec)["resources"]["requests"] == {"cpu": "1100m", "memory": "1Gi"}
    spec["resources"] = {"requests": {"memory": "1Gi"}}
    assert default_pod_spec(spec)["resources"] == {"requests": {"memory": "1Gi"}}


def test_huge_pages_of_containers_become_those_of_the_pod() -> None:
    huge = {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}
    spec = {"containers": [container(resources=huge)] * 2, "resources": {"requests": {"cpu": "1"}}}
    done = default_pod_spec(spec)["resources"]
    assert done["limits"] == {"hugepages-2Mi": "8Mi"}
    assert done["requests"] == {"cpu": "1", "hugepages-2Mi": "8Mi"}


def test_label_keys_become_part_of_selectors() -> None:
    selector = {"matchLabels": {"app": "a"}}
    term = {"topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["rev", "absent"]}
    avoid = {"topologyKey": "zone", "labelSelector": selector, "mismatchLabelKeys": ["rev"]}
    spread = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["rev"]}
    spec = {
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": avoid}]
            },
        },
        "topologySpreadConstraints": [spread],
    }
    before = copy.deepcopy(spec)
    merged = merge_label_keys(spec, {"rev": "3"})
    assert spec == before
    own = {"key": "rev", "operator": "In", "values": ["3"]}
    other = {"key": "rev", "operator": "NotIn", "values": ["3"]}
    hard = merged["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    soft = merged["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]
    assert hard["labelSelector"] == {**selector, "matchExpressions": [own]}
    assert soft["podAffinityTerm"]["labelSelector"]["matchExpressions"] == [other]
    assert merged["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == [own]
    assert merge_label_keys(merged, {"rev": "3"}) is merged or merge_label_keys(merged, {"rev": "3"}) == merged


def test_keys_without_a_selector_stay_alone() -> None:
    spec = {"topologySpreadConstraints": [{"matchLabelKeys": ["rev"]}]}
    assert merge_label_keys(spec, {"rev": "1"}) == spec


def test_nulls_are_absent_fields() -> None:
    done = default(pod(affinity=None, terminationGracePeriodSeconds=None, tolerations=None))
    assert done["spec"]["terminationGracePeriodSeconds"] == 30
    assert "affinity" not in done["spec"]
    assert "tolerations" not in done["spec"]


def test_a_node_has_what_it_is_capable_of() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": 4}}}
    done = default(node)
    assert done["status"]["allocatable"] == {"cpu": "4"}
    assert "namespace" not in done["metadata"]
    assert "labels" not in done["metadata"]
    assert with_hostname(done)["metadata"]["labels"] == {"kubernetes.io/hostname": "n"}
    labelled = {**done, "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "other"}}}
    assert with_hostname(labelled) is labelled


@pytest.mark.parametrize(
    ("kind", "version", "given", "expected"),
    [
        ("Deployment", "apps/v1", {}, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}),
        (
            "Deployment",
            "apps/v1",
            {"strategy": {"rollingUpdate": {"maxSurge": 2}}},
            {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 2}}},
        ),
        ("Deployment", "apps/v1", {"strategy": {"type": "Recreate"}}, {"strategy": {"type": "Recreate"}}),
        ("ReplicaSet", "apps/v1", {}, {"replicas": 1}),
        ("ReplicaSet", "apps/v1", {"replicas": 0}, {"replicas": 0}),
        ("StatefulSet", "apps/v1", {}, {"replicas": 1, "podManagementPolicy": "OrderedReady"}),
        (
            "StatefulSet",
            "apps/v1",
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}},
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "partition": 0}}},
        ),
        ("DaemonSet", "apps/v1", {}, {"revisionHistoryLimit": 10}),
        ("Job", "batch/v1", {}, {"completions": 1, "parallelism": 1, "backoffLimit": 6}),
        ("Job", "batch/v1", {"parallelism": 3}, {"parallelism": 3}),
        ("Service", "v1", {"ports": [{"port": 80}]}, {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]}),
        ("PersistentVolume", "v1", {}, {"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"}),
        ("PersistentVolumeClaim", "v1", {}, {"volumeMode": "Filesystem"}),
        ("CSIDriver", "storage.k8s.io/v1", {}, {"attachRequired": True, "storageCapacity": False}),
        (
            "ResourceClaim",
            "resource.k8s.io/v1",
            {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}},
            {
                "devices": {
                    "requests": [
                        {
                            "name": "r",
                            "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1},
                        }
                    ]
                }
            },
        ),
    ],
)
def test_other_kinds(kind: str, version: str, given: Raw, expected: Raw) -> None:
    done = default({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": given})
    assert {field: done["spec"].get(field) for field in expected} == expected


def test_kinds_without_a_spec() -> None:
    storage = default({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}})
    assert (storage["reclaimPolicy"], storage["volumeBindingMode"]) == ("Delete", "Immediate")
    priority = default({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}})
    assert priority["preemptionPolicy"] == "PreemptLowerPriority"
    namespace = default({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}


def test_an_old_controller_selects_what_its_template_labels() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    controller = {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "r"},
        "spec": {"template": template},
    }
    done = default(controller)
    assert done["spec"]["selector"] == {"a": "b"}
    assert done["metadata"]["labels"] == {"a": "b"}


def test_wrong_types_come_back_as_they_were() -> None:
    broken = pod(containers="none")
    assert default(broken) == broken


def test_unknown_kinds_are_left_alone() -> None:
    custom = {"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"a": 1}}
    assert default(custom) == custom
