"""Output of the differences under another Kubernetes version (`capacity.compare`), as text, Markdown and HTML."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from kschedd.printing.reports.markup import cell

Raw = Mapping[str, Any]

_CHANGES: Final = {
    "moved": "placed elsewhere",
    "placed": "placed now",
    "pending": "pending now",
    "told": "with another message",
}
_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%;margin:1rem 0}"
    "td,th{border-bottom:1px solid #ccc;padding:.3rem .6rem;text-align:left;vertical-align:top}"
    "code{font-size:.9em}"
)


def headline(found: Raw) -> str:
    """Return a sentence with the number of pods that are scheduled differently, by kind of difference."""
    a, b = found["versions"]
    counts = {change: sum(pod["change"] == change for pod in found["different"]) for change in _CHANGES}
    told = ", ".join(f"{count:,} {_CHANGES[change]}" for change, count in counts.items() if count)
    before, after = found["pending"]
    return f"{a} -> {b}: {found['pods']:,} pods, {told or 'all alike'}; pending {before:,} -> {after:,}"


def as_text(found: Raw, most: int) -> str:
    lines = [headline(found)]
    if found["rules"]:
        lines += ["", "by rule:"]
        width = max(len(_named(rule)) for rule in found["rules"])
        lines += [f"  {_named(rule):<{width}}  {rule['pods']:>6,}  {_what(rule)}" for rule in found["rules"]]
    if found["different"]:
        lines += ["", "pods:"]
    for pod in found["different"][:most]:
        lines.append(f"~ {pod['pod']}: {_nodes(pod)} ({_blamed(pod)})")
        lines += [f"    {sign} {why}" for sign, why in _words(pod)]
    if len(found["different"]) > most:
        lines.append(f"  ... and {len(found['different']) - most:,} more pods (--limit)")
    return "\n".join(lines) + "\n"


def as_markdown(found: Raw, most: int) -> str:
    lines = [f"### {headline(found)}"]
    if found["rules"]:
        lines += ["", "| rule | pods | what it changes |", "|---|---|---|"]
        lines += [f"| `{_named(rule)}` | {rule['pods']:,} | {cell(_what(rule))} |" for rule in found["rules"]]
    if found["different"]:
        lines += ["", "| pod | before | after | by |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in _rows(found["different"][:most])]
    if len(found["different"]) > most:
        lines += ["", f"... and {len(found['different']) - most:,} more pods"]
    return "\n".join(lines) + "\n"


def as_html(found: Raw, most: int) -> str:
    """Return a complete HTML page."""
    a, b = found["versions"]
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Kubernetes {escape(a)} to {escape(b)}</title>',
        f"<style>{_STYLE}</style><h1>Kubernetes {escape(a)} to {escape(b)}</h1><p>{escape(headline(found))}</p>",
    ]
    if found["rules"]:
        rules = [(_named(rule), f"{rule['pods']:,}", _what(rule)) for rule in found["rules"]]
        parts.append(_table(("rule", "pods", "what it changes"), rules))
    if found["different"]:
        parts.append(_table(("pod", "before", "after", "by"), _rows(found["different"][:most])))
    if len(found["different"]) > most:
        parts.append(f"<p>... and {len(found['different']) - most:,} more pods</p>")
    return "\n".join((*parts, "</html>\n"))


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


def _blamed(pod: Raw) -> str:
    if pod["together"]:
        return f"{' and '.join(pod['rules'])} together" if pod["rules"] else "several rules together"
    return ", ".join(pod["rules"])


def _words(pod: Raw) -> list[tuple[str, str]]:
    told = [("-", pod["why_a"]), ("+", pod["why_b"])]
    return [(sign, why) for sign, why in told if why]
