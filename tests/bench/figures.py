"""kschedd and kube-scheduler on one machine in one run: CPU per pod and pods per second, and the page of them.

    python -m tests.bench.figures --rounds 3        measures in turns, writes build/figures.json and docs/FIGURES.md
    python -m tests.bench.figures --page-only       writes the page again, from build/figures.json

In each round, each program runs each workload in both modes: the schedulers of two releases (`tests/oracle`, mode
`bench`; needs Go) and `kschedd bench` with the rules of the newer release. All programs get the same nodes and pods.
CPU time is the user and system time of the whole process while the pods are scheduled. A workload of kube-scheduler
that takes more than `--slow` seconds in the first round is not repeated.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import attrs

from kschedd.bench.environment import bench_environment
from kschedd.bench.workloads import WORKLOADS

ROOT: Final = Path(__file__).parents[2]
NODES: Final = 5000
RELEASES: Final = ("1.34.4", "1.37.2")
OURS: Final = "kschedd"
RATES: Final = ((1_500, False), (3_000, False), (1_500, True))  # pods per second; True: with a journal
Key = tuple[str, str, str]  # workload, mode, program


@attrs.frozen
class Measured:
    """One run of one program."""

    workload: str
    mode: str
    program: str
    pods: int
    cpu_us: float  # per pod
    pods_per_second: float


def built(release: str) -> str:
    """Return the path of the program that runs kube-scheduler of a release; the first build takes minutes."""
    command = [str(ROOT / "tests/oracle/build"), release]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]


def of_kube_scheduler(program: str, release: str, workload: str, mode: str, pods: int) -> Measured:
    command = [program, "bench", workload, mode, "-nodes", str(NODES), "-pods", str(pods)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])
    return Measured(workload, mode, release, pods, found["cpu_us_per_pod"], found["pods_per_second"])


def of_kschedd(workload: str, mode: str, *flags: str) -> tuple[Measured, dict[str, Any]]:
    command = [sys.executable, "-m", "kschedd", "bench", "--workload", workload, "--mode", mode, "-o", "json", *flags]
    (row,) = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)["results"]
    return Measured(workload, mode, OURS, row["pods"], row["cpu_us_per_pod"], row["pods_per_second"]), row


def measured(workloads: Sequence[str], rounds: int, slow_s: float) -> Iterator[Measured]:
    """Yield the runs of all rounds: for each workload and mode, one program after the other."""
    programs = {release: built(release) for release in RELEASES}
    slow: set[Key] = set()
    for number in range(rounds):
        for workload in workloads:
            for mode in ("algo", "e2e"):
                print(f"round {number + 1} of {rounds}: {workload} {mode}", file=sys.stderr)
                ours, _ = of_kschedd(workload, mode)
                yield ours
                for release, program in programs.items():
                    if (workload, mode, release) in slow:
                        continue
                    began = time.monotonic()
                    yield of_kube_scheduler(program, release, workload, mode, ours.pods)
                    if time.monotonic() - began > slow_s:
                        slow.add((workload, mode, release))


def offered() -> list[dict[str, Any]]:
    """Return kschedd's latencies while pods arrive at a fixed rate and requests are sent over a socket."""
    rows = []
    for rate, journal in RATES:
        flags = ["--offered-rate", str(rate), "--pods", str(5 * rate), "--questions", *["--journal"] * journal]
        rows.append(of_kschedd("SchedulingBasic", "e2e", *flags)[1])
    return rows


# -- the page ---------------------------------------------------------------------------------------------------------


