"""Tests of `kschedd simulate`: input, output and exit status."""

import argparse
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kschedd.commands.studies.simulate import add_parser
from tests.conftest import SharedPart
from tests.full_run import part

ROOT = Path(__file__).parents[2]
CLUSTER = str(ROOT / "examples/clusters/three-nodes.yaml")
HEADING = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)


def simulate(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    options = parser.parse_args(["simulate", *arguments])
    status: int = options.run(options)
    return status


def summary(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def pod(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def written(folder: Path, *objects: dict[str, Any], name: str = "things.yaml") -> str:
    path = folder / name
    path.write_text("\n---\n".join(map(json.dumps, objects)))
    return str(path)


def test_everything_placed_is_status_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("-f", CLUSTER, "-f", written(tmp_path, pod("a"), pod("b")), "-o", "json") == 0
    found = summary(capsys)
    assert (found["placed"], found["pending"], found["nodes"], found["seed"]) == (2, 0, 3, 0)
    assert found["decisions_per_second"] > 0
    assert set(found["placements"]) == {"default/a", "default/b"}
    assert found["utilisation"]["cpu"] == {"mean": 0.016667, "max": 0.016667, "end": 0.016667, "capacity": 12000}


def test_what_is_pending_is_told_with_its_message_and_is_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, pod("a"), pod("big", "64"), pod("shy", schedulerName="other"))
    assert simulate("-f", CLUSTER, "-f", path, "-o", "json") == 1
    found = summary(capsys)
    assert [each["pod"] for each in found["pending_pods"]] == ["default/big", "default/shy"]
    assert found["pending_pods"][0]["message"].startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert 'scheduler "other"' in found["pending_pods"][1]["message"]
    assert simulate("-f", CLUSTER, "-f", path, "--allow-pending") == 0


def test_workloads_make_their_pods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "app"}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 5, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    assert simulate("-f", CLUSTER, "-f", written(tmp_path, deployment), "-o", "json") == 0
    assert summary(capsys)["placed"] == 5


def test_a_broken_manifest_is_told_with_its_place_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps(pod("good")) + "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec:\n  containers: 7\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert simulate("-f", CLUSTER, "-f", "-", "-o", "json") == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["placed"] == 1
    assert "error: <stdin>:7: Pod bad: spec.containers: " in err


@pytest.mark.parametrize(
    ("validate", "status", "answer"), [("strict", 2, "error: "), ("warn", 0, "Warning: "), ("ignore", 0, "")]
)
def test_fields_that_a_kind_does_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], validate: str, status: int, answer: str
) -> None:
    misspelt = pod("a")
    misspelt["spec"]["nodeselector"] = {"a": "b"}
    assert simulate("-f", CLUSTER, "-f", written(tmp_path, misspelt), "--validate", validate) == status
    err = capsys.readouterr().err
    assert err.startswith(answer)
    assert ('unknown field "spec.nodeselector"; did you mean "nodeSelector"?' in err) == bool(answer)


