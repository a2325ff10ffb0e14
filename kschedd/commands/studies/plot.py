"""`kschedd plot DIR -o FILE`: draws the tables that `simulate --out` and `sweep` wrote."""

import argparse
from typing import Any, Final

from kschedd.commands.notices import report_error
from kschedd.errors import KscheddError
from kschedd.verbs.command_line.parsing import path_value

INVALID: Final = 2
_KINDS: Final = ("usage", "fragmentation", "waits", "queues", "costs", "scaling", "metrics", "pareto", "heatmap")


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "plot",
        help="draw the tables of runs and sweeps",
        description="Draw the tables of `kschedd simulate --out DIR` (several folders are compared) or the rows of one "
        "`kschedd sweep`. A run shows usage, fragmentation and waits; a sweep shows a metric of each configuration. "
        "Exit status: 0 if the picture was drawn, 2 if the tables or a flag are unusable.",
    )
    parser.add_argument("folder", type=path_value, nargs="+", metavar="DIR", help="folder with tables")
    parser.add_argument(
        "-o", "--output", type=path_value, required=True, metavar="FILE", help="FILE.svg, FILE.png or FILE.html"
    )
    parser.add_argument(
        "--kind",
        action="append",
        choices=_KINDS,
        default=[],
        metavar="KIND",
        help=", ".join(_KINDS) + "; may be repeated",
    )
    parser.add_argument("--x", default="", metavar="NAME", help="pareto: a metric; heatmap: a parameter")
    parser.add_argument("--y", default="", metavar="NAME", help="metrics, pareto: a metric; heatmap: a parameter")
    parser.add_argument("--value", default="", metavar="METRIC", help="heatmap: the metric")
    parser.set_defaults(run=_plot)


def _plot(options: argparse.Namespace) -> int:
    from kschedd.studies.plots import PlotChoice, draw

    choice = PlotChoice(kinds=tuple(options.kind), x=options.x, y=options.y, value=options.value)
    try:
        draw(options.folder, options.output, choice)
    except KscheddError as fault:
        report_error(str(getattr(fault, "why", fault)))
        return INVALID
    print(options.output)
    return 0
