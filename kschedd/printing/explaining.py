"""The answer of `scheduler.explain` for people: where the pod goes, why not elsewhere, how the choice was made."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kschedd.printing.columns import Raw
from kschedd.printing.look import Look
from kschedd.printing.tables import Table, clean, render

_PASSED = ("", "Success", "Skip")


def explanation(answer: Raw, look: Look, *, node: str = "", every_node: bool = False, most: int = 12) -> str:
    """`node` narrows it to one; otherwise at most so many nodes are listed, unless all are asked for."""
    verdicts = [v for v in answer.get("verdicts") or () if not _passed(v) and node in ("", v.get("node") or "")]
    text = _where(answer, look)
    text += _would_fit(answer, look)
    limit = 10**9 if every_node or node else most
    text += _elsewhere(verdicts, look, limit, summed=not node)
    return text + _scores(answer, look, node, limit)


def _passed(verdict: Raw) -> bool:
    return str(verdict.get("code") or "") in _PASSED


def _name(pod: Any) -> str:
    if isinstance(pod, Mapping):
        meta = pod.get("metadata") or {}
        return f"{meta.get('namespace') or 'default'}/{meta.get('name') or meta.get('generateName') or '(unnamed)'}"
    return str(pod or "the pod")


def _nodes(value: Any) -> list[str]:
    return [str(node) for node in value] if isinstance(value, list) else []


def _where(answer: Raw, look: Look) -> str:
    pod = _name(answer.get("pod"))
    chosen = answer.get("chosen") or answer.get("node")
    if not chosen:
        text = look.paint(f"{pod} fits on no node now.", "yellow") + "\n"
        return text + (f"  {clean(str(answer['message']))}\n" if answer.get("message") else "")
    total = (answer.get("totals") or {}).get(chosen)
    text = look.paint(f"{pod} {look.plain('→')} {chosen}", "green")
    if total is not None:
        text += f", with {total} points"
    ties = _nodes(answer.get("ties"))
    if len(ties) > 1:
        text += f", drawn from {len(ties)} equals: {_some(ties, 6)}"
    elif isinstance(answer.get("ties"), int) and answer["ties"] > 1:
        text += f", drawn from {answer['ties']} equals"
    elif len(answer.get("totals") or ()) > 1:
        text += f", the best of {len(answer['totals'])} nodes that fit"
    return text + "\n" + (f"  {clean(str(answer['message']))}\n" if answer.get("message") else "")


def _some(names: Sequence[str], most: int) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _would_fit(answer: Raw, look: Look) -> str:
    changes = answer.get("would_fit_if") or ()
    if not changes:
        return ""
    return "It would fit if:\n" + "".join(f"  {look.plain('·')} {clean(str(change))}\n" for change in changes)


def _elsewhere(verdicts: Sequence[Raw], look: Look, limit: int, *, summed: bool) -> str:
    """Why each node is out. Many nodes with the same reason are summed up."""
    if not verdicts:
        return ""
    nodes = {str(v.get("node") or "") for v in verdicts}
    if summed and len(nodes) > limit:
        groups: dict[tuple[str, str, str], list[str]] = {}
        for verdict in verdicts:
            key = (str(verdict.get("plugin") or ""), str(verdict.get("code") or ""), _reasons(verdict))
            groups.setdefault(key, []).append(str(verdict.get("node") or "every node"))
        ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
        rows = [(str(len(names)), plugin, code, why, _some(names, 3)) for (plugin, code, why), names in ordered]
        table = Table(("NODES", "PLUGIN", "VERDICT", "REASON", "SUCH AS"), tuple(rows))
    else:
        rows_of = [
            (
                str(v.get("node") or "every node"),
                str(v.get("plugin") or ""),
                str(v.get("code") or ""),
                _reasons(v),
            )
            for v in verdicts
        ]
        table = Table(("NODE", "PLUGIN", "VERDICT", "REASON"), tuple(rows_of))
    return "\nWhy not there:\n" + render(table, look, indent="  ")


def _reasons(verdict: Raw) -> str:
    reasons: Iterable[Any] = verdict.get("reasons") or ()
    return reasons if isinstance(reasons, str) else ", ".join(map(str, reasons))


def _scores(answer: Raw, look: Look, node: str, limit: int) -> str:
    scores: Mapping[str, Mapping[str, Any]] = answer.get("scores") or {}
    totals: Mapping[str, Any] = answer.get("totals") or {}
    if not scores or not totals:
        return ""
    chosen = answer.get("chosen") or answer.get("node")
    ranked = sorted(totals, key=lambda name: (-totals[name], name != chosen, name))
    shown = [name for name in ranked if name == node] if node else ranked[:limit]
    if not shown:
        return f"\n{node} has no score: it did not pass the filters.\n"
    # A plugin that gave every node nothing adds a column and no information.
    plugins = [name for name, of in scores.items() if node or any(_weighted(of.get(n)) for n in shown)]
    rows = [
        (
            name,
            *(_score(scores[plugin].get(name)) for plugin in plugins),
            str(totals[name]),
            look.plain("✓") if name == chosen else "",
        )
        for name in shown
    ]
    table = Table(("NODE", *plugins, "TOTAL", ""), tuple(rows))
    rest = len(ranked) - len(shown)
    more = f"  {look.plain('…')} and {rest} more (--all shows them)\n" if rest > 0 and not node else ""
    silent = [name for name in scores if name not in plugins]
    none = f"  0 for each of these nodes: {', '.join(silent)}\n" if silent else ""
    return (
        "\nScores, weighted (in brackets as the plugin gave them):\n" + render(table, look, indent="  ") + more + none
    )


def _weighted(score: Any) -> Any:
    return score.get("weighted") if isinstance(score, Mapping) else score


def _score(score: Any) -> str:
    if not isinstance(score, Mapping):
        return "" if score is None else str(score)
    return f"{score.get('weighted')} ({score.get('raw')})"