def test_namespaces_that_are_not_known_are_warnings_and_kinds_are_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = pod("a")
    elsewhere["metadata"]["namespace"] = "shop"
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    assert simulate("-f", CLUSTER, "-f", written(tmp_path, elsewhere, gadget)) == 2
    err = capsys.readouterr().err
    assert 'no manifest has namespace "shop"' in err
    assert 'no matches for kind "Gadget" in version "example.com/v1"' in err


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        pytest.param([], "no input: give", id="no-input"),
        pytest.param(["-f", CLUSTER, "--config", "/nowhere/config.yaml"], "cannot be read", id="no-config"),
        pytest.param(["-f", CLUSTER, "--plugin", "/nowhere/plugin.py"], "no such file", id="no-plugin"),
        pytest.param(["--nodes", "/nowhere/nodes.csv"], "cannot be read", id="no-trace"),
        pytest.param(["-f", CLUSTER, "--decisions", "/nowhere/log"], "cannot be written", id="no-log"),
    ],
)
def test_what_cannot_be_used_is_status_2_and_one_sentence(
    arguments: list[str], answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(*arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert answer in err


def test_a_dump_with_nothing_in_it_is_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "cluster.json"
    dump.write_text('{"apiVersion": "v1", "kind": "List", "items": []}')
    assert simulate("--from", str(dump)) == 2
    assert capsys.readouterr().err == f"error: {dump}: no Kubernetes objects found\n"


def test_a_configuration_with_an_unknown_plugin_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- plugins: {filter: {enabled: [{name: NoSuch}]}}\n"
    )
    assert simulate("-f", CLUSTER, "--config", str(config)) == 2
    err = capsys.readouterr().err
    assert f"{config}:4: " in err
    assert "NoSuch" in err


def test_a_plugin_file_and_a_configuration_that_enables_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = tmp_path / "only.py"
    plugin.write_text(
        "from kschedd.framework.status import unschedulable\n"
        "class OnlyNodeTwo:\n"
        "    name = 'OnlyNodeTwo'\n"
        "    def filter(self, state, pod, node):\n"
        "        return None if node.name == 'node-2' else unschedulable('not node-2')\n"
    )
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- plugins: {multiPoint: {enabled: [{name: OnlyNodeTwo}]}}\n"
    )
    path = written(tmp_path, pod("a"), pod("b"))
    arguments = ["-f", CLUSTER, "-f", path, "--plugin", str(plugin), "--config", str(config), "-o", "json"]
    assert simulate(*arguments) == 0
    assert set(summary(capsys)["placements"].values()) == {"node-2"}


def trace(folder: Path, *rows: str) -> list[str]:
    nodes, pods = folder / "nodes.csv", folder / "pods.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,4000,8192,0,\n")
    pods.write_text(HEADING + "".join(f"{row}\n" for row in rows))
    return ["--nodes", str(nodes), "--pods", str(pods)]


def test_pods_of_a_trace_come_and_go_at_their_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = trace(
        tmp_path,
        "first,4000,1024,0,0,,LS,Running,0,100,0",
        "second,2000,1024,0,0,,LS,Running,50,300,100",  # waits for the end of the first pod
        "short,4000,1024,0,0,,LS,Running,200,250,",  # never has room
        "flash,1000,1024,0,0,,LS,Running,260,260,260",  # created and deleted at the same time, and scheduled
    )
    log = tmp_path / "decisions"
    assert simulate(*given, "-o", "json", "--decisions", str(log)) == 1
    found = summary(capsys)
    assert (found["placed"], found["pending"]) == (3, 1)
    assert found["pending_pods"][0] | {"message": ""} == {
        "pod": "default/short",
        "message": "",
        "kind": "Pod",
        "deleted": True,
    }
    assert found["virtual_seconds"] == 300
    # 4 CPUs for 100 s and 2 CPUs for 200 s, of 4 CPUs in 300 s
    assert found["utilisation"]["cpu"]["mean"] == pytest.approx(800 / 1200)
    assert found["utilisation"]["cpu"]["max"] == 1.0
    placed = [json.loads(line) for line in log.read_text().splitlines() if '"node":"n1"' in line]
    assert [(each["pod"], each["time_s"]) for each in placed] == [
        ("default/first", 0.0),
        ("default/second", 100.0),
        ("default/flash", 260.0),
    ]


def test_until_stops_at_that_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = trace(tmp_path, "first,1000,1024,0,0,,LS,Running,0,100,0", "late,1000,1024,0,0,,LS,Running,90,100,90")
    assert simulate(*given, "--until", "60s", "-o", "json") == 0
    found = summary(capsys)
    assert (found["placed"], found["virtual_seconds"]) == (1, 60)


def test_a_workload_whose_pods_are_refused_is_pending_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {"containers": [{"name": "c", "image": "app"}], "priorityClassName": "no-such"}
    replicas = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec},
        },
    }
    assert simulate("-f", CLUSTER, "-f", written(tmp_path, replicas), "-o", "json") == 1
    (pending,) = summary(capsys)["pending_pods"]
    assert (pending["pod"], pending["kind"]) == ("default/web", "ReplicaSet")
    assert "no PriorityClass with name no-such was found" in pending["message"]


