"""Tests of filling a cluster with the pods of a trace, in random order."""

from pathlib import Path

import pytest

from kschedd.simulation.formats.reading import read_trace
from kschedd.simulation.workloads.fill import BETWEEN_S, Fill, FillError, filled
from kschedd.simulation.workloads.trace import GPU_MILLI, Trace

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,T4\nn2,64000,262144,0,\n"
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
a,1000,1024,1,500,,LS,Running,0,10,0
b,1000,1024,1,1000,,LS,Running,5,20,5
c,1000,1024,0,0,,BE,Running,7,,7
"""


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    return read_trace(tmp_path / "nodes.csv", tmp_path / "pods.csv")


def _asked(trace: Trace) -> int:
    return sum(int(pod.raw["spec"]["containers"][0]["resources"]["requests"].get(GPU_MILLI, 0)) for pod in trace.pods)


def test_pods_come_until_they_ask_for_the_share(trace: Trace) -> None:
    for seed in range(20):
        made = filled(trace, Fill(GPU_MILLI, 3.0), seed)
        # The sum reaches 6000, and exceeds it by less than one pod.
        assert 6000 <= _asked(made) < 7000
        assert {pod.raw["metadata"]["name"].split("-")[0] for pod in made.pods} == {"a", "b", "c"}


def test_names_and_keys_are_unique_and_agree(trace: Trace) -> None:
    pods = filled(trace, Fill(GPU_MILLI, 5.0), 3).pods
    assert len({pod.key for pod in pods}) == len(pods)
    assert [pod.key for pod in pods] == [f"default/{pod.raw['metadata']['name']}" for pod in pods]


def test_they_come_one_after_another_and_stay(trace: Trace) -> None:
    pods = filled(trace, Fill(GPU_MILLI, 1.3), 1).pods
    assert [pod.created_s for pod in pods] == [place * BETWEEN_S for place in range(len(pods))]
    assert {pod.deleted_s for pod in pods} == {None}


def test_the_seed_decides_the_order(trace: Trace) -> None:
    fill = Fill(GPU_MILLI, 4.0)
    assert filled(trace, fill, 7) == filled(trace, fill, 7)
    assert len({tuple(pod.key for pod in filled(trace, fill, seed).pods) for seed in range(10)}) > 1


def test_less_than_the_trace_asks_for_leaves_pods_out(trace: Trace) -> None:
    assert len(filled(trace, Fill(GPU_MILLI, 0.1), 0).pods) < 4


@pytest.mark.parametrize(
    ("text", "fill"),
    [
        pytest.param("cpu=130%", Fill("cpu", 1.3), id="percent"),
        pytest.param("alibabacloud.com/gpu-milli=50", Fill(GPU_MILLI, 0.5), id="without-the-sign"),
    ],
)
def test_the_option(text: str, fill: Fill) -> None:
    assert Fill.parse(text) == fill


@pytest.mark.parametrize("text", ["cpu", "=5%", "cpu=", "cpu=many", "cpu=0%", "cpu=-1", "cpu=nan", "cpu=1000000"])
def test_the_option_is_refused_with_what_it_should_be(text: str) -> None:
    with pytest.raises(FillError, match=r"--fill .*: must be RESOURCE=PERCENT"):
        Fill.parse(text)


def test_a_resource_that_nobody_has_or_asks_for_is_refused(trace: Trace) -> None:
    with pytest.raises(FillError, match="no node of the trace has example"):
        filled(trace, Fill("example.com/x", 1.0), 0)
    with pytest.raises(FillError, match="no pod of the trace requests pods"):
        filled(trace, Fill("pods", 1.0), 0)
