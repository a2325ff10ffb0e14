"""Tests of rules for pods that each concern few pods; each row is a rule of upstream's ValidatePodSpec."""

from typing import Any

import pytest

from kschedd.registry.pods.status import validate_pod_status, validate_status_beside_spec
from kschedd.registry.validation import default_and_validate
from tests.api.objects import Raw, container, pod

HARD = "requiredDuringSchedulingIgnoredDuringExecution"
SOFT = "preferredDuringSchedulingIgnoredDuringExecution"
LABEL_VALUE = "a valid label must be an empty string"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/c"


def answer(raw: Raw) -> list[str]:
    return [str(fault) for fault in default_and_validate(raw).faults]


def with_volume(**source: Any) -> Raw:
    return pod(volumes=[{"name": "v", **source}])


def in_container(**fields: Any) -> Raw:
    return pod(containers=[container(name="c", **fields)])


def noted(key: str, value: str, **spec: Any) -> Raw:
    raw = pod(**{"containers": [container(name="c")], **spec})
    raw["metadata"]["annotations"] = {key: value}
    return raw


def projected(*sources: Raw) -> Raw:
    return with_volume(projected={"sources": list(sources)})


def required_nodes(**expression: Any) -> Raw:
    terms = [{"matchExpressions": [{"key": "a", **expression}]}]
    return pod(affinity={"nodeAffinity": {HARD: {"nodeSelectorTerms": terms}}})


def preferred_nodes(**expression: Any) -> Raw:
    term = {"weight": 1, "preference": {"matchExpressions": [{"key": "a", **expression}]}}
    return pod(affinity={"nodeAffinity": {SOFT: [term]}})


def spread(**fields: Any) -> Raw:
    return {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, **fields}


WITH_HOST_USERS = pod(hostUsers=False, hostNetwork=True, hostPID=True, hostIPC=True)
FOR_WINDOWS = "Forbidden: cannot be set for a windows pod"
OF_PROFILE = "in annotation and field must match"


