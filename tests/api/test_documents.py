"""YAML and JSON text is parsed as by kubectl, and never causes an exception."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.text.documents import MOST_FAULTS, plain_scalar, read_documents
from kschedd.api.text.json_text import DEEPEST


def values(text: str) -> list[Any]:
    documents = list(read_documents(text))
    assert not [fault for document in documents for fault in document.faults]
    return [document.value for document in documents]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("on", True),
        ("y", True),
        ("Off", False),
        ("~", None),
        ("0644", 420),
        ("0o644", 420),
        ("0x10", 16),
        ("0b11", 3),
        ("1_000", 1000),
        ("08", 8),
        ("-5", -5),
        ("0.5", 0.5),
        ("2.0", 2),
        ("1e3", 1000),
        (".5", 0.5),
        ("1.5.0", "1.5.0"),
        ("12:30:45", "12:30:45"),
        ("2025-01-01", "2025-01-01"),
        ("2025-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
        ("100m", "100m"),
        ("-", "-"),
        ("yess", "yess"),
        ("99999999999999999999", 1e20),
    ],
)
def test_plain_scalars(written: str, meant: object) -> None:
    value = plain_scalar(written)
    assert value == meant
    assert type(value) is type(meant)


def test_quoted_scalars_are_text() -> None:
    assert values("a: 'on'\nb: \"1\"\nc: !!str 1\nd: |\n  yes\n") == [{"a": "on", "b": "1", "c": "1", "d": "yes\n"}]


def test_keys_are_text() -> None:
    assert values("on: 1\n8080: 2\n1.5: 3\n") == [{"true": 1, "8080": 2, "1.5": 3}]


def test_anchors_and_merges() -> None:
    text = "base: &b {cpu: 1, memory: 2}\nmore:\n  <<: *b\n  cpu: 3\n"
    assert values(text) == [{"base": {"cpu": 1, "memory": 2}, "more": {"cpu": 3, "memory": 2}}]


def test_streams_are_cut_at_separators() -> None:
    text = "%YAML 1.1\n---\na: 1\n--- # second\nb: |\n  --- x\n...\n---\n# nothing\n---\n{c: 3}\n"
    assert values(text) == [{"a": 1}, {"b": "--- x\n"}, {"c": 3}]


def test_one_broken_document_leaves_the_others() -> None:
    first, broken, last = read_documents("a: 1\n---\nb: [1,\n---\nc: 3\n")
    assert (first.value, last.value) == ({"a": 1}, {"c": 3})
    assert broken.faults[0].line in (3, 4)
    assert "not YAML" in broken.faults[0].why


def test_json_streams_with_a_broken_value() -> None:
    first, broken, last = read_documents('{"a": 1}\n{"b": }\n{"c": 3}\n')
    assert (first.value, last.value) == ({"a": 1}, {"c": 3})
    assert broken.faults[0].line == 2
    assert "not JSON" in broken.faults[0].why


@pytest.mark.parametrize(
    ("text", "line", "path"),
    [
        ("a:\n  b: 1\n  c: 2\n  b: 3\n", 4, ("a", "b")),
        ("- x\n- {k: 1,\n   k: 2}\n", 3, (1, "k")),
        ('{"a": {"b": 1,\n "b": 2}}', 2, ()),
    ],
)
def test_equal_keys_are_a_fault_with_its_line(text: str, line: int, path: tuple[Any, ...]) -> None:
    (document,) = read_documents(text)
    (fault,) = document.faults
    assert (fault.line, fault.path) == (line, path)
    assert "twice" in fault.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("[" * 100_000, "levels deep", id="deep-flow"),
        pytest.param("a: " + "[" * 100_000, "levels deep", id="deep-flow-in-yaml"),
        pytest.param("- " * 5_000 + "x", "levels deep", id="deep-blocks"),
        pytest.param("? " * 30_000, "levels deep", id="deep-keys"),
        pytest.param('{"a":' * 5_000 + "1" + "}" * 5_000, "levels deep", id="deep-json"),
        pytest.param('{"a":' * 200 + "1" + "}" * 200, "levels deep", id="json-deeper-than-allowed"),
        pytest.param("a: &a [*a]", "contains itself", id="circle"),
        pytest.param("a: *b", "undefined anchor", id="lost-anchor"),
        pytest.param("a: !!python/object:os.system x", "tag", id="foreign-tag"),
        pytest.param("a: .nan", "finite", id="nan"),
        pytest.param("a: \x00", "control characters", id="nul"),
        pytest.param("? [a]\n: b", "key must be a string", id="list-as-key"),
        pytest.param("a: b: c", "mapping values", id="syntax"),
        pytest.param("<<: 3", "requires a mapping", id="merging-a-number"),
    ],
)
def test_refused(text: str, why: str) -> None:
    faults = [fault for document in read_documents(text) for fault in document.faults]
    assert why in faults[0].why
    assert len(faults[0].why) < 300


def test_aliases_may_not_explode() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    (document,) = read_documents("\n".join(lines))
    assert "expand to more than" in document.faults[0].why


def test_deep_but_allowed() -> None:
    assert values("[" * DEEPEST + "]" * DEEPEST)


def test_a_megabyte_on_one_line() -> None:
    (value,) = values("a: " + "x" * 1_000_000)
    assert len(value["a"]) == 1_000_000
    (document,) = read_documents("a: " + "x" * 1_000_000 + ": y")
    assert len(document.faults[0].why) < 300


def test_lines_of_parts() -> None:
    (document,) = list(read_documents("---\n\na: 1\nb:\n  - c: 2\n    d:\n      e: 3\n"))
    assert document.line_of(()) == 3
    assert document.line_of(("b", 0, "d", "e")) == 7
    assert document.line_of(("b", 0, "d", "missing")) == 6
    assert document.line_of(("b", 7)) == 4


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=4), JSON, min_size=1, max_size=4)


@given(OBJECTS)
def test_what_was_written_is_read(value: dict[str, Any]) -> None:
    assert values(json.dumps(value, indent=1)) == [value]


TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF, exclude_characters="\x7f"), max_size=8).filter(
    lambda text: all(not "\x80" <= c <= "\x9f" or c == "\x85" for c in text)
)


@given(st.dictionaries(TEXT, TEXT | st.integers(-1000, 1000) | st.booleans() | st.none(), min_size=1, max_size=4))
def test_yaml_that_was_written_is_read(value: dict[str, Any]) -> None:
    # The writer follows YAML 1.1 except for y and n, which kubectl reads as booleans, so all text is quoted.
    text = yaml.safe_dump(value, default_style='"', allow_unicode=True)
    read = values(text)
    assert read == [value]


@given(st.text(max_size=200))
def test_nothing_breaks_the_reader(text: str) -> None:
    for document in read_documents(text):
        assert document.faults == () or document.value is None
        assert document.line_of(("a", 0)) >= 1


@pytest.mark.parametrize(
    ("text", "why", "line"),
    [
        pytest.param("[\n" * 300_000, f"nested more than {DEEPEST} levels deep", DEEPEST + 1, id="open-brackets"),
        pytest.param("[\n" * 90 + "1,\n" * 50_000 + "NaN", "not JSON: NaN: numbers must be finite", 1, id="no-number"),
        pytest.param('{"a":\n' * 100_000, f"nested more than {DEEPEST} levels deep", DEEPEST + 1, id="open-braces"),
    ],
)
def test_a_value_that_cannot_be_read_is_one_fault_and_read_once(text: str, why: str, line: int) -> None:
    [document] = read_documents(text)
    [fault] = document.faults
    assert (fault.why, fault.line) == (why, line)


@pytest.mark.parametrize("text", ["{}\n" * 100_000, "\n" * 1_000_000, "---\n" * 200_000])
def test_many_small_documents_and_blank_lines_are_read_in_one_pass(text: str) -> None:
    assert len(list(read_documents(text))) == text.count("{}")


def test_equal_keys_are_told_each_with_its_line_up_to_a_limit() -> None:
    text = "{" + ",\n".join(f'"k{number // 2}": 1' for number in range(40_000)) + "}"
    document, rest = read_documents(text)
    assert [fault.line for fault in document.faults] == list(range(2, 2 * MOST_FAULTS + 1, 2))
    assert rest.faults[0].why == f"too many errors ({MOST_FAULTS}); the rest was not read"


def test_faults_are_told_up_to_a_limit() -> None:
    *reported, last = read_documents("a: [\n---\n" * 5_000)
    assert len(reported) == MOST_FAULTS
    assert last.faults[0].why.endswith("the rest was not read")


def test_a_tree_of_lines_is_given_back_to_the_last_node_and_read_again_when_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[yaml.Node] = []

    def composing(text: str, loader: Any) -> yaml.Node:
        read.append(compose(text, loader))
        return read[-1]

    compose = yaml.compose
    monkeypatch.setattr(yaml, "compose", composing)
    text = "labels:\n" + "".join(f"  k{number}: [a, {{b: c}}]\n" for number in range(2_000))
    [document] = read_documents(text)
    assert read == []
    assert document.line_of(("labels", "k7")) == 9
    [mapping] = [value for _, value in read[0].value]
    inner = mapping.value[7][1]
    document.forget_lines()
    assert (read[0].value, mapping.value, inner.value) == ([], [], [])
    assert document.line_of(("labels", "k1999")) == 2001
    assert len(read) == 2


def test_lines_of_many_parts_are_found_with_one_look_at_the_document() -> None:
    text = "labels:\n" + "".join(f"  k{number}: a\n" for number in range(20_000))
    [document] = read_documents(text)
    assert [document.line_of(("labels", f"k{number}")) for number in range(20_000)] == list(range(2, 20_002))


def test_lines_of_a_very_long_document_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def compose(*_: Any) -> None:
        pytest.fail("the whole document was read again, node by node")

    monkeypatch.setattr(yaml, "compose", compose)
    text = json.dumps({"labels": {f"k{number}": "x" * 900 for number in range(10_000)}}, indent=1)
    [document] = read_documents("\n\n" + text)
    assert document.value["labels"]["k9999"] == "x" * 900
    assert document.line_of(("labels", "k7")) == document.first_line
