"""Tests of input lines: commands, pipes, files and quotes; macros; settings; pasted text; history search."""

import pytest

from kschedd_repl.line import LineError, TypedCommand, quoted, read_line
from kschedd_repl.macros import MacroBook, MacroError, macro_text
from kschedd_repl.prompt.fuzzy import fuzzy, match_score
from kschedd_repl.prompt.pasting import objects_in, pasted_manifest
from kschedd_repl.settings import SessionSettings, SettingError


def _parts(line: str) -> list[tuple[tuple[str, ...], str]]:
    return [
        (each.words, each.pipe or (f"{'>>' if each.append else '>'} {each.target}" if each.target else ""))
        for each in read_line(line)
    ]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("  # a comment", [], id="comment"),
        pytest.param("get pods  -o   name # all", [(("get", "pods", "-o", "name"), "")], id="words"),
        pytest.param("get 'a b' \"c d\" e\\ f ''", [(("get", "a b", "c d", "e f", ""), "")], id="quotes"),
        pytest.param("get a#b", [(("get", "a#b"), "")], id="a-hash-within-a-word"),
        pytest.param('get "a\\"b\\n"', [(("get", 'a"b\\n'), "")], id="backslashes-within-quotes"),
        pytest.param("get pods -o json | jq '.items | length'", [
            (("get", "pods", "-o", "json"), "jq '.items | length'")], id="what-follows-a-pipe-is-the-shells"),
        pytest.param("get pods|sort|uniq -c >f", [(("get", "pods"), "sort|uniq -c >f")], id="pipes-after-the-first"),
        pytest.param("get a > f; get b >> 'g h'", [(("get", "a"), "> f"), (("get", "b"), ">> g h")], id="files"),
        pytest.param("get a >f;; get b;", [(("get", "a"), "> f"), (("get", "b"), "")], id="empty-commands"),
        pytest.param("get a; ! ls | wc > f; get b", [(("get", "a"), ""), (("! ls | wc > f",), ""), (("get", "b"), "")],
                     id="a-command-of-the-shell"),
        pytest.param("until attempts>3", [(("until", "attempts>3"), "")], id="a-sign-within-a-word"),
        pytest.param("get 'a|b;c>d'", [(("get", "a|b;c>d"), "")], id="quoted-operators"),
        pytest.param("get a | sed 's/;/x/'; get b", [(("get", "a"), "sed 's/;/x/'"), (("get", "b"), "")],
                     id="a-semicolon-quoted-for-the-shell"),
    ],
)  # fmt: skip
def test_lines(line: str, parts: list[tuple[tuple[str, ...], str]]) -> None:
    assert _parts(line) == parts


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param("get 'pods", "no closing quotation", id="open-quote"),
        pytest.param("get pods | sed 's/a", "no closing quotation", id="open-quote-for-the-shell"),
        pytest.param("get pods |", "a shell command is expected", id="nothing-after-a-pipe"),
        pytest.param("get pods >", "a file is expected after >", id="no-file"),
        pytest.param("get pods > a b", "nothing is expected after > a", id="words-after-a-file"),
        pytest.param("get pods > a | wc", "nothing is expected after > a", id="a-file-and-a-pipe"),
        pytest.param("| wc", 'a command is expected before "|"', id="no-command"),
        pytest.param("get pods \\", "no escaped character", id="backslash-at-the-end"),
    ],
)
def test_lines_that_cannot_be_read(line: str, why: str) -> None:
    with pytest.raises(LineError, match=why):
        read_line(line)


def test_the_text_of_a_command_is_kept() -> None:
    assert read_line("get  'a b' | wc")[0] == TypedCommand(("get", "a b"), "get  'a b'", pipe="wc")


def test_a_quoted_word_is_read_as_it_was() -> None:
    for word in ("plain", "two words", "it's", "a|b", "", "$1", 'say "so"', "back\\slash"):
        assert read_line(f"x {quoted(word)}")[0].words == ("x", word)


# -- macros ---------------------------------------------------------------------------------------------------------


