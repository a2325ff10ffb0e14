"""`kschedd test`: runs scenarios and reports the expectations that fail.

Exit status: 0 if all expectations hold, 1 if one fails, 2 if a file cannot be read or parsed.
"""

import argparse
import os
import sys
from typing import Any

from kschedd.commands.flags.scheduler import (
    add_feature_gates_flag,
    add_kube_version_flag,
    gates_of,
    version_of,
    wants_gates,
)
from kschedd.commands.notices import report_error
from kschedd.errors import KscheddError
from kschedd.printing.terminal.safe import safe
from kschedd.scenarios.junit import junit_xml
from kschedd.scenarios.runner import BAD_INPUT, files_of, report, run_each
from kschedd.verbs.command_line.grammar import whole_number
from kschedd.verbs.command_line.parsing import path_value


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "test",
        help="run scenario files and check their expectations",
        description=(
            "Run scenario files and folders of them (examples/scenarios describes the format). Exit status: 0 all "
            "expectations hold, 1 some do not, 2 an input is unusable."
        ),
    )
    parser.add_argument("paths", nargs="+", type=path_value, metavar="PATH", help="a scenario file or a folder")
    add_kube_version_flag(parser)
    add_feature_gates_flag(parser)
    parser.add_argument("--junit", type=path_value, metavar="FILE", help="write a JUnit XML report")
    parser.add_argument(
        "--rewrite", action="store_true", help="write the actual output into the files as the new expectation"
    )
    parser.add_argument(
        "-j", "--jobs", type=whole_number, default=1, metavar="N", help="run N files in parallel processes (default 1)"
    )
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    if wants_gates(options):
        return 0
    try:
        version = version_of(options).with_gates(gates_of(options))
        files = files_of(options.paths)
    except KscheddError as fault:
        report_error(str(fault))
        return BAD_INPUT
    results, status, failed = [], 0, 0
    jobs = min(options.jobs, os.cpu_count() or 1)
    for result in run_each(files, jobs=jobs, rewrite=options.rewrite, version=version):
        came_to = report(result, lambda text: sys.stdout.write(safe(text)))
        results.append(result)
        failed += came_to != 0
        status = max(status, came_to)
        sys.stdout.flush()
    if options.junit is not None:
        try:
            options.junit.write_bytes(junit_xml(results))
        except OSError as wrong:
            report_error(f"{options.junit}: cannot be written: {wrong.strerror}")
            return BAD_INPUT
    steps = sum(len(result.steps) for result in results)
    print(f"{len(results) - failed} of {len(results)} scenarios as expected, {steps} steps")
    return status
