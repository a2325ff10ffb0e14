"""Output of the debugger's state: the stop point, the attempt so far, breakpoints, and the cluster's time."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.printing.columns.ages import span
from kschedd.printing.columns.by_kind import Raw
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import NONE, Table, clean, render

# texts for the outcomes of an attempt
_ENDS: Final[Mapping[str, str]] = {
    "scheduled": "the attempt has chosen {node}",
    "unschedulable": "the attempt has found no node",
    "preempting": "the attempt has found no node, and victims",
    "error": "the attempt has failed with an error",
}


def stop_text(state: Raw) -> str:
    """Return one line that shows whether scheduling is stopped, where, and why."""
    stopped = state.get("stopped")
    if not stopped:
        until = state.get("running_until")
        return f"Scheduling runs {until}." if until else "Scheduling runs."
    return f"Stopped ({stopped['why']}): {place_text(stopped)}."


def place_text(stopped: Raw) -> str:
    """Return the place where scheduling is stopped, such as `default/web-0 before filter NodeAffinity`."""
    pod, point, plugin, outcome = (stopped.get(name) for name in ("pod", "point", "plugin", "outcome"))
    if point is None and outcome is None:
        return f"before the attempt of {pod}" if pod else "between two attempts"
    if point is None:
        return f"{pod}, {_ENDS[str(outcome)].format(node=stopped.get('node'))}"
    at = f"{pod} {'after' if outcome else 'before'} {point} {plugin}"
    on = f" on {stopped['node']}" if stopped.get("node") else ""
    text = {"rejected": ", which has rejected it", "waiting": ", which keeps it waiting"}.get(str(outcome), "")
    return at + on + text


def brief_text(state: Raw) -> str:
    """Return where scheduling is stopped, and the number of nodes that remain in the attempt."""
    text = stop_text(state) + "\n"
    attempt = state.get("attempt")
    return text if not attempt or attempt["left"] is None else f"{text}Nodes: {_nodes(attempt)}\n"


def _tried(member: Raw) -> str:
    if member["why"] is None:
        return f"fits on {member['node']}"
    on = f", would be on {member['node']} without its victims" if member["node"] else ""
    return f"does not fit{on}: {clean(member['why'])}"


def where_text(state: Raw, style: TerminalStyle) -> str:
    """Return where scheduling is stopped, and all data of the present attempt."""
    text = stop_text(state) + "\n"
    if state.get("holder"):
        keeps = " and keeps scheduling stopped" if state.get("keep") and state.get("stopped") else ""
        text += f"Client {state['holder']} holds the debugger{keeps}.\n"
    for member in state.get("group") or ():
        text += f"Tried before in its PodGroup: {member['pod']} {_tried(member)}\n"
    attempt = state.get("attempt")
    if not attempt:
        return text
    lines = [("Attempt", str(attempt["number"])), ("Nodes", _nodes(attempt))]
    if attempt["pre_filter"]:
        lines.append(("PreFilter", _rejection_text(attempt["pre_filter"])))
    if attempt["narrowed_to"] is not None:
        lines.append(("Narrowed to", _listed(attempt["narrowed_to"])))
    skipped = [*attempt["cycle_state"].get("skip_filter", ()), *attempt["cycle_state"].get("skip_score", ())]
    if skipped:
        lines.append(("Skipped", _listed(sorted(set(skipped)))))
    lines += [("By hand", what) for what in _by_hand(attempt)]
    if attempt["victims"]:
        lines.append(("Victims", _listed([f"{victim['pod']} on {victim['node']}" for victim in attempt["victims"]])))
    text += "".join(f"{label + ':':<13}{value}\n" for label, value in lines)
    rejected = attempt["rejected"]
    if rejected and rejected["nodes"]:
        rows = [(each["node"], each["plugin"] or NONE, "; ".join(each["reasons"])) for each in rejected["nodes"]]
        text += "\n" + render(Table(("NODE", "REJECTED BY", "REASONS"), tuple(rows)), style)
    if attempt["scores"]:
        text += "\n" + render(_scores(attempt["scores"]), style)
    if attempt["cycle_state"].get("data"):
        data = tuple((name, clean(value)) for name, value in attempt["cycle_state"]["data"].items())
        text += "\n" + render(Table(("CYCLE STATE OF", "IS"), data), style)
    return text


def _nodes(attempt: Raw) -> str:
    left = attempt["left"]
    if left is None:
        return f"{attempt['nodes']}, none filtered yet"
    return f"{left['count']} of {attempt['nodes']} left" + (f": {_listed(left['nodes'])}" if left["nodes"] else "")


def _by_hand(attempt: Raw) -> list[str]:
    text = [f"{attempt['forced']} is forced"] if attempt["forced"] else []
    text += [f"{', '.join(attempt['vetoed'])} vetoed"] if attempt["vetoed"] else []
    return text + [f"{each['plugin']} of {each['node']} is {each['score']}" for each in attempt["replaced"]]


def _rejection_text(rejection: Raw) -> str:
    return f"{rejection['plugin']}: {'; '.join(rejection['reasons'])}"


def _listed(names: Sequence[Any], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def _scores(scores: Sequence[Raw]) -> Table:
    """Return the weighted scores of each node so far, with the best node first."""
    plugins = list(scores[0]["plugins"])
    rows = [
        (
            each["node"],
            str(each["total"]),
            *(f"{each['plugins'][name]['score']}x{each['plugins'][name]['weight']}" for name in plugins),
        )
        for each in scores
    ]
    return Table(("NODE", "SCORE SO FAR", *(name.upper() for name in plugins)), tuple(rows))


def breakpoints_table(breakpoints: Sequence[Raw]) -> Table:
    rows = [
        (
            str(each["id"]),
            "yes" if each["enabled"] else "no",
            str(each["hits"]),
            str(each["ignore"]),
            breakpoint_text(each),
            each["disabled_because"] or NONE,
        )
        for each in breakpoints
    ]
    return Table(("ID", "ENABLED", "HITS", "IGNORE", "STOPS AT", "DISABLED BECAUSE"), tuple(rows))


def breakpoint_text(breakpoint: Raw) -> str:
    """Return the options of a breakpoint, as on the command line."""
    flags = {name: name for name in ("pod", "selector", "node", "plugin", "point", "outcome")} | {
        "plugin": "plugin-name"
    }
    parts = [f"--{flag} {breakpoint[name]}" for name, flag in flags.items() if breakpoint[name]]
    parts += [f"--if '{breakpoint['condition']}'"] if breakpoint["condition"] else []
    return " ".join(parts + (["--once"] if breakpoint["once"] else []))


def time_text(time: Raw) -> str:
    """Return one line with the time of the cluster and its speed."""
    if time["virtual"]:
        return f"{time['time']}, virtual: it stands still until `advance` or `debug until` moves it."
    return f"{time['time']}, {speed_text(time['speed'])}{ahead_text(time)}."


def ahead_text(time: Raw) -> str:
    """Return `, 2h ahead of the machine's clock`; "" if the time is not ahead."""
    ahead = time.get("ahead_s") or 0
    return f", {span(ahead)} ahead of the machine's clock" if ahead else ""


def speed_text(speed: float) -> str:
    """Return `real time`, `virtual` or `10x`."""
    return {1.0: "real time", 0.0: "virtual"}.get(speed, f"{speed:g}x")
