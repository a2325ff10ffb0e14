"""Tables on terminals that are too narrow for them."""

from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import Table, flowing, render

PODS = Table(
    ("NAME", "NODE", "NOMINATED NODE", "MESSAGE"),
    (("web-0", "node-a", "<none>", ""), ("web-1", "<none>", "<none>", "0/2 nodes are available: 2 Insufficient cpu.")),
)
SCORES = Table(("NODE", "NodeResourcesFit", "TOTAL"), (("node-a", "67 (67)", "842"),))


def test_a_table_that_fits_is_not_changed() -> None:
    assert render(PODS, TerminalStyle(width=200)) == render(PODS, TerminalStyle())


def test_empty_columns_go_first() -> None:
    assert render(PODS, TerminalStyle(width=70)) == (
        "NAME    NODE     MESSAGE\n"
        "web-0   node-a\n"
        "web-1   <none>   0/2 nodes are available: 2 Insufficient cpu.\n"
    )  # fmt: skip


def test_then_cells_are_wrapped_at_words() -> None:
    shown = render(PODS, TerminalStyle(width=44))
    assert shown == (
        "NAME    NODE     MESSAGE\n"
        "web-0   node-a\n"
        "web-1   <none>   0/2 nodes are available: 2\n"
        "                 Insufficient cpu.\n"
    )  # fmt: skip
    assert all(len(line) <= 44 for line in shown.splitlines())


def test_long_names_in_headers_are_wrapped_at_their_parts() -> None:
    assert render(SCORES, TerminalStyle(width=26)) == (
        "NODE     Node        TOTAL\n"
        "         Resources\n"
        "         Fit\n"
        "node-a   67 (67)     842\n"
    )  # fmt: skip


def test_words_are_never_broken() -> None:
    shown = render(PODS, TerminalStyle(width=10)).split()
    assert {"web-1", "Insufficient", "available:"} <= set(shown)


def test_rows_of_a_watch_keep_the_widths_of_the_first() -> None:
    later = render(PODS, TerminalStyle(width=20), headers=False, widths=[10, 10, 10, 10])
    assert later.splitlines()[0] == "web-0        node-a       <none>"


def test_a_last_column_without_room_is_printed_below_its_rows() -> None:
    shown = render(PODS, TerminalStyle(width=36))
    assert shown == (
        "NAME    NODE\n"
        "    MESSAGE\n"
        "web-0   node-a\n"
        "web-1   <none>\n"
        "    0/2 nodes are available: 2\n"
        "    Insufficient cpu.\n"
    )  # fmt: skip
    assert render(PODS, TerminalStyle(width=36), headers=False).startswith("web-0   node-a\nweb-1")


WIDE = Table(
    ("NAME", "READY", "IP", "NODE", "ZONE"),
    (("web-0", "1/1", "10.6.159.220", "ip-10-0-13-1.eu-central-1.compute.internal", "a"),),
)


def test_columns_move_together_before_anything_is_printed_below() -> None:
    exact = len(render(WIDE, TerminalStyle()).splitlines()[1])
    shown = render(WIDE, TerminalStyle(width=exact - 1)).splitlines()
    assert shown[1] == "web-0  1/1    10.6.159.220  ip-10-0-13-1.eu-central-1.compute.internal  a"


def test_columns_up_to_a_long_one_are_printed_below_if_the_table_does_not_fit() -> None:
    assert render(WIDE, TerminalStyle(width=60)) == (
        "NAME    READY   IP\n"
        "    NODE   ZONE\n"
        "web-0   1/1     10.6.159.220\n"
        "    ip-10-0-13-1.eu-central-1.compute.internal   a\n"
    )  # fmt: skip


def test_a_painted_line_is_indented_like_a_plain_one() -> None:
    painted = TerminalStyle(color=True, width=20).paint("- one two three four five", "red")
    assert flowing(painted, TerminalStyle(color=True, width=20)).split("\n")[1].startswith("  five")


def test_prose_is_broken_at_spaces_and_keeps_its_indentation() -> None:
    style = TerminalStyle(width=20)
    assert flowing("  - one two three four five\nshort\n", style) == (
        "  - one two three\n"
        "    four five\n"
        "short\n"
    )  # fmt: skip
    assert flowing("a-word-that-is-longer-than-a-line and more", style) == "a-word-that-is-longer-than-a-line\nand more"
    assert flowing("one two three four five", TerminalStyle()) == "one two three four five"


def test_a_text_of_many_lines_in_the_last_column_is_printed_below_its_row() -> None:
    message = "0/7 nodes are available: 1 Insufficient cpu, 6 node(s) had untolerated taint(s). " * 2
    table = Table(("POD", "PLACE", "PLUGINS", "MESSAGE"), (("default/a", "unschedulable", "P" * 20, message),))
    narrow = render(table, TerminalStyle(width=80)).splitlines()
    assert narrow[2].split() == ["default/a", "unschedulable", "P" * 20]
    assert narrow[3].startswith("    0/7 nodes are available: ")
    assert "0/7 nodes are available: " in render(table, TerminalStyle(width=140)).splitlines()[1]
