"""A list of JSON is cut into the items that it has, however it was written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.dumps.json_lists import read_list
from kschedd.dumps.templates import VALUES_OF_STATUS, Templates
from tests.dumps.objects import node, pod

OWNERS = [{"apiVersion": "v1", "kind": "Node", "name": f"n{n}", "uid": f"u{n}"} for n in range(12)]
ITEMS: list[Any] = [
    pod("a", 1, "n1"),
    node("n1", 2),
    {"kind": "Odd", "apiVersion": "v1", "items": [{"kind": "Odd", "apiVersion": "v1"}, {"apiVersion": "v1"}]},
    pod("b", 3, "n1", metadata={"ownerReferences": OWNERS}),
    {"apiVersion": "v1", "kind": "Big", "number": 10**40, "text": 'a },\n{"apiVersion" ] ü \u2028 "'},
    {"apiVersion": "v1", "kind": "Endless", "number": float("inf")},
    pod("c", 4, "n1"),
]


@pytest.mark.parametrize("around", ['{{"apiVersion": "v1", "items": [{}], "kind": "List"}}', ' {{"items":[ {} ]\n}}\n'])
@pytest.mark.parametrize(
    ("between", "form"),
    [
        (", ", {}),
        (",", {"separators": (",", ":")}),
        (",\n", {"ensure_ascii": False}),
        ("\n  ,  \n", {"indent": 4}),
        (",\n", {"indent": 4, "sort_keys": True}),
    ],
)
def test_items_are_found_in_every_form(around: str, between: str, form: dict[str, Any]) -> None:
    text = around.format(between.join(json.dumps(item, **form) for item in ITEMS))
    found = read_list(text.encode())
    if '"kind": "List"' not in around:
        assert found is None
        return
    assert found is not None
    assert [item.raw for item in found.items] == ITEMS
    assert found.around == {"apiVersion": "v1", "kind": "List", "items": []}


@pytest.mark.parametrize("count", [0, 1, 2])
def test_short_lists(count: int) -> None:
    found = read_list(json.dumps({"kind": "List", "items": ITEMS[:count]}).encode())
    assert found is not None
    assert [item.raw for item in found.items] == ITEMS[:count]


def test_an_item_longer_than_what_is_looked_at_first() -> None:
    items = [{"kind": "Long", "text": "ü" * 200_000}, {"kind": "Long", "text": "€" * 70_000}]
    found = read_list(json.dumps({"kind": "List", "items": items}, ensure_ascii=False).encode())
    assert found is not None
    assert [item.raw for item in found.items] == items


@pytest.mark.parametrize("left", [5, 100, 700])
def test_of_a_list_that_breaks_off_the_whole_items_are_found(left: int) -> None:
    found = read_list(json.dumps({"kind": "List", "items": ITEMS}).encode()[:-left])
    assert found is not None
    assert found.around is None
    assert 4 <= len(found.items) < len(ITEMS) or left == 5
    assert [item.raw for item in found.items] == ITEMS[: len(found.items)]


def test_text_that_is_not_utf_8_is_for_another_reader() -> None:
    data = json.dumps({"kind": "List", "items": [ITEMS[0], ITEMS[1], {"kind": "Odd", "text": "@"}]}).encode()
    with pytest.raises(UnicodeDecodeError):
        read_list(data.replace(b'"@"', b'"\xff"'))


def test_half_of_a_surrogate_pair_becomes_a_replacement_character() -> None:
    halves = [pod("a", 1, "n1", labels={"app": "\ud800"}), ITEMS[1], {"kind": "Odd", "text": "\udc00 \U0001f600"}]
    found = read_list(json.dumps({"kind": "List", "items": halves}).encode())
    assert found is not None
    assert [item.raw for item in found.items] == [
        pod("a", 1, "n1", labels={"app": "\ufffd"}),
        ITEMS[1],
        {"kind": "Odd", "text": "\ufffd \U0001f600"},
    ]


def test_pods_of_a_list_of_pods_need_not_say_so() -> None:
    bare = [{key: value for key, value in item.items() if key in ("metadata", "spec", "status")} for item in ITEMS[:1]]
    found = read_list(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": bare * 2}).encode())
    assert found is not None
    assert [item.raw for item in found.items] == ITEMS[:1] * 2
    assert all(item.likeness is not None for item in found.items)


STRINGS = st.sampled_from(
    ["", "2026-02-28T10:00:00Z", "2026-02-30T10:00:00Z", "10.1.2.3", "10.1.2.999", "\u0000", '"', '":"10.1.2.3"', "x"]
)
VALUES = st.recursive(
    STRINGS | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STRINGS, inner, max_size=4),
    max_leaves=30,
)


@given(st.lists(VALUES, max_size=6))
def test_a_text_read_by_its_template_is_what_it_says(values: list[Any]) -> None:
    templates = Templates(VALUES_OF_STATUS)
    for value in values * 2:
        assert templates.read(json.dumps(value).encode())[0] == value
