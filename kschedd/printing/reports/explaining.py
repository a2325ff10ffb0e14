"""Output of `scheduler.explain`: the chosen node, the reasons why other nodes were rejected, and the scores."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kschedd.printing.columns.by_kind import Raw
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import Table, clean, flowing, render

_PASSED = ("", "Success", "Skip")


def explanation(answer: Raw, style: TerminalStyle, *, node: str = "", every_node: bool = False, most: int = 12) -> str:
    """Return the result as text.

    `node` restricts the result to one node. Without `node`, at most `most` nodes are listed; with `every_node`, all
    nodes.
    """
    verdicts = [v for v in answer.get("verdicts") or () if node in ("", v.get("node") or "")]
    limit = 10**9 if every_node or node else most
    text = flowing(_attempt(answer) + _where(answer, style) + _dumped(answer, style), style)
    if node:
        text += _on_node(answer, node, style)
    else:
        text += _elsewhere([v for v in verdicts if not _passed(v)], style, limit)
    text += _scores(answer, style, node, limit)
    notes = answer.get("notes") or ()
    listed = "".join(f"{style.plain('·')} {clean(str(note))}\n" for note in notes)
    return text + ("\n" if notes else "") + flowing(listed, style)


def _attempt(answer: Raw) -> str:
    """Return the recorded outcome of a past attempt; "" if the explained attempt is not a past one."""
    attempt, decision = answer.get("attempt"), answer.get("decision") or {}
    if not attempt:
        return ""
    text = f"Attempt {attempt.get('number')} of {_name(answer.get('pod'))}, at {decision.get('time')}: "
    if not decision.get("node"):
        return text + f"{decision.get('feasible')} of {decision.get('visited')} nodes fitted, it got none\n"
    text += f"it got {decision['node']}"
    if (decision.get("ties") or 0) > 1:
        text += f", one of {decision['ties']} equally good nodes with {decision.get('score')} points"
    elif decision.get("score") is not None:
        text += f", with {decision['score']} points"
    return text + f" ({decision.get('feasible')} of {decision.get('visited')} nodes fitted)\n"


def _dumped(answer: Raw, style: TerminalStyle) -> str:
    """Return the message of the scheduler in the dumped cluster."""
    recorded = answer.get("dumped")
    if not recorded:
        return ""
    since = f" (False since {recorded['since']})" if recorded.get("since") else ""
    message = clean(str(recorded.get("message") or recorded.get("reason")))
    if recorded.get("same"):
        if recorded.get("reason") == "SchedulingGated" or message == clean(str(answer.get("message") or "")):
            return f"  its own scheduler reported the same{since}\n"
        return f"  its own scheduler reported the same about the nodes{since}: {message}\n"
    text = f"  its own scheduler reported{since}: {message}\n"
    why = recorded.get("why") or ()
    text += "  they differ, which may be because\n" if why else ""
    return text + "".join(f"    {style.plain('·')} {clean(str(reason))}\n" for reason in why)


def _passed(verdict: Raw) -> bool:
    return str(verdict.get("code") or "") in _PASSED


def _name(pod: Any) -> str:
    if isinstance(pod, Mapping):
        meta = pod.get("metadata") or {}
        return f"{meta.get('namespace') or 'default'}/{meta.get('name') or meta.get('generateName') or '(unnamed)'}"
    return str(pod or "the pod")


def _nodes(value: Any) -> list[str]:
    return [str(node) for node in value] if isinstance(value, list) else []


def _where(answer: Raw, style: TerminalStyle) -> str:
    """Return the result as a sentence: the pod's node, the node that it would get, or that no node is feasible."""
    pod = _name(answer.get("pod"))
    reserved = answer.get("reserved") or {}
    held, ties, totals = (
        answer.get("node") or reserved.get("node"),
        _nodes(answer.get("ties")),
        answer.get("totals") or {},
    )
    best = answer.get("chosen") or (ties[0] if ties else None)
    arrow = style.plain("→")
    text = ""
    if held and answer.get("node_exists") is False:
        text += style.paint(f"{pod} {arrow} {held}, which does not exist", "red") + "\n"
    elif reserved:
        plugins = " and ".join(map(str, reserved.get("plugins") or ()))
        stands = f"waits at Permit for {plugins}" if plugins else "is being bound: PreBind or Bind is under way"
        text += style.paint(f"{pod} has {held} reserved, and {stands}", "yellow") + "\n"
    elif held:
        text += style.paint(f"{pod} {arrow} {held}", "green") + "\n"
    group = None if held else answer.get("pod_group")
    if group:
        namespace, _, name = str(group).partition("/")
        text += style.paint(f"{pod} is tried together with the other pods of PodGroup {clean(str(group))}", "yellow")
        text += f"; what the group lacks: kschedd explain podgroup/{clean(name)} -n {clean(namespace)}\n"
    if answer.get("gated_by"):
        text += style.paint(f"{pod} is held back by {_status_text(answer['gated_by'])}", "yellow") + "\n"
    if best:
        points = f", with {totals[best]} points" if best in totals else ""
        if held and best == held:
            lead = "  it would be chosen again"
        elif held:
            lead = f"  as things are now, {best} would be chosen"
        elif answer.get("gated_by"):
            lead = f"  otherwise, it would be scheduled to {best}"
        elif group:
            lead = f"  by itself it would go to {best}"
        else:
            lead = style.paint(f"{pod} would be scheduled to {best}", "green")
        text += lead + points
        if len(ties) > 1:
            text += f", one of {len(ties)} equally good nodes: {_some(ties, 6)}"
        elif len(totals) > 1:
            text += f", the best of {len(totals)} nodes that fit"
        else:
            text += ", the only node that fits"
        return text + "\n"
    if (answer.get("attempt") or {}).get("kept") is False:
        return text + (f"  {clean(str(answer['message']))}\n" if answer.get("message") else "")
    fits = answer.get("verdicts") and any(_passed(verdict) for verdict in answer["verdicts"])
    outcome = "fits, but the attempt fails" if fits else "fits on no node"
    text += style.paint(f"{'  as things are now, it' if held else pod} {outcome}.", "yellow") + "\n"
    if answer.get("message"):
        text += f"  {clean(str(answer['message']))}\n"
    if answer.get("pre_filter"):
        text += f"  rejected before any node was looked at, by {_status_text(answer['pre_filter'])}\n"
    if answer.get("preemption"):
        making_way = answer["preemption"]
        victims = ", ".join(map(str, making_way.get("victims") or ())) or "no pod"
        text += f"  preemption: on {making_way.get('node')}, {victims} would make way\n"
        text += _candidates(making_way, style)
    return text


