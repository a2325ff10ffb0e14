"""The results of `kschedd lint` as text, Markdown, JSON and SARIF."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

from kschedd.lint.catalogue.all import GROUP_OF, RULES
from kschedd.lint.linting import LintResult
from kschedd.lint.rules import LEVELS, Level, LintFinding, LintRule
from kschedd.printing.reports.markup import cell

_PAGES: Final = "https://github.com/kschedd/kschedd/blob/main/docs"
_SHOWN: Final = 10  # places of one finding
_SARIF_LEVELS: Final[Mapping[Level, str]] = {"error": "error", "warning": "warning", "note": "note", "fine": "note"}


def page_of(rule: LintRule) -> str:
    """Return the address of the rule's section in the documentation."""
    return f"{_PAGES}/reference/lint/{GROUP_OF[rule.code]}.md#{rule.code}"


def summary(result: LintResult) -> str:
    """Return the result in one line."""
    counted = [_count(result.count(level), level) for level in ("error", "warning", "note")]
    found = ", ".join(text for text in counted if text) or "nothing found"
    release = f"Kubernetes {result.release}"
    release += f", upgrade to {result.target}" if result.target is not None else ""
    ignored = f"; {result.ignored:,} ignored" if result.ignored else ""
    where = _count(result.objects, "object") or "0 objects"
    where += f" and {_count(result.scripts, 'other file')}" if result.scripts else ""
    return f"{found} in {where} ({release}){ignored}{_kept(result)}"


def _kept(result: LintResult) -> str:
    if not result.kept:
        return ""
    reasons = Counter(result.kept.values())
    counted = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    return f"; {_count(len(result.kept), 'file')} skipped (--kept includes them): {counted}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}" if number else ""


def _groups(result: LintResult) -> Iterator[tuple[LintFinding, Sequence[LintFinding]]]:
    """Yield the findings in groups with the same code, message and advice, the most serious first."""
    groups: dict[tuple[str, str, str], list[LintFinding]] = {}
    for finding in result.findings:
        groups.setdefault((finding.rule.code, finding.message, finding.fix), []).append(finding)
    for found in sorted(groups.values(), key=lambda group: (LEVELS.index(group[0].level), -len(group))):
        yield found[0], found


def as_text(result: LintResult) -> str:
    lines = [summary(result)]
    for first, found in _groups(result):
        lines += ["", f"{first.level} {first.rule.code}: {first.message}"]
        lines += [f"    {_place(finding)}" for finding in found[:_SHOWN]]
        if len(found) > _SHOWN:
            lines.append(f"    and {len(found) - _SHOWN:,} more places (-o json lists them)")
        lines.append(f"  {first.fix}")
    return "\n".join(lines) + "\n"


def _place(finding: LintFinding) -> str:
    where = f"{finding.object.source}:{finding.line}" if finding.line else finding.object.source
    return f"{where}: {finding.object.shown} {finding.field}".rstrip()


def as_markdown(result: LintResult) -> str:
    mark = "✅" if result.passes else "❌"
    lines = [f"### {mark} {summary(result)}"]
    if result.findings:
        lines += ["", "| | code | what happens | where | what to do |", "|---|---|---|---|---|"]
    for first, found in _groups(result):
        places = "<br>".join(f"`{cell(_place(finding))}`" for finding in found[:_SHOWN])
        more = f"<br>and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
        code = f"[{first.rule.code}]({page_of(first.rule)})"
        lines.append(f"| {first.level} | {code} | {cell(first.message)} | {places}{more} | {cell(first.fix)} |")
    return "\n".join(lines) + "\n"


def as_json(result: LintResult) -> str:
    answer = {
        "kubeVersion": str(result.release),
        "upgradeTo": str(result.target) if result.target is not None else None,
        "objects": result.objects,
        "errors": result.count("error"),
        "warnings": result.count("warning"),
        "notes": result.count("note"),
        "ignored": result.ignored,
        "passedOver": [{"file": file, "reason": reason} for file, reason in result.kept.items()],
        "findings": [
            {
                "code": finding.rule.code,
                "level": finding.level,
                "kind": finding.object.kind,
                "namespace": finding.object.namespace if finding.object.meta.get("namespace") else "",
                "name": finding.object.name,
                "field": finding.field,
                "file": finding.object.source,
                "line": finding.line,
                "message": finding.message,
                "fix": finding.fix,
                "source": finding.rule.source,
                "page": page_of(finding.rule),
            }
            for finding in result.findings
        ],
    }
    return json.dumps(answer, indent=2) + "\n"


def as_sarif(result: LintResult) -> str:
    """Return the result as SARIF 2.1.0, which code hosts display beside the changed lines."""
    places = {rule.code: number for number, rule in enumerate(RULES)}
    driver = {
        "name": "kschedd lint",
        "version": version("kschedd"),
        "informationUri": f"{_PAGES}/LINT.md",
        "rules": [_sarif_rule(rule) for rule in RULES],
    }
    results = [
        {
            "ruleId": finding.rule.code,
            "ruleIndex": places[finding.rule.code],
            "level": _SARIF_LEVELS[finding.level],
            "message": {"text": f"{finding.object.shown}: {finding.message}. {finding.fix}"},
            "locations": [_sarif_location(finding)],
        }
        for finding in result.findings
    ]
    run: dict[str, Any] = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _sarif_rule(rule: LintRule) -> Mapping[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.eras[0].says.replace("{}", "…")},
        "help": {"text": rule.fix},
        "helpUri": page_of(rule),
        "defaultConfiguration": {"level": _SARIF_LEVELS[rule.level]},
    }


def _sarif_location(finding: LintFinding) -> Mapping[str, Any]:
    found = finding.object
    physical: dict[str, Any] = {"artifactLocation": {"uri": found.source}}
    if finding.line:
        physical["region"] = {"startLine": finding.line}
    name = "/".join(part for part in (found.namespace, found.kind, found.name) if part)
    return {"physicalLocation": physical, "logicalLocations": [{"fullyQualifiedName": f"{name}.{finding.field}"}]}


def rules_as_text() -> str:
    """Return all rules as text, one line per rule."""
    width = max(len(rule.code) for rule in RULES)
    return "".join(f"{rule.code:{width}}  {rule.eras[0].says.replace('{}', '…')}\n" for rule in RULES)
