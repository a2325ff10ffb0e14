"""Tests of docs/REPL.md, typed into the REPL at a terminal: the page has the same screens.

Lines of its blocks: `kschedd > WORDS` is typed at an empty prompt and entered, unless a cursor ends it; ` ... LINE` is
a line of manifests; `<Tab>` and the like are keys; all else must appear on the screen.
"""

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from tests.pages import DOCS
from tests.repl.live_daemon import live_daemon
from tests.repl.screens import Console, console

_BLOCK = re.compile(r"^```repl\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT, _MORE, _CURSOR = "kschedd > ", "  ... ", "▌"
_KEYS = {"Tab": "\t", "Enter": "\r", "Ctrl-R": "\x12", "Ctrl-C": "\x03"}
_KEY = re.compile(r"<(Tab|Enter|Ctrl-[A-Z]|[a-z])>")


def _shown(line: str) -> str:
    """Return a pattern for a line of the screen with any indentation, and with any text instead of dots."""
    return r"^ *" + ".*".join(re.escape(part.rstrip()) for part in line.strip().split("...")) + r" *$"


def _menu(lines: Sequence[str]) -> str:
    """Return a pattern of exactly the lines below a line that is not entered, up to a key or the next line."""
    shown = takewhile(lambda line: line and not line.startswith(_PROMPT) and _KEY.sub("", line), lines)
    return "\n".join(map(_shown, shown)) + r"(?!\n {3,}\S)"


def _replay(repl: Console, block: str) -> None:
    unentered = ""
    lines = block.splitlines()
    for place, line in enumerate(lines):
        if line.startswith(_PROMPT):
            if unentered:
                repl.type("\x15")
            repl.ready()
            typed = line.removeprefix(_PROMPT)
            unentered = typed.removesuffix(_CURSOR) if typed.endswith(_CURSOR) else ""
            if unentered:
                repl.type_until(unentered, _menu(lines[place + 1 :]))
            elif typed != _CURSOR:
                repl.type(f"{typed}\r")
            if typed.endswith("-f -"):
                repl.wait_match(r"^ *\.\.\.")
        elif line.startswith(_MORE):
            repl.type(f"{line.removeprefix(_MORE)}\r")
        elif line and not _KEY.sub("", line):
            repl.type(_KEY.sub(lambda key: _KEYS.get(key[1], key[1]), line))
            unentered = ""
        elif line:
            repl.wait_match(_shown(line))
    if unentered:
        repl.type("\x15")


def test_the_page_shows_what_is_shown(tmp_path: Path) -> None:
    blocks = _BLOCK.findall((DOCS / "REPL.md").read_text(encoding="utf-8"))
    assert len(blocks) > 5
    with live_daemon(tmp_path) as daemon:
        plain = {"LC_ALL": "C", "NO_COLOR": "1", "PAGER": "cat"}
        words = ["repl", "--socket", daemon.socket]
        with console(words, tmp_path, columns=100, rows=50, environment=plain, folder=DOCS.parent) as repl:
            repl.wait_for("active 0")
            for block in blocks:
                daemon.until_idle()
                repl.ready()
                repl.type("\x0c")
                repl.wait_match(r"\Akschedd >$")
                _replay(repl, block)
            repl.ready()
            repl.type("exit\r")
            assert repl.ends() == 0
