"""`kschedd test`: runs scenarios and says which of their expectations do not hold, where, and why.

Exit status: 0 all hold; 1 one does not; 2 a file cannot be read, or says what cannot be understood.
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
from kschedd.errors import KscheddError
from kschedd.printing.terminal.safe import safe
from kschedd.scenarios.junit import junit_xml
from kschedd.scenarios.runner import BAD_INPUT, files_of, report, run_each
from kschedd.verbs.command_line.grammar import whole_number
from kschedd.verbs.command_line.parsing import path_value


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "test",
        help="run scenarios: clusters in virtual time, held to what is expected of them",
        description="Run scenario files (examples/scenarios says how they are written), and those of folders. "
        "Exit status: 0 all is as expected, 1 something is not, 2 some input cannot be used.",
    )
    parser.add_argument("paths", nargs="+", type=path_value, metavar="PATH", help="a scenario, or a folder of them")
    add_kube_version_flag(parser)
    add_feature_gates_flag(parser)
    parser.add_argument("--junit", type=path_value, metavar="FILE", help="write the results as JUnit XML")
    parser.add_argument(
        "--rewrite", action="store_true", help="write what came out into the files, as what is expected from now on"
    )
    parser.add_argument(
        "-j", "--jobs", type=whole_number, default=1, metavar="N", help="so many files at a time, each in a process (1)"
    )
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    if wants_gates(options):
        return 0
    try:
        version = version_of(options).with_gates(gates_of(options))
        files = files_of(options.paths)
    except KscheddError as fault:
        print(safe(f"error: {fault}"), file=sys.stderr)
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
            print(safe(f"error: {options.junit}: cannot be written: {wrong.strerror}"), file=sys.stderr)
            return BAD_INPUT
    steps = sum(len(result.steps) for result in results)
    print(f"{len(results) - failed} of {len(results)} scenarios as expected, {steps} steps")
    return status