@pytest.mark.parametrize(
    ("raw", "faults"),
    [
        pytest.param(
            WITH_HOST_USERS,
            [f"spec.{field}: Forbidden: when `hostUsers` is false" for field in ("hostNetwork", "HostPID", "HostIPC")],
            id="users-of-its-own-with-the-hosts-namespaces",
        ),
        pytest.param(
            pod(os={"name": "windows"}, hostPID=True, hostIPC=False, securityContext={"runAsUser": 1, "fsGroup": 2}),
            [
                f"spec.{field}: {FOR_WINDOWS}"
                for field in ("hostPID", "securityContext.fsGroup", "securityContext.runAsUser")
            ],
            id="a-windows-pod-has-no-users-of-linux",
        ),
        pytest.param(
            pod(
                os={"name": "windows"},
                containers=[container(securityContext={"privileged": False, "procMount": "Default"})],
            ),
            [f"spec.containers[0].securityContext.{field}: {FOR_WINDOWS}" for field in ("privileged", "procMount")],
            id="a-windows-container-is-not-privileged",
        ),
        pytest.param(
            pod(os={"name": "linux"}, containers=[container(securityContext={"windowsOptions": {}})]),
            [
                "spec.containers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a "
                "linux pod"
            ],
            id="a-linux-container-has-no-options-of-windows",
        ),
        pytest.param(
            in_container(securityContext={"windowsOptions": {"runAsUserName": "a\\b\\c", "gmsaCredentialSpec": ""}}),
            [
                'spec.containers[0].securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": '
                "gmsaCredentialSpec cannot be an empty string",
                'spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: "a\\\\b\\\\c": '
                "runAsUserName cannot contain more than one backslash",
            ],
            id="names-of-windows-users",
        ),
        pytest.param(
            in_container(securityContext={"windowsOptions": {"runAsUserName": "a@b"}}),
            [
                'spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: "a@b": '
                "runAsUserName's "
                'User cannot contain the following characters: "/\\:;|=,+*?<>@[]'
            ],
            id="characters-of-windows-users",
        ),
        pytest.param(
            pod(hostNetwork=True, securityContext={"sysctls": [{"name": "net.ipv4.x", "value": "1"}]}),
            [
                'spec.securityContext.sysctls[0].name: Invalid value: "net.ipv4.x": may not be specified when '
                "'hostNetwork' is true"
            ],
            id="sysctls-of-the-hosts-network",
        ),
        pytest.param(
            pod(hostIPC=True, securityContext={"sysctls": [{"name": "kernel/shm_rmid_forced", "value": "1"}]}),
            [
                'spec.securityContext.sysctls[0].name: Invalid value: "kernel/shm_rmid_forced": may not be specified '
                "when "
                "'hostIPC' is true"
            ],
            id="sysctls-with-slashes",
        ),
        pytest.param(
            pod(hostPID=True, shareProcessNamespace=True),
            [
                "spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID "
                "cannot "
                "both be enabled"
            ],
            id="processes-shared-with-whom",
        ),
        pytest.param(
            pod(
                containers=[container(name="c")],
                ephemeralContainers=[container(name="c", ports=[{"containerPort": 1, "protocol": "TCP"}])],
            ),
            [
                'spec.ephemeralContainers[0].name: Duplicate value: "c"',
                "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers: Forbidden: cannot be set on create",
            ],
            id="a-new-pod-has-no-ephemeral-containers",
        ),
        pytest.param(
            pod(topologySpreadConstraints=[spread(), spread(minDomains=0), spread(topologyKey="b")]),
            [
                'spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{a, '
                'DoNotSchedule}"',
                "spec.topologySpreadConstraints[1].minDomains: Invalid value: 0: must be greater than zero",
            ],
            id="the-first-of-two-equal-constraints-is-at-fault",
        ),
        pytest.param(
            pod(topologySpreadConstraints=[spread(whenUnsatisfiable="X", minDomains=1)]),
            [
                'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "X": supported values: '
                '"DoNotSchedule", "ScheduleAnyway"',
                "spec.topologySpreadConstraints[0].minDomains: Invalid value: 1: can only use minDomains if "
                "whenUnsatisfiable=DoNotSchedule, not X",
            ],
            id="minDomains-with-what-is-no-action",
        ),
        pytest.param(preferred_nodes(operator="In", values=["-5"]), [], id="preferred-nodes-may-have-any-value"),
        pytest.param(
            in_container(readinessProbe={"exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 0}),
            [
                f"spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 0: {why}"
                for why in ("must be greater than 0", "must not be set for readinessProbes")
            ],
            id="both-faults-of-a-readiness-probes-grace",
        ),
        pytest.param(
            in_container(livenessProbe={"tcpSocket": {"port": ""}}),
            [
                f'spec.containers[0].livenessProbe.tcpSocket.port: Invalid value: "": {why}'
                for why in (
                    "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                    "must contain at least one letter (a-z)",
                )
            ],
            id="a-port-without-a-name-is-text",
        ),
        pytest.param(
            in_container(envFrom=[{"secretRef": {"name": "a-"}}]),
            [],
            id="a-source-of-variables-may-end-with-a-dash",
        ),
        pytest.param(
            in_container(ports=[{"containerPort": 1, "name": "a_"}, {"containerPort": 2, "name": "a_"}]),
            [
                f'spec.containers[0].ports[{index}].name: Invalid value: "a_": must contain only alpha-numeric '
                "characters "
                "(a-z, 0-9), and hyphens (-)"
                for index in range(2)
            ],
            id="a-wrong-name-of-a-port-is-no-duplicate",
        ),
        pytest.param(
            pod(
                containers=[container(name="c", ports=[{"containerPort": 80}])],
                hostNetwork=True,
                initContainers=[container(name="i", ports=[{"containerPort": 1, "hostPort": 2}])],
            ),
            [],
            id="ports-of-init-containers-need-not-match-the-hosts",
        ),
        pytest.param(
            pod(
                initContainers=[
                    container(name="i"),
                    container(name="j", ports=[{"containerPort": n, "hostPort": 9} for n in (1, 2)]),
                ]
            ),
            ['spec.initContainers[0].ports[1].hostPort: Duplicate value: "TCP//9"'],
            id="each-init-container-is-called-the-first",
        ),
        pytest.param(
            pod(initContainers=[container(name=""), container(name="")]),
            [f"spec.initContainers[{index}].name: Required value" for index in range(2)],
            id="init-containers-without-a-name-are-no-duplicates",
        ),
        pytest.param(
            pod(
                restartPolicy="Never",
                containers=[
                    container(
                        resizePolicy=[
                            {"resourceName": "cpu", "restartPolicy": "X"},
                            {"resourceName": "cpu", "restartPolicy": ""},
                        ]
                    )
                ],
            ),
            [
                'spec.containers[0].resizePolicy: Unsupported value: "X": supported values: "NotRequired", '
                '"RestartContainer"',
                "spec.containers[0].resizePolicy: Invalid value: \"X\": must be 'NotRequired' when `restartPolicy` is "
                "'Never'",
                'spec.containers[0].resizePolicy[1]: Duplicate value: "cpu"',
                "spec.containers[0].resizePolicy: Required value",
                "spec.containers[0].resizePolicy: Invalid value: \"\": must be 'NotRequired' when `restartPolicy` is "
                "'Never'",
            ],
            id="how-a-container-that-ends-is-resized",
        ),
        pytest.param(
            in_container(resources={"requests": {"hugepages-x": "1", "cpu": "1"}, "limits": {"hugepages-x": "1"}}),
            [
                f'spec.containers[0].resources.{side}[hugepages-x]: Invalid value: "1": 1 is not positive integer '
                "multiple "
                "of hugepages-x"
                for side in ("limits", "requests")
            ],
            id="pages-of-no-size",
        ),
        pytest.param(
            pod(resources={"limits": {"foo/bar": "1", "pods": "1"}}),
            [
                f'spec.resources.{side}[{name}]: Unsupported value: "{name}": supported values: "cpu", "hugepages-", '
                '"memory"'
                for side in ("limits",)
                for name in ("foo/bar", "pods")
            ],
            id="resources-of-pods",
        ),
        pytest.param(
            projected({"secret": {"name": "s"}, "configMap": {"name": "m"}}),
            ["spec.volumes[0].projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"],
            id="one-kind-of-source-each",
        ),
        pytest.param(
            with_volume(csi={"driver": "a.b", "nodePublishSecretRef": {}}),
            ["spec.volumes[0].csi.nodePublishSecretRef.name: Required value"],
            id="a-secret-of-csi-has-a-name",
        ),
        pytest.param(
            with_volume(storageos={"volumeName": "A_b", "volumeNamespace": "n", "secretRef": {}}),
            [
                'spec.volumes[0].storageos.volumeName: Invalid value: "A_b": a lowercase RFC 1123 label must consist '
                "of "
                "lower case alphanumeric characters or '-', and must start and end with an alphanumeric character "
                "(e.g. "
                "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                "spec.volumes[0].storageos.secretRef.name: Required value",
            ],
            id="storageos",
        ),
        pytest.param(
            with_volume(quobyte={"registry": "a:1,b", "volume": ""}),
            [
                'spec.volumes[0].quobyte.registry: Invalid value: "a:1,b": must be a host:port pair or multiple pairs '
                "separated by commas",
                "spec.volumes[0].quobyte.volume: Required value",
            ],
            id="quobyte",
        ),
        pytest.param(
            with_volume(flexVolume={"driver": "a/b", "options": {"Kubernetes.io/x": "1", "a/b": "2"}}),
            [
                'spec.volumes[0].flexVolume.options[Kubernetes.io/x]: Invalid value: "Kubernetes.io/x": kubernetes.io '
                "and "
                "k8s.io namespaces are reserved"
            ],
            id="options-of-flex-volumes",
        ),
        pytest.param(
            with_volume(iscsi={"targetPortal": "1.2.3.4", "iqn": "iqn.x", "lun": 0, "initiatorName": "foo"}),
            [
                'spec.volumes[0].iscsi.iqn: Invalid value: "iqn.x": must be valid format',
                'spec.volumes[0].iscsi.initiatorname: Invalid value: "foo": must be valid format starting with iqn, '
                "eui, or "
                "naa",
            ],
            id="names-of-iscsi",
        ),
        pytest.param(
            with_volume(flocker={"datasetName": "a/b"}),
            ["spec.volumes[0].flocker.datasetName: Invalid value: \"a/b\": must not contain '/'"],
            id="flocker",
        ),
        pytest.param(
            pod(
                volumes=[
                    {"name": "v", "persistentVolumeClaim": {"claimName": "web-w"}},
                    {
                        "name": "w",
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
                            }
                        },
                    },
                ]
            ),
            [
                'spec.volumes[0].persistentVolumeClaim.claimName: Invalid value: "web-w": must not reference a PVC '
                "that "
                "gets created for an ephemeral volume"
            ],
            id="a-claim-that-is-made-for-the-pod",
        ),
        pytest.param(
            noted("controller.kubernetes.io/pod-deletion-cost", "+1"),
            [
                'metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be a '
                "32bit integer"
            ],
            id="what-a-deletion-costs",
        ),
        pytest.param(
            noted("seccomp.security.alpha.kubernetes.io/pod", "x"),
            [
                'metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "x": must be a valid '
                "seccomp "
                "profile"
            ],
            id="profiles-by-annotation",
        ),
        pytest.param(
            noted(
                "seccomp.security.alpha.kubernetes.io/pod",
                "localhost/a",
                securityContext={"seccompProfile": {"type": "Localhost", "localhostProfile": "b"}},
            ),
            [f"spec.securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile {OF_PROFILE}"],
            id="one-profile-twice",
        ),
        pytest.param(
            noted(APPARMOR, "unconfined", securityContext={"appArmorProfile": {"type": "RuntimeDefault"}}),
            [f"spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type {OF_PROFILE}"],
            id="the-pods-profile-and-a-containers-annotation",
        ),
        pytest.param(
            in_container(securityContext={"appArmorProfile": {"type": "Localhost", "localhostProfile": " a"}}),
            [
                'spec.containers[0].securityContext.appArmorProfile.localhostProfile: Invalid value: " a": must not be '
                "padded with whitespace"
            ],
            id="a-padded-profile",
        ),
    ],
)
def test_a_pod_is_refused_for(raw: Raw, faults: list[str]) -> None:
    raw["metadata"]["name"] = "web"
    assert answer(raw) == faults


