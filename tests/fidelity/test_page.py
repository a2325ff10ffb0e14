"""Tests that docs/FIDELITY.md has its current text, and the number of records that the shared folder contains."""

import gzip
import re
from collections import Counter

import pytest

from kschedd.bench.shared import shared_folder
from tests.fidelity.__main__ import RELEASES, ROOT
from tests.fidelity.page import HEAD, Count, Counts, fidelity_page

PAGE = (ROOT / "docs" / "FIDELITY.md").read_text(encoding="utf-8")
_FAMILY = re.compile(rb'"family": ?"([^"]+)"')


def test_the_page_has_the_current_text() -> None:
    assert PAGE.startswith(HEAD), "run: python -m tests.fidelity"
    _, _, tail = _page({}, 3).partition("\n## Known differences")
    _, _, present = PAGE.partition("\n## Known differences")
    assert present == tail, "run: python -m tests.fidelity"


def test_a_family_with_differences_shows_both_numbers() -> None:
    page = _page({"1.37": {"nodename": Count(198, 200), "nodeports": Count(1200, 1200)}}, 0)
    assert (
        "| family | 1.37 |\n|---|--:|\n| nodename | 198 of 200 |\n| nodeports | 1,200 |\n| **all** | 1,398 of 1,400 |"
        in page
    )


@pytest.mark.parametrize("folder", RELEASES)
def test_the_page_counts_the_records_of_the_release(folder: str) -> None:
    shared = shared_folder()
    if shared is None:
        pytest.skip("no shared folder with records: set KSCHEDD_SHARED")
    records = Counter[str]()
    for file in sorted((shared / folder).glob("*.jsonl.gz")):
        with gzip.open(file) as lines:
            records.update(found[1].decode() for line in lines if (found := _FAMILY.search(line)))
    assert _column(RELEASES[folder]) == records


def _page(scheduler: dict[str, dict[str, Count]], texts: int) -> str:
    return fidelity_page(Counts("c", "d", scheduler, {}, {"create": {"text": Count(0, texts)}}))


def _column(release: str) -> dict[str, int]:
    """Return the number of records by family that the page states for the release."""
    table = PAGE.partition("### kube-scheduler\n\n")[2].partition("\n\n")[0]
    first, _, *rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    cells = {row[0]: row[first.index(release)] for row in rows if len(row) > first.index(release)}
    return {
        family: int(text.rpartition(" of ")[2].replace(",", ""))
        for family, text in cells.items()
        if text.strip() and family != "**all**"
    }
