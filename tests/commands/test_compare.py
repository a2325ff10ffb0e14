"""Tests of `kschedd compare --kube-version` without a daemon, with a dump or a scenario: output and exit status."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kschedd.cli import main

VERSIONS = ("compare", "--kube-version", "1.34,1.36")


def node(name: str, cpu: int) -> dict[str, Any]:
    has = {"cpu": str(cpu), "memory": f"{cpu}Gi", "pods": "110"}
    meta = {"name": name, "uid": f"u-{name}"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"capacity": has, "allocatable": has}}


def pod(name: str, on: str, cpu: str, memory: str) -> dict[str, Any]:
    asks = {"requests": {"cpu": cpu, "memory": memory}}
    spec = {"nodeName": on, "containers": [{"name": "c", "image": "i", "resources": asks}]}
    meta = {"name": name, "namespace": "default", "uid": f"u-{name}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running"}}


@pytest.fixture
def dump(tmp_path: Path) -> str:
    """Write a cluster in which 1.36 puts the pod `heavy` where it balances the usage of cpu and memory."""
    there = [pod("filler", "uneven", "8", "1Gi"), pod("heavy", "even", "100m", "1900Mi")]
    items = [node("even", 4), node("uneven", 16), *there]
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def test_pods_of_a_dump_that_would_be_placed_elsewhere(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*VERSIONS, "--from", dump, "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["versions"], found["pods"], found["pending"]) == (["1.34", "1.36"], 2, [0, 0])
    [different] = found["different"]
    assert (different["pod"], different["a"], different["b"]) == ("default/heavy", "even", "uneven")
    assert different["rules"] == ["balance_before_and_after"]
    assert [(rule["rule"], rule["pods"]) for rule in found["rules"]] == [("balance_before_and_after", 1)]


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("table", "~ default/heavy: even -> uneven (balance_before_and_after)"),
        ("markdown", "| default/heavy | even | uneven | balance\\_before\\_and\\_after |"),
        ("html", "<td>default/heavy</td><td>even</td><td>uneven</td><td>balance_before_and_after</td>"),
    ],
)
def test_the_forms_of_the_answer(dump: str, capsys: pytest.CaptureFixture[str], form: str, line: str) -> None:
    assert main([*VERSIONS, "--from", dump, "-o", form]) == 1
    assert line in capsys.readouterr().out


def test_versions_that_decide_alike(dump: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--kube-version", "1.34.1,1.34", "--from", dump]) == 0
    assert capsys.readouterr().out == "1.34.1 -> 1.34: 2 pods, none placed elsewhere; pending 0 -> 0\n"


@pytest.fixture
def tainted(tmp_path: Path) -> str:
    """Write a cluster with a pending pod that requests a device, and a rule that taints the first node's devices."""
    resources = "resource.k8s.io/v1"
    items = [node("a", 4), node("b", 4), _device("a"), _device("b")]
    items.append({"apiVersion": resources, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}})
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    rule = {"deviceSelector": {"pool": "a"}, "taint": taint}
    items.append({"apiVersion": resources, "kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": rule})
    asks = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    meta = {"name": "c", "namespace": "default"}
    items.append({"apiVersion": resources, "kind": "ResourceClaim", "metadata": meta, "spec": asks})
    pending = pod("p", "", "1", "1Gi")
    pending["spec"] |= {"resourceClaims": [{"name": "d", "resourceClaimName": "c"}]}
    items.append({**pending, "status": {"phase": "Pending"}})
    file = tmp_path / "tainted.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def _device(on: str) -> dict[str, Any]:
    pool = {"name": on, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": on, "devices": [{"name": "d0"}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": on}, "spec": spec}


@pytest.mark.parametrize(
    ("versions", "nodes"), [("1.36,1.37", ("a", "b")), ("1.37,1.36", ("b", "a")), ("1.37,1.34", ("b", "a"))]
)
def test_a_pending_pod_is_decided_about_by_each_version_anew(
    tainted: str, capsys: pytest.CaptureFixture[str], versions: str, nodes: tuple[str, str]
) -> None:
    assert main(["compare", "--kube-version", versions, "--from", tainted, "-o", "json"]) == 1
    printed = capsys.readouterr()
    [different] = json.loads(printed.out)["different"]
    assert (different["a"], different["b"]) == nodes
    assert "device_taint_rules" in different["rules"]
    assert "without any effect here" not in printed.err


