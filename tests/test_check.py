"""Tests of kschedd check for a pull request: pods that fit, pods that do not, their remedies, and displaced pods."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from kschedd.cli import main
from tests.dumps.objects import kept, node, pod

Raw = dict[str, Any]
WEB = ("ReplicaSet", "web-abc", 900)


def _deployment(cpu: str, replicas: int = 2, **spec: Any) -> Raw:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    template = {"metadata": {"labels": {"app": "new"}}, "spec": {"containers": containers, **spec}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "new"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "new"}, "spec": spec}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Two nodes of 4 CPUs, each with a pod of 2 CPUs whose ReplicaSet is missing in the dump."""
    labels = {"app": "web", "pod-template-hash": "abc"}
    pods = [pod(f"web-{n}", 10 + n, f"n{n + 1}", cpu="2", owner=WEB, labels=labels) for n in range(2)]
    gold = kept(
        "PriorityClass", "gold", 5, api="scheduling.k8s.io/v1", value=1000, preemptionPolicy="PreemptLowerPriority"
    )
    file = tmp_path / "cluster.json"
    file.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("n1", 1), node("n2", 2), gold, *pods]})
    )
    return file


def _check(cluster: Path, *manifests: Raw, form: str = "text") -> int:
    file = cluster.with_name("change.yaml")
    file.write_text(yaml.safe_dump_all(manifests))
    return main(["check", "--from", str(cluster), "-f", str(file), "-o", form])


def test_what_fits_is_said_with_where_it_goes(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(cluster, _deployment("1")) == 0
    out, err = capsys.readouterr()
    assert out.startswith("all fits\n\nplaced (2):\n")
    assert out.count(" on n") == 2
    assert "cpu       50.0% ->  75.0%, 25.0% free" in out
    assert "Note: missing ReplicaSets were added from their pods: default/web-abc" in err


def test_what_does_not_fit_is_said_with_what_would_do(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(cluster, _deployment("3", replicas=1), form="markdown") == 1
    out = capsys.readouterr().out
    assert out.startswith("### ❌ Does not fit: 1 pod pending\n")
    assert "| 3 cpu requested, the most that is free on one of 2 nodes that the pod may use is 2 (on n2) |" in out
    assert "| add 1 node like n2<br>`kubectl create -f - " in out
    assert "| cpu | 50.0% | 50.0% | 50.0% |" in out


def test_who_has_to_move_is_said(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(cluster, _deployment("3", replicas=1, priorityClassName="gold"), form="json") == 0
    reported = json.loads(capsys.readouterr().out)
    (moved,) = [one for one in reported["pods"] if one["change"] == "moved"]
    assert moved["name"].startswith("web-")
    assert {moved["node"], moved["to"]} == {"n1", "n2"}


def test_who_loses_its_place_is_said(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(cluster, _deployment("3", replicas=2, priorityClassName="gold"), form="json") == 1
    reported = json.loads(capsys.readouterr().out)
    assert len(reported["unplaced"]) == 2  # the replacements of the preempted pods
    assert all(one["pod"].startswith("default/web-abc-") and not one["new"] for one in reported["unplaced"])
    assert sum(one["change"] == "placed" for one in reported["pods"]) == 2


def test_pods_with_one_cause_are_told_together(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(cluster, _deployment("3", replicas=4)) == 1
    out = capsys.readouterr().out
    assert out.count("    cause: ") == 1
    assert " more pod" in out.partition("    cause: ")[0]
    assert _check(cluster, _deployment("3", replicas=4), form="json") == 1
    reported = json.loads(capsys.readouterr().out)
    (group,) = reported["causes"]
    assert group["of"] == [one["pod"] for one in reported["unplaced"]]


def test_a_change_without_pods_fits(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        _check(cluster, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "b"}}) == 0
    )
    assert capsys.readouterr().out.startswith("all fits\n")


def test_jobs_that_a_cron_job_would_make_later_are_no_part_of_it(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}]
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}}
    every_minute = {"schedule": "* * * * *", "jobTemplate": template}
    dump = json.loads(cluster.read_text())
    dump["items"].append(kept("CronJob", "backup", 6, api="batch/v1", namespace="default", spec=every_minute))
    cluster.write_text(json.dumps(dump))
    assert _check(cluster, _deployment("1")) == 0
    out, err = capsys.readouterr()
    assert "left out" not in err
    assert out.startswith("all fits\n\nplaced (2):\n")
    assert "backup" not in out
    assert "incomplete" not in out


