"""Tests of lists of verbs on terminals of any width."""

from kschedd.cli import MOUNTED
from kschedd.verbs.command_line.overview import FIRST, TOPICS, by_topic, listing, paragraph
from kschedd.verbs.table import GROUPS, VERBS

ENTRIES = [("get", "List objects."), ("describe", "All about objects: conditions, events, and why a pod is pending.")]


def test_without_a_terminal_nothing_is_broken() -> None:
    assert listing(ENTRIES, 0).splitlines() == [
        "  get       List objects",
        "  describe  All about objects: conditions, events, and why a pod is pending",
    ]


def test_what_does_not_fit_goes_on_in_its_column() -> None:
    assert listing(ENTRIES, 50).splitlines()[1:] == [
        "  describe  All about objects: conditions, events,",
        "            and why a pod is pending",
    ]


def test_on_a_very_narrow_terminal_the_meaning_goes_below_the_name() -> None:
    shown = listing(ENTRIES, 30).splitlines()
    assert shown[:2] == ["  get       List objects", "  describe"]
    assert all(len(line) <= 30 for line in shown)


def test_paragraphs() -> None:
    assert paragraph("one two three", 0) == "one two three\n"
    assert paragraph("one two three", 8) == "one two\nthree\n"


def test_at_the_prompt_run_is_a_verb_of_kubectl() -> None:
    shown = by_topic({verb.name: verb.summary for verb in VERBS}, 0)
    assert shown.startswith("Start:\n  status ")
    assert ":\n  run, get, describe, " in shown


def test_every_command_is_in_one_topic() -> None:
    listed = [name for names in TOPICS.values() for name in names]
    verbs = {verb.name for verb in VERBS if not verb.whole}
    assert len(listed) == len(set(listed))
    assert set(listed) == {*GROUPS, *MOUNTED, *verbs}
    assert set(FIRST) <= set(listed)


def test_a_topic_has_a_line_for_each_command() -> None:
    shown = by_topic({"explain": "Explain why. And more.", "get": "List objects."}, 0)
    assert shown == "kubectl's verbs, with kubectl's flags:\n  get\n\nWhy:\n  explain  Explain why\n\n"
