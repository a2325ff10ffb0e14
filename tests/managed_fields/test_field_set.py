"""Tests of sets of fields: their operations, order and serialization."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.managed_fields.field_set import (
    FieldSet,
    difference,
    fields_v1,
    intersection,
    only_below,
    path_text,
    read_fields_v1,
    recursive_difference,
    set_of,
    union,
)

_STEPS = st.sampled_from(["f:spec", "f:a", "f:b.c", 'k:{"name":"x"}', 'k:{"port":80,"protocol":"TCP"}', 'v:"z"'])
_PATHS = st.lists(_STEPS, min_size=1, max_size=3).map(tuple)
_SETS = st.lists(_PATHS, max_size=6).map(lambda paths: set_of(*paths))


def _members(fields: FieldSet) -> set[tuple[str, ...]]:
    return set(fields.paths())


@given(_SETS, _SETS)
def test_sets_combine_as_sets_of_their_paths(one: FieldSet, other: FieldSet) -> None:
    assert _members(union(one, other)) == _members(one) | _members(other)
    assert _members(intersection(one, other)) == _members(one) & _members(other)
    assert _members(difference(one, other)) == _members(one) - _members(other)


@given(_SETS, _SETS)
def test_a_recursive_difference_takes_what_is_below_too(one: FieldSet, other: FieldSet) -> None:
    gone = _members(other)
    left = {path for path in _members(one) if not any(path[: len(root)] == root for root in gone)}
    assert _members(recursive_difference(one, other)) == left


@given(_SETS)
def test_a_set_is_read_as_it_was_written(fields: FieldSet) -> None:
    assert read_fields_v1(fields_v1(fields)) == fields


def test_members_come_before_what_is_below_and_keys_in_their_own_order() -> None:
    fields = set_of(
        ("f:ports", 'k:{"port":443}', "f:name"),
        ("f:ports", 'k:{"port":80}'),
        ("f:ports", 'k:{"port":443}'),
        ("f:name",),
        ("f:list", "v:10"),
        ("f:list", "v:9"),
    )
    assert [path_text(path) for path in fields.paths()] == [
        ".name",
        ".list[=9]",
        ".list[=10]",
        ".ports[port=80]",
        ".ports[port=443]",
        ".ports[port=443].name",
    ]


def test_a_dot_says_that_a_place_with_fields_below_is_a_member() -> None:
    fields = read_fields_v1({"f:labels": {".": {}, "f:a": {}}, "f:spec": {"f:b": {}}})
    assert _members(fields) == {("f:labels",), ("f:labels", "f:a"), ("f:spec", "f:b")}
    assert fields_v1(fields) == {"f:labels": {".": {}, "f:a": {}}, "f:spec": {"f:b": {}}}


def test_only_what_is_below_a_pattern_is_left() -> None:
    fields = set_of(("f:c", 'k:{"name":"a"}', "f:resources", "f:limits"), ("f:c", 'k:{"name":"a"}', "f:image"))
    left = only_below(fields, [("f:c", "*", "f:resources")])
    assert _members(left) == {("f:c", 'k:{"name":"a"}', "f:resources", "f:limits")}


@pytest.mark.parametrize("given", [5, {"x": {}}, {"k:{": {}}, {"f:a": 5}, {"i:x": {}}, ["f:a"]])
def test_what_is_no_set_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_fields_v1(given)
