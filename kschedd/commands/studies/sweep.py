"""`kschedd sweep SPEC.yaml`: runs many simulations, on all cores or a cluster; resumable, with one row for each run.

Exit status: 0 if every run has a row without an error, 1 if some runs failed, 2 if the specification or a flag is
invalid.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Final

from kschedd.errors import KscheddError
from kschedd.printing.terminal.progress import ProgressLine
from kschedd.printing.terminal.safe import exact, safe
from kschedd.simulation.summary import columns, span
from kschedd.verbs.command_line.parsing import path_value

if TYPE_CHECKING:
    from kschedd.studies.plan import PlannedRun
    from kschedd.studies.rows import SweepRows
    from kschedd.studies.sweep import PlannedSweep

SOME_FAILED, INVALID = 1, 2
_PODS_A_SECOND: Final = 2_000  # estimate of pods per second on one core, used until a run has been measured
_EVERY_S: Final = 10.0  # seconds between progress lines in a file; on a terminal there is a line for each row
_SHOWN: Final = ("placed", "pending", "wait_s_p99", "unusable_nodes")
_MOST_SHOWN: Final = 7


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "sweep",
        help="run many simulations: clusters, workloads, profiles, versions, seeds, parameters",
        description="Run the product of a specification's clusters, workloads, profiles, versions, seeds and "
        "parameters, and write one row of metrics for each run. A sweep that was interrupted can be resumed. "
        "Exit status: 0 all runs succeeded, 1 some failed (their rows have the error), 2 the specification or a flag "
        "is invalid.",
    )
    parser.add_argument("spec", type=path_value, metavar="SPEC.yaml", help="the specification (docs/RESEARCH.md)")
    parser.add_argument("--out", type=path_value, metavar="DIR", help="folder of the rows (default: SPEC-rows)")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="run none; print the number of runs, an estimate of the duration, and the results of the finished runs",
    )
    parser.add_argument("--retry-failed", action="store_true", help="repeat failed runs, and replace their rows")
    parser.add_argument("--shard", default="", metavar="I/N", help="perform part I of N, for job arrays")
    add_engine_flags(parser)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.set_defaults(run=main)


def add_engine_flags(parser: Any) -> None:
    """Add the flags that select the data, and the place where runs are performed."""
    parser.add_argument(
        "--data",
        type=path_value,
        metavar="DIR",
        help="folder of the clusters' and workloads' files (default: that of the specification)",
    )
    parser.add_argument(
        "--engine",
        choices=("loky", "threading", "dask", "ray"),
        default="loky",
        help="processes of this machine (loky, the default), threads, or a cluster of Dask or Ray",
    )
    parser.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="number of workers (default: one for each core)"
    )
    parser.add_argument("--address", default="", metavar="ADDRESS", help="an existing cluster of Dask or Ray")


def main(options: argparse.Namespace) -> int:
    """Run the command."""
    from kschedd.studies.sweep import failures, plan, sweep

    out = options.out or options.spec.with_name(f"{options.spec.stem}-rows")
    try:
        if options.jobs < 0:
            raise KscheddError(f"--jobs {options.jobs}: must be 0 or more")
        if options.dry_run:
            planned = plan(options.spec, out, data=options.data, shard=options.shard, retry_failed=options.retry_failed)
            if options.output == "table":
                print("\n".join(_estimate(planned, options.jobs)))
            _print_rows(planned.rows(), options.output)
            return 0
        progress = _SweepProgress()
        rows = sweep(
            options.spec,
            out,
            data=options.data,
            engine=options.engine,
            jobs=options.jobs,
            address=options.address,
            shard=options.shard,
            retry_failed=options.retry_failed,
            progress=progress,
        )
    except KscheddError as fault:
        print(safe("\n".join(f"error: {text}" for text in str(fault).splitlines())), file=sys.stderr)
        return INVALID
    progress.clear()
    failed = failures(rows)
    print(f"{len(rows):,} runs, {failed:,} failed, {_cpu(rows)}; rows in {out}", file=sys.stderr)
    _print_rows(rows, options.output)
    return SOME_FAILED if failed else 0


def _cpu(rows: "SweepRows") -> str:
    """Return the CPU time of all runs, in hours from six minutes on."""
    seconds = sum(row.get("cpu_s", 0.0) for row in rows)
    return f"{seconds:.3g} CPU seconds" if seconds < 360 else f"{seconds / 3600:,.1f} CPU hours"


def _print_rows(rows: "SweepRows", output: str) -> None:
    if output == "json":
        print(exact(json.dumps(list(rows), indent=2, ensure_ascii=False)))
    else:
        print("\n".join(_table(rows)))


def _estimate(planned: "PlannedSweep", jobs: int) -> Iterator[str]:
    """Return the lines that --dry-run prints."""
    import os

    workers = jobs or os.cpu_count() or 1
    left = planned.left
    done = planned.rows()
    finished = f"{len(done):,} finished ({_cpu(done)})" if done else "0 finished"
    yield f"{len(planned.runs):,} runs, {finished}, {len(left):,} to perform"
    measured = [float(row["wall_s"]) for row in done or planned.finished.values() if "wall_s" in row]
    if measured:
        each = fmean(measured)
        why = f"the {len(measured):,} runs with a row took {each:.2f} s on average"
    else:
        each = fmean([_pods(run) / _PODS_A_SECOND for run in left]) if left else 0.0
        why = f"assumed: {_PODS_A_SECOND:,} pods a second on one core; perform a part with --shard to measure"
    yield f"estimate: {span(round(each * len(left) / workers, 1))} with {workers} workers ({why})"


def _pods(run: "PlannedRun") -> int:
    """Return the approximate number of pods of a run: the lines of its files, or the number of generated pods."""
    files = [run.workload.pods, *run.workload.files]
    return run.workload.generate + sum(Path(file.path).read_bytes().count(b"\n") for file in files if file)


class _SweepProgress:
    """Progress on standard error: the number of finished runs, and the time left."""

    def __init__(self) -> None:
        self._began = self._next = 0.0
        self._done = self._failed = 0
        self._line = ProgressLine(sys.stderr)

    def __call__(self, planned: "PlannedSweep", row: Any) -> None:
        self._done += 1
        self._failed += row["status"] != "ok"
        now = time.monotonic()
        self._began = self._began or now  # measure from the first row on, after the workers have started
        if now < self._next and not sys.stderr.isatty():
            return
        self._next = now + _EVERY_S
        left = len(planned.left) - self._done
        rest = f"{span(round((now - self._began) / (self._done - 1) * left))} left" if self._done > 1 else "..."
        finished = len(planned.runs) - left
        text = f"{finished:,} of {len(planned.runs):,} runs, {self._failed:,} failed, {rest}"
        if sys.stderr.isatty():
            self._line.show(text)
        else:
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        self._line.clear()


def _table(rows: "SweepRows") -> Iterator[str]:
    """Return the mean and the deviation of the metrics over the seeds of each configuration."""
    from kschedd.studies.groups import dimensions_of, grouped, label_of, metrics_of

    found = [row for row in rows if row["status"] == "ok"]
    if found:
        dimensions = [name for name in dimensions_of(rows) if len({json.dumps(row[name]) for row in found}) > 1]
        shown = _shown(metrics_of(rows))
        lines: list[Sequence[str]] = [[*map(str.upper, dimensions), "RUNS", *map(str.upper, shown)]]
        for key, group in grouped(found, dimensions):
            cells = [_cell([row[name] for row in group if row.get(name) is not None]) for name in shown]
            lines.append([*map(label_of, key), f"{len(group):,}", *cells])
        yield from columns(lines)
    errors = [row for row in rows if row["status"] != "ok"]
    for row in errors[:_MOST_SHOWN]:
        names = ", ".join(f"{name}={row[name]}" for name in (*dimensions_of(rows), "seed") if name in row)
        yield safe(f"{row['status']}: {names}: {row['error'].splitlines()[0] if row['error'] else ''}")


def _shown(metrics: Sequence[str]) -> list[str]:
    """Return the metrics of the table: those named in the specification, or the first of the usual metrics."""
    if len(metrics) <= _MOST_SHOWN:
        return list(metrics)
    ends = [name for name in metrics if name.endswith("_used_end") and not name.startswith("pods_")]
    return [*(name for name in _SHOWN if name in metrics), *ends][:_MOST_SHOWN]


def _cell(values: Sequence[float]) -> str:
    if not values:
        return ""
    deviation = f" ±{stdev(values):.3g}" if len(values) > 1 else ""
    return f"{fmean(values):.4g}{deviation}"
