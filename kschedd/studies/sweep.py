"""Sweeps: all runs of a specification on an engine; each row is stored at once, so that a sweep can be resumed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

from kschedd.errors import KscheddError
from kschedd.simulation.results.tables import made_folder
from kschedd.studies.engines import EngineOptions, Row, perform_all
from kschedd.studies.plan import PlannedRun, check_configurations, planned_runs, shard_of
from kschedd.studies.rows import RowsFile, SweepRows, read_rows
from kschedd.studies.run import FAILED, MEMORY, OK, TIMEOUT, perform
from kschedd.studies.spec import SweepSpec, read_spec

FAILURES = (FAILED, TIMEOUT, MEMORY)


class ThreadLimitError(KscheddError):
    """A memory limit was given with an engine whose workers are threads."""

    def __str__(self) -> str:
        return "limits.memory requires workers that are processes; use --engine loky, dask or ray"


@attrs.frozen(kw_only=True)
class PlannedSweep:
    """The runs of a sweep, or of its shard: `left` are the runs to perform; `finished` are the runs that have rows."""

    spec: SweepSpec
    runs: tuple[PlannedRun, ...]
    finished: Mapping[str, Row]

    @cached_property
    def left(self) -> list[PlannedRun]:
        return [run for run in self.runs if run.run not in self.finished]

    def rows(self, more: Iterable[Row] = ()) -> SweepRows:
        """Return the rows of these runs, in the order of the runs."""
        found = {**self.finished, **{str(row["run"]): row for row in more}}
        return SweepRows([found[run.run] for run in self.runs if run.run in found])


Progress = Callable[[PlannedSweep, Row], None]
"""Called with every row, after it is kept."""


def plan(
    spec: str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    *,
    data: str | Path | None = None,
    shard: str = "",
    retry_failed: bool = False,
) -> PlannedSweep:
    """Read a specification, plan its runs, and find the runs that already have rows in the folder `out`.

    Raises ConfigErrors, ParameterValueError, SpecFileError, ShardError and RowsFileError.
    """
    read = read_spec(spec, data=None if data is None else Path(data))
    check_configurations(read)
    number, count = shard_of(shard or "1/1")
    # A shift after each `count` runs spreads every configuration over the shards if there are `count` configurations.
    runs = tuple(run for place, run in enumerate(planned_runs(read)) if (place + place // count) % count == number - 1)
    kept = read_rows(Path(out)) if out is not None and Path(out).is_dir() else SweepRows(())
    finished = {str(row["run"]): dict(row) for row in kept if not retry_failed or row.get("status") not in FAILURES}
    return PlannedSweep(spec=read, runs=runs, finished=finished)


def sweep(
    spec: str | Path | Mapping[str, Any],
    out: str | Path | None = None,
    *,
    data: str | Path | None = None,
    engine: str = "loky",
    jobs: int = 0,
    address: str = "",
    shard: str = "",
    retry_failed: bool = False,
    progress: Progress | None = None,
) -> SweepRows:
    """Perform the runs of a specification, and return a row for each.

    `spec`: a file or a mapping, as docs/RESEARCH.md describes. `out`: a folder in which the rows are stored; runs that
    have a row there are not performed again. `data`: the folder of traces and manifests; by default the folder of the
    specification, or the working directory. `engine`: loky, threading, dask or ray, with `jobs` workers (0: one for
    each core) or the workers of the cluster at `address`. `shard`: `I/N`, the Ith of N parts. A run that fails results
    in a row with its error.

    Raises the errors of `plan`, EngineError, and MissingLibraryError if joblib or the engine is not installed.
    """
    options = EngineOptions(engine=engine, jobs=jobs, address=address).checked()
    planned = plan(spec, out, data=data, shard=shard, retry_failed=retry_failed)
    if planned.spec.options.memory_limit is not None and engine == "threading":
        raise ThreadLimitError
    return planned.rows(_kept(planned, options, None if out is None else Path(out), shard, retry_failed, progress))


def _kept(
    planned: PlannedSweep,
    options: EngineOptions,
    out: Path | None,
    shard: str,
    retry_failed: bool,
    progress: Progress | None,
) -> Iterator[Row]:
    """Yield the new rows; each row is first written to the folder."""
    with ExitStack() as opened:
        file = None
        if out is not None:
            file = opened.enter_context(RowsFile.opened(made_folder(out), shard_of(shard or "1/1")))
            if retry_failed:
                file.forget(FAILURES)
        for row in perform_all(options, planned.left, perform):
            if file is not None:
                file.append(row)
            if progress is not None:
                progress(planned, row)
            yield row
        if file is not None:
            file.write_parquet()


def failures(rows: SweepRows) -> int:
    """Return the number of rows of runs that failed."""
    return sum(row["status"] != OK for row in rows)
