"""`kschedd check`: checks whether manifests fit into a cluster, for pull requests and CI.

Exit status: 0 if everything fits, 1 if something does not, 2 if an input is unusable.
"""

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from kschedd.commands.flags.dump import add_dump_flags
from kschedd.commands.flags.observe import Observed, add_report_flags, checked_of
from kschedd.commands.flags.scheduler import add_scheduler_flags, wants_gates
from kschedd.commands.notices import report_error, show, warn
from kschedd.commands.offline.dumped_cluster import dumped_cluster, report_empty
from kschedd.verbs.command_line.parsing import duration, path_text, path_value

if TYPE_CHECKING:
    from kschedd.api.manifests import ManifestReading

FITS, DOES_NOT_FIT, BAD_INPUT = 0, 1, 2
_FORMS: Final = ("text", "markdown", "json", "junit")
_WITHIN_S: Final = 3600.0


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "check",
        help="check whether manifests fit into a cluster",
        description="Apply manifests to the cluster of a dump, and report pods that do not fit, with changes that "
        "would place them; pods that would be preempted, evicted or moved; and the free resources of nodes. Without "
        "--from the manifests must include nodes. Exit status: 0 everything fits, 1 something does not, 2 an "
        "input is unusable.",
    )
    parser.renamed["--cluster"] = "--from"
    parser.add_argument(
        "-f", "--filename", type=path_text, action="append", default=[], metavar="PATH", help="the manifests to check"
    )
    add_dump_flags(parser)
    add_scheduler_flags(parser)
    parser.add_argument(
        "--plugin", action="append", type=path_value, default=[], metavar="FILE.py", help="a Python file with plugins"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of tie-breaking (0)")
    parser.add_argument(
        "--within", type=duration, default=_WITHIN_S, metavar="DURATION", help="limit of virtual time (1h)"
    )
    add_report_flags(parser)
    parser.add_argument("-o", "--output", choices=_FORMS, default="text")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    if wants_gates(options):
        return FITS
    if not options.filename:
        report_error("-f/--filename is required: the manifests to check\nSee kschedd check --help")
        return BAD_INPUT
    from kschedd.api.manifests import read_bytes, read_paths
    from kschedd.dumps.sources import STDIN
    from kschedd.printing.terminal.safe import safe

    readings = [
        read_bytes(sys.stdin.buffer.read(), "<stdin>") if path == STDIN else read_paths([path])
        for path in options.filename
    ]
    manifests = readings[0]
    for reading in readings[1:]:
        manifests += reading
    if manifests.errors and not manifests.manifests:
        print("".join(safe(f"error: {fault}\n") for fault in manifests.errors), end="", file=sys.stderr)
        return BAD_INPUT
    if not options.origin and not any(each.raw.get("kind") == "Node" for each in manifests.manifests):
        report_error("no nodes: pass a dump with --from, or Node manifests with -f")
        return BAD_INPUT
    return _check(options, manifests)


def _check(options: argparse.Namespace, manifests: "ManifestReading") -> int:
    """Check the manifests, and write the report."""
    from kschedd.clusters.forks import ObservedFork
    from kschedd.errors import KscheddError
    from kschedd.methods import cluster_methods, daemon_methods
    from kschedd.printing.reports import checking
    from kschedd.printing.terminal.progress import ProgressLine
    from kschedd.printing.terminal.safe import exact, safe
    from kschedd.verbs.scheduler.checking import check

    try:
        observed = Observed.of(options)
        dumped = dumped_cluster(options)
    except KscheddError as fault:
        report_error(str(fault))
        return BAD_INPUT
    cluster = dumped.cluster
    if options.origin and not dumped.count:
        report_empty(options.origin, dumped.errors)
        return BAD_INPUT
    progress = ProgressLine(sys.stderr)
    progress.show("Running the cluster until no work is left ...")
    cluster.engine.run_to_rest(options.within)
    client = ObservedFork(cluster, observed.begin, daemon_methods, cluster_methods)
    program = "kubectl" if options.origin else "kschedd"  # a dump is of a cluster that kubectl reaches
    report = check(client.call, manifests, options.within, progress.show, program)
    progress.clear()
    # A dump may be partly unreadable, but the manifests to check must be valid.
    for text in dumped.errors:
        warn(text)
    whole = {"text": checking.as_text, "markdown": checking.as_markdown, "json": checking.as_json}
    text = whole.get(options.output, checking.as_junit)(report)
    if options.output == "text":
        show(text)
    else:
        sys.stdout.write(safe(text) if options.output == "markdown" else exact(text))
    try:
        observed.write("Check", [("objects", f"{report.applied:,}"), ("seed", str(options.seed))], checked_of(report))
    except KscheddError as fault:
        report_error(str(fault))
        return BAD_INPUT
    if report.errors:
        return BAD_INPUT
    return FITS if report.fits else DOES_NOT_FIT
