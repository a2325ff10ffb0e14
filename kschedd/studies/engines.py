"""Engines that perform runs: processes and threads of joblib, Dask, and Ray, behind one function.

    loky        processes of this machine (the default); threading: threads of this process
    dask, ray   the workers of a cluster at `address`, or without one of a local cluster that ends with the sweep

Workers are started once and perform many runs. If a worker dies, the engine is started again and the worker's runs are
retried. A run whose worker has died twice is performed alone; if its worker dies again, the row of the run contains the
error.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any, Final

import attrs

from kschedd.errors import KscheddError
from kschedd.sdk.records import optional_library
from kschedd.studies.plan import PlannedRun

Row = dict[str, Any]
Perform = Callable[[PlannedRun], Row]

ENGINES: Final = ("loky", "threading", "dask", "ray")
_RESEARCH: Final = "research"
_LOSSES: Final = 2  # number of losses after which a run is performed alone
_AT_ONCE: Final = 16  # number of runs per worker of Ray, whose back end returns rows in groups
_IDLE_S: Final = 30  # seconds after which a process without work ends, even if its sweep was killed
#: exceptions of joblib's loky, Dask and Ray about a worker that died
_DEATHS: Final = frozenset(
    (
        "TerminatedWorkerError",
        "BrokenProcessPool",
        "KilledWorker",
        "RayActorError",
        "ActorDiedError",
        "WorkerCrashedError",
    )
)


class EngineError(KscheddError):
    """An engine cannot be started, or an address does not apply to it."""


@attrs.frozen(kw_only=True)
class EngineOptions:
    """`jobs`: the number of workers; 0: one for each core, or all workers of a cluster. `address`: of a cluster."""

    engine: str = "loky"
    jobs: int = 0
    address: str = ""

    def checked(self) -> "EngineOptions":
        """Return these options. Raises EngineError; raises MissingLibraryError if a library is not installed."""
        if self.engine not in ENGINES:
            raise EngineError(f'unsupported engine "{self.engine}" (supported: {", ".join(ENGINES)})')
        if self.address and self.engine not in ("dask", "ray"):
            raise EngineError(f"--address requires --engine dask or ray, not {self.engine}")
        optional_library("joblib", _RESEARCH)
        if self.engine == "dask":
            optional_library("dask.distributed", "dask")
        elif self.engine == "ray":
            optional_library("ray", "ray")
        return self


def perform_all(options: EngineOptions, runs: Sequence[PlannedRun], perform: Perform) -> Iterator[Row]:
    """Yield the row of each run, in the order in which the runs end."""
    left = {run.run: run for run in runs}
    losses: Counter[str] = Counter()
    with _started(options) as parallel:
        while left:
            alone = next((run for run in left.values() if losses[run.run] >= _LOSSES), None)
            chosen = list(left.values()) if alone is None else [alone]
            begun: list[PlannedRun] = []
            try:
                for row in parallel(_noted(chosen, begun), len(chosen), perform):
                    left.pop(row["run"], None)
                    yield row
            except Exception as fault:
                if type(fault).__name__ not in _DEATHS:
                    raise
                losses.update(run.run for run in begun if run.run in left)
                if alone is not None and alone.run in left:
                    del left[alone.run]
                    yield _lost(alone)


def _noted(runs: Iterable[PlannedRun], begun: list[PlannedRun]) -> Iterator[PlannedRun]:
    for run in runs:
        begun.append(run)
        yield run


def _lost(run: PlannedRun) -> Row:
    from kschedd.studies.run import failed_row  # imported on demand, because the module imports the simulation

    return failed_row(run, f"the worker process died {_LOSSES + 1} times; it was killed, or out of memory")


Parallel = Callable[[Iterable[PlannedRun], int, Perform], Iterator[Row]]


@contextmanager
def _started(options: EngineOptions) -> Iterator[Parallel]:
    """Start the engine, and yield a function that performs runs; the engine ends with the context."""
    joblib = optional_library("joblib", _RESEARCH)
    jobs = options.jobs or -1
    with ExitStack() as opened:
        settings: dict[str, Any] = {}
        if options.engine == "dask":
            settings["client"] = opened.enter_context(_dask_client(options))
        elif options.engine == "ray":
            opened.enter_context(_ray(options))
        elif options.engine == "loky":
            settings["idle_worker_timeout"] = _IDLE_S
        workers = jobs if jobs > 0 else _workers(joblib, options)

        def parallel(runs: Iterable[PlannedRun], count: int, perform: Perform) -> Iterator[Row]:
            named = {"n_jobs": workers, "batch_size": 1, "pre_dispatch": 2 * workers}
            with joblib.parallel_config(options.engine, n_jobs=workers, **settings):
                if options.engine != "ray":
                    call = joblib.Parallel(return_as="generator_unordered", **named)
                    yield from call(joblib.delayed(perform)(run) for run in runs)
                    return
                rest = iter(runs)
                while some := list(islice(rest, _AT_ONCE * workers)):
                    yield from joblib.Parallel(**named)(joblib.delayed(perform)(run) for run in some)

        yield parallel


def _workers(joblib: Any, options: EngineOptions) -> int:
    with joblib.parallel_config(options.engine):
        return max(1, int(joblib.effective_n_jobs(-1)))


@contextmanager
def _dask_client(options: EngineOptions) -> Iterator[Any]:
    distributed = optional_library("dask.distributed", "dask")
    try:
        if options.address:
            with distributed.Client(options.address, timeout=10) as client:
                yield client
            return
    except OSError as fault:
        raise EngineError(f"--address {options.address}: the Dask scheduler cannot be reached") from fault
    local = {"threads_per_worker": 1, "dashboard_address": None, "n_workers": options.jobs or None}
    with distributed.LocalCluster(**local) as cluster, distributed.Client(cluster) as client:
        yield client


@contextmanager
def _ray(options: EngineOptions) -> Iterator[None]:
    ray = optional_library("ray", "ray")
    local = {"num_cpus": options.jobs or None, "include_dashboard": False}
    there: dict[str, Any] = {"address": options.address} if options.address else local
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", ignore_reinit_error=True, **there)
    except ConnectionError as fault:
        raise EngineError(f"--address {options.address}: the Ray cluster cannot be reached") from fault
    optional_library("ray.util.joblib", "ray").register_ray()
    try:
        yield
    finally:
        ray.shutdown()
