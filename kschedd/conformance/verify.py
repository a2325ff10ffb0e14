"""`kschedd verify PATH...`: runs golden records against this scheduler, family by family.

A record passes if every field of this scheduler's outcome equals kube-scheduler's. A record is unsupported, and does
not count as passed, if it needs a feature that kschedd does not have. An unreadable file is reported, and the other
files are still run.

Exit status: 0 if every record passed, 1 if one failed or is unsupported, 2 if a path, file or record could not be read.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.versions.feature_gates import parse_flag
from kschedd.config.versions.kube_versions import (
    KUBE_VERSIONS,
    V1_34_1,
    KubernetesVersion,
    UnknownVersionError,
    kube_version,
)
from kschedd.conformance import cases, facts, traces
from kschedd.conformance.autoscaling import autoscaling_differences
from kschedd.conformance.compare import differences
from kschedd.conformance.descheduling import descheduling_differences
from kschedd.conformance.karpenter import karpenter_differences
from kschedd.conformance.records import (
    AUTOSCALER,
    DESCHEDULER,
    KARPENTER,
    GoldenRecord,
    RecordError,
    UnsupportedRecord,
    read_records,
    record_files,
    recorded_version,
)
from kschedd.conformance.report import RecordOutcome, Verdict, VerifyReport
from kschedd.errors import KscheddError
from kschedd.printing.terminal.progress import ProgressLine

TRACES = "traces"


def check(record: GoldenRecord, version: KubernetesVersion = V1_34_1, *, remembered: bool = False) -> Verdict:
    """Run one record. `remembered`: use the evaluations that earlier attempts left in the cache, as the daemon does."""
    try:
        found = tuple(_differences(record, version, remembered))
    except ModuleNotFoundError as missing:
        if not (missing.name or "").startswith("kschedd."):
            raise
        return Verdict(record, RecordOutcome.UNSUPPORTED, (f"needs {missing.name}, which is not built yet",))
    except UnsupportedRecord as lack:
        return Verdict(record, RecordOutcome.UNSUPPORTED, (str(lack),))
    except KscheddError as refusal:
        found = (f"refused: {refusal}",)
    except Exception as bug:  # a bug that appears in one record must not prevent the run of all other records
        found = (f"kschedd failed: {_where(bug)}",)
    return Verdict(record, RecordOutcome.FAILED if found else RecordOutcome.PASSED, found)


def _differences(record: GoldenRecord, version: KubernetesVersion, remembered: bool) -> Iterator[str]:
    if record.family.startswith(DESCHEDULER):
        return descheduling_differences(record)
    if record.family.startswith(AUTOSCALER):
        return autoscaling_differences(record)
    if record.family.startswith(KARPENTER):
        return karpenter_differences(record)
    if record.family == TRACES:
        return traces.trace_differences(record, version, remember=remembered)
    if record.evidence and record.raw["kind"] != facts.CYCLE:
        return facts.fact_differences(record, version)
    if record.evidence:
        return cases.stated_differences(record, version, remember=remembered)
    want = record.want if record.binding is None else {**record.want, "binding": record.binding}
    return differences(want, cases.run_case(record, version, remember=remembered))


def version_of(file: Path) -> KubernetesVersion:
    """Return the version with which a file's records were made: the version in the README beside it, else 1.34.1.

    Raises RecordError if this version is not supported.
    """
    recorded = recorded_version(file)
    try:
        return V1_34_1 if recorded is None else kube_version(recorded)
    except UnknownVersionError as unknown:
        raise RecordError(str(file.parent / "README.md"), 0, str(unknown)) from unknown


def _where(bug: Exception) -> str:
    """Return the exception's text with the file and line that raised it."""
    trace = bug.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    return f"{type(bug).__name__}: {bug}{place}"


@attrs.frozen
class VerifyOptions:
    paths: tuple[Path, ...]
    remembered: bool = False
    only: str = ""  # run only records whose id contains this text
    version: KubernetesVersion | None = None  # None: the version of each file's records is used
    feature_gates: Sequence[str] = ()  # feature gates in the syntax of the flag


def shown_on(line: ProgressLine) -> Callable[[Verdict], None]:
    """Return a function that shows the number of records run in each family on a terminal."""
    judged = Counter[str]()

    def show(verdict: Verdict) -> None:
        family = verdict.record.family
        judged[family] += 1
        if judged[family] % 10 == 1:
            line.show(f"{family}: {judged[family]} records")

    return show


def verify(options: VerifyOptions, *, progress: Callable[[Verdict], None] = lambda verdict: None) -> VerifyReport:
    """Run all records of all files, and return the report. Raises RecordError for an unusable path.

    The report lists unreadable files.
    """
    report = VerifyReport()
    for file in record_files(options.paths):
        try:
            version = options.version or version_of(file)
            version = version.with_gates(parse_flag(options.feature_gates, version.gates))
            for record in _records(file, options.only):
                verdict = check(record, version, remembered=options.remembered)
                report.add(verdict)
                progress(verdict)
        except RecordError as fault:
            report.faults.append(fault)
    return report


def _records(file: Path, only: str) -> Iterator[GoldenRecord]:
    number = 0
    for record in read_records(file):
        number += 1
        if only in record.id:
            yield record
    if not number:
        raise RecordError(str(file), 0, "is empty: it has no golden record")


# -- the command ------------------------------------------------------------------------------------------------


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the command `verify` to a command line; its default for `run` is the function that executes it."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "verify",
        help="check decisions against golden records of kube-scheduler",
        description="Run golden records of kube-scheduler and compare, family by family.",
    )
    _add_arguments(parser)
    return parser


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", type=Path, help="files of golden records (.jsonl, .jsonl.gz), or folders"
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    parser.add_argument(
        "--remembered",
        action="store_true",
        help="attempt each record's pod three times and compare the third attempt, which uses cached evaluations",
    )
    parser.add_argument(
        "--kube-version",
        metavar="VERSION",
        help=f"rules to apply: {', '.join(KUBE_VERSIONS)}; default: named in the README.md beside the file, or 1.34.1",
    )
    parser.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help="turn features of that version on or off; the records were made with the version's defaults",
    )
    parser.add_argument("--only", metavar="TEXT", default="", help="run only records whose id contains this text")
    parser.add_argument(
        "--show", metavar="N", type=int, default=1, help="number of failed records to show for each family (default: 1)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Execute the parsed command, and return the exit status."""
    progress = ProgressLine(sys.stderr)
    try:
        version = None if args.kube_version is None else kube_version(args.kube_version)
        options = VerifyOptions(tuple(args.paths), args.remembered, args.only, version, args.feature_gates)
        report = verify(options, progress=shown_on(progress))
    except (RecordError, UnknownVersionError, ConfigErrors) as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    finally:
        progress.clear()
    for bad in report.faults:
        print(f"error: {bad}", file=sys.stderr)
    if args.only and not report.families and not report.faults:
        print(f"error: no record's id contains {args.only!r}", file=sys.stderr)
        return 2
    print(report.as_json() if args.output == "json" else report.as_table(args.show))
    if report.faults:
        return 2
    return 0 if report.passed else 1


def main(args: Sequence[str] | None = None) -> int:
    """Run `python -m kschedd.conformance PATH...`."""
    parser = argparse.ArgumentParser(prog="kschedd verify", description="Check decisions against golden records.")
    _add_arguments(parser)
    return run(parser.parse_args(args))
