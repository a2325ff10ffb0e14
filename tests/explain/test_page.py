"""The screens of docs/WHY.md are what is printed. KSCHEDD_REWRITE_SCENARIOS=1 writes them into the page."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from kschedd.scenarios.commands import ScenarioCluster

PAGE = Path(__file__).parents[2] / "docs" / "WHY.md"
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ kschedd ([^\n]*?)( <<'EOF'\n(?P<input>.*?)^EOF)?\n", re.MULTILINE | re.DOTALL)


def replayed(page: str) -> str:
    """The page with what its commands print, one after the other on one cluster."""
    cluster = ScenarioCluster(PAGE.parent)
    return BLOCK.sub(lambda block: "".join(_screen(block[0], cluster)), page)


def _screen(block: str, cluster: ScenarioCluster) -> Iterator[str]:
    for command in COMMAND.finditer(block):
        yield command[0] + cluster.do(command[1], command["input"] or "")


def test_the_page_shows_what_is_printed() -> None:
    page = PAGE.read_text(encoding="utf-8")
    now = replayed(page)
    if os.environ.get("KSCHEDD_REWRITE_SCENARIOS"):
        PAGE.write_text(now, encoding="utf-8")
    else:
        assert page == now
        assert now.count("$ kschedd ") > 5
