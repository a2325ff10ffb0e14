"""Tests that no text of an object sends control sequences to the terminal."""

import json

import pytest
import yaml

from kschedd.printing.documents import as_json, as_yaml
from kschedd.printing.terminal.safe import safe
from kschedd.printing.terminal.style import TerminalStyle
from tests.verbs.conftest import Typed
from tests.verbs.fake_daemon import FakeDaemon, node

EVIL = "a\x1b[2Jb\x1b]0;owned\x07c\x9bd\u202ee\u2066f\u200fg\rh\x7f"
READABLE = "a\\x1b[2Jb\\x1b]0;owned\\x07c\\x9bd\\u202ee\\u2066f\\u200fg\\rh\\x7f"


def test_commands_and_marks_of_direction_become_readable_escapes_once() -> None:
    assert safe(EVIL) == READABLE
    assert safe(READABLE) == READABLE
    assert safe("two\nlines\tand → ünïcode 漢字") == "two\nlines\tand → ünïcode 漢字"


def test_our_own_tones_stay_where_there_is_color_and_nothing_else_does() -> None:
    painted = TerminalStyle(color=True).paint("well", "green")
    assert safe(painted, color=True) == painted
    assert safe(painted) == "\\x1b[32mwell\\x1b[0m"
    assert safe("\x1b[5mblink\x1b[?1049h", color=True) == "\\x1b[5mblink\\x1b[?1049h"


@pytest.mark.parametrize("value", [EVIL, {EVIL: [EVIL, "plain"]}, "lines\nand \x1b", "\u2028", "plain → text"])
def test_documents_say_exactly_what_is_there_without_a_command_in_them(value: object) -> None:
    as_text = as_json(value)
    assert json.loads(as_text) == value
    assert safe(as_text) == as_text
    as_text = as_yaml(value)
    assert yaml.safe_load(as_text) == value
    assert safe(as_text) == as_text


@pytest.fixture
def typed() -> Typed:
    evil = node("evil", taints=[{"key": "k", "value": EVIL, "effect": "NoSchedule"}])
    evil["metadata"]["annotations"] = {"note": EVIL}
    evil["status"]["nodeInfo"] = {"osImage": EVIL, "kubeletVersion": EVIL}
    return Typed(FakeDaemon(evil))


@pytest.mark.parametrize(
    "line",
    [
        "describe node evil",
        "get nodes -o wide",
        "get node evil -o yaml",
        "get node evil -o json",
        "get node evil -o 'jsonpath={.metadata.annotations.note}'",
        "get node 'no\x1b[2J\u202ething'",
        "describe 'no\x1b[2J\u202ething' x",
        "'no\x1b[2J\u202ething'",
        "status",
    ],
)
def test_no_verb_lets_a_command_through(typed: Typed, line: str) -> None:
    typed(line)
    answer = typed.out + typed.err
    assert answer
    assert safe(answer) == answer


def test_the_content_of_a_field_is_read_as_escapes_and_in_json_as_it_is(typed: Typed) -> None:
    assert typed("get node evil -o 'jsonpath={.metadata.annotations.note}'") == 0
    assert typed.out.strip() == READABLE
    assert typed("get node evil -o json") == 0
    assert json.loads(typed.out)["metadata"]["annotations"]["note"] == EVIL
