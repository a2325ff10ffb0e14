"""Tests that the screens in pages of docs/ equal the output of the commands in them, in virtual time.

KSCHEDD_REWRITE_SCENARIOS=1 rewrites the pages; review the difference. tests/repl/test_pages.py tests them in the REPL
at a terminal.
"""

import os

import pytest

from kschedd.scenarios.commands import ScenarioCluster
from tests.pages import DOCS, PAGES, PageCommand, rewritten


@pytest.mark.parametrize("name", PAGES)
def test_the_screens_are_what_the_commands_print(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    cluster, typed = ScenarioCluster(DOCS), []

    def printed(command: PageCommand) -> str:
        typed.append(command.words)
        return "".join(f"{line.rstrip()}\n" for line in cluster.do(command.words, command.given).splitlines())

    now = rewritten(page, printed)
    if os.environ.get("KSCHEDD_REWRITE_SCENARIOS") == "1":
        (DOCS / name).write_text(now, encoding="utf-8")
    assert len(typed) > 5
    assert now == page