def _candidates(preemption: Raw, style: TerminalStyle) -> str:
    """Return the other candidates for preemption, and the criterion by which they were not chosen."""
    count, candidates = preemption.get("candidate_count") or 0, preemption.get("candidates") or ()
    if count < 2:
        return ""
    steps = ", ".join(f"{step['criterion']}: {step['candidates']} left" for step in preemption.get("left") or ())
    rows = [
        (
            str(each.get("node")),
            str(each.get("violations")),
            str(each.get("highest")),
            str(each.get("sum")),
            str(each.get("victim_count")),
            _some(list(map(str, each.get("victims") or ())), 3),
        )
        for each in candidates[:5]
    ]
    table = Table(("NODE", "VIOLATIONS", "HIGHEST", "SUM", "VICTIMS", "WHO"), tuple(rows))
    more = f"    {style.plain('…')} and {count - len(rows)} more\n" if count > len(rows) else ""
    chosen = f"  chosen of {count} candidates by {preemption.get('decided_by')} ({steps})\n"
    return chosen + render(table, style, indent="    ") + more


def _on_node(answer: Raw, node: str, style: TerminalStyle) -> str:
    """Return the result of each plugin for one node."""
    verdict = next((v for v in answer.get("verdicts") or () if v.get("node") == node), None)
    if verdict is None:
        return ""
    shown = {str(each.get("plugin")): each for each in (verdict, *(verdict.get("also") or ())) if each.get("plugin")}
    skipped = set((answer.get("skipped") or {}).get("filter") or ())
    rows = []
    for plugin in dict.fromkeys([*(answer.get("filters") or ()), *shown]):
        each = shown.get(plugin)
        if each is None:
            rows.append((plugin, "skipped" if plugin in skipped else "passes", ""))
        else:
            rows.append((plugin, str(each.get("code") or ""), _row(each, "")[3]))
    table = Table(("PLUGIN", "VERDICT", "REASON"), tuple(rows))
    return f"\nVerdict of each plugin on {node}:\n" + render(table, style, indent="  ")


