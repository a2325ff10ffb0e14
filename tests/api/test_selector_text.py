"""Selectors on a command line have the same meaning as in kubectl."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.selecting.selector_text import SelectorTextError, field_text, parse_field_selector, parse_selector_text
from kschedd.api.selecting.selectors import EVERYTHING, parse_label_selector


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("a=b", {"a": "b"}, True),
        ("a==b, c != d", {"a": "b"}, True),
        ("a=b,c!=d", {"a": "b", "c": "d"}, False),
        ("e in (x, y)", {"e": "y"}, True),
        ("e notin (x,y)", {}, True),
        ("!f", {"f": ""}, False),
        ("f", {"f": ""}, True),
        ("a=", {"a": ""}, True),
        ("a in (,x)", {"a": ""}, True),
        ("in in (in)", {"in": "in"}, True),
        ("n>3", {"n": "4"}, True),
        ("example.com/a=b", {"example.com/a": "b"}, True),
        (" ", {}, True),
    ],
)
def test_label_selectors(text: str, labels: dict[str, str], matches: bool) -> None:
    assert parse_selector_text(text).matches(labels) is matches


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,", "identifier after ','"),
        (",a", "!, identifier, or 'end of string'"),
        ("a b", "expected: in, notin"),
        ("a in x", "'\\('"),
        ("a in (x", "',' or '\\)'"),
        ("a=b c", "',' or 'end of string'"),
        ("a==b=c", "',' or 'end of string'"),
        ("!=x", "!, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!in", "unable to parse requirement: found 'in', expected: identifier"),
        ("a in (web,-x)", 'values\\[0\\]\\[a\\]: Invalid value: "-x"'),
        ("é=x", '<nil>: Invalid value: "é": name part'),
        ("a in (=)", "',', '\\)' or identifier"),
        ("a=/", "a valid label"),
        ("n>x", "must be an integer"),
    ],
)
def test_what_is_no_selector_says_what_was_expected(text: str, words: str) -> None:
    with pytest.raises(SelectorTextError, match=words):
        parse_selector_text(text)


def test_empty_text_selects_everything() -> None:
    assert parse_selector_text("") is EVERYTHING


@given(st.dictionaries(st.sampled_from(["a", "b/c", "d"]), st.sampled_from(["", "x", "1.0"])))
def test_printed_and_read_again(labels: dict[str, str]) -> None:
    selector = parse_label_selector({"matchLabels": labels})
    assert parse_selector_text(str(selector)) is selector


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("status.phase=Pending", True),
        ("status.phase!=Running,spec.nodeName=", True),
        ("status.phase==Running", False),
        ("spec.unschedulable=false", True),
        ("metadata.name=a\\,b", True),
        ("spec=x", False),
        ("", True),
    ],
)
def test_field_selectors(text: str, matches: bool) -> None:
    pod = {"metadata": {"name": "a,b"}, "spec": {"containers": []}, "status": {"phase": "Pending"}}
    assert parse_field_selector(text).matches(pod) is matches


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a=b,status.phase", "invalid selector: 'a=b,status.phase'; can't understand 'status.phase'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        ("a=b\\c", r"invalid field selector: invalid escape sequence: \\c"),
    ],
)
def test_what_is_no_field_selector(text: str, words: str) -> None:
    with pytest.raises(SelectorTextError, match=words):
        parse_field_selector(text)


def test_pods_are_selected_by_the_old_name_of_their_node() -> None:
    selector = parse_field_selector("spec.host=n1")
    assert selector.matches({"spec": {"nodeName": "n1"}})
    assert not selector.matches({"spec": {"nodeName": "n2"}})


def test_jobs_are_selected_by_how_many_of_their_pods_have_succeeded() -> None:
    label = "status.successful"
    assert field_text({"kind": "Job", "status": {"succeeded": 2}}, label) == "2"
    assert field_text({"kind": "Job", "status": {}}, label) == "0"
    assert field_text({"kind": "StatefulSet", "status": {}}, label) == ""
