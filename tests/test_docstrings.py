"""Tests that docstrings of functions begin with an imperative verb.

Ruff's D401 knows few verbs, and accepts the words below, which are not verbs.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("kschedd", "repl", "tests", "examples")
BEGINNINGS = frozenset("What Whether As Of Have Those By Who Where How".split())
_QUOTED = re.compile(rf"\"\"\"\\?\s*(?:{'|'.join(sorted(BEGINNINGS))})\b")


def wrong_beginnings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the docstring of each function whose docstring begins with one of these words."""
    if not _QUOTED.search(text):  # parsing is slow, and few files need it
        return
    for each in ast.walk(ast.parse(text)):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            found = ast.get_docstring(each) or ""
            if found.split(" ", 1)[0].rstrip(",:") in BEGINNINGS:
                yield each.lineno, found.splitlines()[0]


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_of_functions_begin_with_a_verb(folder: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {docstring}"
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line, docstring in wrong_beginnings(file.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_wrong_beginning_is_found() -> None:
    text = 'def f():\n    """What it does."""\n\n\ndef g():\n    """Return it."""\n\n\nclass A:\n    """As B."""\n'
    assert list(wrong_beginnings(text)) == [(1, "What it does.")]
