"""Output of a comparison of two versions or configurations (`capacity.compare`), as text, Markdown and HTML."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from kschedd.printing.reports.markup import cell
from kschedd.printing.reports.placements import LONG, summary_tables, summary_text

Raw = Mapping[str, Any]

_CHANGES: Final = {
    "moved": "placed elsewhere",
    "placed": "placed now",
    "pending": "pending now",
    "message": "with another message",
}
_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%;margin:1rem 0}"
    "td,th{border-bottom:1px solid #ccc;padding:.3rem .6rem;text-align:left;vertical-align:top}"
    "code{font-size:.9em}"
)


def headline(found: Raw) -> str:
    """Return a sentence with the number of pods that are scheduled differently, for each kind of difference."""
    a, b = found["versions"] or found["configs"]
    counts = {change: sum(pod["change"] == change for pod in found["different"]) for change in _CHANGES}
    changes = ", ".join(f"{count:,} {_CHANGES[change]}" for change, count in counts.items() if count)
    before, after = found["pending"]
    pods = "1 pod" if found["pods"] == 1 else f"{found['pods']:,} pods"
    return f"{a} -> {b}: {pods}, {changes or 'none placed elsewhere'}; pending {before:,} -> {after:,}"


def as_text(found: Raw, most: int) -> str:
    lines = [headline(found)]
    if found["rules"]:
        lines += ["", "by rule:"]
        width = max(len(_named(rule)) for rule in found["rules"])
        lines += [f"  {_named(rule):<{width}}  {rule['pods']:>6,}  {_what(rule)}" for rule in found["rules"]]
    if found["plugins"]:
        lines += ["", "placed elsewhere by plugin:"]
        width = max(len(_plugin(each)) for each in found["plugins"])
        lines += [f"  {_plugin(each):<{width}}  {each['pods']:>6,}" for each in found["plugins"]]
    if len(found["different"]) >= LONG:
        lines += ["", *summary_text(found["summary"], compared=True).splitlines()[:-1]]
    if found["different"]:
        lines += ["", "pods:"]
    for pod in found["different"][:most]:
        blamed = _blamed(pod)
        lines.append(f"~ {pod['pod']}: {_nodes(pod)}{f' ({blamed})' if blamed else ''}")
        lines += [f"    {sign} {why}" for sign, why in (("-", pod["why_a"]), ("+", pod["why_b"])) if why]
    if len(found["different"]) > most:
        lines.append(f"  ... and {len(found['different']) - most:,} more pods (--limit)")
    return "\n".join(lines) + "\n"


def as_markdown(found: Raw, most: int) -> str:
    lines = [f"### {headline(found)}"]
    for headers, rows in _summaries(found):
        lines += ["", f"| {' | '.join(headers)} |", "|---" * len(headers) + "|"]
        named = headers[0] in ("rule", "plugin")
        lines += [f"| {' | '.join((f'`{row[0]}`' if named else cell(row[0]), *map(cell, row[1:])))} |" for row in rows]
    if found["different"]:
        lines += ["", "| pod | before | after | by |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in _rows(found["different"][:most])]
    if len(found["different"]) > most:
        lines += ["", f"... and {len(found['different']) - most:,} more pods"]
    return "\n".join(lines) + "\n"


def as_html(found: Raw, most: int) -> str:
    """Return a complete HTML page."""
    a, b = found["versions"] or found["configs"]
    title = f"{'Kubernetes ' if found['versions'] else ''}{escape(a)} to {escape(b)}"
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>',
        f"<style>{_STYLE}</style><h1>{title}</h1><p>{escape(headline(found))}</p>",
    ]
    parts += [_table(headers, rows) for headers, rows in _summaries(found)]
    if found["different"]:
        parts.append(_table(("pod", "before", "after", "by"), _rows(found["different"][:most])))
    if len(found["different"]) > most:
        parts.append(f"<p>... and {len(found['different']) - most:,} more pods</p>")
    return "\n".join((*parts, "</html>\n"))


def _summaries(found: Raw) -> Iterator[tuple[Sequence[str], Sequence[Sequence[str]]]]:
    """Yield the tables that precede the pods: the deciding reasons, and the summary of a long comparison."""
    if found["rules"]:
        rows = [(_named(rule), f"{rule['pods']:,}", _what(rule)) for rule in found["rules"]]
        yield ("rule", "pods", "what it changes"), rows
    if found["plugins"]:
        yield ("plugin", "pods placed elsewhere"), [(_plugin(each), f"{each['pods']:,}") for each in found["plugins"]]
    if len(found["different"]) >= LONG:
        for table, _ in summary_tables(found["summary"], compared=True):
            yield [header.lower() for header in table.headers], table.rows


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in headers)
    body = "\n".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>\n{body}</table>"


def _rows(pods: Sequence[Raw]) -> list[tuple[str, str, str, str]]:
    return [(pod["pod"], pod["a"] or pod["why_a"], pod["b"] or pod["why_b"], _blamed(pod)) for pod in pods]


def _named(rule: Raw) -> str:
    return rule["rule"] or "(several)"


def _what(rule: Raw) -> str:
    if not rule["rule"]:
        return str(rule["what"])
    return f"{rule['where']}, since {rule['since']}: {rule['what']}"


def _nodes(pod: Raw) -> str:
    a, b = pod["a"] or "pending", pod["b"] or "pending"
    return a if a == b else f"{a} -> {b}"


def _plugin(each: Raw) -> str:
    return each["plugin"] or "(not by scores)"


def _blamed(pod: Raw) -> str:
    if pod["together"]:
        return f"{' and '.join(pod['rules'])} together" if pod["rules"] else "several rules together"
    if pod["plugin"]:
        return f"{pod['plugin']}: {pod['b']} scores {pod['on_a']:+} against {pod['a']}, then {pod['on_b']:+}"
    return ", ".join(pod["rules"])
