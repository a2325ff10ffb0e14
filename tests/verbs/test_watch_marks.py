"""What `watch` marks as new since its look before."""

from kschedd.printing.terminal_style import TerminalStyle
from kschedd.verbs.watching import marked

BEFORE = ["NAME    STATUS    AGE", "web-0   Pending   59s", "web-1   Running   2m3s"]
AFTER = "NAME    STATUS    AGE\nweb-0   Running   61s\nweb-1   Running   2m5s\n\nweb-2   Pending   1s\n"


def test_changed_lines_are_marked_whatever_their_age() -> None:
    assert marked(BEFORE, AFTER, TerminalStyle()) == (
        "NAME    STATUS    AGE\nweb-0   Running   61s *\nweb-1   Running   2m5s\n\nweb-2   Pending   1s *\n"
    )


def test_they_are_bold_where_there_are_colours() -> None:
    lines = marked(BEFORE, AFTER, TerminalStyle(colour=True)).splitlines()
    assert lines[1] == "\x1b[1mweb-0   Running   61s\x1b[0m"
    assert lines[2] == "web-1   Running   2m5s"


def test_nothing_is_new_at_the_first_look() -> None:
    assert "*" not in marked(None, AFTER, TerminalStyle())
