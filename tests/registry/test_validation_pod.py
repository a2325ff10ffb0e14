"""Tests that invalid pods are rejected with all of the API server's messages."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.api.manifests import read_paths
from kschedd.registry.validation import default_and_validate, default_and_validate_pod_spec, validate
from tests.api.objects import Raw, container, pod
from tests.conftest import SharedPart

HARD = "requiredDuringSchedulingIgnoredDuringExecution"
SOFT = "preferredDuringSchedulingIgnoredDuringExecution"


def answer(raw: Raw) -> list[str]:
    return [str(fault) for fault in default_and_validate(raw).faults]


def test_a_plain_pod_is_good() -> None:
    assert answer(pod()) == []


def test_every_fault_is_told() -> None:
    broken = pod(restartPolicy="Sometimes", activeDeadlineSeconds=-1, containers=[container(image="")])
    broken["metadata"]["labels"] = {"-a": "b"}
    assert len(answer(broken)) == 4


def asking(**resources: Any) -> Raw:
    return pod(containers=[container(resources=resources)])


REQUESTS = "spec.containers[0].resources.requests"
LIMITS = "spec.containers[0].resources.limits"


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (
            asking(requests={"cpu": "1.5.0"}),
            f'{REQUESTS}.cpu: Invalid value: "1.5.0": quantities are a number with an optional suffix '
            "(n u m k M G T P E, Ki Mi Gi Ti Pi Ei) or exponent (e3), such as 250m, 1.5, 2Gi",
        ),
        (asking(requests={"cpu": "-1"}), f'{REQUESTS}[cpu]: Invalid value: "-1": must be greater than or equal to 0'),
        (
            asking(requests={"cpu": "2"}, limits={"cpu": "1500m"}),
            f'{REQUESTS}: Invalid value: "2": must be less than or equal to cpu limit of 1500m',
        ),
        (
            asking(requests={"example.com/gpu": "1"}),
            f"{LIMITS}: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            asking(requests={"example.com/gpu": "1"}, limits={"example.com/gpu": "2"}),
            f'{REQUESTS}: Invalid value: "1": must be equal to example.com/gpu limit of 2',
        ),
        (
            asking(limits={"example.com/gpu": "500m"}),
            f'{LIMITS}[example.com/gpu]: Invalid value: "500m": must be an integer',
        ),
        (
            asking(requests={"gpu": "1"}),
            f'{REQUESTS}[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified',
        ),
        (
            asking(requests={"pods": "1"}),
            f'{REQUESTS}[pods]: Invalid value: "pods": must be a standard resource for containers',
        ),
        (
            asking(limits={"hugepages-2Mi": "4Mi"}),
            "spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
        ),
        (
            asking(claims=[{"name": "gpu"}]),
            'spec.containers[0].resources.claims[0]: Not found: "gpu": must be one of the names in '
            "pod.spec.resourceClaims which is empty",
        ),
        (
            pod(resources={"requests": {"cpu": "1"}}, containers=asking(requests={"cpu": "2"})["spec"]["containers"]),
            'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container '
            "requests of 2",
        ),
        (
            pod(overhead={"cpu": "-1"}),
            'spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
    ],
)
def test_amounts(raw: Raw, fault: str) -> None:
    found = answer(raw)
    assert fault in found


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [container(), container()]}, 'spec.containers[1].name: Duplicate value: "c"'),
        (
            {"containers": [container(name="C")]},
            'spec.containers[0].name: Invalid value: "C": a lowercase RFC 1123 label',
        ),
        ({"containers": [container(image="")]}, "spec.containers[0].image: Required value"),
        (
            {"initContainers": [container(name="i", restartPolicy="Never")]},
            'spec.initContainers[0].restartPolicy: Unsupported value: "Never": supported values: "Always"',
        ),
        (
            {"containers": [container(ports=[{"containerPort": 99999}])]},
            "spec.containers[0].ports[0].containerPort: Invalid value: 99999: must be between 1 and 65535, inclusive",
        ),
        (
            {"containers": [container(ports=[{"containerPort": 80, "protocol": "tcp"}])]},
            'spec.containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"',
        ),
        (
            {
                "containers": [
                    container(ports=[{"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 80}])
                ]
            },
            'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"',
        ),
        (
            {"hostNetwork": True, "containers": [container(ports=[{"containerPort": 80, "hostPort": 81}])]},
            "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when",
        ),
        (
            {"containers": [container(volumeMounts=[{"name": "v", "mountPath": "/v"}])]},
            'spec.containers[0].volumeMounts[0].name: Not found: "v"',
        ),
        (
            {"restartPolicy": "Maybe"},
            'spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"',
        ),
        (
            {"preemptionPolicy": "Ask"},
            'spec.preemptionPolicy: Unsupported value: "Ask": supported values: "PreemptLower',
        ),
        ({"nodeName": "Node_1"}, 'spec.nodeName: Invalid value: "Node_1": a lowercase RFC 1123 subdomain'),
        ({"nodeSelector": {"a": "b c"}}, 'spec.nodeSelector: Invalid value: "b c": a valid label must be'),
        (
            {"schedulingGates": [{"name": "g"}, {"name": "g"}]},
            'spec.schedulingGates[1]: Duplicate value: "g"',
        ),
        (
            {"schedulingGates": [{"name": "g"}], "nodeName": "n"},
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        (
            {"resourceClaims": [{"name": "r"}]},
            'spec.resourceClaims[0]: Invalid value: {"Name":"r","ResourceClaimName":null,'
            '"ResourceClaimTemplateName":null}: '
            "must specify one of: `resourceClaimName`, ",
        ),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
            "spec.volumes[0].persistentVolumeClaim.claimName: Req",
        ),
        (
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
        (
            {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode",
        ),
    ],
)
def test_specs(spec: Raw, fault: str) -> None:
    found = answer(pod(**spec))
    assert any(text.startswith(fault) for text in found), found


def tolerating(**toleration: Any) -> Raw:
    return {"tolerations": [toleration]}


def spreading(**constraint: Any) -> Raw:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    return {"topologySpreadConstraints": [{**whole, **constraint}]}


def on_nodes(operator: str, *values: str) -> Raw:
    expression = {"key": "a", "operator": operator, "values": list(values)}
    return {"affinity": {"nodeAffinity": {HARD: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}}


def near(**term: Any) -> Raw:
    return {"affinity": {"podAffinity": {HARD: [{"topologyKey": "zone", **term}]}}}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (
            tolerating(operator="Equal"),
            'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when',
        ),
        (
            tolerating(key="a", operator="Near"),
            'spec.tolerations[0].operator: Unsupported value: "Near": supported values:',
        ),
        (tolerating(key="a", operator="Exists", value="b"), "spec.tolerations[0].operator: Invalid value"),
        (tolerating(key="a", tolerationSeconds=1), 'spec.tolerations[0].effect: Invalid value: "": effect must be'),
        (
            tolerating(key="a", effect="No"),
            'spec.tolerations[0].effect: Unsupported value: "No": supported values: "NoSch',
        ),
        (
            spreading(maxSkew=0),
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (spreading(topologyKey=""), "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty"),
        (spreading(whenUnsatisfiable="Cry"), "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value"),
        (
            spreading(minDomains=0),
            "spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater than zero",
        ),
        (
            spreading(minDomains=2, whenUnsatisfiable="ScheduleAnyway"),
            "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if",
        ),
        (spreading(nodeTaintsPolicy="Obey"), "spec.topologySpreadConstraints[0].nodeTaintsPolicy: Unsupported value"),
        (
            spreading(matchLabelKeys=["a"], labelSelector=None),
            "spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: must not be specified when labelSel",
        ),
        (
            on_nodes("Near", "x"),
            f"spec.affinity.nodeAffinity.{HARD}.nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "
            '"Near": not a valid selector operator',
        ),
        (
            on_nodes("In"),
            f"spec.affinity.nodeAffinity.{HARD}.nodeSelectorTerms[0].matchExpressions[0].values: Required value: "
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            {"affinity": {"nodeAffinity": {HARD: {"nodeSelectorTerms": []}}}},
            f"spec.affinity.nodeAffinity.{HARD}.nodeSelectorTerms: Required value: must have at least one node",
        ),
        (
            {"affinity": {"nodeAffinity": {SOFT: [{"weight": 101, "preference": {}}]}}},
            f"spec.affinity.nodeAffinity.{SOFT}[0].weight: Invalid value: 101: must be in the range 1-100",
        ),
        (near(topologyKey=""), f"spec.affinity.podAffinity.{HARD}[0].topologyKey: Required value: can not be empty"),
        (near(namespaces=["A"]), f'spec.affinity.podAffinity.{HARD}[0].namespace: Invalid value: "A"'),
        (
            near(labelSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]}),
            f"spec.affinity.podAffinity.{HARD}[0].labelSelector.matchExpressions[0].operator: Invalid value: "
            '"Near": not a valid selector operator',
        ),
        (
            near(labelSelector={}, matchLabelKeys=["a"], mismatchLabelKeys=["a"]),
            f'spec.affinity.podAffinity.{HARD}[0].matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys',
        ),
    ],
)
def test_choices_of_nodes(spec: Raw, fault: str) -> None:
    found = answer(pod(**spec))
    assert any(text.startswith(fault) for text in found), found


def test_two_constraints_of_one_kind() -> None:
    constraints = spreading()["topologySpreadConstraints"] * 2
    assert answer(pod(topologySpreadConstraints=constraints)) == [
        'spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"'
    ]


def test_a_key_both_in_the_selector_and_merged_into_it() -> None:
    clash = spreading(matchLabelKeys=["rev"], labelSelector={"matchLabels": {"rev": "1"}})
    born = pod(**clash)
    born["metadata"]["labels"] = {"rev": "1"}
    (fault,) = answer(born)
    assert "exists in both matchLabelKeys and labelSelector" in fault
    merged = pod(**spreading(matchLabelKeys=["rev"]))
    merged["metadata"]["labels"] = {"rev": "1"}
    done = default_and_validate(merged)
    assert not done.faults
    assert not default_and_validate(done.raw).faults  # the output of a cluster is valid input


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (pod(containers="none"), 'spec.containers: Invalid value: "none": must be a list'),
        (pod(containers=["c"]), 'spec.containers[0]: Invalid value: "c": must be a mapping'),
        (
            pod(nodeSelector={"a": True}),
            "spec.nodeSelector.a: Invalid value: true: must be a string: write it in quotes",
        ),
        (pod(priority="high"), 'spec.priority: Invalid value: "high": must be a 32-bit integer'),
        (pod(priority=2**31), "spec.priority: Invalid value: 2147483648: must be a 32-bit integer"),
        (pod(hostNetwork=1), "spec.hostNetwork: Invalid value: 1: must be true or false"),
        (asking(requests={"cpu": True}), f"{REQUESTS}.cpu: Invalid value: true: quantities are a number"),
        (pod(affinity=[]), "spec.affinity: Invalid value: []: must be a mapping"),
        ({**pod(), "metadata": "x"}, 'metadata: Invalid value: "x": must be a mapping'),
        ({**pod(), "spec": []}, "spec: Invalid value: []: must be a mapping"),
    ],
)
def test_types_come_first(raw: Raw, fault: str) -> None:
    (found,) = answer(raw)
    assert found.startswith(fault)


def test_a_spec_is_judged_by_itself() -> None:
    spec, faults = default_and_validate_pod_spec({"containers": [container()], "nodeName": None})
    assert not faults
    assert spec["restartPolicy"] == "Always"
    assert [str(fault) for fault in default_and_validate_pod_spec({"containers": 3})[1]] == [
        "spec.containers: Invalid value: 3: must be a list"
    ]
    assert default_and_validate_pod_spec("spec")[1]


def test_validate_expects_defaults() -> None:
    assert {str(fault) for fault in validate(pod())} >= {"spec.restartPolicy: Required value"}
    assert not validate(default_and_validate(pod()).raw)


def test_a_pod_without_a_spec() -> None:
    assert answer({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}) == ["spec.containers: Required value"]


def test_what_kube_scheduler_was_given_is_good(shared_part: SharedPart) -> None:
    files = sorted(shared_part("conformance").glob("*.jsonl.gz"))
    assert files
    for path in files:
        _check_objects(path)


def _check_objects(path: Path) -> None:
    seen: set[str] = set()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % 10:
                continue  # a tenth of each family is enough here
            case = json.loads(line)
            for raw in [*case["objects"], *([case["pod"]] if "pod" in case else [])]:
                text = json.dumps(raw.get("spec"))
                if raw["kind"] == "PersistentVolume" or text in seen:
                    continue  # their volumes are incomplete: local ones without node affinity
                seen.add(text)
                assert not answer(raw), case["id"]


def test_a_real_manifest_is_good(shared_part: SharedPart) -> None:
    reading = read_paths([shared_part("realworld") / "online-boutique" / "kubernetes-manifests.yaml"])
    assert not reading.errors
    assert len(reading.manifests) == 35
    for manifest in reading.manifests:
        done = default_and_validate(manifest.raw)
        assert not done.faults
