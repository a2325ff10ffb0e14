"""Columns, ages, and what a terminal may and may not be sent."""

import io

import pytest

from kschedd.printing.columns.ages import age, span
from kschedd.printing.columns.by_kind import RowContext, pod_status
from kschedd.printing.columns.kind_tables import table_of
from kschedd.printing.documents import as_yaml
from kschedd.printing.terminal.style import TerminalStyle, style_of
from kschedd.printing.terminal.tables import Table, clean, render

NOW = RowContext(1_735_689_600.0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (301, "5m1s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_100, "3h5m"),
        (28_800, "8h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (691_200, "8d"),
        (2 * 365 * 86400, "2y"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (9 * 365 * 86400, "9y"),
        (-5, "<invalid>"),
    ],
)
def test_spans_are_as_kubectl_prints_them(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_ages_come_from_text_or_numbers() -> None:
    assert age("2024-12-31T23:59:00Z", NOW.now) == "60s"
    assert age(NOW.now - 7, NOW.now) == "7s"
    assert age(None, NOW.now) == age("soon", NOW.now) == "<unknown>"


def test_no_cell_can_command_the_terminal() -> None:
    assert clean("a\x1b[31mb\nc") == "a\\x1b[31mb c"
    assert "\x1b" not in render(Table(("NAME",), (("\x1b]0;x\x07",),)), TerminalStyle())


def test_wide_characters_take_two_columns() -> None:
    lines = render(Table(("A", "B"), (("日本", "x"), ("ab", "y"))), TerminalStyle()).splitlines()
    assert lines[1] == "日本   x"
    assert lines[2] == "ab     y"


def test_status_words_are_coloured_only_where_colour_is() -> None:
    table = Table(("NAME", "STATUS"), (("a", "Running"), ("b", "Failed")))
    assert "\x1b[32mRunning\x1b[0m" in render(table, TerminalStyle(colour=True))
    assert "\x1b" not in render(table, TerminalStyle())


def test_colour_and_unicode_are_for_terminals_that_have_them() -> None:
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    assert style_of(io.StringIO(), {"TERM": "xterm"}) == TerminalStyle()
    assert style_of(Terminal(), {"TERM": "xterm"}) == TerminalStyle(colour=True, unicode=True)
    assert style_of(Terminal(), {"TERM": "xterm", "NO_COLOR": "1"}).colour is False
    assert style_of(Terminal(), {"TERM": "dumb"}).colour is False
    assert style_of(Terminal(), {}).colour is False
    assert style_of(Terminal(), {"LANG": "C", "LC_CTYPE": "C.UTF-8"}).unicode is False, "as Python sets it"
    assert style_of(Terminal(), {"LANG": "C", "LC_ALL": "C.UTF-8"}).unicode is True
    assert style_of(Terminal(), {"LC_ALL": "POSIX", "LANG": "de_DE.UTF-8"}).unicode is False


def _pod(**status: object) -> dict[str, object]:
    deleted = {"deletionTimestamp": "2025-01-01T00:00:00Z"} if status.pop("deleted", False) else {}
    spec = {"containers": [{"name": "a"}], "initContainers": status.pop("init", [])}
    return {"metadata": {"name": "p", **deleted}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("pod", "word"),
    [
        pytest.param(_pod(phase="Pending"), "Pending", id="phase"),
        pytest.param(_pod(), "Unknown", id="no-phase"),
        pytest.param(_pod(phase="Failed", reason="Evicted"), "Evicted", id="reason"),
        pytest.param(_pod(phase="Running", deleted=True), "Terminating", id="being-deleted"),
        pytest.param(_pod(phase="Failed", reason="OutOfcpu", deleted=True), "OutOfcpu", id="ended-before-deletion"),
        pytest.param(
            _pod(phase="Pending", conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]),
            "SchedulingGated",
            id="gated",
        ),
        pytest.param(
            _pod(phase="Pending", containerStatuses=[{"state": {"waiting": {"reason": "ContainerCreating"}}}]),
            "ContainerCreating",
            id="waiting-container",
        ),
        pytest.param(
            _pod(phase="Succeeded", containerStatuses=[{"state": {"terminated": {"reason": "Completed"}}}]),
            "Completed",
            id="ended-container",
        ),
        pytest.param(
            _pod(phase="Failed", containerStatuses=[{"state": {"terminated": {"exitCode": 3}}}]),
            "ExitCode:3",
            id="exit-code",
        ),
        pytest.param(
            _pod(init=[{"name": "i"}], initContainerStatuses=[{"name": "i", "state": {"running": {}}}]),
            "Init:0/1",
            id="initializing",
        ),
    ],
)  # fmt: skip
def test_the_word_under_status(pod: dict[str, object], word: str) -> None:
    assert pod_status(pod) == word


def _row(raw: dict[str, object], *, wide: bool = False) -> dict[str, str]:
    raw.setdefault("metadata", {"name": "x", "creationTimestamp": "2024-12-31T23:59:00Z"})
    table = table_of(str(raw["kind"]), [raw], NOW, wide=wide)
    return dict(zip(table.headers, table.rows[0], strict=True))


@pytest.mark.parametrize(
    ("raw", "cells"),
    [
        pytest.param(
            {
                "kind": "Deployment",
                "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "w"}}},
                "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2},
            },
            {"READY": "2/3", "UP-TO-DATE": "3", "AVAILABLE": "2", "AGE": "60s", "SELECTOR": "app=w"},
            id="deployment",
        ),
        pytest.param(
            {"kind": "StatefulSet", "spec": {}, "status": {}}, {"READY": "0/1"}, id="statefulset-of-one-by-default"
        ),
        pytest.param(
            {"kind": "ControllerRevision", "revision": 4},
            {"CONTROLLER": "<none>", "REVISION": "4"},
            id="revision-of-nobody",
        ),
        pytest.param(
            {
                "kind": "HorizontalPodAutoscaler",
                "spec": {
                    "scaleTargetRef": {"kind": "Deployment", "name": "web"},
                    "minReplicas": 1,
                    "maxReplicas": 9,
                    "metrics": [
                        {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}},
                        {"type": "Pods", "pods": {"target": {"averageValue": "10"}}},
                        {"type": "External", "external": {"target": {"value": "3"}}},
                    ],
                },
            },
            {
                "REFERENCE": "Deployment/web",
                "TARGETS": "cpu: <unknown>/80%, <unknown>/10 + 1 more...",
                "MINPODS": "1",
                "MAXPODS": "9",
                "REPLICAS": "0",
            },
            id="autoscaler",
        ),
        pytest.param(
            {
                "kind": "HorizontalPodAutoscaler",
                "spec": {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {}}}]},
                "status": {
                    "currentMetrics": [{"type": "Resource", "resource": {"current": {"averageUtilization": 40}}}]
                },
            },
            {"TARGETS": "cpu: 40%/<auto>"},
            id="measured",
        ),
        pytest.param(
            {
                "kind": "Ingress",
                "spec": {"ingressClassName": "nginx", "rules": [{"host": each} for each in "abcd"], "tls": [{}]},
                "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}},
            },
            {"CLASS": "nginx", "HOSTS": "a,b,c + 1 more...", "ADDRESS": "10.0.0.1", "PORTS": "80, 443"},
            id="ingress",
        ),
        pytest.param(
            {
                "kind": "CertificateSigningRequest",
                "spec": {"signerName": "a.b/c", "username": "ann", "expirationSeconds": 3600},
                "status": {"conditions": [{"type": "Approved"}], "certificate": "x"},
            },
            {"SIGNERNAME": "a.b/c", "REQUESTOR": "ann", "REQUESTEDDURATION": "60m", "CONDITION": "Approved,Issued"},
            id="certificate-request",
        ),
        pytest.param(
            {"kind": "Job", "spec": {"completions": 3}, "status": {"startTime": "2024-12-31T23:59:50Z"}},
            {"STATUS": "Running", "COMPLETIONS": "0/3", "DURATION": "10s"},
            id="job",
        ),
        pytest.param(
            {
                "kind": "CronJob",
                "spec": {
                    "schedule": "0 * * * *",
                    "timeZone": "Europe/Zurich",
                    "suspend": True,
                    "jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}},
                },
                "status": {"lastScheduleTime": "2024-12-31T23:59:50Z", "active": [{"name": "a"}]},
            },
            {
                "SCHEDULE": "0 * * * *",
                "TIMEZONE": "Europe/Zurich",
                "SUSPEND": "True",
                "ACTIVE": "1",
                "LAST SCHEDULE": "10s",
                "CONTAINERS": "c",
                "IMAGES": "x",
            },
            id="cron-job",
        ),
        pytest.param(
            {"kind": "Service", "spec": {"ports": [{"port": 80, "nodePort": 30080}], "type": "NodePort"}},
            {"TYPE": "NodePort", "CLUSTER-IP": "<none>", "PORT(S)": "80:30080/TCP"},
            id="service",
        ),
        pytest.param(
            {"kind": "PodDisruptionBudget", "spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}},
            {"MIN AVAILABLE": "50%", "MAX UNAVAILABLE": "N/A", "ALLOWED DISRUPTIONS": "1"},
            id="budget",
        ),
        pytest.param(
            {"kind": "PriorityClass", "value": 7, "globalDefault": True},
            {"VALUE": "7", "GLOBAL-DEFAULT": "true", "PREEMPTIONPOLICY": "PreemptLowerPriority"},
            id="priority-class",
        ),
        pytest.param(
            {
                "kind": "PersistentVolume",
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
                    "claimRef": {"namespace": "default", "name": "data"},
                },
                "status": {"phase": "Bound"},
            },
            {"CAPACITY": "1Gi", "ACCESS MODES": "RWO,RWOP", "STATUS": "Bound", "CLAIM": "default/data"},
            id="volume",
        ),
        pytest.param(
            {"kind": "PersistentVolumeClaim", "spec": {"storageClassName": "fast"}, "status": {"phase": "Pending"}},
            {"STATUS": "Pending", "VOLUME": "", "CAPACITY": "", "STORAGECLASS": "fast"},
            id="claim",
        ),
        pytest.param(
            {
                "kind": "StorageClass",
                "metadata": {
                    "name": "fast",
                    "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                },
                "provisioner": "example.com/p",
            },
            {"NAME": "fast (default)", "VOLUMEBINDINGMODE": "Immediate", "ALLOWVOLUMEEXPANSION": "false"},
            id="storage-class",
        ),
        pytest.param(
            {"kind": "ResourceClaim", "status": {"allocation": {"devices": {}}, "reservedFor": [{"name": "p"}]}},
            {"STATE": "allocated,reserved"},
            id="resource-claim",
        ),
        pytest.param({"kind": "ResourceClaim", "status": {}}, {"STATE": "pending"}, id="resource-claim-of-nobody"),
        pytest.param(
            {"kind": "ResourceSlice", "spec": {"nodeName": "n", "driver": "gpu.example.com", "pool": {"name": "p"}}},
            {"NODE": "n", "DRIVER": "gpu.example.com", "POOL": "p"},
            id="resource-slice",
        ),
        pytest.param({"kind": "DeviceClass"}, {"NAME": "x", "AGE": "60s"}, id="device-class"),
        pytest.param({"kind": "Anything"}, {"NAME": "x", "AGE": "60s"}, id="unknown-kind"),
        pytest.param(
            {"kind": "ReplicaSet", "spec": {"replicas": 2}, "status": {"replicas": 2}},
            {"DESIRED": "2", "CURRENT": "2", "READY": "0"},
            id="replica-set",
        ),
        pytest.param(
            {"kind": "DaemonSet", "spec": {}, "status": {"desiredNumberScheduled": 4, "numberReady": 3}},
            {"DESIRED": "4", "READY": "3", "NODE SELECTOR": "<none>"},
            id="daemon-set",
        ),
        pytest.param(
            {"kind": "ResourceQuota", "status": {"hard": {"pods": "4", "limits.cpu": "2"}, "used": {"pods": "1"}}},
            {"REQUEST": "pods: 1/4", "LIMIT": "limits.cpu: 0/2"},
            id="quota",
        ),
    ],
)  # fmt: skip
def test_columns(raw: dict[str, object], cells: dict[str, str]) -> None:
    row = _row(raw, wide=True)
    assert {header: row[header] for header in cells} == cells


def test_yaml_keeps_text_that_looks_like_something_else() -> None:
    assert as_yaml({"b": "yes", "a": "1", "c": "two\nlines\n"}) == "a: '1'\nb: 'yes'\nc: |\n  two\n  lines\n"
