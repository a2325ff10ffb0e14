"""Use each view of a report's file in headless Chromium: a run, and names that look like HTML.

test_report.py tests the file without a browser.
"""

from pathlib import Path

import attrs
import pytest

from kschedd.report.model import Report
from kschedd.report.page import page
from tests.report.runs import small_run
from tests.web.chromium import Chromium, chromium

__all__ = ["chromium"]

pytestmark = pytest.mark.full

HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
VIEWS = ("summary", "pending", "nodes", "decision", "queue")
COMMON = [
    "linked column: is shown",
    "buttons that need a daemon: 0",
    *(f"{view} at {size} px: fits" for size in (400, 1200, 2000) for view in VIEWS),
    "elements made by names: 0",
    "without scripts: 9 sections, no views",
    "requests beside the file: 0",
    "origins: 1",
    "axe: no violations",
    "faults: none",
]


def _used(chromium: Chromium, folder: Path, report: Report) -> list[str]:
    file = folder / "report.html"
    file.write_text(page(report), encoding="utf-8")
    return chromium.run("report.mjs", str(file))


def test_each_view_of_a_report(tmp_path: Path, chromium: Chromium) -> None:
    assert _used(chromium, tmp_path, small_run()) == [
        "title: A run",
        "pending: pod/giant in default, 1 pod, 2 steps",
        "cell: #/nodes/node-b/30",
        "at that time: 30s: 76 % of the fullest resource requested",
        "time: the end",
        "pods of a node: default/second pending",
        "decisions: 6",
        "decision: Decision about default/giant, attempt 2",
        "unknown pod: This report does not contain default/none.",
        "queue: Unschedulable: 1",
        "section: A run",
        *COMMON,
    ]


def test_hostile_names_do_nothing(tmp_path: Path, chromium: Chromium) -> None:
    report = small_run()
    groups = [attrs.evolve(group, label=HOSTILE, zone=HOSTILE, nodes=(HOSTILE,)) for group in report.groups]
    decisions = {number: attrs.evolve(each, message=HOSTILE, node=HOSTILE) for number, each in report.decisions.items()}
    usage = attrs.evolve(report.at_end.usage, zones=[HOSTILE] * 2, taints=[HOSTILE] * 2, conditions=[HOSTILE] * 2)
    queued = [attrs.evolve(each, unschedulable_plugins=[HOSTILE]) for each in report.at_end.queued]
    pending = [attrs.evolve(each, message=HOSTILE) for each in report.at_end.pending]
    at_end = attrs.evolve(report.at_end, usage=usage, queued=queued, pending=pending)
    hostile = attrs.evolve(report, title=HOSTILE, groups=groups, decisions=decisions, at_end=at_end)
    found = _used(chromium, tmp_path, hostile)
    assert found[0] == f"title: {HOSTILE}"
    assert found[-len(COMMON) :] == COMMON
