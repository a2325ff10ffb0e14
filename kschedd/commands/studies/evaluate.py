"""`kschedd evaluate PLUGIN.py`: scores a plugin with a suite of workloads, in a separate process."""

import argparse
import json
import sys
from typing import Any

from kschedd.commands.notices import report_error
from kschedd.printing.terminal.safe import exact, safe
from kschedd.verbs.command_line.parsing import duration, path_value

INVALID, UNUSABLE = 1, 2


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "evaluate",
        help="score a plugin with a suite of workloads, for program search",
        description="Run the plugins of a file over the cases of a suite, each with several seeds, in a process with "
        "limits. Prints the mean of each metric and the combined score. Exit status: 0 evaluated, 1 the program cannot "
        "be evaluated (it breaks a rule, raises, or exceeds a limit), 2 wrong use. This is not a sandbox.",
    )
    parser.add_argument("plugin", type=path_value, metavar="PLUGIN.py", help="the file with the plugin class")
    parser.add_argument("--suite", type=path_value, metavar="FILE", help="cases and weights (default: a small suite)")
    parser.add_argument("--seeds", type=_positive, default=10, metavar="N", help="seeds of each case (10)")
    parser.add_argument("--time-limit", type=duration, default="2m", metavar="DURATION", help="for all runs (2m)")
    parser.add_argument("--memory-limit", type=_positive, default=2048, metavar="MIB", help="of the process (2048)")
    parser.add_argument("--no-rules", action="store_true", help="do not check the rules of the plugin interface first")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=_evaluate)


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if not number:
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number above 0 is required")
    return number


def _evaluate(options: argparse.Namespace) -> int:
    from kschedd.testing.evaluation import SuiteError, evaluate

    if not options.plugin.is_file():
        report_error(f"{options.plugin}: no such file")
        return UNUSABLE
    try:
        found = evaluate(
            options.plugin,
            options.suite,
            seeds=options.seeds,
            rules=not options.no_rules,
            time_limit_s=options.time_limit,
            memory_limit_mib=options.memory_limit,
        )
    except SuiteError as fault:
        report_error(str(fault))
        return UNUSABLE
    if options.output == "json":
        print(exact(json.dumps(found.to_dict(), indent=2)))
    elif found.valid:
        for name, value in found.metrics.items():
            print(f"{name:16} {value:.4f}")
        print(f"{'combined_score':16} {found.combined_score:.4f}")
    else:
        report_error(str(found.error))
        print(safe(found.artifacts.get("output", "")), end="", file=sys.stderr)
    return 0 if found.valid else INVALID
