"""Tests of formats of traces: parsed rows, faults of invalid rows, conversion, samples and fitted generators."""

import gzip
import json
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import msgpack
import pytest

from kschedd import sweep
from kschedd.cli import main
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.simulation.formats.mapped import read_mapping
from kschedd.simulation.formats.reading import format_of, read_trace
from kschedd.simulation.formats.tables import TraceError
from kschedd.simulation.workloads.fitting import FittedWorkload, fit, read_fitted
from kschedd.simulation.workloads.trace import GPU_MILLI, GPU_MODEL, Trace, TracePod

SPOT = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"
SPOT_NODES = "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,2,128,0\nH800,8,192,1\n"
DLRM = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
    "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
)
SWF = (
    "; MaxProcs: 64\n 1 0 5 100 4 -1 1048576 4 -1 -1 1 3 1 -1 2 -1 -1 -1\n"
    " 2 9 -1 -1 -1 -1 -1 -1 -1 -1 5 3 1 -1 2 -1 -1 -1\n"
)
GOOGLE = (
    "time,type,collection_id,instance_index,priority,cpus,memory\n"
    "0,0,7,0,200,0.25,0.125\n600000000,3,7,0,200,0.25,0.125\n660000000,4,7,0,200,0.25,0.125\n"
    "661000000,0,7,0,200,0.25,0.125\n9223372036854775807,6,7,0,200,0.25,0.125\n"
)
FILES = {
    "spot.csv": f"{SPOT}9,13,A10,20,1,2,5,100,HP\n10,13,,8,0.5,1,6,0,Spot\n",
    "dlrm.csv": f"{DLRM}instance_0,HN,app_0,12,12,1,1,25,25,120.0,120.0,640.0,800.0,8,,,\n"
    "instance_1,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,14.0,15.0,NaN\n",
    "jobs.swf": SWF,
    "events.csv": GOOGLE,
}


def put(folder: Path, name: str) -> Path:
    (folder / name).write_text(FILES[name])
    return folder / name


def asked(pod: TracePod) -> dict[str, str]:
    return pod.raw["spec"]["containers"][0]["resources"]["requests"]


def times(trace: Trace) -> list[tuple[str, float, float | None]]:
    return [(pod.raw["metadata"]["name"], pod.created_s, pod.deleted_s) for pod in trace.pods]


