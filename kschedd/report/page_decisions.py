"""Sections about decisions: rejected nodes, the slowest decisions, and the list of decisions, which others link to."""

from collections.abc import Iterator

from kschedd.report.decisions import Decision, Funnel
from kschedd.report.drawing import bar
from kschedd.report.markup import Child, Markup, el, joined
from kschedd.report.model import Columns, Report
from kschedd.report.page_parts import MINUS, NONE, TIMES, lasting, table, when


def funnels(report: Report) -> Iterator[Child]:
    shown = [report.decisions[number] for number in report.funnels]
    if not any(each.funnel for each in shown):
        yield el(
            "p", "No attempt was made." if report.columns.virtual else "No pod is pending; of others it is not kept."
        )
        return
    yield el("p", "How all nodes became the few that fit: the first failure of each kind, and pods that got a node.")
    for each in shown:
        if each.funnel is not None:
            outcome = f"placed on {each.node}" if each.node else "no node"
            head = el("h3", el("a", each.pod, href=f"#d-{each.number}"), el("span", f" {outcome}", cls="dim"))
            yield el("div", head, _funnel(each, each.funnel), cls="card")


def _funnel(decision: Decision, funnel: Funnel) -> Markup:
    rows = [_step("all nodes", funnel.nodes, 1.0, 1.0, None)]
    before = funnel.nodes
    for step in funnel.steps:
        why = joined(
            el("span", f"{count:,} {TIMES} {reason}", cls="reason") if reason else None
            for count, reason in step.reasons
        )
        because = joined(el("span", f"{MINUS}{step.lost:,} ", cls="minus"), why)
        rows.append(_step(step.what, step.left, step.left / funnel.nodes, before / funnel.nodes, because))
        before = step.left
    if decision.node and before > 1:
        because = joined(el("span", f"{MINUS}{before - 1:,} ", cls="minus"), _why_best(decision))
        rows.append(_step("Score", 1, 1 / funnel.nodes, before / funnel.nodes, because))
    heads = ("", "left", "", "rejected")
    head = el("tr", (el("th", each, scope="col", cls="n" if n == 1 else None) for n, each in enumerate(heads)))
    return el("div", el("table", el("thead", head), el("tbody", rows), cls="funnel"), cls="wide")


def _step(what: str, left: int, share: float, before: float, reason: Markup | None) -> Markup:
    return el(
        "tr",
        el("td", what),
        el("td", f"{left:,}", cls="n"),
        el("td", bar(share, before, f"{what}: {left:,} left"), cls="bars"),
        el("td", reason),
    )


def _why_best(decision: Decision) -> str:
    score = "the best score" if decision.score is None else f"the best score, {decision.score:,}"
    return f"{decision.node} has {score}" + (f"; one of {decision.ties} that have it" if decision.ties > 1 else "")


def slowest(report: Report) -> Iterator[Child]:
    if not report.slowest:
        yield el("p", "No pod waited: each that got a node got it in the moment in which it came.")
        return
    chosen = [report.decisions[number] for number in report.slowest]
    timed = any(each.took_s is not None for each in chosen)
    yield el(
        "p",
        "The attempts that took longest, as measured, with the pod's waiting time if known."
        if timed
        else "The pods that waited longest for a node, from when they first entered the active queue.",
    )
    rows = [
        (
            el("a", each.pod, href=f"#d-{each.number}"),
            NONE if each.waited_s is None else lasting(each.waited_s),
            *([_took(each)] if timed else []),
            str(each.attempt),
            f"{each.visited:,}",
            f"{each.feasible:,}",
            each.node,
        )
        for each in chosen
    ]
    heads = ("pod", "waited", *(["took"] if timed else []), "attempts", "nodes looked at", "fit", "node")
    yield table("", heads, rows, numbers=range(1, len(heads) - 1))


def _took(decision: Decision) -> str:
    return NONE if decision.took_s is None else f"{decision.took_s * 1000:,.2f} ms"


def decisions(report: Report) -> Iterator[Child]:
    if not report.decisions:
        yield el("p", "No attempt was made.")
        return
    yield from (_decision(each, report.columns) for each in report.decisions.values())


def _decision(each: Decision, columns: Columns) -> Markup:
    outcome = f"→ {each.node}" if each.node else "→ no node"
    facts = [f"attempt {each.attempt} at {when(columns, each.time_s)}"]
    if each.waited_s is not None:
        facts.append(f"waited {lasting(each.waited_s)}")
    if each.took_s is not None:
        facts.append(f"took {_took(each)}")
    if each.node:
        score = "" if each.score is None else f", score {each.score}"
        ties = f" as {each.ties - 1} more" if each.ties > 1 else ""
        facts.append(f"one of {each.feasible:,} that fit{score}{ties}")
    if each.nominated:
        facts.append(f"nominated to {each.nominated}")
    if each.victims:
        facts.append(f"preempts {', '.join(each.victims[:5])}{' …' if len(each.victims) > 5 else ''}")
    return el(
        "details",
        el("summary", el("span", f"#{each.number} ", cls="dim"), each.pod, el("span", f" {outcome}", cls="dim")),
        el("p", " · ".join(facts)),
        el("p", each.message) if each.message else None,
        _funnel(each, each.funnel) if each.funnel is not None and each.funnel.nodes else None,
        _best(each) if each.best else None,
        id=f"d-{each.number}",
    )


def _best(each: Decision) -> Markup:
    rows = [(node.node, f"{node.total:,}", *(f"{score:,}" for score in node.scores)) for node in each.best]
    heads = ("node", "total", *each.plugins)
    return table("Weighted scores: the chosen node, then the best", heads, rows, numbers=range(1, len(heads)))
