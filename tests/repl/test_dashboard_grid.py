"""Tests of the dashboard on screens of every size."""

import pytest

from kschedd.printing.terminal.tables import width_of
from kschedd_repl.dashboard.dashboard import HELP, help_lines
from kschedd_repl.dashboard.data import DashboardData, DashboardPane, DashboardView, NodeColumns
from kschedd_repl.dashboard.grid import ScreenSize, heat_letter, heat_style, node_layout, screen_lines, spark

STATUS = {
    "active": 3, "backoff": 0, "unschedulable": 1, "gated": 0, "nodes": 3, "pods": 4, "scheduled": 4,
    "failed_attempts": 1, "decisions_per_s": 12.0,
    "last_decisions": [
        {"pod": "default/web-1", "node": None, "message": "0/3 nodes are available: 3 Insufficient cpu."},
        {"pod": "default/web-0", "node": "node-b", "score": 321},
    ],
}  # fmt: skip


def _columns(count: int) -> NodeColumns:
    return NodeColumns.of(
        {
            "nodes": [f"node-{number:04}" for number in range(count)],
            "zones": [f"zone-{number % 3}" for number in range(count)],
            "cordoned": [number == 1 for number in range(count)],
            "pods": [number % 110 for number in range(count)],
            "allowed_pods": [110] * count,
            "allocatable": {"cpu": [4000] * count, "memory": [8 << 30] * count, "example.com/gpu": [0] * count},
            "requested": {
                "cpu": [(number * 400) % 4400 for number in range(count)],
                "memory": [1 << 30] * count,
                "example.com/gpu": [number % 2 for number in range(count)],
            },
        }
    )


def _data(count: int) -> DashboardData:
    data = DashboardData(info={"seed": 7}, nodes=_columns(count), clock=lambda: 3661.0)
    for active in (0, 2, 4, 3):
        data = data.sampled({**STATUS, "active": active})
    return data


def _text(data: DashboardData, view: DashboardView, size: ScreenSize) -> list[str]:
    return ["".join(text for _, text in line).rstrip() for line in screen_lines(data, view, size)]


def test_a_cut_line_ends_with_a_mark_and_the_title_loses_whole_parts() -> None:
    lines = _text(_data(3), DashboardView(), ScreenSize(50, 24))
    assert lines[0] == " kschedd │ 3 nodes │ 4 pods │ 4 scheduled"
    assert " default/web-1 no node  0/3 nodes are available: …" in lines
    assert lines[-1] == " q leave  ? help  arrows choose  Enter look into …"
    assert not any(line.endswith("…") for line in _text(_data(3), DashboardView(), ScreenSize(80, 24)))


@pytest.mark.parametrize("width", [36, 60, 80, 200])
def test_the_help_is_wrapped(width: int) -> None:
    lines = help_lines(width)
    assert max(map(len, lines)) <= width
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(HELP).split())


@pytest.mark.parametrize("unicode", [True, False], ids=["unicode", "ascii"])
@pytest.mark.parametrize("count", [0, 1, 7, 300, 5000], ids=lambda count: f"{count}-nodes")
@pytest.mark.parametrize(
    ("width", "height"), [(80, 24), (200, 50), (40, 12), (20, 5), (1, 1)], ids=lambda length: str(length)
)
def test_the_screen_is_never_exceeded(width: int, height: int, count: int, unicode: bool) -> None:
    lines = _text(_data(count), DashboardView(), ScreenSize(width, height, unicode))
    assert len(lines) == height
    assert max(map(width_of, lines)) <= width
    if not unicode:
        assert all(line.isascii() for line in lines)


def test_few_nodes_have_bars_with_their_names() -> None:
    lines = _text(_data(3), DashboardView(node="node-0002"), ScreenSize(80, 24, False))
    assert lines == [
        " kschedd | 3 nodes | 4 pods | 4 scheduled | 1 failed | 01:01:01 | seed 7",
        " active             3  _+#*",
        " backoff            0  ____",
        " unschedulable      1  ####",
        " gated              0  ____",
        " decisions/s       12  ####",
        "-- nodes by cpu requested: 10% of all " + "-" * 42,
        " node-0000     ..................   0%  node-0001    c##................  10%",
        " node-0002     ####..............  20%",
        " node-0002 zone-2  cpu 0.8/4  memory 1Gi/8Gi  pods 2/110",
        "-- latest decisions " + "-" * 60,
        " default/web-0 -> node-b  score 321",
        " default/web-1 no node  0/3 nodes are available: 3 Insufficient cpu.",
        *[""] * 10,
        " q leave  ? help  arrows choose  Enter look into  r resource  u pending",
    ]


