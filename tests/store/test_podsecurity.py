"""Tests of PodSecurity: rejections and warnings at each level, and their messages."""

from typing import Any

import pytest

from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.admission_plugins.podsecurity import policy_of
from kschedd.store.admission_plugins.podsecurity_checks import LATEST, Level, findings
from kschedd.store.errors import Forbidden, Invalid
from kschedd.store.store import Store
from tests.store.manifests import Clock

ADMIN = UserInfo("admin", ("system:masters",))
HARDENED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def container(name: str = "c", context: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "x", **({} if context is None else {"securityContext": context}), **more}


def of(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"containers": list(containers) or [container()], **spec}


UNCONFINED = {"seccompProfile": {"type": "Unconfined"}}

BASELINE = [
    pytest.param(of(), [], id="a-plain-pod"),
    pytest.param(
        of(hostNetwork=True, hostPID=True, hostIPC=True),
        ["host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)"],
        id="host-namespaces",
    ),
    pytest.param(
        of(container("a", {"privileged": True}), container("b", {"privileged": True})),
        ['privileged (containers "a", "b" must not set securityContext.privileged=true)'],
        id="privileged",
    ),
    pytest.param(
        of(volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "hostPath": {"path": "/"}}]),
        ['hostPath volumes (volumes "v", "w")'],
        id="host-paths",
    ),
    pytest.param(
        of(container(ports=[{"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 443}])),
        ['hostPort (container "c" uses hostPorts 443, 80)'],
        id="host-ports",
    ),
    pytest.param(
        of(container(livenessProbe={"httpGet": {"host": "h", "port": 1}})),
        ['probe or lifecycle host (container "c" uses probe or lifecycle host "h")'],
        id="probe-of-another-host",
    ),
    pytest.param(
        of(container(context={"capabilities": {"add": ["NET_RAW", "CHOWN"]}})),
        ['non-default capabilities (container "c" must not include "NET_RAW" in securityContext.capabilities.add)'],
        id="capabilities",
    ),
    pytest.param(
        of(container(context={"procMount": "Unmasked"})),
        ['procMount (container "c" must not set securityContext.procMount to "Unmasked")'],
        id="proc-mount",
    ),
    pytest.param(
        of(container(context=UNCONFINED), securityContext=UNCONFINED),
        ['seccompProfile (pod and container "c" must not set securityContext.seccompProfile.type to "Unconfined")'],
        id="seccomp",
    ),
    pytest.param(
        of(securityContext={"appArmorProfile": {"type": "Unconfined"}}),
        ['forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")'],
        id="app-armor",
    ),
    pytest.param(
        of(securityContext={"seLinuxOptions": {"type": "bad_t", "user": "u"}}),
        ['seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "bad_t"; user may not be set)'],
        id="se-linux",
    ),
    pytest.param(
        of(securityContext={"sysctls": [{"name": "net.ipv4.tcp_rmem"}, {"name": "kernel.msgmax"}]}),
        ["forbidden sysctls (kernel.msgmax)"],
        id="sysctls",
    ),
    pytest.param(
        of(container(context={"windowsOptions": {"hostProcess": True}})),
        ['hostProcess (container "c" must not set securityContext.windowsOptions.hostProcess=true)'],
        id="host-process",
    ),
]
RESTRICTED = [
    pytest.param(of(container(context=HARDENED)), [], id="a-hardened-pod"),
    pytest.param(
        of(),
        [
            'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)',
            'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"])',
            'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
            'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
            '"Localhost")',
        ],
        id="a-plain-pod",
    ),
    pytest.param(
        of(container(context={**HARDENED, "runAsUser": 0, "runAsNonRoot": False})),
        [
            'runAsNonRoot != true (container "c" must not set securityContext.runAsNonRoot=false)',
            'runAsUser=0 (container "c" must not set runAsUser=0)',
        ],
        id="root",
    ),
    pytest.param(
        of(container(context=HARDENED), volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "e", "nfs": {}}]),
        ['restricted volume types (volumes "v", "e" use restricted volume types "hostPath", "nfs")'],
        id="volumes-instead-of-host-paths",
    ),
    pytest.param(
        of(container(context={**HARDENED, "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "NET_BIND_SERVICE"]}})),
        ['unrestricted capabilities (container "c" must not include "CHOWN" in securityContext.capabilities.add)'],
        id="capabilities",
    ),
    pytest.param(
        of(container(context={"runAsNonRoot": True}), os={"name": "windows"}), [], id="windows-has-no-such-things"
    ),
]


def reported(spec: dict[str, Any], level: Level, minor: int = LATEST) -> list[str]:
    return [f"{reason} ({detail})" for reason, detail in findings(spec, level, minor)]


@pytest.mark.parametrize(("spec", "wanted"), BASELINE)
def test_baseline(spec: dict[str, Any], wanted: list[str]) -> None:
    assert reported(spec, "baseline") == wanted
    assert reported(spec, "privileged") == []


@pytest.mark.parametrize(("spec", "wanted"), RESTRICTED)
def test_restricted(spec: dict[str, Any], wanted: list[str]) -> None:
    assert reported(spec, "restricted") == wanted


def test_a_check_is_asked_from_its_version_on() -> None:
    spec = of(container(livenessProbe={"tcpSocket": {"host": "h", "port": 1}}))
    assert reported(spec, "baseline", 33) == []
    assert reported(of(securityContext={"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}), "baseline", 31)


@pytest.mark.parametrize(
    ("labels", "enforce", "warn", "faults"),
    [
        pytest.param({}, "privileged:latest", "privileged:latest", 0, id="nothing-said"),
        pytest.param(
            {"enforce": "baseline", "enforce-version": "v1.30"}, "baseline:v1.30", "privileged:latest", 0, id="v"
        ),
        pytest.param({"enforce": "Baseline"}, "restricted:latest", "privileged:latest", 1, id="unknown-is-strict"),
        pytest.param({"warn": "x", "warn-version": "1.30"}, "privileged:latest", "privileged:latest", 2, id="warn"),
    ],
)
def test_labels(labels: dict[str, str], enforce: str, warn: str, faults: int) -> None:
    policy = policy_of({f"pod-security.kubernetes.io/{name}": value for name, value in labels.items()})
    assert (str(policy.enforce), str(policy.warn), len(policy.faults)) == (enforce, warn, faults)


def namespace(**labels: str) -> dict[str, Any]:
    named = {f"pod-security.kubernetes.io/{name}": value for name, value in labels.items()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "labels": named}}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": of(**spec)}


def test_each_equal_pod_is_warned_of_and_a_change_of_the_labels_counts_at_once() -> None:
    store = Store(now=Clock())
    store.create(namespace(warn="baseline"))
    for name in ("a", "b"):
        with store.on_behalf_of(ADMIN) as remarks:
            store.create(pod(name, hostNetwork=True))
        assert remarks.warnings == ['would violate PodSecurity "baseline:latest": host namespaces (hostNetwork=true)']
    with store.on_behalf_of(ADMIN) as remarks:
        store.update(namespace(enforce="baseline"))
    assert remarks.warnings == [
        'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 1 other pod): host namespaces",
    ]
    with pytest.raises(Forbidden, match='violates PodSecurity "baseline:latest": host namespaces'):
        store.create(pod("c", hostNetwork=True))


def test_a_workload_is_warned_of_but_not_refused() -> None:
    store = Store(now=Clock())
    store.create(namespace(enforce="baseline", warn="baseline"))
    template = {"metadata": {"labels": {"app": "x"}}, "spec": of(hostPID=True)}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "ns"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template},
    }
    with store.on_behalf_of(ADMIN) as remarks:
        store.create(deployment)
    assert remarks.warnings == ['would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)']


def test_a_namespace_with_a_level_that_there_is_not_is_refused() -> None:
    store = Store(now=Clock())
    with pytest.raises(Invalid, match="must be one of privileged, baseline, restricted"):
        store.create(namespace(enforce="strict"))
    store.create(namespace())
    with pytest.raises(Invalid, match=r'must be "latest" or "v1\.x"'):
        store.update(namespace(**{"warn-version": "1.34"}))
