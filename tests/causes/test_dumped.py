"""Tests of workloads in a dump whose pods were rejected in their cluster, by condition or Event."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.cli import main
from kschedd.sdk.objects import node

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
SPEC = {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
QUOTA = "exceeded quota: team, requested: pods=1, used: pods=5, limited: pods=5"
ACCOUNT = 'error looking up service account default/ci: serviceaccount "ci" not found'


def workload(kind: str, **status: Any) -> dict[str, Any]:
    notes = {"deployment.kubernetes.io/revision": "1"}
    meta = {"name": "a", "namespace": "default", "uid": "a", "generation": 1, "annotations": notes}
    spec = SPEC | ({"serviceName": "a"} if kind == "StatefulSet" else {})
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec, "status": status}


def refusal(kind: str, why: str) -> dict[str, Any]:
    about = {"kind": kind, "namespace": "default", "name": "a"}
    meta = {"name": "e", "namespace": "default", "uid": "e"}
    message = f'pods "a-0" is forbidden: {why}'
    event = {"apiVersion": "v1", "kind": "Event", "metadata": meta, "involvedObject": about}
    return {**event, "reason": "FailedCreate", "message": message, "type": "Warning"}


def failure(why: str) -> dict[str, Any]:
    return {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": why}


def explained(folder: Path, capsys: pytest.CaptureFixture[str], *objects: dict[str, Any]) -> Any:
    file = folder / "dump.json"
    made = {**node("n1"), "metadata": {"name": "n1", "uid": "n1"}}
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [made, *objects]}), encoding="utf-8")
    assert main(["explain", "--from", str(file), f"{objects[0]['kind'].lower()}/a", "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)["cause"]


@pytest.mark.parametrize(
    ("objects", "code", "named"),
    [
        ([workload("Deployment", conditions=[failure(ACCOUNT)])], "ServiceAccountMissing", "ServiceAccount ci"),
        ([workload("StatefulSet"), refusal("StatefulSet", QUOTA)], "QuotaExceeded", "ResourceQuota team"),
        ([workload("StatefulSet", replicas=2), refusal("StatefulSet", QUOTA)], "NothingIsWrong", "nothing"),
        ([workload("StatefulSet"), refusal("Job", QUOTA)], "NothingIsWrong", "nothing"),
    ],
)
def test_what_refused_the_pods_of_a_dumped_workload(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], objects: list[dict[str, Any]], code: str, named: str
) -> None:
    cause = explained(tmp_path, capsys, *objects)
    assert cause["code"] == code
    assert cause["message"].startswith(named)


def test_what_refuses_the_pods_here_as_well_is_told_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta = {"name": "team", "namespace": "default", "uid": "q"}
    status = {"hard": {"pods": "0"}, "used": {"pods": "0"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {"pods": "0"}}}
    quota["status"] = status
    cause = explained(tmp_path, capsys, workload("Deployment", conditions=[failure(QUOTA)]), quota)
    assert cause["message"] == (
        "ResourceQuota team: pods 0 of 0 used, 1 more requested: 2 of 2 replicas are not created"
    )
