"""Output of `scheduler.explain_group`: the expected result of the next cycle of a PodGroup, pod by pod."""

from kschedd.printing.columns.by_kind import Raw
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import Table, clean, render


def group_explanation(answer: Raw, style: TerminalStyle) -> str:
    """Return the result as text."""
    members = answer.get("members") or ()
    rows = [
        tuple(clean(str(member.get(field) or "")) for field in ("pod", "state", "node", "plugin")) for member in members
    ]
    text = _status_text(answer)
    if rows:
        text += render(Table(("POD", "STATE", "NODE", "PLUGIN"), tuple(rows)), style)
    for member in members:
        if member.get("message"):
            text += f"{clean(str(member['pod']))}: {clean(str(member['message']))}\n"
    return text


def _status_text(answer: Raw) -> str:
    name, pods, scheduled = answer.get("pod_group"), answer.get("pods"), answer.get("scheduled")
    if not answer.get("exists"):
        return f"PodGroup {name} does not exist; {_pods(pods)} of it, {scheduled} scheduled\n"
    needs = f", needs {answer['min_count']} at once" if answer.get("min_count") else ""
    text = f"PodGroup {name} has {_pods(pods)}{needs}; {scheduled} scheduled\n"
    if answer.get("fits"):
        return text + "as things stand, its next cycle places those that fit\n"
    states = {member.get("state") for member in answer.get("members") or ()}
    if states <= {"scheduled", "gated"}:
        lacks = (answer.get("min_count") or 0) - (pods or 0)
        short = f": it lacks {_pods(lacks)}" if lacks > 0 else ""
        return text + (f"no other pod of it can be tried yet{short}\n" if "gated" in states else "")
    if states != {"scheduled"}:
        why = answer.get("message")
        return (
            text + f"as things stand, its next cycle places none of the others{f': {clean(str(why))}' if why else ''}\n"
        )
    return text


def _pods(number: object) -> str:
    return "1 pod" if number == 1 else f"{number} pods"