def _config(file: Path, *without: str) -> str:
    scores = {"disabled": [{"name": name} for name in without]}
    profile = {"schedulerName": "default-scheduler", "plugins": {"score": scores}}
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    file.write_text(json.dumps(raw))
    return str(file)


def test_versions_by_a_configuration_of_ones_own(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = _config(tmp_path / "config.json", "NodeResourcesBalancedAllocation")
    assert main([*VERSIONS, "--from", dump, "--config", config]) == 0
    assert capsys.readouterr().out == "1.34 -> 1.36: 2 pods, none placed elsewhere; pending 0 -> 0\n"


def test_two_configurations_on_the_cluster_of_a_dump(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = pod("more", "", "100m", "1900Mi")
    del made["spec"]["nodeName"], made["status"], made["metadata"]["uid"]
    (tmp_path / "more.json").write_text(json.dumps(made))
    both = _config(tmp_path / "a.json"), _config(tmp_path / "b.json", "NodeResourcesFit")
    words = [word for file in both for word in ("--config", file)]
    status = main(["compare", *words, "--from", dump, "-f", str(tmp_path / "more.json"), "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    assert found["pods"] == 1
    assert status == (1 if found["different"] else 0)


def test_configurations_decide_about_every_pod_of_the_cluster(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [_config(tmp_path / "now.json"), _config(tmp_path / "fit.json", "NodeResourcesBalancedAllocation")]
    words = ["compare", *(word for file in both for word in ("--config", file)), "--from", dump]
    assert main([*words, "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["configs"], found["versions"], found["pods"], found["pending"]) == (both, [], 2, [0, 0])
    [different] = found["different"]
    assert (different["pod"], different["change"]) == ("default/heavy", "moved")
    assert found["plugins"] == [{"plugin": different["plugin"], "pods": 1}]
    [namespace] = found["summary"]["namespaces"]
    assert namespace == {"name": "default", "pods": 2, "changed": 1, "pending_before": 0, "pending": 0}
    for form, line in (
        ("table", f"~ default/heavy: {different['a']} -> {different['b']}"),
        ("markdown", "| default/heavy |"),
        ("html", "<td>default/heavy</td>"),
    ):
        assert main([*words, "-o", form]) == 1
        assert line in capsys.readouterr().out


def test_many_pods_that_differ_begin_with_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table with more than ten rows is summarized, with the most frequent differences first."""
    nodes = [node("free", 8), node("used", 8)]
    for each, zone in zip(nodes, "ab", strict=True):
        each["metadata"]["labels"] = {"topology.kubernetes.io/zone": zone}
    pods = []
    for number in range(30):
        each = pod(f"p{number}", "used", "200m", "10Mi")
        each["metadata"] |= {"namespace": f"n{number % 12}", "uid": f"u{number}"}
        pods.append(each)
    (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes + pods}))
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    now = _config(tmp_path / "now.json")
    raw = json.loads(Path(now).read_text())
    raw["profiles"][0]["pluginConfig"] = [fit]
    (tmp_path / "packed.json").write_text(json.dumps(raw))
    words = ["compare", "--config", now, "--config", str(tmp_path / "packed.json")]
    assert main([*words, "--from", str(tmp_path / "dump.json"), "--limit", "1"]) == 1
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "NAMESPACE PODS PENDING" in lines
    assert "n0 3 0" in lines
    assert "... and 2 more (-o json lists all)" in lines
    assert lines[lines.index("ZONE PODS BEFORE PODS AFTER") + 1] == "a 30 0"
    assert "... and 29 more pods (--limit)" in lines


def test_a_plugin_of_ones_own_decides(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = tmp_path / "largest.py"
    plugin.write_text(
        "from kschedd.plugin import Plugin\n\n\n"
        "class Even(Plugin):\n"
        '    name = "Even"\n\n'
        "    def score(self, state, pod, node):\n"
        '        return 100 if node.name == "even" else 0\n'
    )
    now = _config(tmp_path / "now.json")
    raw = json.loads(Path(now).read_text())
    raw["profiles"][0]["plugins"]["score"]["enabled"] = [{"name": "Even", "weight": 100}]
    (tmp_path / "new.json").write_text(json.dumps(raw))
    words = ["compare", "--config", now, "--config", str(tmp_path / "new.json"), "--plugin", str(plugin)]
    assert main([*words, "--from", dump, "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(each["pod"], each["b"], each["plugin"]) for each in found["different"]] == [
        ("default/heavy", "even", "Even")
    ]
    assert main(words) == 2
    assert "--plugin requires --from" in capsys.readouterr().err


def test_a_faulty_configuration_is_named(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = _config(tmp_path / "good.json"), tmp_path / "bad.yaml"
    bad.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofils: []\n")
    assert main(["compare", "--config", good, "--config", str(bad), "--from", dump]) == 2
    assert f"{bad}:3: " in capsys.readouterr().err


def test_a_workload_for_the_cluster_of_a_dump(dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = pod("more", "", "100m", "1900Mi")
    del made["spec"]["nodeName"], made["status"], made["metadata"]["uid"]
    (tmp_path / "more.json").write_text(json.dumps(made))
    status = main([*VERSIONS, "--from", dump, "-f", str(tmp_path / "more.json"), "-o", "json"])
    found = json.loads(capsys.readouterr().out)
    assert found["pods"] == 1
    assert status == (1 if found["different"] else 0)
    assert [pod["pod"] for pod in found["different"]] in ([], ["default/more"])


def test_a_pod_being_resized_takes_more_room_by_one_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    there = pod("resized", "n1", "100m", "1Gi")
    there["spec"]["resources"] = {"requests": {"cpu": "1"}}
    there["status"]["resources"] = {"requests": {"cpu": "3"}}
    wanted = pod("more", "", "2", "1Gi")
    del wanted["spec"]["nodeName"], wanted["status"], wanted["metadata"]["uid"]
    (tmp_path / "dump.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("n1", 4), there]})
    )
    (tmp_path / "more.json").write_text(json.dumps(wanted))
    words = ("--from", str(tmp_path / "dump.json"), "-f", str(tmp_path / "more.json"), "-o", "json")
    assert main([*VERSIONS, *words]) == 1
    [different] = json.loads(capsys.readouterr().out)["different"]
    assert (different["pod"], different["change"]) == ("default/more", "pending")
    assert different["rules"] == ["pod_level_resize"]


def test_a_workload_keeps_the_fields_that_the_newer_version_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1.34 drops image volumes, 1.35 keeps them, and 1.36 counts their images."""
    there = [node("a", 8), node("b", 4)]
    there[1]["status"]["images"] = [{"names": ["models:1"], "sizeBytes": 900 * 2**20}]
    wanted = pod("more", "", "100m", "100Mi")
    del wanted["spec"]["nodeName"], wanted["status"], wanted["metadata"]["uid"]
    wanted["spec"]["volumes"] = [{"name": "v", "image": {"reference": "models:1"}}]
    (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": there}))
    (tmp_path / "more.json").write_text(json.dumps(wanted))
    words = ("--from", str(tmp_path / "dump.json"), "-f", str(tmp_path / "more.json"), "-o", "json")
    assert main([*VERSIONS, *words]) == 1
    [different] = json.loads(capsys.readouterr().out)["different"]
    assert (different["a"], different["b"]) == ("a", "b")
    assert different["rules"] == ["image_volumes_scored", "fields_of_1_35"]
    assert different["together"]


def test_the_pods_of_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "small.txt"
    objects = [node("even", 4), {**node("tainted", 4), "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}]
    wanted = pod("big", "", "8", "1Gi")
    del wanted["spec"]["nodeName"], wanted["status"]
    for each in (*objects, wanted):
        del each["metadata"]["uid"]
    text = "".join(f"---\n{json.dumps(each)}\n" for each in (*objects, wanted))
    scenario.write_text(f"apply -f -\n{text}----\n...\n")
    assert main(["compare", "--kube-version", "1.34.1,1.36", "--scenario", str(scenario), "-o", "json"]) == 1
    [different] = json.loads(capsys.readouterr().out)["different"]
    assert (different["pod"], different["change"]) == ("default/big", "message")
    assert different["rules"] == ["untolerated_taints_unnamed"]


def test_what_a_scenario_says_of_its_version_and_gates(
    dump: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The compared versions override the scenario's version; each uses the scenario's feature gates that it has."""
    scenario = tmp_path / "gang.txt"
    gates = "feature-gates GenericWorkload=true,GangScheduling=true"
    wanted = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}}
    wanted["spec"] = {
        "schedulingGroup": {"podGroupName": "g"},
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
    }
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"}}
    group["spec"] = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    has = {"cpu": "4", "memory": "4Gi", "pods": "110"}
    n = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": has, "capacity": has}}
    text = "".join(f"---\n{json.dumps(each)}\n" for each in (n, group, wanted))
    scenario.write_text(f"kube-version 1.36\n----\n\n{gates}\n----\n\napply -f -\n{text}----\n...\n")
    words = ("--scenario", str(scenario), "-o", "json")
    assert main([*VERSIONS, *words]) == 1
    found = json.loads(capsys.readouterr().out)
    [different] = found["different"]
    assert (different["a"], different["b"], different["rules"]) == ("", "n", ["pod_groups"])
    assert (different["why_a"], found["pending"]) == ("no attempt was made", [0, 0])
    workload = tmp_path / "workload.yaml"
    workload.write_text(text)
    assert main([*VERSIONS, "--from", dump, "-f", str(workload)]) == 2
    assert 'by 1.34: -f[1]: no matches for kind "PodGroup"' in capsys.readouterr().err
    scenario.write_text(f"{gates},Nothing=true\n----\n")
    assert main([*VERSIONS, *words]) == 2
    assert "gang.txt:1: --feature-gates: $.Nothing: true: no such feature gate" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["compare", "--kube-version", "1.34,1.36"], ["fork", "diff", "x"]])
def test_no_daemon_is_no_difference(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--socket", str(tmp_path / "none"), *words]) == 2
    assert "no daemon at" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--kube-version", "1.34,1.33", "--from", "DUMP"], 'Kubernetes "1.33" is not supported'),
        (["--kube-version", "1.34", "--from", "DUMP"], "two versions are expected"),
        (["--kube-version", "1.34,1.36", "--from", "gone.yaml"], "gone.yaml"),
        (["--kube-version", "1.34,1.36", "--scenario", "gone.txt"], "gone.txt"),
        (["--kube-version", "1.34,1.36", "--scenario", "a.txt", "--from", "DUMP"], "the scenario has its own pods"),
        (["--kube-version", "1.34,1.36", "--from", "DUMP", "-o", "xml"], "table, json, yaml, markdown, html"),
        (["--kube-version", "1.34,1.36", "--from", "DUMP", "-f", os.devnull], "no objects found"),
        (["--config", "a.yaml", "--from", "DUMP"], "error: a.yaml: cannot be read: No such file or directory\n"),
        (["--from", "DUMP"], "--weight PLUGIN=N, --config FILE (once or twice) or --kube-version A,B is required"),
        (["--config", "a.yaml", "--config", "b.yaml", "--scenario", "a.txt"], "requires --kube-version"),
        (["--kube-version", "1.34,1.36", "--config", "a.yaml"], "accepts one --config, and only together with --from"),
        (
            ["--kube-version", "1.34,1.36", "--from", "DUMP", "-o", "pdf"],
            'unknown output format "pdf": allowed are table, json, yaml, markdown, html',
        ),
    ],
)
def test_what_cannot_be_compared(dump: str, capsys: pytest.CaptureFixture[str], words: list[str], why: str) -> None:
    assert main(["compare", *(dump if word == "DUMP" else word for word in words)]) == 2
    assert why in capsys.readouterr().err