def page(about: dict[str, str], runs: Sequence[Measured], latencies: Sequence[dict[str, Any]]) -> str:
    """Return the page with the figures."""
    by_key: dict[Key, list[Measured]] = {}
    for run in runs:
        by_key.setdefault((run.workload, run.mode, run.program), []).append(run)
    cells = {key: _medians(found) for key, found in by_key.items()}
    rounds = max(map(len, by_key.values()))
    lines = [
        "# Figures",
        "",
        "`python -m tests.bench.figures` measures kschedd and the schedulers of two Kubernetes releases in turns, on",
        f"one machine, with {NODES:,} nodes and the same pods. CPU per pod is the user and system time of the whole",
        "process while the pods are scheduled, in microseconds. It is the best figure for a comparison, because it",
        f"depends least on other load. {_runs(rounds)}",
        "",
        "Mode `algo` measures the decision alone. Mode `e2e` measures the time from the creation of a pod to its",
        "binding. Kube-scheduler runs without an API server and without serialization here. kschedd's figures include",
        "its own store, in the same process.",
        "",
        "| commit | date | machine | Python | load at the start |",
        "|---|---|---|---|---|",
        f"| {about['commit']} | {about['date']} | {about['machine']} | {about['python']} | {about['load']} |",
        "",
    ]
    old, new = RELEASES
    for mode, title in (("algo", "The decision alone"), ("e2e", "From creation to binding")):
        lines += [
            f"## {title}",
            "",
            f"| workload | pods | {old} | {new} | kschedd | {new} / kschedd | pods/s {old} | {new} | kschedd |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
        ]
        for workload in dict.fromkeys(run.workload for run in runs):
            ours = cells.get((workload, mode, OURS))
            if ours is None:
                continue
            theirs = [cells.get((workload, mode, release)) for release in RELEASES]
            cpu = [*("-" if each is None else f"{each[0]:,.0f}" for each in (*theirs, ours))]
            speed = [*("-" if each is None else f"{each[1]:,.0f}" for each in (*theirs, ours))]
            ratio = "-" if theirs[1] is None else f"{theirs[1][0] / ours[0]:.1f}"
            pods = by_key[workload, mode, OURS][0].pods
            lines.append("| " + " | ".join([workload, f"{pods:,}", *cpu, ratio, *speed]) + " |")
        lines.append("")
    lines += ["## Where kube-scheduler is ahead", "", *_ahead(cells), ""]
    lines += [
        "## Latency of kschedd at a rate",
        "",
        "SchedulingBasic, with pods that arrive at a rate, while a client sends requests over a socket: from creation",
        "to binding, and from request to response, in milliseconds.",
        "",
        "| pods/s | journal | p50 | p99 | answer p50 | answer p99 |",
        "|--:|---|--:|--:|--:|--:|",
    ]
    for row in latencies:
        figures = (row["p50_ms"], row["p99_ms"], row["answers_p50_ms"], row["answers_p99_ms"])
        journal = "yes" if row["journal"] else "no"
        lines.append(f"| {row['offered_rate']:,.0f} | {journal} | " + " | ".join(f"{ms:.2f}" for ms in figures) + " |")
    return "\n".join(lines) + "\n"


def _runs(rounds: int) -> str:
    return (
        "Each figure is the result of one run." if rounds == 1 else f"Each figure is the median of up to {rounds} runs."
    )


def _medians(runs: Sequence[Measured]) -> tuple[float, float]:
    return median(run.cpu_us for run in runs), median(run.pods_per_second for run in runs)


def _ahead(cells: dict[Key, tuple[float, float]]) -> list[str]:
    """Return a list of the workloads in which a release needs less CPU or schedules more pods per second."""
    lines = []
    for (workload, mode, release), (cpu_us, speed) in cells.items():
        if release == OURS:
            continue
        ours_us, ours = cells[workload, mode, OURS]
        if cpu_us < ours_us:
            lines.append(
                f"- {workload} {mode}: {release} needs {cpu_us:,.0f} us of CPU per pod, kschedd {ours_us:,.0f}."
            )
        if speed > ours:
            lines.append(
                f"- {workload} {mode}: {release} schedules {speed:,.0f} pods/s by the clock, kschedd {ours:,.0f}."
            )
    return lines or ["In none of these workloads, neither in CPU per pod nor in pods per second."]


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Compare kschedd with kube-scheduler, and write the page with the figures."
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slow", type=float, default=20.0, help="seconds after which a run is not repeated")
    parser.add_argument("--workload", action="append", choices=WORKLOADS, help="default: all")
    parser.add_argument("--result", type=Path, default=ROOT / "build/figures.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/FIGURES.md")
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    options = parser.parse_args()
    if not options.page_only:
        about = attrs.asdict(bench_environment())
        runs = list(measured(options.workload or WORKLOADS, options.rounds, options.slow))
        found = {"about": about, "runs": [attrs.asdict(run) for run in runs], "offered": offered()}
        options.result.parent.mkdir(parents=True, exist_ok=True)
        options.result.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    found = json.loads(options.result.read_text(encoding="utf-8"))
    runs = [Measured(**run) for run in found["runs"]]
    options.page.write_text(page(found["about"], runs, found["offered"]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
