"""One run of a sweep, in a worker: a simulation from planned inputs to a row. Workers cache the files that they read.

A run that fails also results in a row: `failed` with the error, `timeout` and `memory` for the limits. The time limit
is checked at every attempt and at every point in virtual time. If the run has a process of its own, a signal also ends
a single long attempt. The memory limit restricts the growth of the process (RLIMIT_AS).

`row_hash` covers the inputs, the decisions and all measures, but not times, memory, host and engine. The hash is equal
on every machine and engine.
Units: seconds; MiB.
"""

import hashlib
import platform
import resource
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.api.manifests import read_paths
from kschedd.api.nodes import Node
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import kube_version
from kschedd.controllers.options import controller_options, read_option
from kschedd.controllers.scaling.node_pools import NodePools
from kschedd.errors import KscheddError
from kschedd.framework.guard import without_limits
from kschedd.garbage_collection import tune_gc
from kschedd.queue.entry import Move, QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.records import Happened
from kschedd.scheduling.trial_cluster import TrialCluster
from kschedd.simulation.arrivals import TraceInput, arrivals_of, read_input
from kschedd.simulation.engine import EPOCH, LoggedAttempt
from kschedd.simulation.results.decisions import line
from kschedd.simulation.results.fragmentation import TargetSet
from kschedd.simulation.results.measures import RunMeasures
from kschedd.simulation.results.prices import NodePrices, PoolPrices
from kschedd.simulation.simulation import Arrivals, Simulation
from kschedd.simulation.workloads.fill import Fill
from kschedd.simulation.workloads.generated import GeneratedPods, GeneratedWorkload, generated_nodes
from kschedd.simulation.workloads.trace import ObjectTrace
from kschedd.studies.plan import PlannedRun, digest, read_config, with_pods_file
from kschedd.studies.spec import InputFile, WorkloadSpec

OK, FAILED, TIMEOUT, MEMORY = "ok", "failed", "timeout", "memory"
_MOST_ERRORS: Final = 3
_GRACE_S: Final = 1.0  # time between the time limit and the signal, so that usually the check between attempts acts


class TimeLimitError(KscheddError):
    """A run takes longer than its time limit."""


@attrs.define(eq=False)
class ChangedInputError(KscheddError):
    """The content of a file differs from the planned content."""

    path: str

    def __str__(self) -> str:
        return f"{self.path}: differs from the file that the sweep was planned with; workers must see the same files"


@attrs.define(eq=False)
class RefusedObjectsError(KscheddError):
    """The API server rejected objects of a run."""

    errors: Sequence[str]

    def __str__(self) -> str:
        more = len(self.errors) - _MOST_ERRORS
        return "\n".join([*self.errors[:_MOST_ERRORS], *[f"... and {more} more"] * (more > 0)])


def perform(planned: PlannedRun) -> dict[str, Any]:
    """Run a simulation and return its row. Errors caused by the inputs are part of the row and never raised."""
    tune_gc()
    began, cpu_s = time.perf_counter(), time.thread_time()
    status, error, decisions = OK, "", ""
    values: Mapping[str, float] = {}
    try:
        with _bounded(planned.options.memory_limit), _interrupted(planned.options.time_limit_s):
            decisions, values = _simulated(planned)
    except TimeLimitError as fault:
        status, error = TIMEOUT, str(fault)
    except MemoryError:
        status, error = MEMORY, f"memory limit exceeded: {planned.options.memory_limit or 0:,} bytes"
    except KscheddError as fault:
        status, error = FAILED, str(fault)
    except Exception as fault:  # a bug of kschedd or of a plugin affects one row, not the sweep
        status, error = FAILED, f"{type(fault).__name__}: {fault}"
    if planned.options.metrics:
        values = {name: values.get(name) for name in planned.options.metrics} if status == OK else {}  # type: ignore[misc]
    return {
        **_row(planned, status, error, decisions, values),
        "wall_s": round(time.perf_counter() - began, 3),
        "cpu_s": round(time.thread_time() - cpu_s, 3),
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "host": platform.node(),
    }


def failed_row(planned: PlannedRun, error: str) -> dict[str, Any]:
    """Return the row of a run that no worker could perform."""
    return _row(planned, FAILED, error, "", {})


def _row(planned: PlannedRun, status: str, error: str, decisions: str, values: Mapping[str, float]) -> dict[str, Any]:
    return {
        "run": planned.run,
        "row_hash": digest([planned.inputs_hash, status, decisions, dict(values)]),
        "status": status,
        "error": error,
        **planned.names,
        **values,
        "inputs_hash": planned.inputs_hash,
        "decisions_hash": decisions,
        "kschedd": installed_version("kschedd"),
        "kubernetes": kube_version(planned.version).patch,
    }


