"""Tests of the file of recorded figures, if available, and of invalid files."""

import json

import pytest

from kschedd.bench.figures import FILE, read_figures, recorded, recorded_figures
from kschedd.bench.resultfile import ResultFileError
from kschedd.bench.shared import SharedError, shared_folder
from kschedd.bench.workloads import WORKLOADS, default_sizes

ROW = {
    "workload": "SchedulingBasic",
    "nodes": 500,
    "init_pods": 500,
    "pods": 1000,
    "mode": "algo",
    "percentage": 0,
    "threads": 2,
    "pods_per_second": {"median": 2290.1, "min": 2233.9, "max": 2359.9},
    "p50_ms": 0.338,
    "p90_ms": 0.663,
    "p99_ms": 1.5,
    "rss_mb": 74.3,
    "scheduled": 1000,
    "failed": 0,
}


def shared_with(folder, rows):
    path = folder / FILE
    path.parent.mkdir()
    path.write_text(json.dumps({"rows": rows}))
    return folder


@pytest.fixture
def real_figures():
    figures = recorded_figures()
    if not figures:
        pytest.skip("no recorded figures: set KSCHEDD_SHARED or put the shared folder beside the checkout")
    return figures


def test_every_workload_was_recorded_in_both_modes_at_both_common_sizes(real_figures) -> None:
    for name in WORKLOADS:
        for nodes in (500, 5000):
            for mode in ("algo", "e2e"):
                assert recorded(name, nodes, mode) is not None, (name, nodes, mode)
    assert {figure.workload for figure in real_figures} == set(WORKLOADS)


def test_our_default_sizes_are_the_recorded_ones(real_figures) -> None:
    for figure in real_figures:
        sizes = default_sizes(figure.workload, figure.nodes, figure.percentage, figure.offered_rate)
        assert (sizes.init_pods, sizes.pods) == (figure.init_pods, figure.pods), figure


def test_the_headline_figure(real_figures) -> None:
    figure = recorded("SchedulingBasic", 5000, "algo")
    assert figure is not None
    assert figure.pods_per_second.median == 1049.8
    every_node = recorded("SchedulingBasic", 5000, "algo", 100)
    assert every_node is not None
    assert every_node.pods_per_second.median == 154.45


def test_a_run_is_found_by_all_that_makes_it_what_it_is(tmp_path) -> None:
    slow = {**ROW, "mode": "e2e", "offered_rate": 100, "p50_ms": 2.5}
    shared = shared_with(tmp_path, [ROW, {**ROW, "percentage": 100}, slow, {**ROW, "threads": 1}])
    found = recorded("SchedulingBasic", 500, "e2e", offered_rate=100, shared=shared)
    assert found is not None
    assert found.p50_ms == 2.5
    assert found.offered_rate == 100
    assert recorded("SchedulingBasic", 500, "e2e", shared=shared) is None
    assert recorded("SchedulingBasic", 501, "algo", shared=shared) is None
    single = recorded("SchedulingBasic", 500, "algo", threads=1, shared=shared)
    assert single is not None
    assert single.threads == 1


def test_a_shared_folder_without_figures_has_none(tmp_path) -> None:
    assert recorded("SchedulingBasic", 500, "algo", shared=tmp_path) is None


def test_the_environment_names_the_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("KSCHEDD_SHARED", str(shared_with(tmp_path, [ROW])))
    assert shared_folder() == tmp_path
    figure = recorded("SchedulingBasic", 500, "algo")
    assert figure is not None
    assert figure.pods_per_second.max == 2359.9


def test_a_named_folder_that_is_not_there_is_an_error(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("KSCHEDD_SHARED", str(tmp_path / "gone"))
    with pytest.raises(SharedError, match=r"KSCHEDD_SHARED: .*gone: no such folder"):
        recorded("SchedulingBasic", 500, "algo")
    with pytest.raises(SharedError, match=r"shared folder: .*away: no such folder"):
        shared_folder(tmp_path / "away")


def test_every_fault_of_the_file_is_reported(tmp_path) -> None:
    rows = [
        ROW,
        {**ROW, "nodes": -1, "workload": 7},
        {key: value for key, value in ROW.items() if key != "p99_ms"},
        {**ROW, "pods_per_second": {"median": "fast", "min": 1, "max": True}},
        {**ROW, "pods_per_second": 12},
        "row",
    ]
    shared = shared_with(tmp_path, rows)
    with pytest.raises(ResultFileError) as refusal:
        recorded_figures(shared)
    assert refusal.value.faults == (
        "$.rows[1].workload: 7: must be a string",
        "$.rows[1].nodes: -1: must be a whole number, 0 or more",
        "$.rows[2].p99_ms: missing",
        "$.rows[3].pods_per_second.median: 'fast': must be a number, 0 or more",
        "$.rows[3].pods_per_second.max: True: must be a number, 0 or more",
        "$.rows[4].pods_per_second: 12: must be an object",
        "$.rows[5]: 'row': must be an object",
    )
    assert str(refusal.value).count(str(shared / FILE)) == 7


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", r"\$\.rows: must be a list of measurements"),
        (b'{"rows": {}}', r"\$\.rows: must be a list of measurements"),
    ],
)
def test_a_file_that_is_something_else(tmp_path, content, fault) -> None:
    path = tmp_path / "figures.json"
    path.write_bytes(content)
    with pytest.raises(ResultFileError, match=fault):
        read_figures(path)


def test_a_file_that_cannot_be_read(tmp_path) -> None:
    with pytest.raises(ResultFileError, match="cannot be read: No such file"):
        read_figures(tmp_path / "none.json")