def test_macros_take_words() -> None:
    book = MacroBook(frozenset({"get"}))
    assert macro_text("macro why = get pod $1; explain $1 | head -$2") == "why = get pod $1; explain $1 | head -$2"
    assert macro_text("get pods") is None
    assert book.define("why = get pod $1; explain $1") == "why"
    book.define("all=get pods $*")
    assert book.expand(["why", "a b"]) == "get pod 'a b'; explain 'a b'"
    assert book.expand(["all", "-n", "x y"]) == "get pods -n 'x y'"
    assert book.expand(["get", "pods"]) is None
    book.delete("why")
    assert book.expand(["why", "a"]) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("why get pods", "defined as", id="no-equals-sign"),
        pytest.param("2x = get pods", "a name of letters", id="bad-name"),
        pytest.param("get = get pods", "has a meaning already", id="a-verb"),
        pytest.param("x =", "what is x to do", id="empty"),
    ],
)
def test_macros_that_cannot_be_defined(text: str, why: str) -> None:
    with pytest.raises(MacroError, match=why):
        MacroBook(frozenset({"get"})).define(text)


def test_macros_that_cannot_be_expanded() -> None:
    book = MacroBook(frozenset())
    book.define("two = get $1 $2")
    with pytest.raises(MacroError, match="two needs 2 words"):
        book.expand(["two", "a"])
    with pytest.raises(MacroError, match='unexpected argument "c"'):
        book.expand(["two", "a", "b", "c"])
    with pytest.raises(MacroError, match="more than 10 deep"):
        book.expand(["two", "a", "b"], 10)
    with pytest.raises(MacroError, match='no macro "three"'):
        book.delete("three")


# -- settings -------------------------------------------------------------------------------------------------------


def test_settings() -> None:
    settings = SessionSettings()
    assert settings["editing"] == "emacs"
    settings.set("editing", "vi")
    settings.set("pager", "less -S")
    assert "editing   vi " in settings.table()
    assert settings.is_on("pager")
    with pytest.raises(SettingError, match='did you mean "editing"'):
        settings.set("editng", "vi")
    with pytest.raises(SettingError, match="allowed are emacs, vi"):
        settings.set("editing", "ed")


# -- pasted ---------------------------------------------------------------------------------------------------------

_POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("text", "manifest"),
    [
        pytest.param(_POD, _POD, id="manifest"),
        pytest.param(_POD.replace("\n", "\r"), _POD, id="line-ends-of-a-terminal"),
        pytest.param(f"\n  {_POD.replace(chr(10), chr(10) + '  ')}", _POD, id="indented"),
        pytest.param(f"# a pod\n---\n{_POD}", f"# a pod\n---\n{_POD}", id="comments-first"),
        pytest.param('{"kind": "Pod", "apiVersion": "v1"}', '{"kind": "Pod", "apiVersion": "v1"}\n', id="json"),
        pytest.param(f"apply -f -\n{_POD}.\n", "", id="a-command-with-its-manifest"),
        pytest.param("get pods\nget nodes", "", id="commands"),
        pytest.param("kind: of blue", "", id="one-line"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_manifests_are_known_when_pasted(text: str, manifest: str) -> None:
    assert pasted_manifest(text) == manifest


def test_what_is_pasted_is_named() -> None:
    assert objects_in(_POD) == "1 object (Pod)"
    assert objects_in(f"{_POD}---\n{_POD}---\napiVersion: v1\nkind: Node\n") == "3 objects (2 Pod, Node)"


# -- found again ----------------------------------------------------------------------------------------------------


def test_fuzzy_search_prefers_what_is_close_and_new() -> None:
    lines = ["get nodes", "describe node node-a", "get pods -o wide", "get pods", "get pods"]
    assert fuzzy("gpo", lines) == ["get pods -o wide", "get pods"]
    assert fuzzy("pods", lines) == ["get pods -o wide", "get pods"]
    assert fuzzy("desc a", lines) == ["describe node node-a"]
    assert fuzzy("", lines) == list(dict.fromkeys(lines))
    assert fuzzy("zz", lines) == []


def test_case_matters_where_the_query_has_capitals() -> None:
    assert match_score("imagelocality", "set weight ImageLocality 5") is not None
    assert match_score("IL", "set weight ImageLocality 5") is not None
    assert match_score("IL", "set weight imagelocality 5") is None