def _simulated(planned: PlannedRun) -> tuple[str, dict[str, float]]:
    """Return the hash of the decision log, and the measures."""
    cluster, workload = planned.cluster, planned.workload
    registry, config = read_config(with_pods_file(planned.profile, workload), planned.version)
    manifests = read_paths([_checked(file) for file in (*cluster.files, *workload.files)])
    arrivals = _arrivals(planned, config)
    dump = _dump(cluster.dump)
    controlled = manifests.manifests or dump is not None or isinstance(arrivals, ObjectTrace) or cluster.pools
    controllers = _controllers(cluster.pools, planned.seed) if controlled else ()
    simulation = Simulation(
        config,
        seed=planned.seed,
        choose=by_name if planned.profile.ties == "name" else None,
        registry=registry,
        controllers=controllers,
        start_s=EPOCH if dump is None or dump.taken_at is None else max(EPOCH, dump.taken_at),
    )
    shapes = [GeneratedPods.parse("targets", text, number) for number, text in enumerate(planned.options.targets, 1)]
    targets = TargetSet.of((shape.manifest(shape.name), shape.weight) for shape in shapes) if shapes else None
    scaling = NodePools.among(controllers)
    prices: NodePrices | None = planned.options.prices
    if scaling is not None:
        prices = PoolPrices(scaling.pools, planned.options.prices)
    measures = RunMeasures(simulation, targets, prices=prices, pools=scaling)
    log = hashlib.sha256()
    simulation.hear(lambda attempt: log.update(_encoded(attempt)))
    if planned.options.time_limit_s is not None:
        simulation.observe(_TimeLimit(planned.options.time_limit_s))
    try:
        with without_limits() if planned.options.trust_plugins else nullcontext():
            if dump is not None:
                simulation.take(dump)
                simulation.run_until_idle()
            simulation.load(manifests)
            simulation.play(arrivals, planned.options.until_s)
            simulation.finish(planned.options.until_s)
        if simulation.applied.errors:
            raise RefusedObjectsError(simulation.applied.errors)
        return log.hexdigest()[:32], measures.values()
    finally:
        simulation.close()


def _encoded(attempt: LoggedAttempt) -> bytes:
    return line(attempt).encode()


def _controllers(pools: Sequence[InputFile], seed: int) -> Sequence[Any]:
    from kschedd.controllers.embedded import embedded_controllers  # a trace has none

    if not pools:
        return embedded_controllers()
    text = read_option("pools", ",".join(_checked(file) for file in pools))
    options = controller_options({"pools": text})
    return embedded_controllers(options=options, trials=TrialCluster.in_steps, seed=seed)


def _dump(files: Sequence[InputFile]) -> Any:
    if not files:
        return None
    import io

    from kschedd.dumps.loading import LoadOptions, read_dump

    return read_dump([_checked(file) for file in files], LoadOptions(), stdin=io.BytesIO())


# -- inputs ---------------------------------------------------------------------------------------------------------


def _arrivals(planned: PlannedRun, config: Config) -> Arrivals:
    cluster, workload = planned.cluster, planned.workload
    given = _input(cluster.nodes, workload.pods)
    if cluster.offering:
        offering = [raw for raw in given.nodes if Node.from_raw(raw).allocatable.get(cluster.offering)]
        given = attrs.evolve(given, nodes=tuple(offering))
    return arrivals_of(
        given,
        config,
        planned.seed,
        nodes=generated_nodes(cluster.generate, cluster.shape),
        generated=_generated(workload, planned.seed) if workload.generate else None,
        fill=Fill.parse(workload.fill) if workload.fill else None,
        gangs=workload.gangs,
    )


def _generated(workload: WorkloadSpec, seed: int) -> GeneratedWorkload:
    shapes = [GeneratedPods.parse("shapes", text, number) for number, text in enumerate(workload.shapes, start=1)]
    return GeneratedWorkload((), workload.generate, workload.arrival_rate, workload.lifetime_s, shapes, seed)


@lru_cache(maxsize=8)
def _input(nodes: InputFile | None, pods: InputFile | None) -> TraceInput:
    """Return the content of both files, which the runs of a worker share: manifests are not modified."""
    return read_input(None if nodes is None else Path(_checked(nodes)), None if pods is None else Path(_checked(pods)))


def _checked(file: InputFile) -> str:
    """Return the path of a file after checking that its content is the planned one. Raises ChangedInputError."""
    try:
        found = hashlib.sha256(Path(file.path).read_bytes()).hexdigest()
    except OSError:
        found = ""
    if found != file.sha256:
        raise ChangedInputError(file.path)
    return file.path


# -- limits ---------------------------------------------------------------------------------------------------------


class _TimeLimit:
    """An observer that ends the run when the run exceeds its time limit."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._end = time.monotonic() + limit_s

    def attempted(self, entry: QueuedPod, result: ScheduleResult | FitError) -> None:
        self.idle()

    def happened(self, entries: Sequence[Happened]) -> None: ...

    def moved(self, move: Move) -> None: ...

    def idle(self) -> None:
        if time.monotonic() > self._end:
            raise _too_long(self._limit_s)


def _too_long(limit_s: float) -> TimeLimitError:
    return TimeLimitError(f"time limit exceeded: {limit_s:g} s")


@contextmanager
def _interrupted(limit_s: float | None) -> Iterator[None]:
    """Raise TimeLimitError within a long attempt; in the main thread only, because only it receives signals.

    If the exception is raised within a plugin, the attempt fails, and the next check of `_TimeLimit` ends the run.
    """
    if limit_s is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        raise _too_long(limit_s)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, limit_s + _GRACE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _bounded(memory: int | None) -> Iterator[None]:
    """Limit the growth of this process's address space to so many bytes."""
    if memory is None:
        yield
        return
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (min(limit, hard) if hard != resource.RLIM_INFINITY else limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
