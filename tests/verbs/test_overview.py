"""Lists of verbs on terminals of any width."""

from kschedd.verbs.command_line.overview import listing, paragraph

ENTRIES = [("get", "List objects."), ("describe", "All about objects: conditions, events, and why a pod is pending.")]


def test_without_a_terminal_nothing_is_broken() -> None:
    assert listing(ENTRIES, 0).splitlines() == [
        "  get       List objects.",
        "  describe  All about objects: conditions, events, and why a pod is pending.",
    ]


def test_what_does_not_fit_goes_on_in_its_column() -> None:
    assert listing(ENTRIES, 50).splitlines()[1:] == [
        "  describe  All about objects: conditions, events,",
        "            and why a pod is pending.",
    ]


def test_on_a_very_narrow_terminal_the_meaning_goes_below_the_name() -> None:
    shown = listing(ENTRIES, 30).splitlines()
    assert shown[:2] == ["  get       List objects.", "  describe"]
    assert all(len(line) <= 30 for line in shown)


def test_paragraphs() -> None:
    assert paragraph("one two three", 0) == "one two three\n"
    assert paragraph("one two three", 8) == "one two\nthree\n"
