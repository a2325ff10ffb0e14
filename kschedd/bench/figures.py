"""kube-scheduler's recorded figures for the workloads, read from the shared folder.

The figures were measured on one machine. Ratios to the figures are meaningful only on a machine of the same kind
without other load.
"""

from functools import cache
from pathlib import Path

import attrs

from kschedd.bench.resultfile import read_rows
from kschedd.bench.shared import shared_folder

FILE = Path("bench") / "kube-scheduler-1.34.1.json"


@attrs.frozen
class Speed:
    """Pods per second in the runs of one measurement."""

    median: float
    min: float
    max: float


@attrs.frozen
class Figure:
    """One recorded measurement. Latencies, memory and counts are medians over its runs."""

    workload: str
    nodes: int
    init_pods: int
    pods: int
    mode: str
    percentage: int  # percentageOfNodesToScore; 0 means the adaptive default
    threads: int
    pods_per_second: Speed
    p50_ms: float
    p90_ms: float
    p99_ms: float
    rss_mb: float
    scheduled: int
    failed: int
    offered_rate: float = 0.0  # pods created per second; 0 means as fast as possible


def recorded(
    workload: str,
    nodes: int,
    mode: str,
    percentage: int = 0,
    *,
    offered_rate: float = 0,
    threads: int = 2,
    shared: Path | None = None,
) -> Figure | None:
    """Return the figure recorded for exactly these parameters; None if there is none, or no shared folder.

    Raises ResultFileError if the file exists but is invalid, SharedError if a named folder does not exist.
    """
    wanted = (workload, nodes, mode, percentage, offered_rate, threads)
    return next((figure for figure in recorded_figures(shared) if _run(figure) == wanted), None)


def _run(figure: Figure) -> tuple[str, int, str, int, float, int]:
    return (
        figure.workload,
        figure.nodes,
        figure.mode,
        figure.percentage,
        figure.offered_rate,
        figure.threads,
    )


def recorded_figures(shared: Path | None = None) -> tuple[Figure, ...]:
    """Return all recorded figures in file order; an empty tuple without a shared folder or without the file."""
    folder = shared_folder(shared)
    if folder is None or not (folder / FILE).is_file():
        return ()
    return read_figures(folder / FILE)


@cache
def read_figures(path: Path) -> tuple[Figure, ...]:
    """Return the figures in this file. Raises ResultFileError."""
    return tuple(read_rows(path, "rows", Figure))
