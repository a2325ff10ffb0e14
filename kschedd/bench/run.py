"""`kschedd bench`: runs workloads and prints their figures next to kube-scheduler's.

Each run is a separate process, so that the memory figure covers only one run, and no run uses caches of another run.
The child process reports progress on standard error and prints its row as JSON; this process collects the rows.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import attrs

from kschedd.bench.environment import CpuReading, bench_environment
from kschedd.bench.figures import recorded
from kschedd.bench.own_time import own_time
from kschedd.bench.report import (
    ReportRow,
    as_json,
    beside_first_version,
    compared,
    measured,
    merged,
    read_about,
    read_earlier,
    table,
)
from kschedd.bench.scheduler_perf import run as scheduler_perf
from kschedd.bench.workloads import MODES, WORKLOADS, Workload, WorkloadError, default_sizes, workload
from kschedd.config.versions.kube_versions import DEFAULT, kube_version
from kschedd.errors import KscheddError
from kschedd.verbs.command_line.parsing import path_value


@attrs.define(eq=False)
class BenchError(KscheddError):
    why: str


@attrs.frozen
class BenchRun:
    """The parameters of one run."""

    workload: str
    nodes: int
    mode: str
    percentage: int
    offered_rate: float
    pods: int | None
    init_pods: int | None
    seed: int
    kube_version: str = ""  # "": the default version
    journal: bool = False
    questions: bool = False
    own_time: bool = False


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "bench",
        help="measure this scheduler on the benchmark workloads",
        description="Run benchmark workloads and print pods per second, latencies and memory, beside the figures "
        "recorded for kube-scheduler if the shared folder contains them.",
    )
    names = ", ".join(WORKLOADS)
    parser.add_argument(
        "--workload", action="append", metavar="NAME", help=f"one of {names}; may be repeated; default: all"
    )
    parser.add_argument("--nodes", action="append", type=int, metavar="N", help="size of the cluster; default: 5000")
    parser.add_argument(
        "--mode",
        choices=(*MODES, "both"),
        default="algo",
        help="only scheduling decisions, or the whole scheduler",
    )
    parser.add_argument("--percentage", type=int, default=0, help="percentageOfNodesToScore; 0 means adaptive")
    parser.add_argument("--offered-rate", type=float, default=0.0, help="pods created per second (e2e); 0: all at once")
    parser.add_argument("--journal", action="store_true", help="write all objects to disk, in a temporary folder (e2e)")
    parser.add_argument(
        "--questions", action="store_true", help="send socket requests during the run, and print their latency (e2e)"
    )
    parser.add_argument(
        "--own-time",
        action="store_true",
        help="exclude the time in which the scheduler was ready to run but other programs used the processor (Linux)",
    )
    parser.add_argument("--pods", type=int, help="number of measured pods; default: defined by the workload")
    parser.add_argument(
        "--init-pods",
        type=int,
        help="number of pods already running; default: defined by the workload",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed for breaking ties (default 1)")
    parser.add_argument(
        "--kube-version",
        default="",
        metavar="VERSION[,VERSION...]",
        help="Kubernetes version whose rules apply (with --config: one version); with several versions, each workload "
        "is run with each version, and its pods per second are compared with those of the first version",
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=1,
        metavar="N",
        help="number of runs of each workload, in turns (default 1)",
    )
    parser.add_argument(
        "--against",
        type=path_value,
        metavar="PYTHON",
        help="Python interpreter of another installation of kschedd; the two run in turns and are compared",
    )
    parser.add_argument(
        "--compare",
        type=path_value,
        metavar="FILE",
        help="compare with this earlier result, written with -o json",
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument(
        "--page", type=Path, metavar="FILE.md", help="write a page of figures with plots; run no benchmark"
    )
    parser.add_argument(
        "--from",
        dest="results",
        action="append",
        type=path_value,
        metavar="FILE",
        help="with --page: a result written with -o json; may be repeated",
    )
    scheduler_perf.add_arguments(parser)
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    if options.config is not None:
        return scheduler_perf.main(options)
    if options.page is not None:
        return _page(options.page, options.results or [])
    try:
        if options.runs < 1:
            raise BenchError("--runs: at least 1")
        if options.against and options.compare:
            raise BenchError("--against and --compare exclude each other: give one of them")
        runs = list(_runs(options))
        earlier = read_earlier(options.compare) if options.compare else []
        about = bench_environment()
        pythons = [sys.executable, *([str(options.against)] if options.against else [])]
        rows, *others = measured_in_turns(runs, options.runs, pythons)
    except KscheddError as fault:
        print(f"kschedd bench: {fault}", file=sys.stderr)
        return 2
    rows = compared(beside_first_version(rows), others[0] if others else earlier)
    print(as_json(rows, about) if options.output == "json" else table(rows))
    return 0


def _page(page: Path, results: Sequence[Path]) -> int:
    from kschedd.bench.figures_page import write_page

    try:
        if not results:
            raise BenchError("--page requires at least one result: --from FILE")
        written = write_page(page, [(read_about(path), read_earlier(path)) for path in results])
    except KscheddError as fault:
        print(f"kschedd bench: {fault}", file=sys.stderr)
        return 2
    except OSError as fault:
        print(f"kschedd bench: {page}: cannot be written: {fault.strerror}", file=sys.stderr)
        return 2
    print("\n".join(map(str, written)))
    return 0


def measured_in_turns(
    runs: Sequence[BenchRun],
    rounds: int,
    pythons: Sequence[str] = (sys.executable,),
    *,
    until: Callable[[], bool] = lambda: False,
) -> list[list[ReportRow]]:
    """Return, for each interpreter, one row per run; each run is measured `rounds` times.

    Each round measures every run once with each interpreter, so that changes of the machine's load affect all of them
    equally. The measurement ends early if `until` returns true after a round. Raises BenchError.
    """
    found: list[list[list[ReportRow]]] = [[[] for _ in runs] for _ in pythons]
    for number in range(rounds):
        if number and until():
            break
        for place, run in enumerate(runs):
            # A run may be affected by the state in which the other interpreter left the machine, so the order
            # alternates between rounds.
            sides = list(enumerate(pythons))
            for side, python in sides if number % 2 == 0 else reversed(sides):
                which = f", round {number + 1} of {rounds}" if rounds > 1 else ""
                of = f" ({python})" if len(pythons) > 1 else ""
                by = f", by {run.kube_version}" if run.kube_version else ""
                what = f"{run.workload}, {run.nodes:,} nodes, {run.mode}{by}{which}{of}"
                print(f"[{place + 1}/{len(runs)}] {what}", file=sys.stderr, flush=True)
                found[side][place].append(_in_child(run, python))
    return [[merged(each) for each in side] for side in found]


def _runs(options: argparse.Namespace) -> Iterator[BenchRun]:
    names = [name for given in options.workload or ["all"] for name in given.split(",")]
    if "all" in names:
        names = list(WORKLOADS)
    for name in names:
        if name not in WORKLOADS:
            raise BenchError(f"there is no workload {name!r}; there are {', '.join(WORKLOADS)}")
    versions = [kube_version(text).name for text in options.kube_version.split(",")] if options.kube_version else [""]
    modes = MODES if options.mode == "both" else (options.mode,)
    for nodes in options.nodes or [5000]:
        for name in names:
            for mode in modes:
                for version in versions:
                    run = BenchRun(
                        name,
                        nodes,
                        mode,
                        options.percentage,
                        options.offered_rate,
                        options.pods,
                        options.init_pods,
                        options.seed,
                        version,
                        options.journal and mode == "e2e",
                        options.questions and mode == "e2e",
                        options.own_time,
                    )
                    _workload(run)  # rejects sizes that the workload does not allow, before any run starts
                    yield run


def _in_child(run: BenchRun, python: str) -> ReportRow:
    # -P: import kschedd from the interpreter's packages, not from the current folder.
    command = [python, "-P", "-m", "kschedd.bench.run", json.dumps(attrs.asdict(run))]
    before = CpuReading.now()
    try:
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    except OSError as fault:
        raise BenchError(f"{python}: cannot be run: {fault.strerror}") from None
    if ended.returncode:
        raise BenchError(f"the run of {run.workload} ended with status {ended.returncode}; its output is above")
    row = ReportRow(**json.loads(ended.stdout.splitlines()[-1]))
    return attrs.evolve(row, other_cpu=round(CpuReading.now().others_since(before), 2))


# -- in the child process ---------------------------------------------------------------------------------------


def _workload(run: BenchRun) -> Workload:
    sizes = default_sizes(run.workload, run.nodes, run.percentage, run.offered_rate)
    made = workload(
        run.workload,
        run.nodes,
        init_pods=sizes.init_pods if run.init_pods is None else run.init_pods,
        pods=sizes.pods if run.pods is None else run.pods,
        pending=sizes.pending or None,
    )
    return made.measured_in("algo" if run.mode == "algo" else "e2e")


def _progress() -> Callable[[str, int, int], None] | None:
    if not sys.stderr.isatty():
        return None

    def show(what: str, done: int, total: int) -> None:
        print(f"\r\x1b[K  {what} {done:,}/{total:,}", end="", file=sys.stderr, flush=True)

    return show


def _measure(run: BenchRun) -> ReportRow:
    from kschedd.config.changing.changes import with_percentage
    from kschedd.config.loading.load import default_config

    version = kube_version(run.kube_version) if run.kube_version else DEFAULT
    config = default_config(version=version)
    if run.percentage:
        config = with_percentage(config, run.percentage)
    made = _workload(run)
    progress = _progress()
    if run.mode == "algo":
        from kschedd.bench import algo

        with own_time() if run.own_time else nullcontext(time.perf_counter) as clock:
            timed = algo.run(made, config, run.seed, clock=clock, progress=progress)
    else:
        from kschedd.bench import e2e

        load = e2e.ArrivalOptions(
            rate=run.offered_rate, journal=run.journal, questions=run.questions, own_time=run.own_time
        )
        timed = e2e.run(made, config, run.seed, load, progress=progress)
    if progress is not None:
        print("\r\x1b[K", end="", file=sys.stderr)
    return measured(
        workload=run.workload,
        nodes=run.nodes,
        mode=run.mode,
        latencies_s=timed.latencies_s,
        elapsed_s=timed.elapsed_s,
        rss_mb=peak_memory_mb(),
        cpu_s=timed.cpu_s,
        scheduled=timed.scheduled,
        failed=timed.failed,
        kube_version=run.kube_version,
        percentage=run.percentage,
        offered_rate=run.offered_rate,
        init_pods=len(made.init_pods),
        journal=run.journal,
        own_time=run.own_time,
        answers_s=timed.answers_s,
        figure=None
        if run.journal
        else recorded(run.workload, run.nodes, run.mode, run.percentage, offered_rate=run.offered_rate),
    )


def peak_memory_mb() -> float:
    """Return the peak resident memory of this process, in MiB; 0 if unknown."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    try:
        print(json.dumps(attrs.asdict(_measure(BenchRun(**json.loads(sys.argv[1]))))))
    except (KscheddError, WorkloadError) as fault:
        sys.exit(f"kschedd bench: {fault}")
