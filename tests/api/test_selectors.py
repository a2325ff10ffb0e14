"""Label and node selectors have the same meaning as upstream's."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.selecting.selectors import (
    EVERYTHING,
    NOTHING,
    Requirement,
    SelectorError,
    from_map,
    interned,
    parse_label_selector,
    parse_node_selector,
    parse_node_selector_term,
    parse_preferred_terms,
)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert parse_label_selector(None) is NOTHING
    assert not NOTHING.matches({})
    assert not NOTHING.empty
    assert parse_label_selector({}) is EVERYTHING
    assert EVERYTHING.matches({"a": "b"})
    assert EVERYTHING.empty


@pytest.mark.parametrize(
    ("condition", "labels", "matches"),
    [
        pytest.param(expression("a", "In", "1", "2"), {"a": "2"}, True, id="in"),
        pytest.param(expression("a", "In", "1", "2"), {}, False, id="in-needs-the-label"),
        pytest.param(expression("a", "NotIn", "1"), {}, True, id="notin-is-content-without-the-label"),
        pytest.param(expression("a", "NotIn", "1"), {"a": "1"}, False, id="notin"),
        pytest.param(expression("a", "Exists"), {"a": ""}, True, id="exists"),
        pytest.param(expression("a", "DoesNotExist"), {"a": ""}, False, id="does-not-exist"),
    ],
)
def test_operators(condition: dict[str, Any], labels: dict[str, str], matches: bool) -> None:
    assert parse_label_selector({"matchExpressions": [condition]}).matches(labels) is matches


def test_equal_selectors_are_one_object() -> None:
    first = parse_label_selector({"matchLabels": {"a": "1", "b": "2"}})
    second = parse_label_selector({"matchExpressions": [expression("b", "In", "2"), expression("a", "In", "1")]})
    assert first is second
    assert from_map({"b": "2", "a": "1"}) is first
    assert hash(copy.copy(first)) == hash(first)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (
            {"matchExpressions": [expression("a", "Near", "1")]},
            '"Near" is not a valid label selector operator',
        ),
        ({"matchExpressions": [expression("a", "In")]}, "values set can't be empty"),
        ({"matchExpressions": [expression("a", "Exists", "1")]}, "values set must be empty"),
        ({"matchLabels": {"-a": "1"}}, "name part must consist of"),
        ({"matchLabels": {"a": "not ok"}}, "a valid label must be"),
        ({"matchLabels": ["a"]}, "a label selector has"),
    ],
)
def test_what_upstream_would_not_make_is_refused(raw: dict[str, Any], words: str) -> None:
    with pytest.raises(SelectorError, match=words):
        parse_label_selector(raw)


def test_an_empty_map_selects_everything_as_for_services() -> None:
    assert from_map(None) is EVERYTHING


def test_adding_narrows() -> None:
    selector = from_map({"a": "1"}).adding(interned([Requirement("b", "Exists")]))
    assert selector.matches({"a": "1", "b": ""})
    assert not selector.matches({"a": "1"})
    assert NOTHING.adding(selector) is NOTHING
    assert selector.adding(NOTHING) is selector
    assert EVERYTHING.adding(selector) is selector


def terms(*raw: dict[str, Any]) -> dict[str, Any]:
    return {"nodeSelectorTerms": list(raw)}


def test_terms_are_alternatives_and_their_parts_are_not() -> None:
    selector = parse_node_selector(
        terms(
            {"matchExpressions": [expression("zone", "In", "a"), expression("disk", "Exists")]},
            {"matchFields": [expression("metadata.name", "In", "n1")]},
        )
    )
    assert selector.matches({"zone": "a", "disk": "x"}, "n2")
    assert not selector.matches({"zone": "a"}, "n2")
    assert selector.matches({}, "n1")


def test_an_empty_term_matches_no_node() -> None:
    assert not parse_node_selector(terms({}, {"matchExpressions": []})).matches({}, "n")
    assert not parse_node_selector_term({}).matches({}, "n")
    assert parse_node_selector(None).terms == ()


@pytest.mark.parametrize(
    ("operator", "bound", "label", "matches"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "+4", True),
        ("Gt", "5", "six", False),
        ("Gt", "5", "6_0", False),
        ("Gt", "5", "99999999999999999999", False),
        ("Lt", "5", None, False),
    ],
)
def test_order(operator: str, bound: str, label: str | None, matches: bool) -> None:
    selector = parse_node_selector(terms({"matchExpressions": [expression("gen", operator, bound)]}))
    assert selector.matches({} if label is None else {"gen": label}, "n") is matches


def test_a_broken_term_speaks_up_only_if_no_other_matches() -> None:
    selector = parse_node_selector(
        terms(
            {"matchExpressions": [expression("gen", "Gt", "x")]},
            {"matchExpressions": [expression("ok", "Exists")]},
        )
    )
    assert selector.matches({"ok": ""}, "n")
    with pytest.raises(SelectorError, match=r"nodeSelectorTerms\[0\].matchExpressions\[0\].values\[0\]: .*integer"):
        selector.matches({}, "n")


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (
            {"matchExpressions": [expression("a", "Near", "1")]},
            'Unsupported value: "Near": supported values: "In", "N',
        ),
        ({"matchFields": [expression("metadata.name", "Exists")]}, 'supported values: "In", "NotIn"'),
        ({"matchFields": [expression("metadata.name", "In", "a", "b")]}, "must have one element"),
        ({"matchExpressions": [expression("a", "Gt", "1", "2")]}, "exactly one value is required"),
    ],
)
def test_faults_of_a_term(term: dict[str, Any], words: str) -> None:
    assert words in parse_node_selector_term(term).problems[0]


def test_fields_other_than_the_name_read_as_empty() -> None:
    assert not parse_node_selector_term({"matchFields": [expression("spec.x", "In", "a")]}).matches({}, "n")
    assert parse_node_selector_term({"matchFields": [expression("spec.x", "NotIn", "a")]}).matches({}, "n")
    assert parse_node_selector_term({"matchFields": [expression("metadata.name", "NotIn", "n")]}).matches({}, "")


def test_preferred_terms_fail_as_upstream_does() -> None:
    good = {"weight": 2, "preference": {"matchExpressions": [expression("a", "Exists")]}}
    empty = {"weight": 3, "preference": {}}
    ((weight, term),) = parse_preferred_terms([good, empty])
    assert weight == 2
    assert term.matches({"a": ""}, "n")
    bad = {"weight": 33, "preference": {"matchExpressions": [expression("gen", "Gt", "-5")]}}
    with pytest.raises(SelectorError) as refusal:
        parse_preferred_terms([good, bad])
    assert str(refusal.value) == (
        '[1].matchExpressions[0].values[0][gen]: Invalid value: "-5": a valid label must be an empty string '
        "or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
        "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    )


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["", "1", "2", "x"])
EXPRESSIONS = st.one_of(
    st.builds(
        lambda k, o, v: expression(k, o, *v),
        KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.lists(VALUES, min_size=1),
    ),
    st.builds(expression, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)


def plain(condition: dict[str, Any], labels: dict[str, str]) -> bool:
    key, operator, values = condition["key"], condition["operator"], condition.get("values", [])
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    return (key in labels) == (operator == "Exists")


@given(st.dictionaries(KEYS, VALUES), st.lists(EXPRESSIONS, max_size=4), st.dictionaries(KEYS, VALUES))
def test_equal_to_the_plain_rule(wanted: dict[str, str], conditions: list[Any], labels: dict[str, str]) -> None:
    selector = parse_label_selector({"matchLabels": wanted, "matchExpressions": conditions})
    expected = all(labels.get(k) == v for k, v in wanted.items()) and all(plain(c, labels) for c in conditions)
    assert selector.matches(labels) is expected
    assert all(r.matches(labels) for r in selector.requirements) is expected


KEYS = [f"k{number}" for number in range(24)]
REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from(KEYS),
    st.sampled_from(["In", "In", "In", "NotIn"]),
    st.lists(st.sampled_from("vw"), min_size=1, max_size=2).map(tuple),
) | st.builds(Requirement, st.sampled_from(KEYS), st.sampled_from(["Exists", "DoesNotExist"]))


@given(st.lists(REQUIREMENTS, max_size=3), st.sets(st.sampled_from(KEYS)), st.sets(st.sampled_from(KEYS), max_size=2))
def test_many_requirements_are_tested_as_each_by_itself(
    some: list[Requirement], left_out: set[str], others: set[str]
) -> None:
    selector = from_map(dict.fromkeys(KEYS, "v")).adding(interned(some))
    labels = {key: "w" if key in others else "v" for key in KEYS if key not in left_out} | {"more": "v"}
    assert selector.matches(labels) == all(each.matches(labels) for each in selector.requirements)
    assert from_map(labels).adding(interned(some)).matches({**labels, "x": "y"}) == all(
        each.matches(labels) for each in some
    )
