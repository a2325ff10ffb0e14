"""The report of benchmark runs: rows of figures, compared with those of kube-scheduler and of an earlier result.

This module measures and prints nothing. Latencies are seconds on input and milliseconds on output. Percentiles are
nearest-rank (the smallest value that at least the given share of the values does not exceed), like the recorded
figures.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

import attrs

from kschedd.bench.environment import BenchEnvironment
from kschedd.bench.figures import Figure
from kschedd.bench.noise import verdicts
from kschedd.bench.resultfile import read_object, read_rows


@attrs.frozen(kw_only=True)
class ReportRow:
    """The figures of one run.

    A ratio is this run's pods per second divided by the other run's (above 1, this run is faster).
    """

    workload: str
    nodes: int
    mode: str
    pods_per_second: float
    p50_ms: float
    p90_ms: float
    p99_ms: float
    rss_mb: float  # peak resident memory of the whole process in MiB
    cpu_us_per_pod: float | None = None  # user and system time of the process; None in results of earlier versions
    percentage: int = 0
    offered_rate: float = 0.0
    init_pods: int = 0
    pods: int = 0
    scheduled: int = 0
    failed: int = 0
    recorded_pods_per_second: float | None = None
    ratio: float | None = None  # ratio to kube-scheduler's recorded figure
    earlier_pods_per_second: float | None = None
    earlier_ratio: float | None = None
    kube_version: str = ""  # Kubernetes version whose rules were used; "" for the default version
    version_ratio: float | None = None  # ratio to the matching run of the first version
    runs_pods_per_second: tuple[float, ...] = ()  # pods per second of each run, in order; empty for one run
    runs_p99_ms: tuple[float, ...] = ()
    other_cpu: float | None = None  # cores used by other programs during a run; the maximum over all runs
    verdict: str | None = None  # verdict about the difference from the earlier result
    journal: bool = False  # true if all objects were written to disk
    own_time: bool = False  # excludes the time in which other programs used the processor
    answers: int = 0  # number of responses to socket requests during the run
    answers_p50_ms: float | None = None
    answers_p99_ms: float | None = None

    @property
    def runs(self) -> tuple[float, ...]:
        return self.runs_pods_per_second or (self.pods_per_second,)


@attrs.frozen
class Percentiles:
    p50: float
    p90: float
    p99: float


def percentiles(values: Iterable[float]) -> Percentiles:
    """Return the nearest-rank percentiles; all 0 if there are no values."""
    ordered = sorted(values)
    if not ordered:
        return Percentiles(0.0, 0.0, 0.0)
    return Percentiles(*(ordered[_rank(percent, len(ordered))] for percent in (50, 90, 99)))


def _rank(percent: int, count: int) -> int:
    return -(-percent * count // 100) - 1  # rounded up in integers: a float product may be slightly too large


def measured(
    *,
    workload: str,
    nodes: int,
    mode: str,
    latencies_s: Sequence[float],
    elapsed_s: float,
    rss_mb: float,
    cpu_s: float,
    scheduled: int,
    failed: int,
    percentage: int = 0,
    offered_rate: float = 0.0,
    init_pods: int = 0,
    kube_version: str = "",
    journal: bool = False,
    own_time: bool = False,
    answers_s: Sequence[float] = (),
    figure: Figure | None = None,
) -> ReportRow:
    """Return the row of a run that took `elapsed_s` for all pods, and `latencies_s` for the single pods.

    The run's pods per second are the number of latencies divided by the elapsed time. Mode algo has a latency for every
    iteration, including failed ones; mode e2e has a latency for every bound pod.
    """
    spread, answers = percentiles(latencies_s), percentiles(answers_s)
    speed = len(latencies_s) / elapsed_s if elapsed_s > 0 else 0.0
    return ReportRow(
        workload=workload,
        nodes=nodes,
        mode=mode,
        percentage=percentage,
        offered_rate=offered_rate,
        init_pods=init_pods,
        kube_version=kube_version,
        pods=scheduled + failed,
        scheduled=scheduled,
        failed=failed,
        pods_per_second=round(speed, 1),
        p50_ms=round(spread.p50 * 1e3, 3),
        p90_ms=round(spread.p90 * 1e3, 3),
        p99_ms=round(spread.p99 * 1e3, 3),
        rss_mb=round(rss_mb, 1),
        cpu_us_per_pod=round(cpu_s / len(latencies_s) * 1e6, 1) if latencies_s else None,
        recorded_pods_per_second=figure.pods_per_second.median if figure else None,
        ratio=_ratio(speed, figure.pods_per_second.median) if figure else None,
        journal=journal,
        own_time=own_time,
        answers=len(answers_s),
        answers_p50_ms=round(answers.p50 * 1e3, 3) if answers_s else None,
        answers_p99_ms=round(answers.p99 * 1e3, 3) if answers_s else None,
    )


def _ratio(ours: float, theirs: float) -> float | None:
    return round(ours / theirs, 3) if theirs > 0 else None


def merged(runs: Sequence[ReportRow]) -> ReportRow:
    """Return one row for several runs with the same parameters: medians, except for memory and other load (maxima)."""
    first = runs[0]
    if len(runs) == 1:
        return first
    speed = round(median(run.pods_per_second for run in runs), 1)
    return attrs.evolve(
        first,
        pods_per_second=speed,
        p50_ms=round(median(run.p50_ms for run in runs), 3),
        p90_ms=round(median(run.p90_ms for run in runs), 3),
        p99_ms=round(median(run.p99_ms for run in runs), 3),
        rss_mb=max(run.rss_mb for run in runs),
        cpu_us_per_pod=_median_of((run.cpu_us_per_pod for run in runs), 1),
        scheduled=min(run.scheduled for run in runs),
        failed=max(run.failed for run in runs),
        ratio=None if first.recorded_pods_per_second is None else _ratio(speed, first.recorded_pods_per_second),
        runs_pods_per_second=tuple(run.pods_per_second for run in runs),
        runs_p99_ms=tuple(run.p99_ms for run in runs),
        answers=sum(run.answers for run in runs),
        answers_p50_ms=_median_of(run.answers_p50_ms for run in runs),
        answers_p99_ms=_median_of(run.answers_p99_ms for run in runs),
        other_cpu=max((run.other_cpu for run in runs if run.other_cpu is not None), default=None),
    )


def _median_of(values: Iterable[float | None], digits: int = 3) -> float | None:
    there = [value for value in values if value is not None]
    return round(median(there), digits) if there else None


def compared(rows: Iterable[ReportRow], earlier: Iterable[ReportRow]) -> list[ReportRow]:
    """Return the rows, each with the pods per second that the earlier result has for the same parameters.

    A row with such an earlier figure also gets a verdict whether the difference exceeds the noise.
    """
    before = {_same_run(row): row for row in earlier}
    out = list(rows)
    places = [place for place, row in enumerate(out) if _same_run(row) in before]
    shown = verdicts([(out[place].runs, before[_same_run(out[place])].runs) for place in places])
    for place, verdict in zip(places, shown, strict=True):
        row = out[place]
        then = before[_same_run(row)].pods_per_second
        out[place] = attrs.evolve(
            row,
            earlier_pods_per_second=then,
            earlier_ratio=_ratio(row.pods_per_second, then),
            verdict=verdict.text,
        )
    return out


def beside_first_version(rows: Iterable[ReportRow]) -> list[ReportRow]:
    """Return the rows. Rows of later versions get their ratio to the matching run of the first version."""
    first: dict[tuple[str, int, str, int, float], float] = {}
    out: list[ReportRow] = []
    for row in rows:
        speed = first.setdefault(_size_of(row), row.pods_per_second)
        same = row.kube_version == (out[0] if out else row).kube_version
        out.append(row if same else attrs.evolve(row, version_ratio=_ratio(row.pods_per_second, speed)))
    return out


def _size_of(row: ReportRow) -> tuple[str, int, str, int, float]:
    return row.workload, row.nodes, row.mode, row.percentage, row.offered_rate


def _same_run(row: ReportRow) -> tuple[object, ...]:
    return *_size_of(row), row.kube_version, row.journal, row.own_time, row.answers > 0


def as_json(rows: Iterable[ReportRow], about: BenchEnvironment | None = None) -> str:
    """Return `{"about": {...}, "results": [{...}, ...]}`: the environment, and one object per row."""
    head = {} if about is None else {"about": attrs.asdict(about)}
    return json.dumps({**head, "results": [attrs.asdict(row) for row in rows]}, indent=2)


def read_earlier(path: Path) -> list[ReportRow]:
    """Return the rows of a result written with `-o json`. Raises ResultFileError with all errors."""
    return read_rows(path, "results", ReportRow)


def read_about(path: Path) -> BenchEnvironment:
    """Return the environment recorded in a result; empty for older files. Raises ResultFileError."""
    return read_object(path, "about", BenchEnvironment)


def table(rows: Sequence[ReportRow]) -> str:
    """Return the rows as a text table. Optional columns that are empty in every row are left out."""
    heading = ["WORKLOAD", "NODES", "MODE", "VERSION", "SCORED", "PODS", "PODS/S", "KUBE", "RATIO"]
    heading += [
        "CPU US",
        "P50 MS",
        "P90 MS",
        "P99 MS",
        "ANSWERS P99 MS",
        "RSS MIB",
        "FAILED",
        "VS FIRST",
        "EARLIER",
        "VS EARLIER",
        "DIFFERENCE",
    ]
    lines = [[*_cells(row)] for row in rows]
    optional = {
        "CPU US",
        "ANSWERS P99 MS",
        "VERSION",
        "VS FIRST",
        "SCORED",
        "KUBE",
        "RATIO",
        "FAILED",
        "EARLIER",
        "VS EARLIER",
        "DIFFERENCE",
    }
    kept = [i for i, name in enumerate(heading) if name not in optional or any(line[i] != "-" for line in lines)]
    cells = [[line[i] for i in kept] for line in [heading, *lines]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(kept))]
    return "\n".join(_aligned(line, widths) for line in cells)


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(line, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)])


def _cells(row: ReportRow) -> list[str]:
    mode = f"{row.mode}@{row.offered_rate:g}/s" if row.offered_rate else row.mode
    mode += " journal" * row.journal + " own time" * row.own_time
    return [
        row.workload,
        f"{row.nodes:,}",
        mode,
        row.kube_version or "-",
        f"{row.percentage}%" if row.percentage else "-",
        f"{row.pods:,}",
        f"{row.pods_per_second:,.0f}",
        _speed(row.recorded_pods_per_second),
        _times(row.ratio),
        _speed(row.cpu_us_per_pod),
        f"{row.p50_ms:.3f}",
        f"{row.p90_ms:.3f}",
        f"{row.p99_ms:.3f}",
        "-" if row.answers_p99_ms is None else f"{row.answers_p99_ms:.3f}",
        f"{row.rss_mb:,.0f}",
        f"{row.failed:,}" if row.failed else "-",
        _times(row.version_ratio),
        _speed(row.earlier_pods_per_second),
        _times(row.earlier_ratio),
        row.verdict or "-",
    ]


def _speed(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"