def mixed(folder: Path) -> str:
    """Return a workload with spreading, affinity, preemption, gates and workloads."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    near = {
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 5,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"app": "web"}},
                    },
                }
            ]
        }
    }
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"web-{number}"},
            "spec": {
                "replicas": 4,
                "selector": {"matchLabels": {"app": "web", "n": str(number)}},
                "template": {
                    "metadata": {"labels": {"app": "web", "n": str(number)}},
                    "spec": {**pod("x", "400m")["spec"], "topologySpreadConstraints": [spread], "affinity": near},
                },
            },
        }
        for number in range(6)
    ]
    objects += [pod(f"large-{number}", "1500m") for number in range(8)]
    objects += [pod(f"old-{number}", "1", nodeName=f"node-{1 + number % 3}") for number in range(9)]
    objects += [pod(f"urgent-{number}", "2", priorityClassName="system-cluster-critical") for number in range(2)]
    objects += [pod("gated", schedulingGates=[{"name": "example.com/gate"}]), pod("huge", "99")]
    return written(folder, *objects, name="mixed.yaml")


def test_the_same_seed_gives_the_same_decisions_whatever_the_hash_seed(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    logs = []
    for hash_seed in part(2, ("0", "1", "77")):
        log = tmp_path / f"log-{hash_seed}"
        command = [sys.executable, "-m", "kschedd", "simulate", "-f", CLUSTER, "-f", path]
        command += ["--seed", "3", "--decisions", str(log), "--allow-pending", "-o", "json"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["preempted"] > 0
        logs.append(log.read_bytes())
    assert len(logs[0].splitlines()) > 30
    assert len(logs) >= 2
    assert len(set(logs)) == 1


@pytest.mark.full
def test_the_recorded_gpu_cluster_is_placed_whole(shared_part: SharedPart, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared_part("realworld") / "alibaba-gpu-2023"
    nodes, pods = str(folder / "node_list_all.csv"), str(folder / "pod_list_default.csv")
    assert simulate("--nodes", nodes, "--pods", pods, "-o", "json") == 0
    found = summary(capsys)
    assert (found["nodes"], found["placed"], found["pending"]) == (1523, 8152, 0)


def test_the_demo_shop_fits_three_nodes(shared_part: SharedPart, capsys: pytest.CaptureFixture[str]) -> None:
    shop = str(shared_part("realworld") / "online-boutique/kubernetes-manifests.yaml")
    assert simulate("-f", CLUSTER, "-f", shop, "-o", "json") == 0
    found = summary(capsys)
    assert (found["placed"], found["pending"]) == (12, 0)
    assert set(found["placements"].values()) == {"node-1", "node-2", "node-3"}


def test_the_audit_counts_wake_ups_and_finds_none_missed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = trace(
        tmp_path,
        "first,4000,1024,0,0,,LS,Running,0,100,0",
        "second,3000,1024,0,0,,LS,Running,10,300,100",  # woken by the end of the first pod
        "third,2000,1024,0,0,,LS,Running,20,150,",  # woken as well, in vain
    )
    assert simulate(*given, "--audit", "--allow-pending", "-o", "json") == 0
    audit = summary(capsys)["audit"]
    assert audit["missed"] == []
    assert audit["dry_runs"] > 0
    assert {"plugin": "NodeResourcesFit", "event": "AssignedPodDelete", "helped": 1, "in_vain": 1} in audit["wakeups"]
    simulate(*given, "--audit")
    assert "audit: 0 missed wake-ups in" in capsys.readouterr().out


def test_the_table_says_what_stays_pending_and_how_full_the_cluster_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulate("-f", CLUSTER, "-f", written(tmp_path, pod("a", "2"), pod("x", "64"), pod("y", "64")), "--seed", "4")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "3 nodes, 0s of virtual time, seed 4"
    assert lines[1] == "1 pods placed, 2 pending, 0 preempted"
    assert any(line.split() == ["cpu", "16.7%", "16.7%", "16.7%", "12"] for line in lines)
    assert "pending: default/x and 1 more" in lines


def test_a_scenarios_decisions_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    scenario = str(ROOT / "examples/scenarios/gang.txt")
    assert simulate("--scenario", scenario, "--decisions", str(log)) == 0
    decisions = [json.loads(line) for line in log.read_text().splitlines()]
    assert {decision["pod"] for decision in decisions} >= {"default/red-1", "default/red-4"}
    first = log.read_bytes()
    assert simulate("--scenario", scenario, "--decisions", str(log)) == 0
    assert log.read_bytes() == first


@pytest.mark.parametrize("flags", [["-f", CLUSTER], ["--seed", "1"], ["--audit"], ["-o", "json"]])
def test_a_scenario_takes_no_cluster_besides(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("--scenario", str(ROOT / "examples/scenarios/gang.txt"), *flags) == 2
    assert f"{flags[0]} cannot be combined with --scenario" in capsys.readouterr().err
    assert simulate("--rewrite", "-f", CLUSTER) == 2


def test_a_generated_workload_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--generate", "40", "--arrival-rate", "2", "--lifetime", "30s", "--pod-shape", "cpu=1"]
    assert simulate(*given, "--generate-nodes", "3", "--node-shape", "cpu=8", "-o", "json") == 0
    found = summary(capsys)
    assert (found["placed"], found["pending"], found["nodes"]) == (40, 0, 3)


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        pytest.param(("--lifetime", "1m"), "--lifetime requires --generate", id="lifetime-of-nobody"),
        pytest.param(("--node-shape", "cpu=1"), "--node-shape requires --generate-nodes", id="shape-of-none"),
        pytest.param(("--generate", "-1"), "--generate, --generate-nodes: must be 0 to", id="fewer-than-none"),
        pytest.param(("--generate", "1", "--lifetime", "soon"), 'invalid duration "soon"', id="no-duration"),
        pytest.param(
            ("--generate", "1", "--arrival-rate", "0"), "--arrival-rate 0: must be 1e-09 to", id="nobody-arrives"
        ),
        pytest.param(
            ("--generate", "1", "--arrival-rate", "1e-300"), "1e-300: must be 1e-09 to", id="nobody-arrives-for-ages"
        ),
        pytest.param(
            ("--generate", "1", "--pod-shape", "cpu=1,weight=0"),
            "at least one weight must be greater than 0",
            id="no-weight",
        ),
        pytest.param(("--generate", "1", "--fill", "cpu=1"), "exclude each other", id="beside-a-trace"),
    ],
)
def test_a_workload_that_cannot_be_generated_is_status_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], reported: str
) -> None:
    assert simulate(*arguments) == 2
    assert reported in capsys.readouterr().err


def test_many_pods_are_counted_by_workload_and_zone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("web", "1")["spec"]}
    spec = {"replicas": 30, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    (tmp_path / "web.json").write_text(json.dumps(web))
    (tmp_path / "single.json").write_text(json.dumps(pod("single")))
    files = ["-f", CLUSTER, "-f", str(tmp_path / "web.json"), "-f", str(tmp_path / "single.json")]
    assert simulate(*files, "-o", "json") == 1
    found = summary(capsys)
    workloads = {each["name"]: each for each in found["summary"]["workloads"]}
    assert {name: each["pods"] for name, each in workloads.items()} == {"Deployment default/web": 30, "": 1}
    assert sum(each["pending"] for each in workloads.values()) == found["pending"]
    assert sum(each["after"] for each in found["summary"]["zones"]) == len(found["placements"])
    assert simulate(*files) == 1
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert f"Deployment default/web 30 {workloads['Deployment default/web']['pending']}" in lines
    assert lines.index("WORKLOAD PODS PENDING") < lines.index("RESOURCE MEAN MAX END CAPACITY")
