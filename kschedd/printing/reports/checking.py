"""The results of `kschedd check`, and their output as text, Markdown, JSON and JUnit XML."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import attrs

from kschedd.printing.reports.markup import cell, xml_text
from kschedd.printing.reports.placements import LONG, summary_tables, summary_text

Raw = Mapping[str, Any]


@attrs.frozen
class UnplacedPod:
    """A pod that is not scheduled to any node.

    `why` is the scheduler's message, and `cause` is the reason why the workload of the pod cannot be scheduled.
    `remedy` is a change that was verified for the whole workload; "" if none was found.
    """

    pod: str  # for a workload without pods: its kind and name
    new: bool  # True for a pod in the manifests; otherwise the pod was scheduled or would have been scheduled
    why: str
    code: str = ""
    cause: str = ""
    remedy: str = ""
    commands: Sequence[str] = ()
    manifest_diff: str = ""

    @property
    def state(self) -> str:
        if " " in self.pod:
            return "pods of it are not created"
        return "pending" if self.new else "loses its place"


@attrs.frozen
class CauseOfSome:
    """Pods with a common cause, or workloads for which no pods could be created.

    The remedy is shown for the first pod.
    """

    those: Sequence[UnplacedPod]

    @property
    def first(self) -> UnplacedPod:
        return self.those[0]

    @property
    def named(self) -> str:
        more = len(self.those) - 1
        return self.first.pod + (f" and {_count(more, 'more pod')}" if more else "")


@attrs.define
class CheckReport:
    """The results of `check`. `pods`, `usage` and `summary` have the format of the method `fork.diff`."""

    unplaced: list[UnplacedPod] = attrs.field(factory=list)
    refused: list[UnplacedPod] = attrs.field(factory=list)  # workloads for which no pods could be created
    # Objects in the manifests that admission rejected, with the reasons.
    forbidden: list[str] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)  # unusable input
    warnings: list[str] = attrs.field(factory=list)
    pods: list[dict[str, Any]] = attrs.field(factory=list)
    usage: list[dict[str, Any]] = attrs.field(factory=list)
    summary: Raw = attrs.field(factory=dict)
    applied: int = 0
    pending_before: int = 0
    at_rest: bool = True

    @property
    def fits(self) -> bool:
        return not self.unplaced and not self.refused and not self.forbidden

    @property
    def causes(self) -> list[CauseOfSome]:
        """The unplaced pods and the workloads without pods, grouped by cause, with the largest group first."""
        groups: dict[tuple[str, str, bool], list[UnplacedPod]] = {}
        for each in (*self.unplaced, *self.refused):
            groups.setdefault((each.code, each.cause or each.pod, each.new), []).append(each)
        return sorted(map(CauseOfSome, groups.values()), key=lambda group: -len(group.those))

    @property
    def displaced(self) -> list[dict[str, Any]]:
        """The pods of the cluster that are moved, evicted or deleted."""
        return [pod for pod in self.pods if pod["change"] in ("moved", "gone", "orphaned", "pending") and pod["node"]]

    @property
    def placed(self) -> list[dict[str, Any]]:
        return [pod for pod in self.pods if pod["change"] == "placed"]


def verdict(report: CheckReport) -> str:
    if report.errors:
        return f"some of the input is unusable ({_count(len(report.errors), 'error')})"
    if not report.fits:
        what = [f"{_count(len(report.unplaced), 'pod')} pending"] if report.unplaced else []
        what += [f"{_count(len(report.refused), 'workload')} without pods"] if report.refused else []
        what += [f"{_count(len(report.forbidden), 'object')} rejected"] if report.forbidden else []
        return f"does not fit: {', '.join(what)}"
    return "all fits" if report.applied else "nothing to check: there are no objects in the manifests"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def as_text(report: CheckReport) -> str:
    lines = [*(f"error: {text}" for text in report.errors), *(f"warning: {text}" for text in report.warnings)]
    lines += [verdict(report)]
    if len(report.pods) >= LONG:
        lines += ["", *summary_text(report.summary, compared=True, title="Changed pods:").splitlines()[:-1]]
    for group in report.causes:
        pod = group.first
        lines += ["", f"- {group.named}: {pod.state}"]
        lines += [f"    cause: {pod.cause}"] if pod.cause else []
        lines += [f"    {pod.why}"] if pod.why else []
        if pod.remedy:
            lines += [f"    remedy: {pod.remedy}"]
            lines += [f"      {line}" for text in pod.commands for line in text.splitlines()]
    lines += [f"- {text}" for text in report.forbidden]
    for title, rows in _sections(report):
        lines += ["", f"{title}:", *(f"  {row}" for row in rows)]
    return "\n".join(lines) + "\n"


def as_markdown(report: CheckReport) -> str:
    mark = "✅" if report.fits and not report.errors else "❌"
    result = verdict(report)
    lines = [f"### {mark} {result[0].upper()}{result[1:]}"]
    faults = [f"- **error** {_code(text)}" for text in report.errors]
    faults += [f"- warning: {_code(text)}" for text in report.warnings]
    lines += ["", *faults] if faults else []
    for table, _ in summary_tables(report.summary, compared=True) if len(report.pods) >= LONG else ():
        lines += ["", f"| {' | '.join(table.headers)} |", "|---" * len(table.headers) + "|"]
        lines += [f"| {' | '.join(map(cell, row))} |" for row in table.rows]
    if report.causes:
        lines += ["", "| pods | cause | remedy |", "|---|---|---|"]
        for group in report.causes:
            pod = group.first
            commands = "".join(f"<br>{_first_line(text)}" for text in pod.commands)
            helps = f"{cell(pod.remedy) or 'none found'}{commands}"
            lines.append(f"| {_code(group.named)} | {cell(pod.cause or pod.why)} | {helps} |")
    lines += ["", *(f"- {cell(text)}" for text in report.forbidden)] if report.forbidden else []
    if report.usage:
        lines += ["", "| | before | after | free |", "|---|---|---|---|"]
        lines += [f"| {name} | {before} | {after} | {free} |" for name, before, after, free in _usage(report)]
    for title, rows in _sections(report, usage=False):
        lines += ["", f"<details><summary>{title}</summary>", ""]
        lines += [*(f"- {cell(row)}" for row in rows), "", "</details>"]
    return "\n".join(lines) + "\n"


def as_json(report: CheckReport) -> str:
    result = {
        "fits": report.fits,
        "verdict": verdict(report),
        "applied": report.applied,
        "pendingBefore": report.pending_before,
        "unplaced": [
            {
                "pod": pod.pod,
                "new": pod.new,
                "why": pod.why,
                "code": pod.code,
                "cause": pod.cause,
                "remedy": pod.remedy,
                "commands": list(pod.commands),
                "manifestDiff": pod.manifest_diff,
            }
            for pod in report.unplaced
        ],
        "refused": [f"{one.pod}: {one.why}" for one in report.refused],
        "causes": [
            {
                "code": group.first.code,
                "cause": group.first.cause,
                "of": [one.pod for one in group.those],
                "remedy": group.first.remedy,
                "commands": list(group.first.commands),
                "manifestDiff": group.first.manifest_diff,
            }
            for group in report.causes
        ],
        "forbidden": report.forbidden,
        "pods": report.pods,
        "usage": report.usage,
        "summary": report.summary,
        "errors": report.errors,
        "warnings": report.warnings,
        "atRest": report.at_rest,
    }
    return json.dumps(result, indent=2, ensure_ascii=False) + "\n"


def as_junit(report: CheckReport) -> str:
    """Return a test case for each pod that is created or loses its node, and a test case for the input."""
    failures = {
        pod.pod: "\n".join(text for text in (pod.cause, pod.why, pod.remedy) if text)
        for pod in (*report.unplaced, *report.refused)
    }
    cases = [(f"{pod['namespace']}/{pod['name']}", "") for pod in report.placed]
    cases += list(failures.items())
    cases += [(text.partition(": ")[0], text) for text in report.forbidden]
    cases += [("input", "\n".join(report.errors))]
    wrong = sum(bool(text) for _, text in cases)
    counts = {"tests": str(len(cases)), "failures": str(wrong), "errors": "0"}
    suite = ElementTree.Element("testsuite", {"name": "kschedd check", **counts})
    for name, text in cases:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "kschedd.check", "name": xml_text(name)})
        if text:
            failure = ElementTree.SubElement(case, "failure", {"message": xml_text(text.splitlines()[0])})
            failure.text = xml_text(text)
    whole = ElementTree.Element("testsuites", counts)
    whole.append(suite)
    ElementTree.indent(whole)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(whole, encoding="unicode") + "\n"


def _sections(report: CheckReport, *, usage: bool = True) -> Iterator[tuple[str, list[str]]]:
    if report.displaced:
        yield "pods of the cluster that are moved or deleted", [_moved(pod) for pod in report.displaced]
    if report.placed:
        yield (
            f"placed ({len(report.placed)})",
            [f"{pod['namespace']}/{pod['name']} on {pod['to']}" for pod in report.placed],
        )
    if usage and report.usage:
        yield (
            "requested share of the nodes' resources, before and after",
            [f"{name:8} {before:>6} -> {after:>6}, {free} free" for name, before, after, free in _usage(report)],
        )
    if report.pending_before:
        yield "pending before the change", [_count(report.pending_before, "pod")]
    if not report.at_rest:
        yield "incomplete", ["work goes on after the virtual time of --within; use --within to run longer"]


def _usage(report: CheckReport) -> Iterator[tuple[str, str, str, str]]:
    for each in report.usage:
        yield each["resource"], f"{each['before']:.1%}", f"{each['after']:.1%}", f"{1 - each['after']:.1%}"


def _moved(pod: Raw) -> str:
    where = f" to {pod['to']}" if pod.get("to") else ""
    cause = f" ({pod['cause']})" if pod.get("cause") else ""
    return f"{pod['namespace']}/{pod['name']}: {pod['change']} from {pod['node']}{where}{cause}"


def _first_line(command: str) -> str:
    """Return the first line of a command as code, and a note if the command has more lines."""
    first, *others = command.splitlines() or [""]
    return f"{_code(first)} (and {len(others)} lines of input: see `-o text`)" if others else _code(first)


def _code(text: str) -> str:
    """Return the text as code that is safe in a table."""
    return "`" + " ".join(text.split()).replace("`", "'").replace("|", "\\|") + "`"
