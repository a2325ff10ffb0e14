"""Tests of documentation pages with commands to follow: the REPL's screen shows the output in the page."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from kschedd.actors.clock import VIRTUAL
from kschedd.simulation.engine import EPOCH
from tests.full_run import everyday
from tests.pages import DOCS, PAGES
from tests.repl.live_daemon import live_daemon
from tests.repl.pages import replay
from tests.repl.screens import console

#: by page, text that varies between runs with a daemon
DIFFERS: Mapping[str, Mapping[str, str]] = {
    "DEBUGGING.md": {
        r"^Client .* holds the debugger": "Client holds the debugger",
        # The daemon may already have popped the next pod.
        r"before the attempt of \S+\.$": "between two attempts.",
        r"before the attempt of \S+;": "between two attempts;",
    },
    "POOLS.md": {},
    "TUTORIAL.md": {r"^Client .* holds the debugger": "Client holds the debugger"},
    "WHATIF.md": {},
    "WHY.md": {
        r"\b([Aa])ttempt \d+": r"\1ttempt N",
        r"version \d+, \d+ writes ago": "version N, N writes ago",
    },
}


@pytest.mark.parametrize("page", everyday(PAGES, lambda page: page in ("TUTORIAL.md", "WHY.md")))
def test_the_screens_of_a_page_are_those_of_the_prompt(page: str, tmp_path: Path) -> None:
    with live_daemon(tmp_path, speed=VIRTUAL, start_s=EPOCH) as daemon:
        plain = {"LC_ALL": "C", "NO_COLOR": "1", "PAGER": "cat"}
        words = ["repl", "--socket", daemon.socket, "--no-rc"]
        with console(words, tmp_path, columns=400, rows=60, environment=plain, folder=DOCS) as repl:
            text = (DOCS / page).read_text(encoding="utf-8")
            assert replay(repl, text, daemon.until_idle, DIFFERS[page]) > 5
            repl.ready()
            repl.type("exit\r")
            assert repl.ends() == 0