def test_junit_has_a_case_for_each_pod(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(cluster, _deployment("2", replicas=3), form="junit") == 1
    suite = ElementTree.fromstring(capsys.readouterr().out).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("4", "1")
    assert len(suite.findall("testcase/failure")) == 1


def test_input_that_cannot_be_used_is_told_apart(
    cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _check(cluster, {**_deployment("1"), "spec": {"replicas": -1}}) == 2
    assert "change.yaml:1" in capsys.readouterr().out
    assert main(["check", "--from", str(cluster)]) == 2
    assert "-f/--filename is required" in capsys.readouterr().err
    assert main(["check", "--from", str(tmp_path / "none.json"), "-f", str(cluster)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_same_check_says_the_same(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = []
    for _ in range(2):
        assert _check(cluster, _deployment("2", replicas=3), form="json") == 1
        answer.append(capsys.readouterr().out)
    assert answer[0] == answer[1]


@pytest.mark.parametrize(
    "text", ["", '{"apiVersion": "v1", "kind": "List", "items": null}', "\x00\x01 nothing of that kind"]
)
def test_a_dump_with_nothing_in_it_is_refused(text: str, cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.write_text(text)
    assert _check(cluster, _deployment("1")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {cluster}:")
    assert "Warning" not in err


def _limited(namespace: str, replicas: int) -> list[Raw]:
    """Return a Deployment in a namespace whose quota allows one pod."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one", "namespace": namespace}}
    made = _deployment("100m", replicas)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    return [
        space,
        {**quota, "spec": {"hard": {"pods": "1"}}},
        {**made, "metadata": {"name": "web", "namespace": namespace}},
    ]


@pytest.fixture
def broken(cluster: Path) -> Path:
    """Add a Deployment that has reached its quota, in another namespace, to the same cluster."""
    items = json.loads(cluster.read_text())["items"]
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, *_limited("other", 2)]}))
    return cluster


def test_what_was_broken_before_is_no_part_of_the_verdict(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(broken, _deployment("100m")) == 0
    assert capsys.readouterr().out.startswith("all fits\n")


def test_a_workload_that_lacks_more_pods_than_before_is_part_of_it(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _check(broken, _limited("other", 3)[-1]) == 1
    out = capsys.readouterr().out
    assert out.startswith(
        "does not fit: 1 workload without pods\n\n- Deployment other/web: pods of it are not created\n"
        "    cause: ResourceQuota "
    )
    assert _check(broken, _limited("other", 1)[-1]) == 0


def test_a_replica_set_and_its_deployment_count_as_one(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(cluster, *_limited("other", 2), form="junit") == 1
    suite = ElementTree.fromstring(capsys.readouterr().out)
    failed = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failed == ["Deployment other/web"]


def test_workloads_without_a_condition_for_it_are_found_by_the_pods_they_lack(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {**_deployment("100m", priorityClassName="nosuch")["spec"]}
    plain = {name: value for name, value in spec.items() if name != "replicas"}
    template = {**spec["template"], "spec": {**spec["template"]["spec"], "restartPolicy": "Never"}}
    raws = [
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "a"},
            "spec": {**spec, "serviceName": "a"},
        },
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "b"}, "spec": plain},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "c"}, "spec": {"template": template}},
    ]
    assert _check(cluster, *raws, form="json") == 1
    reported = json.loads(capsys.readouterr().out)
    assert [text.partition(":")[0] for text in reported["refused"]] == [
        "StatefulSet default/a",
        "DaemonSet default/b",
        "Job default/c",
    ]


def test_what_admission_rejects_does_not_fit(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = pod("direct", 0)
    plain["metadata"] = {"name": "direct", "namespace": "other"}
    assert _check(cluster, *_limited("other", 1), plain, form="json") == 1
    reported = json.loads(capsys.readouterr().out)
    assert reported["errors"] == reported["refused"] == []
    assert reported["forbidden"][0].startswith('Pod other/direct: pods "direct" is forbidden: exceeded quota: one')


def test_flags_and_files_are_checked_before_the_dump_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unexpected(options: object) -> None:
        raise AssertionError("the dump was loaded")

    monkeypatch.setattr("kschedd.commands.offline.check.dumped_cluster", unexpected)
    assert main(["check", "--from", "dump.json"]) == 2
    assert capsys.readouterr().err.startswith("error: -f/--filename is required")
    assert main(["check", "--from", "dump.json", "-f", str(tmp_path / "nope.yaml")]) == 2
    assert "nope.yaml: cannot be read" in capsys.readouterr().err
