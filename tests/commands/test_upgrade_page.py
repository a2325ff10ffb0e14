"""Tests that docs/UPGRADE.md shows the output of the comparison for the demo.

KSCHEDD_REWRITE_SCENARIOS=1 rewrites the page; review the difference.
"""

import os
import re
from pathlib import Path

import pytest

from kschedd.cli import main
from kschedd.scenarios.commands import ScenarioCluster

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "UPGRADE.md"
KINDS = "namespaces,nodes,pods,replicasets,deployments,priorityclasses,configmaps"
_SHOWN = re.compile(r"<!-- kschedd compare (?P<words>[^>]*) -->\n```markdown\n.*?```", re.DOTALL)


def test_the_page_shows_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = ScenarioCluster(ROOT / "examples")
    answer = cluster.do("apply -f demo", "")
    assert "error" not in answer, answer
    cluster.do("advance 10s", "")
    (tmp_path / "demo.yaml").write_text(cluster.do(f"get -A -o yaml {KINDS}", ""))

    def shown(found: re.Match[str]) -> str:
        words = found["words"].replace("demo.yaml", str(tmp_path / "demo.yaml")).split()
        assert main(["compare", *words]) == 1, "something differs"
        return f"<!-- kschedd compare {found['words']} -->\n```markdown\n{capsys.readouterr().out}```"

    text = PAGE.read_text(encoding="utf-8")
    now = _SHOWN.sub(shown, text)
    if os.environ.get("KSCHEDD_REWRITE_SCENARIOS") == "1":
        PAGE.write_text(now, encoding="utf-8")
    assert len(_SHOWN.findall(text)) == 1
    assert now == text
