"""Tests of traces: the objects made of their lines, the order of events, and faults of invalid lines."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.simulation.formats.reading import read_trace
from kschedd.simulation.formats.tables import TraceError
from kschedd.simulation.workloads.trace import TracePod, events

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
ONE_NODE = NODES + "node-a,4000,8192,0,\n"
ONE_POD = PODS + "pod-a,1000,2048,0,0,,LS,Running,5,10,5\n"


def read(folder, nodes: str | bytes = ONE_NODE, pods: str | bytes = ONE_POD):
    for name, text in (("nodes.csv", nodes), ("pods.csv", pods)):
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_trace(folder / "nodes.csv", folder / "pods.csv")


def faults(folder, **files) -> list[str]:
    with pytest.raises(TraceError) as refusal:
        read(folder, **files)
    lines = str(refusal.value).splitlines()
    assert len(lines) == len(refusal.value.faults)
    return [line.removeprefix(f"{folder}/") for line in lines]


def test_a_node_without_gpus(tmp_path) -> None:
    (node,) = read(tmp_path).nodes
    resources = {"cpu": "4000m", "memory": "8192Mi", "pods": "110"}
    assert node == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-a", "labels": {"kubernetes.io/hostname": "node-a"}},
        "spec": {},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def test_a_node_with_gpus_offers_thousandths_and_says_their_model(tmp_path) -> None:
    (node,) = read(tmp_path, nodes=NODES + "node-g,96000,786432,8,V100M32\n").nodes
    assert node["status"]["allocatable"]["alibabacloud.com/gpu-milli"] == "8000"
    assert node["metadata"]["labels"]["alibabacloud.com/gpu-card-model"] == "V100M32"


def test_a_pod_without_gpus(tmp_path) -> None:
    (pod,) = read(tmp_path).pods
    assert pod.raw == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod-a", "namespace": "default", "labels": {"qos": "LS"}},
        "spec": {
            "containers": [
                {
                    "name": "task",
                    "image": "registry.k8s.io/pause:3.10",
                    "resources": {"requests": {"cpu": "1000m", "memory": "2048Mi"}},
                }
            ],
            "terminationGracePeriodSeconds": 0,
        },
    }
    assert (pod.key, pod.created_s, pod.deleted_s, pod.scheduled_s) == ("default/pod-a", 5, 10, 5)
    assert pod.phase == "Running"


@pytest.mark.parametrize(
    ("num_gpu", "gpu_milli", "requests"),
    [
        pytest.param(0, 0, None, id="none"),
        pytest.param(0, 1000, None, id="none-whatever-the-share"),
        pytest.param(1, 460, "460", id="a-share-of-one"),
        pytest.param(1, 1000, "1000", id="one"),
        pytest.param(8, 1000, "8000", id="eight"),
    ],
)
def test_gpus_are_requested_and_limited_in_thousandths(tmp_path, num_gpu, gpu_milli, requests) -> None:
    line = f"pod-a,1000,2048,{num_gpu},{gpu_milli},,BE,Pending,5,10,\n"
    (pod,) = read(tmp_path, pods=PODS + line).pods
    resources = pod.raw["spec"]["containers"][0]["resources"]
    assert resources["requests"].get("alibabacloud.com/gpu-milli") == requests
    assert resources.get("limits") == (requests and {"alibabacloud.com/gpu-milli": requests})
    assert pod.scheduled_s is None


@pytest.mark.parametrize(
    ("spec", "models"),
    [("T4", ["T4"]), ("V100M16|V100M32", ["V100M16", "V100M32"]), ("G2|T4|G2", ["G2", "T4"])],
)
def test_gpu_models_become_required_node_affinity(tmp_path, spec, models) -> None:
    (pod,) = read(tmp_path, pods=PODS + f"pod-a,1000,2048,1,1000,{spec},BE,Pending,5,10,\n").pods
    expression = {"key": "alibabacloud.com/gpu-card-model", "operator": "In", "values": models}
    assert pod.raw["spec"]["affinity"] == {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [expression]}]
            }
        }
    }


def test_columns_may_stand_in_any_order_beside_others(tmp_path) -> None:
    nodes = "model,rack,gpu,memory_mib,cpu_milli,sn\nT4,7,2,8192,4000,node-a\n"
    (node,) = read(tmp_path, nodes=nodes).nodes
    assert node["status"]["capacity"]["cpu"] == "4000m"
    assert node["metadata"]["labels"]["alibabacloud.com/gpu-card-model"] == "T4"


def test_spreadsheets_write_byte_order_marks_carriage_returns_and_blank_lines(tmp_path) -> None:
    nodes = b"\xef\xbb\xbf" + ONE_NODE.replace("\n", "\r\n").encode() + b"\r\n\r\n"
    assert [node["metadata"]["name"] for node in read(tmp_path, nodes=nodes).nodes] == ["node-a"]


def test_times_may_have_fractions(tmp_path) -> None:
    (pod,) = read(tmp_path, pods=PODS + "pod-a,1000,2048,0,0,,LS,Running,5.25,10.0,5.5\n").pods
    assert (pod.created_s, pod.deleted_s, pod.scheduled_s) == (5.25, 10, 5.5)


def test_a_pod_never_deleted_only_comes(tmp_path) -> None:
    trace = read(tmp_path, pods=PODS + "pod-a,1000,2048,0,0,,LS,Running,5,,5\n")
    assert [(event.time_s, event.action) for event in trace.events()] == [(5, "create")]


def test_pods_that_ask_for_the_same_share_a_spec(tmp_path) -> None:
    one, two = read(tmp_path, pods=ONE_POD + "pod-b,1000,2048,0,0,,BE,Failed,6,7,\n").pods
    assert one.raw["spec"] is two.raw["spec"]


def happens(*pods: tuple[str, float, float | None]) -> list[str]:
    made = [TracePod(name, {"name": name}, created, deleted, None, "") for name, created, deleted in pods]
    return [f"{event.time_s:g} {event.action} {event.key}" for event in events(made)]


def test_at_one_instant_room_is_made_before_it_is_asked_for() -> None:
    assert happens(("b", 5, 9), ("new", 9, 12), ("a", 4, 9)) == [
        "4 create a",
        "5 create b",
        "9 delete b",
        "9 delete a",
        "9 create new",
        "12 delete new",
    ]


def test_a_pod_deleted_as_it_is_created_comes_and_goes() -> None:
    assert happens(("blink", 9, 9), ("next", 9, 10), ("old", 1, 9)) == [
        "1 create old",
        "9 delete old",
        "9 create blink",
        "9 create next",
        "9 delete blink",
        "10 delete next",
    ]


def test_a_create_carries_its_pod_and_a_delete_only_the_key() -> None:
    raw = {"metadata": {"name": "a"}}
    create, delete = events([TracePod("default/a", raw, 1, 2, None, "Running")])
    assert create.raw is raw
    assert delete.raw is None
    assert delete.key == create.key == "default/a"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5))), st.randoms())
def test_events_are_ordered_and_every_pod_comes_before_it_goes(times, rng: random.Random) -> None:
    pods = [TracePod(str(i), {}, start, start + length, None, "") for i, (start, length) in enumerate(times)]
    happening = events(pods)
    assert [event.time_s for event in happening] == sorted(event.time_s for event in happening)
    assert len(happening) == 2 * len(pods)
    there: set[str] = set()
    for event in happening:
        if event.action == "create":
            there.add(event.key)
        else:
            there.remove(event.key)
    assert not there
    # Only among pods with equal times does the order in the file matter.
    rng.shuffle(pods)
    assert Counter(map(repr, events(pods))) == Counter(map(repr, happening))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        pytest.param(
            "node-b,4000.5,1,0,", "cpu_milli: '4000.5': must be a whole number, 0 to 1000000000000", id="part"
        ),
        pytest.param("node-b,-4000,1,0,", "cpu_milli: '-4000': must be a whole number, 0 to 1000000000000", id="minus"),
        pytest.param("node-b,,1,0,", "cpu_milli: '': must be a whole number, 0 to 1000000000000", id="empty"),
        pytest.param("node-b,1, 1,0,", "memory_mib: ' 1': must be a whole number, 0 to 1000000000000", id="blank"),
        pytest.param("node-b,1,1,٣,", "gpu: '٣': must be a whole number, 0 to 1000", id="not-ascii"),
        pytest.param(
            "node-b,1,9999999999999,0,",
            "memory_mib: '9999999999999': must be a whole number, 0 to 1000000000000",
            id="more-than-bytes-can-be-counted",
        ),
        pytest.param("node-a,1,1,0,", "sn: 'node-a': must be unique, line 2 has it too", id="twice"),
    ],
)
def test_node_columns_are_checked(tmp_path, line, fault) -> None:
    assert faults(tmp_path, nodes=f"{ONE_NODE}{line}\n") == [f"nodes.csv:3: {fault}"]


@pytest.mark.parametrize(
    ("line", "start"),
    [
        pytest.param("Node_B,1,1,0,", "sn: 'Node_B': a lowercase RFC 1123 subdomain must", id="no-name"),
        pytest.param(",1,1,0,", "sn: '': a lowercase RFC 1123 subdomain must", id="nameless"),
        pytest.param(
            "node-b,1,1,1,Tesla T4",
            "model: 'Tesla T4': is no value for the label alibabacloud.com/gpu-card-model: ",
            id="no-label-value",
        ),
    ],
)
def test_node_names_and_models_must_be_what_the_api_takes(tmp_path, line, start) -> None:
    (fault,) = faults(tmp_path, nodes=f"{ONE_NODE}{line}\n")
    assert fault.startswith(f"nodes.csv:3: {start}")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        pytest.param(
            "pod-b,1,1,9,1000,,LS,Running,5,6,5",
            "num_gpu: '9': must be a whole number, 0 to 8",
            id="more-gpus-than-any-node",
        ),
        pytest.param(
            "pod-b,1,1,1,0,,LS,Running,5,6,5",
            "gpu_milli: '0': must be a whole number, 1 to 1000",
            id="a-gpu-and-none-of-it",
        ),
        pytest.param(
            "pod-b,1,1,1,1001,,LS,Running,5,6,5",
            "gpu_milli: '1001': must be a whole number, 1 to 1000",
            id="more-than-a-gpu",
        ),
        pytest.param(
            "pod-b,1,1,2,500,,LS,Running,5,6,5",
            "gpu_milli: '500': must be 1000 where num_gpu is 2: GPUs are shared one at a time",
            id="shares-of-two",
        ),
        pytest.param(
            "pod-b,1,1,1,1000,T4||P100,LS,Running,5,6,5",
            "gpu_spec: 'T4||P100': must be GPU models with | between them, or empty: any",
            id="a-model-without-name",
        ),
        pytest.param(
            "pod-b,1,1,0,0,,Gold,Running,5,6,5",
            "qos: 'Gold': must be one of LS, Burstable, BE, Guaranteed",
            id="unknown-qos",
        ),
        pytest.param(
            "pod-b,1,1,0,0,,LS,Dead,5,6,5",
            "pod_phase: 'Dead': must be one of Pending, Running, Succeeded, Failed, Unknown",
            id="unknown-phase",
        ),
        pytest.param(
            "pod-b,1,1,0,0,,LS,Running,,6,5",
            "creation_time: '': must be seconds from the start of the trace, 0 or more",
            id="never-created",
        ),
        pytest.param(
            "pod-b,1,1,0,0,,LS,Running,-5,6,5",
            "creation_time: '-5': must be seconds from the start of the trace, 0 or more",
            id="created-before-the-start",
        ),
        pytest.param(
            "pod-b,1,1,0,0,,LS,Running,5,nan,5",
            "deletion_time: 'nan': must be seconds from the start of the trace, 0 or more",
            id="deleted-at-no-number",
        ),
        pytest.param(
            "pod-b,1,1,0,0,,LS,Running,5,4,5",
            "deletion_time: '4': must not be before creation_time (5); empty: never deleted",
            id="deleted-before-it-was-created",
        ),
        pytest.param(
            "pod-b,1,1,0,0,,LS,Running,5,6,soon",
            "scheduled_time: 'soon': must be seconds from the start of the trace, 0 or more",
            id="scheduled-soon",
        ),
        pytest.param("pod-a,1,1,0,0,,LS,Running,5,6,5", "name: 'pod-a': must be unique, line 2 has it too", id="twice"),
        pytest.param("pod-b,1,1", "has 3 columns, must have 11 as the heading has", id="too-short"),
        pytest.param(
            "pod-b,1,1,0,0,,LS,Running,5,6,5,6",
            "has 12 columns, must have 11 as the heading has",
            id="too-long",
        ),
    ],
)
def test_pod_columns_are_checked(tmp_path, line, fault) -> None:
    assert faults(tmp_path, pods=f"{ONE_POD}{line}\n") == [f"pods.csv:3: {fault}"]


def test_every_fault_of_both_files_is_reported_in_order(tmp_path) -> None:
    nodes = NODES + 'node-a,x,y,0,\nnode-b,1,1,0\nnode-c,"1"1,1,0,\nnode-d,1,1,z,\n'
    found = faults(tmp_path, nodes=nodes, pods=ONE_POD + "pod-b,1,1,0,0,,LS,Running,7,6,5\n")
    assert [fault.rsplit(":", 1)[0] for fault in found[:3]] == [
        "nodes.csv:2: cpu_milli: 'x'",
        "nodes.csv:2: memory_mib: 'y'",
        "nodes.csv:3",
    ]
    assert found[3].startswith("nodes.csv:4: is not CSV: ")
    assert found[4].startswith("nodes.csv:5: gpu: 'z'")
    assert found[5].startswith("pods.csv:3: deletion_time: '6'")
    assert len(found) == 6


def test_a_cell_over_several_lines_does_not_spoil_the_count(tmp_path) -> None:
    nodes = NODES + '"node\na",1,1,0,\nnode-b,x,1,0,\n'
    first, second = faults(tmp_path, nodes=nodes)
    assert first.startswith("nodes.csv:2: sn: 'node\\na': ")
    assert second.startswith("nodes.csv:4: cpu_milli: 'x'")


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(
            "",
            ["nodes.csv: is empty, must have the columns sn, cpu_milli, memory_mib, gpu, model"],
            id="empty",
        ),
        pytest.param(
            "sn,cpu,memory_mib,gpu\n",
            [
                "nodes.csv:1: cpu_milli: missing; the columns are sn, cpu, memory_mib, gpu",
                "nodes.csv:1: model: missing; the columns are sn, cpu, memory_mib, gpu",
            ],
            id="columns-missing",
        ),
        pytest.param(
            "sn,cpu_milli,memory_mib,gpu,model,gpu\n",
            ["nodes.csv:1: gpu: appears in the heading more than once"],
            id="column-twice",
        ),
        pytest.param(ONE_NODE.encode() + b"\xff\xfe", ["nodes.csv:3: is not UTF-8: invalid start byte"], id="not-text"),
    ],
)
def test_files_that_are_something_else(tmp_path, nodes, expected) -> None:
    assert faults(tmp_path, nodes=nodes) == expected


def test_a_million_characters_are_a_fault_of_their_line(tmp_path) -> None:
    (fault,) = faults(tmp_path, nodes=f"{ONE_NODE}{'x' * 1_000_000},1,1,0,\n")
    assert fault.startswith("nodes.csv:3: is not CSV: field larger than")
    first, second = faults(tmp_path, nodes=f"{ONE_NODE}{'x' * 100_000},1,1,0,\n")
    assert "(100000 characters): must be no more than 253 characters" in first
    assert len(second) < 500


def test_both_files_missing_is_two_faults(tmp_path) -> None:
    with pytest.raises(TraceError) as refusal:
        read_trace(tmp_path / "a.csv", tmp_path / "b.csv")
    assert [fault.allowed for fault in refusal.value.faults] == ["cannot be read: No such file or directory"] * 2


@pytest.fixture(scope="module")
def alibaba(shared_part):
    folder = shared_part("realworld") / "alibaba-gpu-2023"
    return read_trace(folder / "node_list_all.csv", folder / "pod_list_default.csv")


def test_the_recorded_cluster_is_read_whole(alibaba) -> None:
    assert (len(alibaba.nodes), len(alibaba.pods)) == (1523, 8152)
    gpus = [int(n["status"]["allocatable"].get("alibabacloud.com/gpu-milli", 0)) for n in alibaba.nodes]
    assert sum(gpus) == 6_212_000
    assert alibaba.pods[1].raw["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "6000m", "memory": "12288Mi", "alibabacloud.com/gpu-milli": "460"},
        "limits": {"alibabacloud.com/gpu-milli": "460"},
    }


def test_the_recorded_cluster_ends_empty(alibaba) -> None:
    happening = alibaba.events()
    assert Counter(event.action for event in happening) == {"create": 8152, "delete": 8152}
    assert happening[-1].time_s == 12_902_960
    # One pod is created and deleted in the same second; one requests no memory.
    assert [pod.key for pod in alibaba.pods if pod.created_s == pod.deleted_s] == ["default/openb-pod-7285"]
    blink = [event.action for event in happening if event.key == "default/openb-pod-7285"]
    assert blink == ["create", "delete"]
    (no_memory,) = (
        pod for pod in alibaba.pods if pod.raw["spec"]["containers"][0]["resources"]["requests"]["memory"] == "0Mi"
    )
    assert no_memory.key == "default/openb-pod-1523"
