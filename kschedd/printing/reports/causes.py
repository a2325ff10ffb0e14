"""Output of the diagnosis of a workload (cause, evidence, remedies), and of pending pods grouped by cause."""

from collections.abc import Sequence
from typing import Final

from kschedd.api.schemas.kinds import lookup
from kschedd.printing.columns.by_kind import Raw
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import Table, clean, flowing, render

_NOTHING_WRONG: Final = "NothingIsWrong"
_SHOWN: Final = 4
_DIFF_LINES: Final = 80
_LONGEST_LINE: Final = 4_000  # maximum number of characters of a command or a difference


def diagnosis(answer: Raw, style: TerminalStyle) -> str:
    """Return the diagnosis as text; "" if there is none, or if the pod is on its node without a problem."""
    cause = answer.get("cause")
    if not cause or (cause["code"] == _NOTHING_WRONG and answer.get("node")):
        return ""
    workload = answer["workload"]
    text = f"{label(workload)}: {_counts(answer)}.\n"
    for each in (cause, *(answer.get("also") or ())):
        fine = each["code"] == _NOTHING_WRONG
        sentence = flowing(_sentence(each["message"], fine=fine), style)
        text += style.paint(sentence, "green" if fine else "yellow") + "\n"
        text += flowing("".join(f"  {style.plain('·')} {clean(str(line))}\n" for line in each["evidence"]), style)
    for remedy in answer.get("remedies") or ():
        text += _remedy(remedy, style)
    tried = answer.get("tried") or ()
    if not answer.get("remedies") and not cause.get("passing"):
        text += f"\nNo remedy was found{'. Tried:' if tried else ', and nothing was tried.'}\n"
        text += flowing("".join(f"  {style.plain('·')} {clean(str(line))}\n" for line in tried), style)
    return text


def label(workload: Raw) -> str:
    """Return a text such as `deployment/web in namespace shop`, without the namespace `default`."""
    named = f"{lookup(str(workload['kind'])).singular}/{clean(str(workload['name']))}"
    space = workload.get("namespace") or "default"
    return named if space == "default" else f"{named} in namespace {clean(str(space))}"


def _counts(answer: Raw) -> str:
    wanted, scheduled = answer["wanted"], answer["scheduled"]
    if not wanted and answer["workload"]["kind"] == "Pod":
        return "it is gone"
    if answer["workload"]["kind"] == "ResourceQuota" and not wanted:
        return "no pod is held back"
    text = f"{scheduled} of {wanted} pod{'' if wanted == 1 else 's'} scheduled"
    if answer["pending"]:
        text += f", {answer['pending']} pending"
    if answer["missing"]:
        text += f", {answer['missing']} not created"
    return text


def _sentence(text: object, *, fine: bool) -> str:
    phrase = clean(str(text)).rstrip(".")
    return f"{phrase[:1].upper()}{phrase[1:]}." if fine else f"Cause: {phrase}."


def _remedy(remedy: Raw, style: TerminalStyle) -> str:
    text = f"\nRemedy {remedy['rank']}: {clean(str(remedy['summary']))}"
    text += " (a workaround)\n" if remedy["kind"] == "workaround" else "\n"
    displaced = list(map(str, remedy["displaced"]))
    more = f" and {len(displaced) - _SHOWN} more" if len(displaced) > _SHOWN else ""
    effect = f"displaced: {', '.join(displaced[:_SHOWN])}{more}" if displaced else "nothing else was displaced"
    text += f"  tried on a copy of the cluster: {remedy['scheduled']} pods scheduled, {effect}\n"
    text = flowing(text, style)
    for command in remedy["commands"]:
        text += "".join(f"    {_cut(clean(line))}\n" for line in str(command).splitlines())
    if remedy["manifest_diff"]:
        head, _, *lines = str(remedy["manifest_diff"]).splitlines()
        text += f"  in {clean(head.removeprefix('--- '))}:\n"
        text += "".join(f"    {_cut(clean(line))}\n" for line in lines[:_DIFF_LINES])
        if len(lines) > _DIFF_LINES:
            text += f"    ... {len(lines) - _DIFF_LINES:,} more lines (-o json has them)\n"
    return text


def _cut(line: str) -> str:
    """Return the line, or only its beginning if it is longer than a terminal shows."""
    rest = len(line) - _LONGEST_LINE
    return line if rest <= 0 else f"{line[:_LONGEST_LINE]}... ({rest:,} more characters, which -o json has)"


def pending(groups: Sequence[Raw], namespace: str | None, style: TerminalStyle, *, searched: int = 0) -> str:
    """Return the groups as a table, the total number of pods, and the remedies found for the `searched` groups.

    Without a search, the text names the command that lists remedies.
    """
    where = "" if namespace is None else f" in namespace {clean(namespace)}"
    if not groups:
        return f"No pod is pending{where}.\n"
    count = sum(group["count"] for group in groups)
    missing = sum(group["missing"] for group in groups)
    rows = tuple(
        (str(group["count"] + group["missing"]), str(group["code"]), str(group["message"]), _of(group))
        for group in groups
    )
    table = Table(("PODS", "CODE", "CAUSE", "WORKLOADS"), rows)
    pods = "1 pending pod without a node" if count == 1 else f"{count:,} pending pods without a node"
    causes = "1 cause" if len(groups) == 1 else f"{len(groups)} causes"
    pods += f" and {missing:,} not created" if missing else ""
    if not searched:
        return f"{pods}{where}, {causes}; `explain KIND/NAME` has the remedies\n" + render(table, style)
    text = f"{pods}{where}, {causes}\n{render(table, style)}\n"
    for group in groups:
        if group["remedy"] is not None:
            text += f"{group['code']}, {label(group['workloads'][0])}: {clean(str(group['remedy']['summary']))}\n"
            for command in group["remedy"]["commands"]:
                text += "".join(f"    {_cut(clean(line))}\n" for line in str(command).splitlines())
    of = "of each group" if len(groups) <= searched else f"of the {searched} largest groups"
    last = f"A remedy was searched for one workload {of}, with at most 200 pods; "
    return text + flowing(f"{last}`explain KIND/NAME` has more, with their effects.\n", style)


def _of(group: Raw) -> str:
    named = [f"{each['namespace']}/{lookup(str(each['kind'])).singular}/{each['name']}" for each in group["workloads"]]
    rest = len(named) - 2
    return ", ".join(named[:2]) + (f" and {rest} more" if rest > 0 else "")
