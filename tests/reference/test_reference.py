"""Tests that the generated pages of the reference are current, and that links to them lead to their sections."""

from kschedd.lint.catalogue.all import RULES
from kschedd.lint.reports import page_of
from tests.reference.pages import REFERENCE, ROOT, reference_pages

PAGES = reference_pages()


def test_the_pages_are_current() -> None:
    stale = [path for path, text in PAGES.items() if not _is_current(path, text)]
    assert not stale, "run: python -m tests.reference"


def _is_current(path: str, text: str) -> bool:
    file = ROOT / path
    return file.is_file() and file.read_text(encoding="utf-8") == text


def test_the_folder_contains_no_other_pages() -> None:
    assert {str(file.relative_to(ROOT)) for file in (ROOT / REFERENCE).rglob("*.md")} <= PAGES.keys()


def test_the_link_of_each_lint_rule_leads_to_its_section() -> None:
    for rule in RULES:
        path, _, code = page_of(rule).partition("/blob/main/")[2].partition("#")
        assert f"\n## {code}\n" in PAGES[path]
