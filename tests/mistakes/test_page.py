"""Tests that docs/CAUSES.md lists every code of a cause, with the sentence of `explain`."""

import ast
import re
from collections.abc import Iterator

import pytest

from kschedd.causes.findings import KINDS as IN_ORDER
from tests.mistakes.asking import answer
from tests.mistakes.mistake_files import FOLDER, load
from tests.mistakes.page import KINDS, OTHERS, lines, sentences
from tests.pages import DOCS

CAUSES = DOCS.parent / "kschedd" / "causes"


def codes() -> Iterator[str]:
    """Yield the codes in the modules of causes: the values that the first argument of a cause can have."""
    for file in sorted(CAUSES.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("FoundCause", "_Guess")
            ):
                yield from _values(node.args[0])


def _values(node: ast.expr) -> Iterator[str]:
    """Yield the possible texts of an expression that is a text or a choice between texts."""
    if isinstance(node, ast.IfExp):
        yield from _values(node.body)
        yield from _values(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def test_every_code_is_on_the_page() -> None:
    listed = set(sentences()) | set(OTHERS)
    named = {code for code in codes() if re.fullmatch(r"[A-Z]\w+", code)}
    assert len(named) > 40
    assert named - listed == set()


@pytest.mark.full  # test_answers.py compares the examples of the page with the answers
def test_the_page_is_what_is_generated() -> None:
    assert (DOCS / "CAUSES.md").read_text(encoding="utf-8") == "\n".join(lines()) + "\n"


def test_the_stories_end_as_the_page_says() -> None:
    page = (DOCS / "WHY.md").read_text(encoding="utf-8")
    stories = re.findall(r"^\| \[.+\]\(\.\./examples/mistakes/(\S+)\) \| (.+) \| (.+) \|$", page, re.MULTILINE)
    assert len(stories) == 5
    for file, cause, remedy in stories:
        mistake = load(FOLDER / file)
        reported = answer(mistake, mistake.build())
        assert (reported["cause"]["message"], reported["remedies"][0]["summary"]) == (cause, remedy)


def test_the_kinds_of_remedies_are_those_there_are() -> None:
    assert tuple(KINDS) == IN_ORDER
