"""Tests of golden facts: each kind is checked, wrong facts are found, and witnesses are counted separately."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.config.versions.kube_versions import V1_36, V1_37, KubernetesVersion
from kschedd.conformance.records import GoldenRecord, read_records
from kschedd.conformance.report import RecordOutcome
from kschedd.conformance.verify import check, main
from tests.conformance.golden_records import Raw, node, pod
from tests.conftest import SharedPart

SLICE = {"name": "s", "driver": "d", "pool": "p", "devices": [{"name": "a", "taints": []}]}
TAINT = {"key": "k", "effect": "NoSchedule"}
RULE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "r"},
    "spec": {"taint": TAINT, "deviceSelector": {"driver": "d"}},
}
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
OTHER = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "b"}}}
HATES = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM, OTHER]}}


def fact(kind: str, want: Any, **fields: Any) -> Raw:
    return {"id": f"facts/{kind}", "family": "facts", "kind": kind, "evidence": "source", "want": want, **fields}


def function(name: str, want: Any, **args: Any) -> Raw:
    return fact("function", want, function=name, args=args)


def labelled(name: str, app: str, **spec: Any) -> Raw:
    made = pod(name, **spec)
    return {**made, "metadata": {**made["metadata"], "labels": {"app": app}}}


CASES = {
    "volume-score": (function("volume-score", 30, points=[[0, 0], [100, 100]], classes={"c": [30, 100]}), 31),
    "pod-requests": (
        function(
            "pod-requests",
            {"requests": {"cpu": "2"}},
            spec={"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
            status={"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}]},
            use_status=True,
            pod_level_resize=False,
        ),
        {"requests": {"cpu": "1"}},
    ),
    "milli-value": (function("milli-value", 1000, quantity="1"), 1),
    "use-milli": (function("use-milli", True, valid_range={"min": "1", "step": "100m"}, fractional=True), False),
    "violates-policy": (
        function("violates-policy", True, value="2", policy={"default": "1", "validValues": ["1"]}, fractional=False),
        False,
    ),
    "consumed-capacity": (
        function("consumed-capacity", "2", request="1", value="2", policy={"validRange": {"min": "2"}}),
        "1",
    ),
    "consumed-capacities": (
        function("consumed-capacities", {"c": "1"}, requests={"c": "1"}, capacity={"c": {"value": "2"}}),
        {"c": "2"},
    ),
    "patched-slices": (
        function(
            "patched-slices", [{**SLICE, "devices": [{"name": "a", "taints": [TAINT]}]}], rules=[RULE], slices=[SLICE]
        ),
        [SLICE],
    ),
    "binding-retried": (function("binding-retried", True, error="503 ServiceUnavailable"), False),
    "validation": (
        fact(
            "validation",
            {"errors": [{"type": "invalid", "field": "shape"}]},
            plugin="VolumeBinding",
            gates={"StorageCapacityScoring": False},
            args={"shape": [{"utilization": 0, "score": 1}]},
        ),
        {"errors": []},
    ),
    "hint": (
        fact(
            "hint",
            "Queue",
            plugin="InterPodAffinity",
            event={"resource": "AssignedPod", "action": "Delete"},
            pod=pod("p", affinity=HATES),
            old=labelled("x", "a", nodeName="n"),
            new=None,
        ),
        "QueueSkip",
    ),
    "placement": (
        fact(
            "message",
            "0/1 nodes. preemption: found a potential placement for pod on node a, preempting 1 victims",
            was_1_36="0/1 nodes.",
        ),
        "0/1 nodes. preemption: found a potential placement for pod on node a, preempting 1 victim",
    ),
    "quiet": (
        fact("message", "0/1. preemption: no.", was_1_36="0/1. no new claims to deallocate, preemption: no."),
        "0/1. no new claims to deallocate, preemption: no.",
    ),
    "gate": (fact("config", "beta on", gate="VolumeLimitScaling"), "beta off"),
    "cycle": (
        {
            **fact("cycle", {"filter": {"a": None}, "message_contains": []}),
            **{"config": None, "objects": [node("a")], "pod": pod("p")},
        },
        {"filter": {"a": {"plugin": "NodeName"}}},
    ),
}


def judged(raw: Raw, version: KubernetesVersion = V1_37) -> RecordOutcome:
    record = GoldenRecord(raw["id"], raw["family"], None, raw.get("objects", []), raw)
    return check(record, version).outcome


@pytest.mark.parametrize(("raw", "wrong"), CASES.values(), ids=CASES)
def test_a_fact_passes_and_another_fails(raw: Raw, wrong: Any) -> None:
    assert judged(raw) is RecordOutcome.PASSED
    assert judged({**raw, "want": wrong}) is RecordOutcome.FAILED


@pytest.mark.parametrize("name", ["hint", "placement", "quiet", "gate"])
def test_a_fact_of_1_37_fails_by_1_36(name: str) -> None:
    assert judged(CASES[name][0], V1_36) is RecordOutcome.FAILED


def test_a_sequence_in_words_is_unsupported() -> None:
    assert judged(fact("sequence", {}, steps=["it rains"])) is RecordOutcome.UNSUPPORTED


def test_witnesses_are_counted_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raws = [{**CASES["gate"][0], "evidence": evidence} for evidence in ("source", "derived", "derived")]
    file = tmp_path / "facts.jsonl"
    file.write_text("\n".join(map(json.dumps, raws)))
    assert main([str(file), "--kube-version", "1.37", "-o", "json"]) == 0
    reported = json.loads(capsys.readouterr().out)["evidence"]
    assert {name: counts["passed"] for name, counts in reported.items()} == {"derived": 2, "source": 1}


def test_the_facts_of_1_37_hold(shared_part: SharedPart) -> None:
    outcomes = {
        record.id: check(record, V1_37) for record in read_records(shared_part("upstream-1.37") / "cases-1.37.jsonl")
    }
    wrong = [verdict.differences for verdict in outcomes.values() if verdict.outcome is RecordOutcome.FAILED]
    assert outcomes
    assert not wrong
