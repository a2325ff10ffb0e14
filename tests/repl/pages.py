"""A page of the documentation, typed into the REPL at a pseudo-terminal: the screen must equal the page.

Each command is typed without `kschedd`, and its manifests are pasted, once the command before has finished and no work
is pending.
"""

import re
from collections.abc import Callable, Mapping

from tests.pages import PageCommand, commands_of
from tests.repl.screens import Console

_PROMPT = r"^kschedd( [^\n>]*)? >"


def replay(repl: Console, page: str, until_idle: Callable[[], None], differs: Mapping[str, str]) -> int:
    """Type all commands of a page; return their number. `differs`: patterns of text that varies between runs."""
    commands = list(commands_of(page))
    for command in commands:
        until_idle()
        printed = _printed(repl, command)
        why = f"`{command.words}` printed:\n{printed}\nand the page has:\n{command.shown}"
        assert _same(printed, differs) == _same(command.shown, differs), why
    return len(commands)


def _same(text: str, differs: Mapping[str, str]) -> list[str]:
    for pattern, instead in differs.items():
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _printed(repl: Console, command: PageCommand) -> str:
    """Type the command at a prompt on an empty screen; return its output."""
    repl.ready()
    repl.type("\x0c")
    repl.wait_match(rf"\A{_PROMPT}$")
    mark = rf"{_PROMPT} {re.escape(command.words)}"
    repl.type(f"{command.words}\r")
    if command.given:
        repl.wait_match(rf"{mark}\n *\.\.\.")
        repl.type(f"\x1b[200~{command.given}.\x1b[201~")
    finished = re.compile(rf"{mark}\n(?P<out>(?s:.*?)){_PROMPT}$", re.MULTILINE)
    found: list[re.Match[str]] = []  # kept while nothing is drawn, since the prompt may be redrawn at any time

    def is_over() -> bool:
        found[:] = finished.finditer(repl.text)
        return bool(found)

    repl.wait(is_over, f"the end of `{command.words}`")
    return "".join(line for line in found[0]["out"].splitlines(keepends=True) if not line.startswith("  ..."))
