"""Tests of the causes of a CronJob, whose Jobs keep the template with which they were created."""

from pathlib import Path
from typing import Any

import pytest

from kschedd.scenarios.commands import ScenarioCluster
from kschedd.sdk.objects import node
from tests.mistakes.asking import step

TEMPLATE = {
    "spec": {
        "restartPolicy": "Never",
        "nodeSelector": {"pool": "genral"},
        "containers": [{"name": "c", "image": "i"}],
    }
}
NIGHTLY = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "nightly"},
    "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}},
}


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    made = ScenarioCluster(tmp_path)
    made.connect().call("objects.apply", manifests=[node("n1", labels={"pool": "general"}), NIGHTLY])
    made.do("advance 11m", "")
    return made


def explained(cluster: ScenarioCluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.connect().call("causes.explain", kind="CronJob", name="nightly")
    return found


def test_the_remedy_replaces_the_jobs_whose_pods_are_pending(cluster: ScenarioCluster) -> None:
    answer = explained(cluster)
    assert answer["cause"]["code"] == "NodeLabelMisspelled"
    commands = list(map(step, answer["remedies"][0]["commands"]))
    assert [each.command.split()[0] for each in commands] == ["patch", "replace", "replace"]
    for each in commands:
        assert cluster.execute(each.command, each.given).status == 0
    cluster.do("advance 60s", "")
    pods = cluster.connect().call("objects.list", kind="Pod")["items"]
    assert [pod["spec"]["nodeName"] for pod in pods] == ["n1", "n1"]


def test_a_suspended_cron_job_has_the_cause_of_the_pods_that_it_has(cluster: ScenarioCluster) -> None:
    suspended = [{"op": "add", "path": "/spec/suspend", "value": True}]
    cluster.connect().call("objects.patch", kind="CronJob", name="nightly", patch=suspended, type="json")
    assert explained(cluster)["cause"]["code"] == "NodeLabelMisspelled"
    cluster.do("delete jobs --all", "")
    cluster.do("advance 60s", "")
    assert explained(cluster)["cause"]["message"].endswith("so it creates no Jobs")