def test_a_spot_job_is_a_pod_for_each_worker_with_its_priority(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(SPOT_NODES)
    trace = read_trace(tmp_path / "nodes.csv", put(tmp_path, "spot.csv"))
    assert times(trace) == [("job-9-0", 5, 105), ("job-9-1", 5, 105), ("job-10-0", 6, 6)]
    first, _, last = trace.pods
    assert asked(first) == {"cpu": "20000m", GPU_MILLI: "1000"}
    assert (first.raw["spec"]["nodeSelector"], first.raw["spec"]["priorityClassName"]) == (
        {GPU_MODEL: "A10"},
        "priority-1000",
    )
    assert first.raw["metadata"]["labels"] == {"job": "job-9", "organization": "13", "job-type": "HP"}
    assert asked(last)[GPU_MILLI] == "500"
    assert not {"nodeSelector", "priorityClassName"} & set(last.raw["spec"])
    assert [(raw["kind"], raw["metadata"]["name"]) for raw in trace.objects] == [
        ("PriorityClass", "priority-1000"),
        ("Node", "node-0"),
        ("Node", "node-1"),
    ]


def test_a_dlrm_instance_without_a_creation_time_is_there_from_the_start(tmp_path: Path) -> None:
    trace = read_trace(None, put(tmp_path, "dlrm.csv"))
    assert times(trace) == [("instance-0", 0, None), ("instance-1", 14, None)]
    assert asked(trace.pods[0]) == {
        "cpu": "12000m",
        "memory": "122880Mi",
        GPU_MILLI: "1000",
        "ephemeral-storage": "640Gi",
        "alibabacloud.com/rdma-percent": "25",
    }
    assert trace.pods[1].scheduled_s == 15


def test_times_are_read_to_the_microsecond(tmp_path: Path) -> None:
    text = FILES["dlrm.csv"].replace("14.0,15.0,NaN", "2083600.0000000002,2083600.5,2083601.0000000002")
    (tmp_path / "dlrm.csv").write_text(text)
    assert times(read_trace(None, tmp_path / "dlrm.csv"))[1][1:] == (2083600, 2083601)


def test_a_message_has_the_first_twenty_faults(tmp_path: Path) -> None:
    (tmp_path / "spot.csv").write_text(SPOT + "9,13,A10,20,1,2,x,y,HP\n" * 15)
    with pytest.raises(TraceError) as refused:
        read_trace(None, tmp_path / "spot.csv")
    lines = str(refused.value).splitlines()
    assert len(refused.value.faults) > 30
    assert (len(lines), lines[-1]) == (21, f"... and {len(refused.value.faults) - 20} more faults")


def test_a_list_of_requests_alone_is_there_from_the_start(tmp_path: Path) -> None:
    text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,2048,1,500\nb,2000,2048,0,0\n"
    (tmp_path / "multigpu20.csv").write_text(text)
    trace = read_trace(None, tmp_path / "multigpu20.csv")
    assert times(trace) == [("a", 0, None), ("b", 0, None)]
    assert asked(trace.pods[0])[GPU_MILLI] == "500"
    assert trace.pods[0].raw["metadata"]["labels"] == {}


def test_an_swf_job_ends_after_its_wait_and_run_and_one_that_never_ran_is_left_out(tmp_path: Path) -> None:
    path = put(tmp_path, "jobs.swf")
    packed = tmp_path / "packed.swf.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for each in (path, packed):
        trace = read_trace(None, each)
        assert times(trace) == [("job-1", 0, 105)]
        assert asked(trace.pods[0]) == {"cpu": "4000m", "memory": "4096Mi"}  # 1 GiB for each of four processors
        assert trace.pods[0].raw["metadata"]["labels"] == {"user": "3", "group": "1", "queue": "2"}


def test_an_instance_of_google_that_is_submitted_again_is_another_pod(tmp_path: Path) -> None:
    trace = read_trace(None, put(tmp_path, "events.csv"))
    assert times(trace) == [("collection-7-0", 0, 60), ("collection-7-0-2", 61, None)]
    assert asked(trace.pods[0]) == {"cpu": "16000m", "memory": "32768Mi"}
    assert trace.priorities == (200,)


def test_a_mapping_file_names_the_columns_of_any_table(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("id,at,ran,num,who,cores,mb\na,5,10,2,red,0.5,100\nb,6,,1,blue,2,0\n")
    (tmp_path / "map.yaml").write_text(
        "{name: id, created: at, duration: ran, pods: num, labels: {team: who},"
        " requests: {cpu: cores, memory: {column: mb, unit: Mi}}}"
    )
    trace = read_trace(None, tmp_path / "jobs.csv", read_mapping(tmp_path / "map.yaml"))
    assert times(trace) == [("a-0", 5, 15), ("a-1", 5, 15), ("b", 6, None)]
    assert [asked(pod) for pod in trace.pods[1:]] == [{"cpu": "0.5", "memory": "100Mi"}, {"cpu": "2"}]
    assert trace.pods[0].raw["metadata"]["labels"] == {"job": "a", "team": "red"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{name: id, created: at}", "requests: a mapping of resources to columns is required"),
        ("{created: at, requests: {cpu: c}}", "$.name: required"),
        ("{name: a, created: b, requests: {memory: {column: c, unit: MB}}}", "no unit: MB (allowed: m, , k"),
        ("{name: a, created: b, deleted: c, duration: d, requests: {cpu: e}}", "deleted and duration exclude"),
        ("{name: a, created: b, requests: {cpu: e}, when: c}", "no such field"),
    ],
)
def test_a_mapping_that_is_wrong_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "map.yaml").write_text(text)
    with pytest.raises(ConfigErrors) as raised:
        read_mapping(tmp_path / "map.yaml")
    assert fault in str(raised.value)


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.csv", f"{SPOT}1,1,A10,x,1,1,0,1,HP\n", "a.csv:2: cpu_request: 'x': must be a number, 0 to 1e+12"),
        ("a.csv", f"{SPOT}1,1,A10,1,1,1,0,1,Low\n", "a.csv:2: job_type: 'Low': must be one of HP, Spot"),
        ("a.csv", f"{SPOT}1,1,A10,1,1,0,0,1,HP\n", "a.csv:2: worker_num: '0': must be a whole number, 1 to 100000"),
        ("a.swf", "; x\n1 2 3\n", "a.swf:2: must be 18 numbers; comments begin with ;"),
        ("a.swf", f"nan{' 1' * 17}\n", "a.swf:1: must be 18 numbers; comments begin with ;"),
        ("a.swf", f"1 inf{' 1' * 16}\n", "a.swf:1: must be 18 numbers; comments begin with ;"),
        ("a.csv", "x,y\n1,2\n", "a.csv:1: has the columns of no known format (alibaba-gpu-2023, "),
        ("a.jsonl", "{}\n", "a.jsonl:1: must be JSON with created_s, deleted_s and pod"),
        (
            "a.jsonl",
            '{"created_s": 0, "deleted_s": 1, "pod": {"metadata": {"name": "a"}, "spec": {"containers": 4}}}\n',
            "a.jsonl:1: must be JSON with created_s, deleted_s and pod",
        ),
        ("a.swf.gz", "no gzip", "a.swf.gz: cannot be read: Not a gzipped file"),
    ],
)
def test_a_wrong_row_is_answered_with_its_place(tmp_path: Path, name: str, text: str, fault: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(TraceError) as raised:
        read_trace(None, tmp_path / name)
    assert str(raised.value).removeprefix(f"{tmp_path}/").startswith(fault)


@pytest.mark.parametrize("name", FILES)
def test_a_converted_trace_is_the_same_trace(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, made = put(tmp_path, name), tmp_path / "made.jsonl"
    assert main(["workload", "convert", str(path), "-o", str(made)]) == 0
    before, after = read_trace(None, path), read_trace(None, made)
    assert [pod.raw for pod in after.pods] == [pod.raw for pod in before.pods]
    assert (times(after), after.priorities) == (times(before), before.priorities)
    capsys.readouterr()
    assert main(["workload", "info", str(path), "-o", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["format"], facts["pods"]) == (format_of(path), len(before.pods))
    assert facts["resources"]["cpu"]["total"] == sum(float(asked(pod)["cpu"][:-1]) / 1000 for pod in before.pods)


def test_a_trace_runs_in_a_simulation_and_as_manifests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nodes.csv").write_text(SPOT_NODES)
    spot = str(put(tmp_path, "spot.csv"))
    nodes = ["--nodes", str(tmp_path / "nodes.csv")]
    assert main(["simulate", *nodes, "--pods", spot, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["placed"] == 3
    made = str(tmp_path / "made.yaml")
    assert main(["workload", "convert", spot, *nodes, "-o", made]) == 0
    capsys.readouterr()
    assert main(["simulate", "-f", made, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["placed"] == 3


def trace_of(count: int, seed: int) -> Trace:
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": "500m"}}}]}
    random, now, pods = Random(seed), 0.0, []
    for number in range(count):
        now += random.weibullvariate(10, 0.7)
        raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}"}, "spec": spec}
        pods.append(TracePod(f"default/p{number}", raw, now, now + random.lognormvariate(5, 1.5), None, "Running"))
    return Trace((), tuple(pods))


def test_a_sample_is_a_part_by_time_and_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f" {n} {n} 0 5 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1\n" for n in range(1, 101))
    (tmp_path / "a.swf").write_text(rows)
    found = []
    for seed in (1, 1, 2):
        made = tmp_path / "made.jsonl"
        words = ["--after", "20s", "--before", "60s", "--fraction", "0.5", "--seed", str(seed)]
        assert main(["workload", "sample", str(tmp_path / "a.swf"), "-o", str(made), *words]) == 0
        found.append(times(read_trace(None, made)))
    assert found[0] == found[1] != found[2]
    assert 5 < len(found[0]) < 35
    assert all(0 <= created < 40 and ended == created + 5 for _, created, ended in found[0])
    assert main(["workload", "sample", str(tmp_path / "a.swf"), "-o", "x.jsonl", "--fraction", "2"]) == 2
    assert "--fraction 2: must be more than 0, at most 1" in capsys.readouterr().err
    words = ["--after", "2d", "--before", "20s"]
    assert main(["workload", "sample", str(tmp_path / "a.swf"), "-o", "x.jsonl", *words]) == 2
    assert "--before must be later than --after" in capsys.readouterr().err


def test_a_fit_finds_the_distributions_that_a_trace_was_drawn_from(tmp_path: Path) -> None:
    made = fit(trace_of(4000, 1))
    assert made.arrival_shape == pytest.approx(0.7, rel=0.1)
    assert made.lifetime_sigma == pytest.approx(1.5, rel=0.1)
    assert made.shapes == ("cpu=500m,weight=4000",)
    path = tmp_path / "like.yaml"
    path.write_text(made.text())
    assert read_fitted(path) == made
    again = [event.time_s for event in made.generated((), 3).events() if event.action == "create"]
    assert (len(again) - 1) / (again[-1] - again[0]) == pytest.approx(made.rate_s, rel=0.1)
    refitted = fit(Trace((), tuple(drawn(made, 3))))
    assert refitted.lifetime_sigma == pytest.approx(made.lifetime_sigma, rel=0.1)


def drawn(made: FittedWorkload, seed: int) -> list[TracePod]:
    events = list(made.generated((), seed).events())
    ends = {event.key: event.time_s for event in events if event.action == "delete"}
    return [
        TracePod(event.key, event.raw or {}, event.time_s, ends[event.key], None, "Running")
        for event in events
        if event.action == "create"
    ]


def test_a_generator_is_read_by_simulations_and_sweeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "like.yaml"
    path.write_text(fit(trace_of(30, 2)).text())
    words = ["--generate-nodes", "2", "--pods", str(path)]
    assert main(["simulate", *words, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["placed"] == 30
    spec = {"clusters": {"a": {"generate": 2}}, "workloads": {"b": {"pods": str(path)}}, "seeds": 2}
    rows = sweep(spec, engine="threading", jobs=1)
    assert [(row["status"], row["placed"]) for row in rows] == [("ok", 30)] * 2
    assert len({row["decisions_hash"] for row in rows}) == 2
    assert main(["simulate", *words, "--fill", "cpu=10%"]) == 2
    assert "require a list of pods (--pods): " in capsys.readouterr().err
    spec["workloads"]["b"]["fill"] = "cpu=10%"
    with pytest.raises(ConfigErrors, match="requires a list of pods, not a generator"):
        sweep(spec, engine="threading")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{kind: Pod}", "no generator: kind must be kschedd-generator"),
        ("{kind: kschedd-generator, pods: 1}", "shapes: at least one is required"),
        ("{kind: kschedd-generator, pods: 1, arrivals: {shape: 99}, shapes: [cpu=1]}", "out of range (allowed: 0.1 to"),
        ("{kind: kschedd-generator, pods: 1, shapes: [cpu]}", "'cpu' must be NAME=VALUE"),
    ],
)
def test_a_generator_that_is_wrong_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "g.yaml").write_text(text)
    with pytest.raises(ConfigErrors) as raised:
        read_fitted(tmp_path / "g.yaml")
    assert fault in str(raised.value)


def test_pods_that_never_end_cannot_be_fitted() -> None:
    pods = tuple(TracePod(f"default/{n}", {}, float(n), None, None, "Running") for n in range(3))
    with pytest.raises(Exception, match="a fit requires pods that arrive at two times or more, and one that ends"):
        fit(Trace((), pods))
    assert fmean([pod.created_s for pod in pods]) == 1


def gangs_of(folder: Path) -> list[str]:
    """Write jobs of three pods, two pods and one pod for four GPUs; return the flags to simulate them."""
    (folder / "nodes.csv").write_text("gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,2,128,0\nA10,2,128,1\n")
    jobs = ["1,13,A10,1,1,3,5,100,HP", "2,13,A10,1,1,2,6,50,Spot", "3,13,A10,1,1,1,7,20,Spot"]
    (folder / "jobs.csv").write_text(SPOT + "\n".join(jobs))
    return ["--nodes", str(folder / "nodes.csv"), "--pods", str(folder / "jobs.csv"), "--allow-pending", "-o", "json"]


@pytest.mark.parametrize(
    "release", [["GenericWorkload=true"], ["GenericWorkload=true,GangScheduling=true", "--kube-version", "1.36"]]
)
def test_gangs_are_placed_as_a_whole(tmp_path: Path, release: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    flags = gangs_of(tmp_path)
    assert main(["simulate", *flags]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert main(["simulate", *flags, "--gangs", "--feature-gates", *release]) == 0
    together = json.loads(capsys.readouterr().out)
    assert [each["pod"] for each in alone["pending_pods"]] == ["default/job-3-0"]  # the fourth GPU has one pod of job-2
    assert [each["pod"] for each in together["pending_pods"]] == ["default/job-2-0", "default/job-2-1"]


def test_a_sweep_has_gangs(tmp_path: Path) -> None:
    gangs_of(tmp_path)
    profiles = {"default": {"feature_gates": {"GenericWorkload": True}}}
    workloads = {name: {"pods": "jobs.csv", "gangs": name == "gangs"} for name in ("alone", "gangs")}
    spec = {"clusters": {"two": {"nodes": "nodes.csv"}}, "workloads": workloads, "profiles": profiles}
    rows = {row["workload"]: row for row in sweep(spec, data=tmp_path)}
    assert (rows["alone"]["pending"], rows["gangs"]["pending"]) == (1, 2)


def test_gangs_require_their_gates_and_the_pods_of_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = gangs_of(tmp_path)
    assert main(["simulate", *flags, "--gangs"]) == 2
    assert "1.37 requires GenericWorkload=true" in capsys.readouterr().err
    assert main(["simulate", *flags, "--gangs", "--fill", "cpu=50%"]) == 2
    assert "--gangs and --fill exclude each other" in capsys.readouterr().err
    with pytest.raises(ConfigErrors, match="gangs: true: requires pods"):
        sweep({"clusters": {"a": {"generate": 1}}, "workloads": {"a": {"generate": 5, "gangs": True}}})


def simkube(path: Path) -> Path:
    """Write a trace of a Deployment that is created with two replicas, scaled to five, and deleted."""

    def web(replicas: int) -> dict[str, Any]:
        resources = {"requests": {"cpu": "1"}}
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
        }
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        meta = {"name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "7"}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}

    start = 1_700_000_000
    events = [
        {"ts": start + 120, "applied_objs": [], "deleted_objs": [web(5)]},
        {"ts": start, "applied_objs": [web(2)], "deleted_objs": []},
        {"ts": start + 60, "applied_objs": [web(5)], "deleted_objs": []},
    ]
    path.write_bytes(msgpack.packb({"version": 2, "events": events}))
    return path


def test_a_simkube_trace_is_replayed_at_its_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, log = simkube(tmp_path / "run.sktrace"), tmp_path / "decisions.jsonl"
    words = ["--generate-nodes", "1", "--node-shape", "cpu=4,memory=8Gi", "--pods", str(path)]
    assert main(["simulate", *words, "-o", "json", "--allow-pending", "--decisions", str(log)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["placed"], found["pending"]) == (4, 1)  # four cores; all pods are deleted at the end
    lines = map(json.loads, log.read_text().splitlines())
    assert [line["time_s"] for line in lines if line["attempt"] == 1] == [0, 0, 60, 60, 60]
    spec = {"clusters": {"a": {"generate": 1, "shape": "cpu=4,memory=8Gi"}}, "workloads": {"b": {"pods": str(path)}}}
    (row,) = sweep(spec)
    assert (row["status"], row["placed"]) == ("ok", 4)
    assert main(["simulate", *words, "--gangs"]) == 2
    assert "is a generator or a SimKube trace" in capsys.readouterr().err
    assert main(["workload", "info", str(path)]) == 2
    assert "has workloads and no list of pods" in capsys.readouterr().err
    packed = tmp_path / "run.sktrace.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    spec["workloads"] = {"b": {"pods": str(packed), "fill": "cpu=10%"}}
    with pytest.raises(ConfigErrors, match="requires a list of pods, not a generator or a SimKube trace"):
        sweep(spec)
    path.write_bytes(msgpack.packb({"events": [{"ts": "now"}]}))
    assert main(["simulate", *words]) == 2
    assert "run.sktrace: SimKube trace: events[0].ts: not a time in seconds" in capsys.readouterr().err


def test_a_trace_without_nodes_runs_on_generated_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--pods", str(put(tmp_path, "jobs.swf")), "--generate-nodes", "2", "-o", "json"]
    assert main(["simulate", *words]) == 0
    assert json.loads(capsys.readouterr().out)["placed"] == 1
    assert main(["simulate", *words, "--fill", "cpu=10%"]) == 0
    assert json.loads(capsys.readouterr().out)["placed"] > 0