def test_required_nodes_compare_with_what_labels_can_have() -> None:
    (fault,) = answer(required_nodes(operator="Gt", values=["-5"]))
    assert fault.startswith(
        f'spec.affinity.nodeAffinity.{HARD}.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "-5": '
        f"{LABEL_VALUE}"
    )


def test_only_pods_are_strict_about_images() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container(image=" x")]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert answer({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"}, "spec": spec}) == []
    assert answer(pod(containers=[container(image=" x")])) == [
        'spec.containers[0].image: Invalid value: " x": must not have leading or trailing whitespace'
    ]


@pytest.mark.parametrize(
    ("status", "faults"),
    [
        pytest.param(
            {"hostIP": "10.0.0.2", "hostIPs": [{"ip": "10.0.0.1"}]},
            ['status.hostIPs[0].ip: Invalid value: "10.0.0.1": must be equal to `hostIP`'],
            id="the-first-address-of-the-host",
        ),
        pytest.param(
            {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": ""}]},
            [
                'status.resourceClaimStatuses[0].name: Invalid value: "": a lowercase RFC 1123 subdomain must consist '
                "of "
                "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
                "(e.g. 'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ],
            id="a-claims-name",
        ),
    ],
)
def test_a_status_is_refused_for(status: Raw, faults: list[str]) -> None:
    assert [str(fault) for fault in validate_pod_status(status)] == faults


ENDED = {"name": "c", "state": {"terminated": {"exitCode": 0}}}
RUNS = {"name": "c", "state": {"running": {}}}
NOT_AGAIN = "Forbidden: may not be transitioned to non-terminated state"


@pytest.mark.parametrize(
    ("field", "spec", "faults"),
    [
        pytest.param("containerStatuses", {"restartPolicy": "Always"}, 0, id="always-restarted"),
        pytest.param("containerStatuses", {"restartPolicy": "OnFailure"}, 1, id="had-no-failure"),
        pytest.param("containerStatuses", {"restartPolicy": "Never"}, 1, id="never-restarted"),
        pytest.param(
            "initContainerStatuses",
            {"restartPolicy": "Never", "initContainers": [{"name": "c", "restartPolicy": "Always"}]},
            0,
            id="a-sidecar",
        ),
        pytest.param("ephemeralContainerStatuses", {"restartPolicy": "Always"}, 1, id="an-ephemeral-container"),
    ],
)
def test_what_has_ended_stays_ended(field: str, spec: Raw, faults: int) -> None:
    found: list[Any] = []
    validate_status_beside_spec({"spec": spec, "status": {field: [ENDED]}}, {"status": {field: [RUNS]}}, found)
    assert [str(fault) for fault in found] == [f"status.{field}[0].state: {NOT_AGAIN}"] * faults
