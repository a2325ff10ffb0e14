"""Docstrings of functions begin with a verb. ruff's D401 knows few words; this knows those that begin a definition."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "kschedd"
PACKAGES = (  # the others follow
    *("actors", "apiserver", "assistants", "bench", "cache", "clusters", "commands", "config", "conformance", "dumps"),
    *("framework", "live", "log", "metrics", "queue", "recording", "rpc", "scenarios", "scheduling", "service"),
    *("startup", "telemetry", "testing", "verbs"),
)
_DEFINITION = re.compile(r"(What|Whether|As|Of|Have|Those|By|Who|Where|How)\b")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_docstring_begins_like_a_definition(package: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {text.splitlines()[0]}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if _DEFINITION.match(text := ast.get_docstring(node) or "")
    ]
    assert found == []
