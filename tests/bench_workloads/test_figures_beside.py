"""Tests of the comparison page with kube-scheduler: medians, ratios, and where kube-scheduler is ahead."""

from tests.bench.figures import OURS, Measured, page

ABOUT = {"commit": "abc", "date": "today", "machine": "2 cores", "python": "3.11", "load": "0.1"}
LATENCY = {
    "offered_rate": 1500.0,
    "journal": True,
    "p50_ms": 1.5,
    "p99_ms": 2.5,
    "answers_p50_ms": 0.5,
    "answers_p99_ms": 0.75,
}


def run(program: str, cpu_us: float, speed: float, mode: str = "algo") -> Measured:
    return Measured("SchedulingBasic", mode, program, 2000, cpu_us, speed)


def test_rows_have_medians_and_the_ratio_to_the_newer_release() -> None:
    runs = [run(OURS, 40, 9000), run(OURS, 50, 8000), run(OURS, 90, 7000), run("1.37.2", 1000, 700)]
    lines = page(ABOUT, runs, [LATENCY]).splitlines()
    assert "| SchedulingBasic | 2,000 | - | 1,000 | 50 | 20.0 | - | 700 | 8,000 |" in lines
    assert "| abc | today | 2 cores | 3.11 | 0.1 |" in lines
    assert "| 1,500 | yes | 1.50 | 2.50 | 0.50 | 0.75 |" in lines
    assert "In none of these workloads, neither in CPU per pod nor in pods per second." in lines


def test_the_page_names_the_workloads_in_which_kube_scheduler_is_ahead() -> None:
    runs = [run(OURS, 80, 9000, "e2e"), run("1.34.4", 70, 8000, "e2e"), run("1.37.2", 90, 9500, "e2e")]
    lines = page(ABOUT, runs, [LATENCY]).splitlines()
    assert [line for line in lines if line.startswith("- ")] == [
        "- SchedulingBasic e2e: 1.34.4 needs 70 us of CPU per pod, kschedd 80.",
        "- SchedulingBasic e2e: 1.37.2 schedules 9,500 pods/s by the clock, kschedd 9,000.",
    ]
