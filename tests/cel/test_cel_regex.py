"""Tests that patterns are interpreted as by Go: RE2's syntax, linear time, and Go's error messages."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kschedd.cel.regex import PatternError, search

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
        pytest.param("(?i)É", "é", True, id="ignoring-case-beyond-ascii"),
        pytest.param("(?i)k", "\u212a", True, id="ignoring-case-folds-as-unicode-does"),
        pytest.param(r"^\pL+$", "Grün", True, id="unicode-class"),
        pytest.param(r"^\Qa.b\E$", "a.b", True, id="quoted"),
        pytest.param("(?m)^b$", "a\nb", True, id="multi-line"),
        pytest.param("^.$", "\ud800", True, id="half-of-a-surrogate-pair"),
        pytest.param("(a*)*(a*)*(a*)*b", "a" * 64, False, id="what-backtracking-never-ends"),
    ],
)
def test_pattern(pattern: str, text: str, found: bool) -> None:
    assert search(pattern, text) is found


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        pytest.param("(", "missing closing ): `(`", id="group-not-closed"),
        pytest.param("a)", "unexpected ): `a)`", id="group-not-opened"),
        pytest.param("[a", "missing closing ]: `[a`", id="class-not-closed"),
        pytest.param("*a", "missing argument to repetition operator: `*`", id="nothing-to-repeat"),
        pytest.param("a**", "invalid nested repetition operator: `**`", id="repeated-twice"),
        pytest.param("x*{2}", "invalid nested repetition operator: `*{2}`", id="repeated-twice-by-count"),
        pytest.param("(?=a)", "invalid or unsupported Perl syntax: `(?=`", id="look-ahead"),
        pytest.param("\\q", "invalid escape sequence: `\\q`", id="unknown-escape"),
        pytest.param("a\\", "trailing backslash at end of expression: `a\\`", id="trailing-backslash"),
        pytest.param("[z-a]", "invalid character class range: `z-a`", id="range-backwards"),
        pytest.param("a{2000}", "invalid repeat count: `{2000}`", id="repeated-too-often"),
        pytest.param("((((a{99}){99}){99}){99})", "invalid repeat count: `{99}`", id="repeats-multiply"),
    ],
)
def test_refuses_in_words_of_go(pattern: str, why: str) -> None:
    with pytest.raises(PatternError) as refused:
        search(pattern, "a")
    assert str(refused.value) == f"error parsing regexp: {why}"
