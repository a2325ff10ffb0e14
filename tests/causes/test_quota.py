"""Tests of the diagnosis of a ResourceQuota: its usage, and the workloads whose pods it rejects."""

from pathlib import Path
from typing import Any

import pytest

from kschedd.scenarios.commands import ScenarioCluster
from kschedd.sdk.objects import deployment, node

QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "team"},
    "spec": {"hard": {"pods": "4", "services": "5"}},
}


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    made = ScenarioCluster(tmp_path)
    made.connect().call("objects.apply", manifests=[node("n1"), QUOTA, deployment("web", 3)])
    made.do("advance 60s", "")
    return made


def explained(cluster: ScenarioCluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.connect().call("causes.explain", kind="ResourceQuota", name="team")
    return found


def test_a_quota_that_refuses_no_pod(cluster: ScenarioCluster) -> None:
    answer = explained(cluster)
    assert answer["cause"]["code"] == "NothingIsWrong"
    assert answer["cause"]["evidence"] == ["pods: 3 of 4 used", "services: 0 of 5 used"]
    assert (answer["wanted"], answer["remedies"]) == (0, [])
    assert cluster.do("explain quota/team", "").startswith("resourcequota/team: no pod is held back.\n")


def test_a_quota_that_refuses_pods_of_one_workload_is_raised(cluster: ScenarioCluster) -> None:
    cluster.do("scale deployment web --replicas=6", "")
    answer = explained(cluster)
    assert answer["cause"]["code"] == "QuotaExceeded"
    assert answer["cause"]["message"].startswith("deployment/web: ResourceQuota team: pods 4 of 4 used")
    assert (answer["wanted"], answer["scheduled"], answer["missing"]) == (6, 4, 2)
    first = answer["remedies"][0]
    assert (first["target"], first["scheduled"]) == ("resourcequota/team", "6 of 6")


def test_a_quota_that_refuses_pods_of_two_workloads_names_both(cluster: ScenarioCluster) -> None:
    cluster.connect().call("objects.apply", manifests=[deployment("api", 2), deployment("jobs", 3)])
    cluster.do("advance 60s", "")
    answer = explained(cluster)
    assert (
        answer["cause"]["message"] == "ResourceQuota team refuses 1 pod of deployment/api and 3 pods of deployment/jobs"
    )
    assert [each["name"] for each in answer["cause"]["objects"]] == ["team", "api", "jobs"]