def test_many_nodes_are_a_map_of_digits() -> None:
    lines = _text(_data(300), DashboardView(), ScreenSize(80, 24, False))
    at = next(place for place, line in enumerate(lines) if line.startswith("-- nodes")) + 1
    cells = "".join(
        line.replace(" ", "")
        for line in lines[at : lines.index(" node-0000 zone-0  cpu 0/4  memory 1Gi/8Gi  pods 0/110")]
    )
    assert len(cells) == 300
    assert cells[:12] == "0c23456789X0"


@pytest.mark.parametrize(
    ("count", "bars", "each"),
    [
        pytest.param(7, True, 1, id="bars"),
        pytest.param(150, False, 1, id="a-cell-for-each"),
        pytest.param(5000, False, 6, id="a-cell-for-several"),
    ],
)
def test_every_node_has_a_place(count: int, bars: bool, each: int) -> None:
    layout = node_layout(count, ScreenSize(80, 24), 11)
    assert (layout.bars, layout.each) == (bars, each)
    assert layout.rows <= 11
    assert layout.rows * layout.columns * layout.each >= count
    assert layout.columns * layout.width <= 80


@pytest.mark.parametrize(
    ("share", "letter", "style"),
    [(0.0, "0", 0), (0.05, "0", 1), (0.42, "4", 3), (0.94, "9", 4), (0.99, "9", 5), (1.0, "X", 5), (1.7, "X", 5)],
)
def test_what_a_cell_says(share: float, letter: str, style: int) -> None:
    assert (heat_letter(share), heat_style(share)) == (letter, f"class:heat{style}")


def test_sparklines() -> None:
    size = ScreenSize(80, 24, True)
    assert spark((), 10, size) == ""
    assert spark((0.0, 0.0), 10, size) == "▁▁"
    assert spark((0.0, 0.1, 5.0, 10.0), 10, size) == "▁▂▅█"
    assert spark((1.0, 2.0, 3.0), 2, size) == "▆█"


def test_amounts_and_resources() -> None:
    nodes = _columns(2)
    assert nodes.resources == ["cpu", "memory", "pods", "example.com/gpu"]
    assert nodes.amounts("cpu", 1) == "0.4/4"
    assert nodes.amounts("memory", 0) == "1Gi/8Gi"
    assert nodes.amounts("nothing", 0) == "-"
    assert nodes.shares("example.com/gpu") == [0.0, 1.0]
    assert nodes.total("cpu") == 0.05


def test_it_says_when_the_scheduler_is_stopped_or_there_is_no_daemon() -> None:
    data = _data(1)
    where = {"why": "pause", "pod": "default/web-0", "point": "filter", "plugin": "NodeName", "outcome": None}
    stopped = DashboardData(status={**data.status, "paused": True, "stopped_at": where})
    first = _text(stopped, DashboardView(), ScreenSize(120, 24))[0]
    assert first.startswith(" kschedd  STOPPED: default/web-0")
    assert "NodeName" in first
    gone = DashboardData(connected=False)
    assert "NO DAEMON" in _text(gone, DashboardView(), ScreenSize(80, 24))[0]


def test_lists_follow_what_is_chosen() -> None:
    size = ScreenSize(40, 5)
    view = DashboardView().with_pane(DashboardPane(("pending", ""), "pods", loading=True))
    assert _text(_data(1), view, size)[1] == " ..."
    view = view.with_content(("pending", ""), [f"pod {n}" for n in range(9)], [f"default/{n}" for n in range(9)])
    pane = view.panes[-1].moved(4, 3)
    assert (pane.selected, pane.top) == (4, 2)
    assert pane.moved(-2, 3).top == 2
    assert pane.moved(-3, 3).top == 1
    assert pane.moved(99, 3).selected == 8
    assert _text(_data(1), DashboardView(panes=(pane,)), size)[1:4] == [" pod 2", " pod 3", " pod 4"]


def test_texts_scroll_both_ways() -> None:
    pane = DashboardPane(("pod", "a/b"), "a/b", lines=tuple(f"line {n} " + "x" * 60 for n in range(5)))
    assert pane.moved(99, 3).top == 2
    assert pane.shifted(20, 40).left == 20
    assert pane.shifted(99, 40).left == 29
    assert pane.shifted(-5, 40).left == 0


def test_what_comes_late_for_a_closed_pane_is_dropped() -> None:
    view = DashboardView().with_content(("pod", "a/b"), ["text"], [])
    assert view.panes == ()


def test_a_pods_text_has_no_commands_for_the_terminal() -> None:
    pane = DashboardPane(("pod", "a/b"), "a/b", lines=("\x1b[2Jgone",))
    lines = _text(_data(1), DashboardView(panes=(pane,)), ScreenSize(40, 4))
    assert lines[1] == " \\x1b[2Jgone"
