"""Commands of the REPL itself, besides the verbs, with their help and examples."""

from collections.abc import Mapping
from typing import Final

import attrs


@attrs.frozen
class OwnCommand:
    summary: str
    usage: str
    examples: tuple[str, ...] = ()
    more: str = ""

    def help(self) -> str:
        examples = "".join(f"  {example}\n" for example in self.examples)
        more = f"\n{self.more}\n" if self.more else ""
        return f"usage: {self.usage}\n\n{self.summary[0].upper()}{self.summary[1:]}.\n{more}\nexamples:\n{examples}"


OWN: Final[Mapping[str, OwnCommand]] = {
    "help": OwnCommand(
        "List the commands, or describe one",
        "help [COMMAND]",
        ("help", "help explain", "help macro"),
        "COMMAND --help does the same.",
    ),
    "exit": OwnCommand(
        "Leave the prompt; the daemon keeps running", "exit", ("exit", "quit"), "So does Ctrl-D on an empty line."
    ),
    "use": OwnCommand(
        "Show or set the default namespace",
        "use [NAMESPACE]",
        ("use shop", "use"),
        "Without a name it prints the current one.",
    ),
    "clear": OwnCommand("Clear the screen", "clear", ("clear",), "So does Ctrl-L."),
    "macro": OwnCommand(
        "Define, list or delete macros: names for one or several commands",
        "macro [NAME = COMMAND; ... | delete NAME]",
        (
            "macro pend = get pods --field-selector status.phase=Pending",
            "macro why = get pod $1 -o wide; explain $1",
            "why web-0",
            "macro delete pend",
            "macro",
        ),
        "$1 to $9 are the words typed after the name, $* all of them. The rc file keeps macros for every session.",
    ),
    "setting": OwnCommand(
        "Show or change settings of this prompt",
        "setting [NAME [VALUE]]",
        ("setting", "setting editing vi", "setting pager off", "setting pager 'less -S'", "setting confirm off"),
        "The rc file sets them for every session.",
    ),
    "history": OwnCommand(
        "Show or search the history",
        "history [WORDS]",
        ("history", "history explain web"),
        "Ctrl-R searches the history while you type; some letters of a line, in order, suffice.",
    ),
    "dashboard": OwnCommand(
        "Show nodes, queue and latest decisions on one screen",
        "dashboard",
        ("dashboard", "top"),
        "`top` without words is the same. Arrows select a node, Enter opens it, e explains a pod, q leaves.",
    ),
}
#: other names of these commands
ALIASES: Final[Mapping[str, str]] = {"quit": "exit", "detach": "exit", "?": "help"}
SUMMARIES: Final[Mapping[str, str]] = {name: command.summary for name, command in OWN.items()}


def own_name(word: str) -> str:
    """Return the REPL command with that name or alias; "" if there is none."""
    name = ALIASES.get(word, word)
    return name if name in OWN else ""