def timing(answer: Raw, style: TerminalStyle) -> str:
    """Return a table of the time that each step of the explanation took."""
    rows = [
        (str(step.get("point")), str(step.get("plugin") or ""), f"{(step.get('us') or 0) / 1000:.2f}")
        for step in answer.get("took_us") or ()
    ]
    return "\nTime taken:\n" + render(Table(("STEP", "PLUGIN", "MS"), tuple(rows)), style, indent="  ")


def _status_text(status: Raw) -> str:
    return clean(f"{status.get('plugin')}: {_reasons(status)}")


def _some(names: Sequence[str], most: int) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _elsewhere(verdicts: Sequence[Raw], style: TerminalStyle, limit: int) -> str:
    """Return the reasons why nodes were rejected. Many nodes are grouped by reason."""
    if not verdicts:
        return ""
    nodes = {str(v.get("node") or "") for v in verdicts}
    if len(nodes) > limit:
        groups: dict[tuple[str, str, str], list[str]] = {}
        for verdict in verdicts:
            key = (str(verdict.get("plugin") or ""), str(verdict.get("code") or ""), _reasons(verdict))
            groups.setdefault(key, []).append(str(verdict.get("node") or "every node"))
        ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
        rows = [(str(len(names)), plugin, code, why, _some(names, 3)) for (plugin, code, why), names in ordered]
        table = Table(("NODES", "PLUGIN", "VERDICT", "REASON", "SUCH AS"), tuple(rows))
    else:
        shown = []
        for verdict in verdicts:
            shown.append(_row(verdict, str(verdict.get("node") or "every node")))
            also = verdict.get("also") or ()
            shown += [_row(other, "") for other in also]
        table = Table(("NODE", "PLUGIN", "VERDICT", "REASON"), tuple(shown))
    return "\nRejected nodes:\n" + render(table, style, indent="  ")


def _row(verdict: Raw, node: str) -> tuple[str, str, str, str]:
    nominated = verdict.get("nominated") or ()
    why = _reasons(verdict) + (
        f" (counting {_some(list(map(str, nominated)), 2)}, nominated there)" if nominated else ""
    )
    return node, str(verdict.get("plugin") or ""), str(verdict.get("code") or ""), why


def _reasons(verdict: Raw) -> str:
    reasons: Iterable[Any] = verdict.get("reasons") or ()
    return reasons if isinstance(reasons, str) else ", ".join(map(str, reasons))


def _scores(answer: Raw, style: TerminalStyle, node: str, limit: int) -> str:
    scores: Mapping[str, Mapping[str, Any]] = answer.get("scores") or {}
    totals: Mapping[str, Any] = answer.get("totals") or {}
    if not scores or not totals:
        return ""
    chosen = answer.get("chosen")
    ranked = sorted(totals, key=lambda name: (-totals[name], name != chosen, name))
    shown = [name for name in ranked if name == node] if node else ranked[:limit]
    if not shown:
        return f"\n{node} has no score: it did not pass the filters.\n"
    # If a plugin's score is 0 for every node, its column would contain no information.
    plugins = [name for name, of in scores.items() if node or any(_weighted(of.get(n)) for n in shown)]
    rows = [
        (
            name,
            *(_score(scores[plugin].get(name)) for plugin in plugins),
            str(totals[name]),
            _mark(name, answer, style),
        )
        for name in shown
    ]
    table = Table(("NODE", *plugins, "TOTAL", ""), tuple(rows))
    rest = len(ranked) - len(shown)
    more = f"  {style.plain('…')} and {rest} more (--all shows them)\n" if rest > 0 and not node else ""
    silent = [name for name in scores if name not in plugins]
    zeros = f"  0 for each of these nodes: {', '.join(silent)}\n" if silent else ""
    return (
        "\nWeighted scores (in brackets: the scores of the plugin):\n"
        + render(table, style, indent="  ")
        + more
        + zeros
    )


def _mark(node: str, answer: Raw, style: TerminalStyle) -> str:
    if node == answer.get("chosen"):
        return style.plain("✓")
    return "tie" if node in _nodes(answer.get("ties")) else ""


def _weighted(score: Any) -> Any:
    return score.get("weighted") if isinstance(score, Mapping) else score


def _score(score: Any) -> str:
    if not isinstance(score, Mapping):
        return "" if score is None else str(score)
    return f"{score.get('weighted')} ({score.get('raw')})"
