"""Tests of values on the hot path, which are cheaper than those of attrs, and otherwise behave like them."""

from typing import Any

import attrs
import pytest

from kschedd.values import fast_frozen


class _Fields:
    name: str
    inner: Any
    _hidden: int = attrs.field(default=0, repr=False)
    later: int = attrs.field(init=False)


class _OwnWords:
    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"


@pytest.mark.parametrize("eq", [True, False])
def test_a_value_is_shown_as_one_of_attrs(eq: bool) -> None:
    ours, theirs = (type("Value", (), dict(vars(_Fields))) for _ in range(2))
    ours, theirs = fast_frozen(ours, eq=eq), attrs.define(theirs, eq=eq)
    one, other = ours("a", [ours("b", None)]), theirs("a", [theirs("b", None)])
    assert (
        repr(one) == repr(other) == "Value(name='a', inner=[Value(name='b', inner=None, later=NOTHING)], later=NOTHING)"
    )


def test_a_value_that_holds_itself_is_shown_once() -> None:
    value = fast_frozen(type("Value", (), dict(vars(_Fields))))("a", [])
    value.inner.append(value)
    assert repr(value) == "Value(name='a', inner=[...], later=NOTHING)"


def test_a_class_that_says_how_it_is_shown_has_its_way() -> None:
    assert repr(fast_frozen(_OwnWords)("a")) == "<a>"
