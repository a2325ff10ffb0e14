"""Lists of commands with summaries, by topic, wrapped to the width of the terminal."""

import textwrap
from collections.abc import Iterable, Mapping
from typing import Final

from kschedd.printing.terminal.style import TerminalStyle

#: the first commands that a new user needs
FIRST: Final = ("demo", "run", "apply", "explain", "repl")
#: all commands by topic, each in one topic; the verbs of a group are listed under the name of the group
TOPICS: Final[Mapping[str, tuple[str, ...]]] = {
    "Start": ("demo", "run", "repl", "status", "stop"),
    "kubectl's verbs, with kubectl's flags": (
        *("get", "describe", "apply", "create", "delete", "edit", "patch", "replace", "diff", "scale", "rollout"),
        *("label", "annotate", "expose", "cordon", "uncordon", "drain", "taint", "top", "events", "logs", "wait"),
        *("api-resources", "auth"),
    ),
    "Why": ("explain", "web", "queue", "decisions", "waiting", "spread", "expect", "report"),
    "What if": (
        "plan",
        "fork",
        "capacity",
        "nodes-needed",
        "compare",
        "deschedule",
        "scale-up",
        "consolidate",
        "remove-node",
    ),
    "Stop and step": ("pause", "resume", "debug", "time", "advance", "activate", "allow", "reject", "watch"),
    "Your cluster": ("load", "save", "check", "lint", "node", "evict"),
    "Offline": (
        "simulate",
        "sweep",
        "tune",
        "plot",
        "workload",
        "test",
        "evaluate",
        "record",
        "replay",
        "verify",
        "bench",
    ),
    "Configuration and plugins": ("config", "set", "weights", "plugin"),
    "Operations": (
        *("clients", "metrics", "profile", "kubeconfig", "mcp", "journal", "snapshot", "completion", "man"),
    ),
}
#: verbs that exist if kschedd is called through a link named `kubectl`
KUBECTL_VERBS: Final = ("run", "explain", *TOPICS["kubectl's verbs, with kubectl's flags"])
#: topics that readers already know, so that their commands are listed without summaries
_BRIEF: Final = ("kubectl's verbs, with kubectl's flags",)


def columns_for_help(style: TerminalStyle, environment: Mapping[str, str]) -> int:
    """Return the width of help: that of the terminal, else an exported $COLUMNS, as argparse uses it; 0 without both.

    Other output to a pipe is not wrapped, because programs read it.
    """
    exported = environment.get("COLUMNS", "")
    return style.width or (int(exported) if exported.isdecimal() else 0)


def by_topic(summaries: Mapping[str, str], columns: int) -> str:
    """Return the commands by topic; `columns` is as for `listing`. Commands without a summary are omitted.

    Without the command `demo`, at the prompt, `run` is only kubectl's verb.
    """
    width = max(map(len, summaries))
    text = ""
    for topic, names in TOPICS.items():
        found = [name for name in names if name in summaries]
        if "run" in summaries and "demo" not in summaries:
            found = ["run", *found] if topic in _BRIEF else [name for name in found if name != "run"]
        if topic in _BRIEF:
            text += f"{topic}:\n" + textwrap.indent(textwrap.fill(", ".join(found), min(columns or 100, 100) - 2), "  ")
            text += "\n\n"
        elif found:
            text += f"{topic}:\n" + listing(((name, brief(summaries[name])) for name in found), columns, width) + "\n"
    return text


def brief(summary: str) -> str:
    """Return the first sentence of a summary."""
    return summary.partition(". ")[0]


def listing(entries: Iterable[tuple[str, str]], columns: int, width: int = 0) -> str:
    """Return a line for each name, with its description without a full stop.

    `columns` is the width of the terminal; 0 without a terminal, and lines are then not wrapped. `width` is the minimum
    width of the column of names.
    """
    found = list(entries)
    width = max([width, *(len(name) for name, _ in found)]) + 2
    return "".join(_entry(name, meaning.rstrip("."), width, columns) for name, meaning in found)


def _entry(name: str, meaning: str, width: int, columns: int) -> str:
    head = f"  {name:<{width}}"
    if not columns or len(head) + len(meaning) <= columns:
        return f"{head}{meaning}\n"
    if columns - len(head) >= 24:
        first, *rest = textwrap.wrap(meaning, columns - len(head))
        return f"{head}{first}\n" + "".join(f"{' ' * len(head)}{line}\n" for line in rest)
    # on a very narrow terminal, the description is below the name
    return f"  {name}\n" + "".join(f"    {line}\n" for line in textwrap.wrap(meaning, max(columns - 4, 16)))


def paragraph(text: str, columns: int) -> str:
    """Return the text wrapped to `columns`, or unchanged if there is no terminal."""
    return (textwrap.fill(text, columns) if columns else text) + "\n"
