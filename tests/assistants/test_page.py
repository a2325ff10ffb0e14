"""Tests that docs/ASSISTANTS.md shows the answers of the tools, and lists all of them.

KSCHEDD_REWRITE_SCENARIOS=1 rewrites the page; review the difference.
"""

import json
import os
import re
from pathlib import Path

from kschedd.assistants.toolbox import Toolbox
from kschedd.scenarios.commands import ScenarioCluster
from tests.assistants.serving import toolbox_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "ASSISTANTS.md"
_CALL = re.compile(r"(?<=```text\n)> (\w+) (\{[^\n]*\})\n.*?(?=```)", re.DOTALL)


def _answered(tools: Toolbox, call: re.Match[str]) -> str:
    lines = tools.call(call[1], json.loads(call[2])).text.splitlines()
    return "\n".join([f"> {call[1]} {call[2]}", *(line.rstrip() for line in lines), ""])


def test_the_page_shows_what_the_tools_answer() -> None:
    cluster = ScenarioCluster(ROOT / "examples")
    answer = cluster.do("apply -f demo", "")
    assert "error" not in answer, answer
    cluster.do("advance 10s", "")
    tools = toolbox_of(cluster)
    text = PAGE.read_text()
    now = _CALL.sub(lambda call: _answered(tools, call), text)
    if os.environ.get("KSCHEDD_REWRITE_SCENARIOS") == "1":
        PAGE.write_text(now)
    assert len(_CALL.findall(text)) == 4
    assert now == text


def test_the_page_lists_every_tool(tmp_path: Path) -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert named == list(toolbox_of(ScenarioCluster(tmp_path), writes=True).tools)
