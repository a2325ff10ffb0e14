"""Tests of the status bar on wide and narrow terminals."""

import pytest

from kschedd.printing.terminal.style import TerminalStyle
from kschedd_repl.prompt.status_bar import StatusBar

STATUS = {
    "active": 2, "backoff": 0, "unschedulable": 1, "gated": 0, "in_flight": 0, "decisions_per_s": 12.3,
    "nodes": 3, "pods": 5, "scheduled": 5, "paused": False, "stopped_at": None, "speed": 1.0, "virtual_time": None,
}  # fmt: skip
STOP = {"why": "step", "pod": "default/web-0", "point": "filter", "plugin": "NodeName", "outcome": None, "node": None}


def _bar(width: int = 0, **status: object) -> str:
    bar = StatusBar({"seed": 7}, {**STATUS, **status}, lambda: 3661.0)
    return bar.text(TerminalStyle(width=width)).strip()


def test_all_of_it() -> None:
    assert _bar() == (
        "01:01:01 | active 2 - backoff 0 - unschedulable 1 - gated 0 - in flight 0 | 12/s | nodes 3 | pods 5 | "
        "scheduled 5 | seed 7"
    )
    assert StatusBar().text(TerminalStyle()) == " connected "


@pytest.mark.parametrize("width", range(20, 130, 7))
def test_it_fits_and_keeps_the_queue(width: int) -> None:
    bar = _bar(width)
    assert len(bar) <= max(width, 30)
    assert "active 2" in bar


def test_time_that_is_not_real() -> None:
    assert _bar(speed=0.0, virtual_time="2025-01-01T00:10:00Z").startswith("2025-01-01 00:10:00 | virtual | active")
    assert _bar(speed=60.0).startswith("x60 | active")
    assert _bar(ahead_s=600.0).startswith("01:11:01 | active")


def test_where_the_scheduler_is_stopped() -> None:
    bar = StatusBar({}, {**STATUS, "paused": True, "stopped_at": STOP}, lambda: 0.0)
    assert bar.stopped_briefly == "stopped web-0 filter NodeName"
    assert bar.text(TerminalStyle(width=60)).startswith(" STOPPED: default/web-0 ")
    between = StatusBar({}, {**STATUS, "paused": True, "stopped_at": dict.fromkeys(STOP)}, lambda: 0.0)
    assert between.stopped_briefly == "stopped"
    assert "between two attempts" in between.text(TerminalStyle())
    assert StatusBar({}, STATUS).stopped_briefly == ""
