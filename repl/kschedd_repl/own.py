"""Commands of the REPL itself, besides the verbs: what each is for, with examples."""

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
        "what can be typed here",
        "help [COMMAND]",
        ("help", "help explain", "help macro"),
        "COMMAND --help does the same.",
    ),
    "exit": OwnCommand("leave; the daemon goes on", "exit", ("exit", "quit"), "So does Ctrl-D on an empty line."),
    "use": OwnCommand(
        "make another namespace the default",
        "use [NAMESPACE]",
        ("use shop", "use"),
        "Without a name it says which one it is.",
    ),
    "clear": OwnCommand("clear the screen", "clear", ("clear",), "So does Ctrl-L."),
    "macro": OwnCommand(
        "give one or several commands a name",
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
        "see or change how this prompt behaves",
        "setting [NAME [VALUE]]",
        ("setting", "setting editing vi", "setting pager off", "setting pager 'less -S'", "setting confirm off"),
        "Lines of the rc file set them for every session.",
    ),
    "history": OwnCommand(
        "what was typed before",
        "history [WORDS]",
        ("history", "history explain web"),
        "Ctrl-R searches in it while typing: letters of a line in their order suffice.",
    ),
    "dashboard": OwnCommand(
        "the cluster on one screen: nodes, queue, latest decisions",
        "dashboard",
        ("dashboard", "top"),
        "`top` without words is the same. Arrows choose a node, Enter looks into it, e explains a pod, q leaves.",
    ),
}
#: other words for them
ALIASES: Final[Mapping[str, str]] = {"quit": "exit", "detach": "exit"}
SUMMARIES: Final[Mapping[str, str]] = {name: command.summary for name, command in OWN.items()}


def own_name(word: str) -> str:
    """The command of the REPL of that name; "" if it is none."""
    name = ALIASES.get(word, word)
    return name if name in OWN else ""
