"""Flags for a run's output files: --report, --redact and --trace; and the writers of these files."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kschedd.errors import KscheddError
from kschedd.verbs.command_line.parsing import path_value

if TYPE_CHECKING:
    from kschedd.printing.reports.checking import CheckReport
    from kschedd.report.collector import ReportCollector
    from kschedd.report.model import Checked, CheckedChange
    from kschedd.report.timeline_files import TimelineFile
    from kschedd.simulation.engine import Engine


@attrs.define(eq=False)
class OutputFileError(KscheddError):
    path: Path
    why: str

    def __str__(self) -> str:
        return f"{self.path}: cannot be written: {self.why}"


class RedactWithoutReportError(KscheddError):
    def __str__(self) -> str:
        return "--redact goes with --report"


def add_report_flags(parser: Any) -> None:
    parser.add_argument(
        "--report", type=path_value, metavar="FILE.html", help="write a report of the run: a self-contained HTML page"
    )
    parser.add_argument("--redact", action="store_true", help="replace names in the report (requires --report)")


def add_trace_flag(parser: Any) -> None:
    parser.add_argument(
        "--trace",
        type=path_value,
        metavar="FILE",
        help="write a timeline for ui.perfetto.dev: FILE.pftrace (requires the package perfetto) or FILE.json",
    )


@attrs.define(eq=False)
class Observed:
    """The observers that the flags request for a run. The observers write their files after the run."""

    _report: Path | None
    _redact: bool
    _trace: Path | None = None
    _timeline: "TimelineFile | None" = None
    _collector: "ReportCollector | None" = None

    @classmethod
    def of(cls, options: argparse.Namespace) -> "Observed":
        """Create the observers. Raises OutputFileError if a file will not be writable after the run."""
        if options.redact and options.report is None:
            raise RedactWithoutReportError
        made = cls(options.report, options.redact, getattr(options, "trace", None))
        if options.report is not None:
            _write(options.report, "")
        if made._trace is not None:
            from kschedd.report.timeline_files import timeline_file

            with _observed(made._trace):
                made._timeline = timeline_file(made._trace)
        return made

    def begin(self, engine: "Engine") -> None:
        """Attach the observers to this engine."""
        if self._report is not None:
            from kschedd.report.collector import ReportCollector

            self._collector = ReportCollector.observing(engine)
        if self._timeline is not None:
            from kschedd.report.timeline import Timeline

            Timeline.observing(engine, self._timeline)

    @property
    def reports(self) -> bool:
        return self._report is not None

    def write(
        self,
        title: str,
        facts: Sequence[tuple[str, str]],
        checked: "Checked | None" = None,
        pool_nodes: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Write the files; `pool_nodes` are rows of the table of this name."""
        if self._timeline is not None and self._trace is not None:
            with _observed(self._trace):
                self._timeline.close()
        if self._collector is None or self._report is None:
            return
        from kschedd.methods import cluster_methods
        from kschedd.report.aggregate import report_of
        from kschedd.report.page import page

        report = report_of(
            self._collector, title, facts, methods=cluster_methods, checked=checked, pool_nodes=pool_nodes
        )
        if self._redact:
            from kschedd.report.redaction import redacted

            store = self._collector.engine.store
            report = redacted(report, [obj.raw for kind in store.kinds() for obj in store.list(kind)])
        _write(self._report, page(report))


def _write(path: Path, text: str) -> None:
    with _observed(path):
        path.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def _observed(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise OutputFileError(path, fault.strerror or str(fault)) from fault


def checked_of(report: "CheckReport") -> "Checked":
    """Return the result of `check` in the report's format."""
    from kschedd.printing.reports.checking import verdict
    from kschedd.report.model import Checked, UnplacedHere

    displaced = report.displaced
    return Checked(
        verdict(report),
        report.fits and not report.errors,
        report.applied,
        tuple(UnplacedHere(each.pod, each.why, each.remedy) for each in report.unplaced),
        tuple(_change(pod, pod in displaced) for pod in report.pods),
        tuple((each["resource"], each["before"], each["after"]) for each in report.usage),
        (*report.errors, *(f"{one.pod}: {one.cause or one.why}" for one in report.refused)),
    )


def _change(pod: Mapping[str, Any], displaced: bool) -> "CheckedChange":
    from kschedd.report.model import CheckedChange

    key = f"{pod['namespace']}/{pod['name']}"
    return CheckedChange(pod["sign"], pod["change"], key, pod["node"] or "", pod["to"] or "", pod["cause"], displaced)
