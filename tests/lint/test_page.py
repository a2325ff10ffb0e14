"""Tests that docs/LINT.md is current, and that the link of each finding leads to one of its sections."""

from pathlib import Path

from kschedd.lint.catalogue.all import RULES
from tests.lint.page import lines

PAGE = Path(__file__).parents[2] / "docs" / "LINT.md"


def test_the_page_is_that_of_the_rules() -> None:
    assert PAGE.read_text(encoding="utf-8") == "\n".join(lines()).rstrip() + "\n"


def test_each_rule_has_a_section_with_its_code() -> None:
    sections = {line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("### ")}
    assert sections == {f"### {rule.code}" for rule in RULES}
