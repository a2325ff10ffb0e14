"""`kschedd workload info|convert|sample|fit`: reads traces of other clusters, as workloads for `simulate` and `sweep`.

Exit status: 0 for success, 2 if the trace or a flag is invalid.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import attrs

from kschedd.errors import KscheddError
from kschedd.printing.terminal.safe import exact, safe
from kschedd.simulation.summary import columns, span
from kschedd.simulation.workloads.trace import Trace
from kschedd.verbs.command_line.parsing import duration, path_value

INVALID: Final = 2
_MOST_VALUES: Final = 6  # of a label


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "workload",
        help="read traces of other clusters: figures, conversion, samples, fitted generators",
        description="Read traces of other clusters (docs/WORKLOADS.md lists the formats). Exit status: 0 done, 2 the "
        "trace or a flag is invalid.",
    )
    actions = parser.add_subparsers(metavar="info|convert|sample|fit", required=True)
    info = _action(actions, "info", _info, "print counts, times, requests and totals of a trace")
    info.add_argument("-o", "--output", choices=("table", "json"), default="table")
    help_ = (
        "write the pods as kschedd's JSON Lines (.jsonl, with times) or as manifests (.yaml, without, and with nodes)"
    )
    _written(_action(actions, "convert", _convert, help_), "FILE.jsonl or FILE.yaml")
    sample = _action(actions, "sample", _sample, "write a part of the pods: a time window, a random fraction, or both")
    _written(sample, "FILE.jsonl or FILE.yaml")
    sample.add_argument(
        "--after", type=duration, metavar="DURATION", help="only pods created at or after this time of the trace"
    )
    sample.add_argument(
        "--before", type=duration, metavar="DURATION", help="only pods created before this time of the trace"
    )
    sample.add_argument(
        "--fraction", type=float, default=1.0, metavar="F", help="random share of the pods, from 0 to 1"
    )
    sample.add_argument("--seed", type=int, default=0, metavar="N", help="seed of --fraction (0)")
    help_ = "write a generator of similar pods, which `simulate --pods` and sweeps read"
    _written(_action(actions, "fit", _fit, help_), "FILE.yaml")


def _action(actions: Any, name: str, run: Any, help_: str) -> Any:
    parser = actions.add_parser(name, help=help_, description=f"{help_[0].upper()}{help_[1:]}.")
    parser.add_argument("pods", type=path_value, metavar="PODS", help="file with the pods or jobs")
    parser.add_argument("--nodes", type=path_value, metavar="FILE", help="file with the nodes")
    parser.add_argument(
        "--mapping", type=path_value, metavar="FILE.yaml", help="columns of a CSV file of another format"
    )
    parser.set_defaults(run=lambda options: _main(run, options))
    return parser


def _written(parser: Any, files: str) -> None:
    parser.add_argument("-o", "--output", type=path_value, required=True, metavar="FILE", help=files)


def _main(run: Any, options: argparse.Namespace) -> int:
    from kschedd.simulation.formats.mapped import read_mapping
    from kschedd.simulation.formats.reading import read_trace

    try:
        mapping = None if options.mapping is None else read_mapping(options.mapping)
        run(options, read_trace(options.nodes, options.pods, mapping))
    except KscheddError as fault:
        print(safe("\n".join(f"error: {text}" for text in str(fault).splitlines())), file=sys.stderr)
        return INVALID
    return 0


def _info(options: argparse.Namespace, trace: Trace) -> None:
    from kschedd.simulation.formats.reading import format_of
    from kschedd.simulation.workloads.trace_facts import facts_of

    facts = facts_of(trace)
    kind = "mapped" if options.mapping else format_of(options.pods)
    if options.output == "json":
        print(exact(json.dumps({"format": kind, **attrs.asdict(facts)}, indent=2, ensure_ascii=False)))
        return
    print(f"{kind}: {facts.pods:,} pods of {facts.shapes:,} shapes, {facts.ending:,} end; {facts.nodes:,} nodes")
    arrivals = f"arrivals from {span(facts.first_s)} to {span(facts.last_s)}, last end at {span(facts.end_s)}"
    print(f"{arrivals}; most pods at one time: {facts.most_at_once:,}")
    lines = [["RESOURCE", "UNIT", "PODS", "TOTAL", "LARGEST", "HOURS", "NODES HAVE"]]
    for name, each in facts.resources.items():
        figures = (each.total, each.largest, each.hours, each.capacity)
        lines.append([name, each.unit, f"{each.pods:,}", *(f"{figure:,.6g}" for figure in figures)])
    print(safe("\n".join(columns(lines))))
    for label, values in {"priority class": facts.priorities, **facts.labels}.items():
        shown = ", ".join(f"{value} {count:,}" for value, count in list(values.items())[:_MOST_VALUES])
        more = f", and {len(values) - _MOST_VALUES:,} more values" if len(values) > _MOST_VALUES else ""
        print(safe(f"{label}: {shown}{more}"))


def _convert(options: argparse.Namespace, trace: Trace) -> None:
    from kschedd.simulation.formats.lines import lines_of

    suffix = options.output.suffix
    if suffix == ".jsonl":
        _write(options.output, lines_of(trace.pods))
    elif suffix in (".yaml", ".yml"):
        _write(options.output, _manifests(trace))
    else:
        raise KscheddError(f"-o {options.output}: must end in .jsonl or .yaml")
    print(f"{len(trace.pods):,} pods in {options.output}")


def _manifests(trace: Trace) -> Iterator[str]:
    """Yield documents of YAML, each written as one line of JSON."""
    for raw in (*trace.objects, *(pod.raw for pod in trace.pods)):
        yield f"---\n{json.dumps(raw, ensure_ascii=False)}\n"


def _sample(options: argparse.Namespace, trace: Trace) -> None:
    if not 0 < options.fraction <= 1:
        raise KscheddError(f"--fraction {options.fraction:g}: must be more than 0, at most 1")
    after = options.after or 0.0
    before = float("inf") if options.before is None else options.before
    if before <= after:
        raise KscheddError("--before must be later than --after")
    random = Random(options.seed)
    chosen = [pod for pod in trace.pods if after <= pod.created_s < before and random.random() < options.fraction]
    moved = [
        attrs.evolve(
            pod,
            created_s=pod.created_s - after,
            deleted_s=None if pod.deleted_s is None else pod.deleted_s - after,
            scheduled_s=None,
        )
        for pod in chosen
    ]
    _convert(options, attrs.evolve(trace, pods=tuple(moved)))


def _fit(options: argparse.Namespace, trace: Trace) -> None:
    from kschedd.simulation.workloads.fitting import fit

    made = fit(trace)
    _write(options.output, [made.text()])
    print(
        f"{made.pods:,} pods, {made.rate_s:g} a second (Weibull shape {made.arrival_shape:g}), lifetimes "
        f"{span(made.lifetime_s)} on average (lognormal, sigma {made.lifetime_sigma:g}), {len(made.shapes):,} shapes"
    )


def _write(path: Path, texts: Iterable[str]) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(texts)
    except OSError as fault:
        raise KscheddError(f"{path}: cannot be written: {fault.strerror}") from fault
