"""`kschedd simulate`: runs a whole cluster without a daemon, in virtual time.

Exit status: 0 if all pods were scheduled; 1 if pods are pending (without --allow-pending), the audit found a missed
wake-up, or a scenario's output differs; 2 if an input was invalid (the valid inputs were still simulated).
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import attrs

from kschedd.api.manifests import ManifestReading
from kschedd.api.schemas.decoding import VALIDATE
from kschedd.api.text.durations import parse_span
from kschedd.commands.flags.dump import add_dump_flags, config_of_dump, load_options
from kschedd.commands.flags.observe import Observed, add_report_flags, add_trace_flag
from kschedd.commands.flags.scheduler import add_scheduler_flags, gates_of, version_of, wants_gates
from kschedd.commands.notices import note, report_error, show, warn
from kschedd.config.changing.changes import with_flags, with_schedulers
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import default_config, load_config
from kschedd.config.model import Config
from kschedd.errors import KscheddError
from kschedd.framework.guard import without_limits
from kschedd.framework.registry import Registry
from kschedd.garbage_collection import collection_paused, tune_gc
from kschedd.printing.terminal.safe import exact
from kschedd.simulation.arrivals import arrivals_of, is_list, read_input
from kschedd.simulation.engine import EPOCH
from kschedd.simulation.inputs import read_manifests
from kschedd.simulation.results.decisions import DecisionLog
from kschedd.simulation.simulation import Arrivals, Simulation
from kschedd.simulation.summary import PoolSummary, Summary, span
from kschedd.simulation.workloads.fill import Fill
from kschedd.simulation.workloads.generated import (
    NODE_SHAPE,
    POD_SHAPES,
    GeneratedPods,
    GeneratedWorkload,
    generated_nodes,
)
from kschedd.simulation.workloads.trace import ObjectTrace
from kschedd.verbs.command_line.parsing import duration, path_text, path_value

if TYPE_CHECKING:
    from kschedd.controllers.running.controller import Controller
    from kschedd.controllers.scaling.node_pools import NodePools
    from kschedd.dumps.loading import Prepared
    from kschedd.simulation.results.prices import NodePrices
    from kschedd.simulation.results.scaling import PoolNodes
    from kschedd.simulation.results.tables import RunTables

PENDING: Final = 1
BAD_INPUT: Final = 2
_EVERY_S: Final = 0.2
_MOST_GENERATED: Final = 100_000_000
_FEWEST_A_SECOND: Final = 1e-9  # some thirty years apart


@attrs.define(eq=False)
class SimulateUsageError(KscheddError):
    why: str


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "simulate",
        help="schedule pods in virtual time, without a daemon",
        description="Schedule the pods of manifests, a dump or a trace in virtual time, without a daemon. "
        "Exit status: 0 if all pods are scheduled, 1 if some are pending, 2 if an input is unusable.",
    )
    add_arguments(parser)
    parser.set_defaults(run=main)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given = parser.add_argument_group("what is there")
    given.add_argument(
        "-f",
        "--filename",
        type=path_text,
        action="append",
        default=[],
        metavar="PATH",
        help="manifests: a file, a folder, or - for standard input",
    )
    add_dump_flags(given)
    given.add_argument(
        "--validate",
        choices=tuple(VALIDATE),
        default="strict",
        help="unknown fields: reject the object (strict), drop them with a warning (warn) or silently (ignore)",
    )
    given.add_argument("--nodes", type=path_value, metavar="FILE", help="nodes of a trace")
    given.add_argument(
        "--pods",
        type=path_value,
        metavar="FILE",
        help="pods of a trace, or a generator fitted to one (docs/WORKLOADS.md)",
    )
    given.add_argument(
        "--fill",
        metavar="RESOURCE=PERCENT",
        help="add the trace's pods in random order (--seed), repeatedly, until they request that share of the nodes' "
        "capacity; recorded times are ignored and no pod ends",
    )
    given.add_argument(
        "--gangs",
        action="store_true",
        help="schedule the trace's pods with the same label `job` as a gang: all of them or none (PodGroup; requires "
        "--feature-gates GenericWorkload=true)",
    )
    generated = parser.add_argument_group("a generated workload")
    generated.add_argument(
        "--generate",
        type=int,
        metavar="PODS",
        help="generate N pods that arrive at random, run for a while and end; ended pods take no memory",
    )
    generated.add_argument(
        "--arrival-rate", type=float, metavar="PODS", help="average number of arrivals per second (default 10)"
    )
    generated.add_argument(
        "--lifetime", metavar="DURATION", help="average lifetime of a pod, such as 90s or 15m (default 10m)"
    )
    generated.add_argument(
        "--pod-shape",
        action="append",
        default=[],
        metavar="CPU=N,...",
        help="a generated pod, such as cpu=500m,memory=1Gi,weight=3,priority=100; several are chosen by weight "
        f"(default: {' and '.join(POD_SHAPES)})",
    )
    generated.add_argument("--generate-nodes", type=int, metavar="N", help="generate N nodes of one shape")
    generated.add_argument(
        "--node-shape", metavar="CPU=N,...", help=f"capacity of generated nodes (default: {NODE_SHAPE})"
    )
    given.add_argument(
        "--pools",
        type=path_text,
        action="append",
        default=[],
        metavar="FILE",
        help="node pools (docs/POOLS.md): nodes are launched and removed as Karpenter or Cluster Autoscaler would; may "
        "be repeated",
    )
    given.add_argument(
        "--descheduler",
        type=path_text,
        metavar="FILE",
        help="a DeschedulerPolicy (docs/POOLS.md), which runs every 5 minutes",
    )
    add_scheduler_flags(given)
    given.add_argument(
        "--plugin", action="append", type=path_value, default=[], metavar="FILE.py", help="a Python file with plugins"
    )
    how = parser.add_argument_group("how it runs")
    how.add_argument("--seed", type=int, metavar="N", help="seed for breaking ties and generating names (default 0)")
    how.add_argument(
        "--until",
        type=duration,
        metavar="DURATION",
        help="stop after this virtual time, such as 1h; default: when no work is pending, at most a day (CronJobs)",
    )
    how.add_argument("--allow-pending", action="store_true", help="exit with status 0 even if pods are still pending")
    how.add_argument(
        "--trust-plugins",
        action="store_true",
        help="run plugins without timeouts, several times faster; a hanging plugin blocks the run",
    )
    how.add_argument(
        "--audit",
        action="store_true",
        help="after every event, report unschedulable pods that would fit but were not requeued",
    )
    out = parser.add_argument_group("what comes out")
    out.add_argument("-o", "--output", choices=("table", "json"), default="table")
    out.add_argument(
        "--explain",
        action="store_true",
        help="explain pending pods by cause, with remedies for the largest group",
    )
    out.add_argument(
        "--decisions", type=path_value, metavar="FILE", help="write the decision log: a line of JSON for each attempt"
    )
    out.add_argument(
        "--out",
        type=path_value,
        metavar="DIR",
        help="write tables of attempts, pods, nodes, usage, queues and costs as JSON Lines, and as Parquet if pyarrow "
        "is installed (docs/DATA.md)",
    )
    out.add_argument(
        "--prices",
        type=path_value,
        metavar="FILE",
        help="prices of nodes in an hour, by instance type or by resource (docs/RESEARCH.md): --out also writes costs",
    )
    add_report_flags(out)
    add_trace_flag(out)
    scenario = parser.add_argument_group("scenarios")
    scenario.add_argument(
        "--scenario",
        action="append",
        type=path_value,
        default=[],
        metavar="FILE",
        help="run a scenario file",
    )
    scenario.add_argument("--rewrite", action="store_true", help="write the output into the scenario file")


def main(options: argparse.Namespace) -> int:
    tune_gc()
    try:
        if wants_gates(options):
            return 0
        if options.scenario:
            return _scenarios(options)
        return _simulate(options)
    except KscheddError as fault:
        report_error(str(fault))
        return BAD_INPUT


#: flags that a scenario file replaces, or that have no meaning for it
_NOT_WITH_SCENARIOS: Final = {
    "filename": "-f",
    "pools": "--pools",
    "descheduler": "--descheduler",
    "origin": "--from",
    "nodes": "--nodes",
    "pods": "--pods",
    "fill": "--fill",
    "gangs": "--gangs",
    "generate": "--generate",
    "arrival_rate": "--arrival-rate",
    "lifetime": "--lifetime",
    "pod_shape": "--pod-shape",
    "generate_nodes": "--generate-nodes",
    "node_shape": "--node-shape",
    "config": "--config",
    "feature_gates": "--feature-gates",
    "pod_max_in_unschedulable_pods_duration": "--pod-max-in-unschedulable-pods-duration",
    "plugin": "--plugin",
    "seed": "--seed",
    "until": "--until",
    "allow_pending": "--allow-pending",
    "audit": "--audit",
    "explain": "--explain",
    "trust_plugins": "--trust-plugins",
    "out": "--out",
    "prices": "--prices",
    "report": "--report",
    "redact": "--redact",
    "trace": "--trace",
}


def _scenarios(options: argparse.Namespace) -> int:
    given = [flag for name, flag in _NOT_WITH_SCENARIOS.items() if getattr(options, name) not in (None, False, [])]
    if options.output != "table":
        given.append("-o")
    if given:
        raise SimulateUsageError(
            f"{', '.join(given)} cannot be combined with --scenario: a scenario has commands that set up the cluster"
        )
    from kschedd.scenarios.runner import run_files

    with DecisionLog(options.decisions) as log:
        hear = log.write if options.decisions is not None else None
        return run_files(
            options.scenario,
            rewrite=options.rewrite,
            out=sys.stdout,
            on_decision=hear,
            version=version_of(options),
        )


def _simulate(options: argparse.Namespace) -> int:
    if options.rewrite:
        raise SimulateUsageError("--rewrite requires --scenario")
    generated = _generated(options)
    if not options.filename and not options.origin and options.nodes is None and options.pods is None:
        if generated is None:
            raise SimulateUsageError(
                "no input: give a dump with --from, manifests with -f, a trace with --nodes and --pods, or --generate "
                "and --generate-nodes"
            )
    if options.prices is not None and options.out is None and not options.pools:
        raise SimulateUsageError("--prices requires --out or --pools")
    for flag in ("pools", "descheduler"):
        if getattr(options, flag) and options.frozen:
            raise SimulateUsageError(f"--{flag} and --frozen exclude each other: --frozen runs no controllers")
    if options.frozen and not options.origin:
        raise SimulateUsageError("--frozen requires --from")
    registry, config = read_config(options)
    config = with_flags(config, {}, options.pod_max_in_unschedulable_pods_duration)
    config = with_schedulers(config, dict(options.scheduler))
    dump = _read_dump(options, config)
    if dump is not None:
        config = config_of_dump(options, config, IN_TREE | registry.catalogue(), dump)
    manifests = read_manifests(options.filename, sys.stdin.buffer)
    fill = None if options.fill is None else Fill.parse(options.fill)
    if (fill is not None or options.gangs) and (options.pods is None or not is_list(options.pods)):
        given = "none is given" if options.pods is None else f"{options.pods} is a generator or a SimKube trace"
        raise SimulateUsageError(f"--fill and --gangs require a list of pods (--pods): {given}")
    if options.gangs and fill is not None:
        raise SimulateUsageError("--gangs and --fill exclude each other")
    arrivals = arrivals_of(
        read_input(options.nodes, options.pods),
        config,
        options.seed or 0,
        nodes=() if generated is None else generated.nodes,
        generated=generated,
        fill=fill,
        gangs=options.gangs,
    )
    observed = Observed.of(options)
    limits = without_limits() if options.trust_plugins else nullcontext()
    with DecisionLog(options.decisions) as log, limits:
        summary = _run(options, registry, config, dump, manifests, arrivals, log, observed)
    assumed = frozenset(() if dump is None else dump.assumptions.texts())
    for warning in summary.warnings:
        (note if warning in assumed else warn)(warning)
    errors = [*summary.errors]
    if dump is not None and not dump.count and not errors:
        errors.append(f"{', '.join(options.origin)}: no Kubernetes objects found")
    for error in errors:
        report_error(str(error))
    if errors and not summary.nodes and options.output != "json":
        return BAD_INPUT
    if options.output == "json":
        print(exact(summary.json_text()))
    else:
        show(f"{summary.text()}\n")
    if errors:
        return BAD_INPUT
    if summary.audit is not None and summary.audit.missed:
        return PENDING
    return PENDING if summary.pending and not options.allow_pending else 0


def _generated(options: argparse.Namespace) -> GeneratedWorkload | None:
    """Return the workload of --generate and related flags, or None without --generate."""
    shaping = [
        _NOT_WITH_SCENARIOS[name]
        for name in ("arrival_rate", "lifetime", "pod_shape")
        if getattr(options, name) not in (None, [])
    ]
    if options.generate is None and shaping:
        raise SimulateUsageError(f"{', '.join(shaping)} requires --generate")
    if options.generate_nodes is None and options.node_shape is not None:
        raise SimulateUsageError("--node-shape requires --generate-nodes")
    if options.generate is None and options.generate_nodes is None:
        return None
    if options.generate is not None and (options.pods is not None or options.fill is not None):
        raise SimulateUsageError("--generate and a trace of pods exclude each other")
    pods, nodes = options.generate or 0, options.generate_nodes or 0
    if not 0 <= pods <= _MOST_GENERATED or not 0 <= nodes <= _MOST_GENERATED:
        raise SimulateUsageError(f"--generate, --generate-nodes: must be 0 to {_MOST_GENERATED:,}")
    rate = 10.0 if options.arrival_rate is None else options.arrival_rate
    lifetime_s = parse_span(options.lifetime or "10m")
    if not _FEWEST_A_SECOND <= rate <= 1e6:
        raise SimulateUsageError(f"--arrival-rate {rate:g}: must be {_FEWEST_A_SECOND:g} to 1,000,000 pods per second")
    if lifetime_s <= 0:
        raise SimulateUsageError(f"--lifetime {options.lifetime}: must be more than 0")
    shapes = [
        GeneratedPods.parse("--pod-shape", text, number)
        for number, text in enumerate(options.pod_shape or POD_SHAPES, start=1)
    ]
    if not any(shape.weight for shape in shapes):
        raise SimulateUsageError("--pod-shape: at least one weight must be greater than 0")
    made = generated_nodes(nodes, options.node_shape or NODE_SHAPE)
    return GeneratedWorkload(made, pods, rate, lifetime_s, shapes, options.seed or 0)


def read_config(options: argparse.Namespace) -> tuple[Registry, Config]:
    """Return the plugin registry and the configuration of the scheduler."""
    path, version, gates = options.config, version_of(options), gates_of(options)
    registry = Registry(run_async=_run_async)
    registry.add_entry_points()
    for plugin in options.plugin:
        registry.add_file(plugin)
    catalogue = IN_TREE | registry.catalogue()
    if path is None:
        return registry, default_config(catalogue=catalogue, version=version, feature_gates=gates)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise SimulateUsageError(f"{path}: cannot be read: {getattr(fault, 'strerror', None) or fault}") from fault
    return registry, load_config(text, str(path), catalogue=catalogue, version=version, feature_gates=gates)


def _run_async(method: Callable[..., Any], args: Sequence[Any], limit_s: float) -> Any:
    """Call `run_async`, which is imported for the first plugin that needs it, because most runs have no such plugin."""
    from kschedd.actors.scheduler.plugin_calls import run_async

    return run_async(method, args, limit_s)


def _read_dump(options: argparse.Namespace, config: Config) -> "Prepared | None":
    if not options.origin:
        return None
    from kschedd.dumps.loading import read_dump

    with collection_paused():
        return read_dump(options.origin, load_options(options, config), stdin=sys.stdin.buffer)


def _run(
    options: argparse.Namespace,
    registry: Registry,
    config: Config,
    dump: "Prepared | None",
    manifests: ManifestReading,
    arrivals: Arrivals,
    log: DecisionLog,
    observed: Observed,
) -> Summary:
    # Pod traces create and delete their pods themselves; other objects need controllers.
    controlled = manifests.manifests or dump is not None or isinstance(arrivals, ObjectTrace)
    controlled = controlled or options.pools or options.descheduler
    controllers = _controllers(options) if controlled and not options.frozen else ()
    simulation = Simulation(
        config,
        seed=options.seed or 0,
        registry=registry,
        controllers=controllers,
        on_decision=log.write if options.decisions is not None else None,
        audit=options.audit,
        start_s=EPOCH if dump is None or dump.taken_at is None else max(EPOCH, dump.taken_at),
    )
    observed.begin(simulation)
    pools = _node_pools(controllers) if options.pools else None
    prices = _prices(options, pools)
    with _tables(options, simulation, prices, pools) as tables:
        pool_nodes = _pool_nodes(simulation, tables, prices, pools) if observed.reports else None
        scaling = None if pools is None else _scaling(simulation, tables, prices, pools)
        progress = _Progress(simulation) if sys.stderr.isatty() else None
        began = time.perf_counter()
        if dump is not None:
            simulation.take(dump)
            simulation.run_until_idle()
        simulation.load(manifests, VALIDATE[options.validate])
        simulation.play(arrivals, options.until, progress)
        at_rest = simulation.finish(options.until)
        wall_s = time.perf_counter() - began
        if progress is not None:
            progress.clear()
        summary = simulation.summary(wall_s, at_rest=at_rest)
        if scaling is not None:
            summary = attrs.evolve(summary, pools=scaling())
        if tables is not None:
            tables.finish()
    if options.explain:
        from kschedd.causes.pending import pending_causes
        from kschedd.methods import cluster_methods

        summary = attrs.evolve(summary, why=pending_causes(simulation, cluster_methods, 1))
    observed.write("Simulation", _facts(summary), pool_nodes=() if pool_nodes is None else [*pool_nodes.rows()])
    return summary


def _pool_nodes(
    simulation: Simulation, tables: "RunTables | None", prices: "NodePrices | None", pools: "NodePools | None"
) -> "PoolNodes | None":
    """Observe the nodes of the pools for the report, unless the tables do; return None without pools."""
    if tables is not None:
        return tables.pool_nodes
    if pools is None or prices is None:
        return None
    from kschedd.simulation.results.scaling import PoolNodes

    return PoolNodes(simulation, pools, prices)


def _tables(
    options: argparse.Namespace, simulation: Simulation, prices: "NodePrices | None", pools: "NodePools | None"
) -> "AbstractContextManager[RunTables | None]":
    if options.out is None:
        return nullcontext()
    from kschedd.simulation.results.tables import RunTables  # most runs write none

    resource = "" if options.fill is None else Fill.parse(options.fill).resource
    return RunTables(options.out, simulation, resource, prices, pools)


def _node_pools(controllers: "Sequence[Controller]") -> "NodePools":
    from kschedd.controllers.scaling.node_pools import NodePools

    found = NodePools.among(controllers)
    assert found is not None, "there are node pools"
    return found


def _scaling(
    simulation: Simulation, tables: "RunTables | None", prices: "NodePrices | None", pools: "NodePools"
) -> "Callable[[], PoolSummary]":
    """Observe the run, with the measures of its tables if it writes some; return a function for the results."""
    from kschedd.simulation.results.measures import RunMeasures
    from kschedd.simulation.results.scaling import pool_summary

    measures = RunMeasures(simulation, prices=prices, pools=pools) if tables is None else tables.measures
    return lambda: pool_summary(pools, measures)


def _prices(options: argparse.Namespace, pools: "NodePools | None") -> "NodePrices | None":
    """Return the prices of --prices and of the node pools; None without both."""
    if options.prices is None and pools is None:
        return None
    from kschedd.simulation.results.prices import PoolPrices, read_prices

    stated = None if options.prices is None else read_prices(options.prices)
    return stated if pools is None else PoolPrices(pools.pools, stated)


def _controllers(options: argparse.Namespace) -> "Sequence[Controller]":
    from kschedd.controllers.embedded import embedded_controllers
    from kschedd.controllers.options import controller_options, read_option

    chosen = {}
    if options.pools:
        chosen["pools"] = read_option("pools", ",".join(options.pools))
    if options.descheduler:
        chosen["descheduler"] = read_option("descheduler", options.descheduler)
    if not chosen:
        return embedded_controllers()
    from kschedd.scheduling.trial_cluster import TrialCluster

    return embedded_controllers(
        options=controller_options(chosen), trials=TrialCluster.in_steps, seed=options.seed or 0
    )


def _facts(summary: Summary) -> list[tuple[str, str]]:
    """Return the heading of the report, which contains only facts that do not depend on the machine."""
    return [
        ("nodes", f"{summary.nodes:,}"),
        ("pods placed", f"{summary.placed:,}"),
        ("pending", f"{len(summary.pending):,}"),
        ("preempted", f"{summary.preempted:,}"),
        ("attempts", f"{summary.decisions:,}"),
        ("virtual time", span(summary.virtual_s)),
        ("seed", str(summary.seed)),
    ]


class _Progress:
    """A progress line on the terminal, which is rewritten at intervals."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._next = 0.0

    def __call__(self, share: float, placed: int, pending: int) -> None:
        now = time.perf_counter()
        if now >= self._next:
            self._next = now + _EVERY_S
            text = f"{share:4.0%}  {span(self._simulation.elapsed)}  {placed:,} placed  {pending:,} pending"
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
