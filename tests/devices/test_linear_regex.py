"""The linear matcher says what Python's matcher says, without ever taking long."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kschedd.devices.linear_regex import PatternError, search

_PIECES = [
    "a",
    "b",
    ".",
    "*",
    "+",
    "?",
    "|",
    "(",
    ")",
    "[ab]",
    "[^a]",
    "[a-b]",
    "^",
    "{1,2}",
    "{2}",
    "\\b",
    "\\w",
    "\\S",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=8).map("".join), st.text("ab c", max_size=7))
def test_finds_what_backtracking_finds(pattern: str, text: str) -> None:
    try:
        expected = re.compile(pattern).search(text) is not None
    except re.error:
        assume(False)
        return
    try:
        found = search(pattern, text)
    except PatternError:
        assume(False)
        return
    assert found is expected


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        pytest.param("(?i)A100$", "nvidia-a100", True, id="ignoring-case"),
        pytest.param("[[:digit:]]{3}", "a10", False, id="posix-class"),
        pytest.param("[[:digit:]]{3}", "a100", True, id="counted"),
        pytest.param(r"^\x61\.\x{62}$", "a.b", True, id="escapes"),
        pytest.param("(?P<name>x)y", "xy", True, id="named-group"),
        pytest.param("a.b", "a\nb", False, id="dot-stops-at-newline"),
        pytest.param("(?s)a.b", "a\nb", True, id="dot-all"),
        pytest.param("a{,2}", "a{,2}", True, id="brace-that-is-no-count"),
        pytest.param("(a*)*(a*)*(a*)*b", "a" * 64, False, id="what-backtracking-never-ends"),
    ],
)
def test_pattern(pattern: str, text: str, found: bool) -> None:
    assert search(pattern, text) is found


@pytest.mark.parametrize(
    "pattern", ["(", "a)", "[a", "*a", "a**", "(?=a)", "\\q", "a{2000}", "((((a{99}){99}){99}){99})", "(" * 200]
)
def test_refuses(pattern: str) -> None:
    with pytest.raises(PatternError, match="error parsing regexp"):
        search(pattern, "a")
