"""Tests of rows, percentiles, ratios, the table and the comparison with an earlier result."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.bench.environment import BenchEnvironment
from kschedd.bench.figures import Figure, Speed
from kschedd.bench.report import (
    as_json,
    beside_first_version,
    compared,
    measured,
    merged,
    percentiles,
    read_earlier,
    table,
)
from kschedd.bench.resultfile import ResultFileError

FIGURE = Figure(
    workload="SchedulingBasic",
    nodes=500,
    init_pods=500,
    pods=1000,
    mode="algo",
    percentage=0,
    threads=2,
    pods_per_second=Speed(2000.0, 1900.0, 2100.0),
    p50_ms=0.3,
    p90_ms=0.6,
    p99_ms=1.5,
    rss_mb=74.0,
    scheduled=1000,
    failed=0,
)


def row(figure=None, **changes):
    facts = {
        "workload": "SchedulingBasic",
        "nodes": 500,
        "mode": "algo",
        "latencies_s": [0.001 * i for i in range(1, 101)],
        "elapsed_s": 0.01,
        "rss_mb": 120.04,
        "cpu_s": 0.0045,
        "scheduled": 100,
        "failed": 0,
    }
    return measured(**{**facts, **changes}, figure=figure)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([], (0, 0, 0), id="none"),
        pytest.param([7], (7, 7, 7), id="one-is-all-of-them"),
        pytest.param([2, 1], (1, 2, 2), id="no-value-in-between-is-made-up"),
        pytest.param(range(1, 11), (5, 9, 10), id="ten"),
        pytest.param(range(100, 0, -1), (50, 90, 99), id="order-does-not-matter"),
        pytest.param(range(1, 1001), (500, 900, 990), id="a-thousand"),
    ],
)
def test_percentiles_are_nearest_rank(values, expected) -> None:
    spread = percentiles(values)
    assert (spread.p50, spread.p90, spread.p99) == expected


@given(st.lists(st.integers(0, 50), min_size=1))
def test_a_percentile_is_the_smallest_value_that_covers_its_share(values) -> None:
    spread = percentiles(values)
    for share, value in ((50, spread.p50), (90, spread.p90), (99, spread.p99)):
        covering = [v for v in values if sum(w <= v for w in values) * 100 >= share * len(values)]
        assert value == min(covering)


def test_a_measured_row() -> None:
    got = row(FIGURE)
    assert got.pods_per_second == 10_000
    assert (got.p50_ms, got.p90_ms, got.p99_ms) == (50, 90, 99)
    assert got.rss_mb == 120
    assert got.cpu_us_per_pod == 45
    assert got.pods == 100
    assert got.recorded_pods_per_second == 2000
    assert got.ratio == 5


def test_nothing_measured_is_no_division_by_zero() -> None:
    got = row(FIGURE, latencies_s=[], elapsed_s=0.0, scheduled=0)
    assert (got.pods_per_second, got.p99_ms, got.ratio) == (0, 0, 0)
    assert row().ratio is None


def test_failing_attempts_count_as_attempts() -> None:
    got = row(workload="Unschedulable", scheduled=0, failed=100)
    assert got.pods == 100
    assert got.pods_per_second == 10_000


def test_json_has_what_is_promised() -> None:
    (result,) = json.loads(as_json([row(FIGURE)]))["results"]
    promised = {"workload", "nodes", "mode", "percentage", "pods_per_second", "rss_mb", "ratio"}
    assert promised | {"p50_ms", "p90_ms", "p99_ms"} <= set(result)
    assert result["workload"] == "SchedulingBasic"
    assert result["ratio"] == 5


def test_a_result_written_is_a_result_read(tmp_path) -> None:
    path = tmp_path / "earlier.json"
    rows = [row(FIGURE), row(nodes=5000, percentage=100), row(mode="e2e", offered_rate=100.0, journal=True)]
    path.write_text(as_json(rows))
    assert read_earlier(path) == rows


def test_an_earlier_result_needs_only_the_figures_themselves(tmp_path) -> None:
    path = tmp_path / "earlier.json"
    bare = {
        "workload": "SchedulingBasic",
        "nodes": 500,
        "mode": "algo",
        "pods_per_second": 5000,
        "p50_ms": 1,
        "p90_ms": 1,
        "p99_ms": 1,
        "rss_mb": 50,
        "of_a_later_version": [],
    }
    path.write_text(json.dumps({"results": [bare]}))
    (again,) = compared([row()], read_earlier(path))
    assert again.earlier_pods_per_second == 5000
    assert again.earlier_ratio == 2


def test_only_the_same_run_is_compared() -> None:
    earlier = [row(nodes=5000), row(mode="e2e"), row(percentage=100), row(workload="Heterogeneous")]
    (alone,) = compared([row()], earlier)
    assert alone.earlier_ratio is None
    (last,) = compared([row()], [row(), row(elapsed_s=0.02)])
    assert last.earlier_ratio == 2


def test_every_fault_of_an_earlier_result_is_reported(tmp_path) -> None:
    path = tmp_path / "earlier.json"
    (good,) = json.loads(as_json([row()]))["results"]
    bad = [
        {**good, "nodes": 1.5, "ratio": "2x"},
        {**good, "p50_ms": math.inf},
        {"workload": "SchedulingBasic"},
    ]
    path.write_text(json.dumps({"results": bad}))
    with pytest.raises(ResultFileError) as refusal:
        read_earlier(path)
    faults = refusal.value.faults
    assert "$.results[0].nodes: 1.5: must be a whole number, 0 or more" in faults
    assert "$.results[0].ratio: '2x': must be a number, 0 or more, or null" in faults
    assert "$.results[1].p50_ms: inf: must be a number, 0 or more" in faults
    assert "$.results[2].nodes: missing" in faults
    assert len(faults) == 3 + 7


def test_the_table_leaves_out_what_no_row_has() -> None:
    assert table([row()]).splitlines() == [
        "WORKLOAD         NODES  MODE  PODS  PODS/S  CPU US  P50 MS  P90 MS  P99 MS  RSS MIB",
        "SchedulingBasic    500  algo   100  10,000      45  50.000  90.000  99.000      120",
    ]


def test_the_table_beside_others() -> None:
    rows = compared(
        [row(FIGURE), row(nodes=5000, mode="e2e", offered_rate=100.0, percentage=100, failed=3)],
        [row(elapsed_s=0.02)],
    )
    heading, first, second = table(rows).splitlines()
    assert (
        heading.split()
        == (
            "WORKLOAD NODES MODE SCORED PODS PODS/S KUBE RATIO CPU US P50 MS P90 MS P99 MS RSS MIB FAILED "
            "EARLIER VS EARLIER "
            "DIFFERENCE"
        ).split()
    )
    assert (
        first.split()[:15]
        == ("SchedulingBasic 500 algo - 100 10,000 2,000 5.00x 45 50.000 90.000 99.000 120 - 5,000").split()
    )
    assert "2.00x  not enough runs: 1 and 1 runs" in first
    assert (
        second.split()
        == ("SchedulingBasic 5,000 e2e@100/s 100% 103 10,000 - - 45 50.000 90.000 99.000 120 3 - - -").split()
    )


def test_the_table_tells_a_journal_and_questions() -> None:
    answer = row(mode="e2e", journal=True, own_time=True, answers_s=[0.001, 0.002])
    heading, line = table([answer]).splitlines()
    assert "P99 MS  ANSWERS P99 MS" in heading
    assert "e2e journal own time" in line
    assert line.split()[-2] == "2.000"
    assert compared([answer], [row(mode="e2e")]) == [answer]  # a row of another mode is not compared


def test_a_table_of_nothing_is_its_heading() -> None:
    assert table([]).split()[:3] == ["WORKLOAD", "NODES", "MODE"]


def test_a_version_stands_beside_the_first_one_by_size() -> None:
    runs = [
        row(kube_version="1.34.1", elapsed_s=0.01),
        row(kube_version="1.36", elapsed_s=0.02),
        row(kube_version="1.34.1", elapsed_s=0.01, nodes=5000),
        row(kube_version="1.36", elapsed_s=0.01, nodes=5000),
    ]
    found = beside_first_version(runs)
    assert [each.version_ratio for each in found] == [None, 0.5, None, 1.0]
    assert "VERSION" in table(found).splitlines()[0]
    assert "VERSION" not in table([row()]).splitlines()[0]


def test_an_earlier_result_is_of_the_same_version() -> None:
    earlier = [row(kube_version="1.36", elapsed_s=0.02)]
    assert [each.earlier_ratio for each in compared([row(kube_version="1.34.1")], earlier)] == [None]
    assert [each.earlier_ratio for each in compared([row(kube_version="1.36")], earlier)] == [2.0]


def test_several_runs_are_one_row_of_medians() -> None:
    runs = [row(FIGURE, elapsed_s=seconds, rss_mb=mib) for seconds, mib in ((0.01, 10), (0.02, 30), (0.04, 20))]
    one = merged(runs)
    assert one.pods_per_second == 5000
    assert one.ratio == 2.5
    assert one.rss_mb == 30
    assert one.cpu_us_per_pod == 45
    assert one.runs == (10_000, 5000, 2500)
    assert merged(runs[:1]) == runs[0]


def test_the_runs_are_kept_in_a_result_file(tmp_path) -> None:
    path = tmp_path / "earlier.json"
    rows = [merged([row(FIGURE), row(FIGURE, elapsed_s=0.02)])]
    path.write_text(as_json(rows, BenchEnvironment(commit="abc")))
    assert read_earlier(path) == rows
    assert json.loads(path.read_text())["about"]["commit"] == "abc"


def test_a_comparison_says_whether_it_is_more_than_noise() -> None:
    def runs(*seconds: float):
        return merged([row(elapsed_s=each) for each in seconds])

    (faster,) = compared([runs(0.010, 0.011, 0.012, 0.013)], [runs(0.020, 0.021, 0.022, 0.023)])
    assert faster.verdict.startswith("faster by ")
    (single,) = compared([row()], [row()])
    assert single.verdict.startswith("not enough runs: 1 and 1 runs")
    assert "DIFFERENCE" in table([faster])
    assert "DIFFERENCE" not in table([row()])
