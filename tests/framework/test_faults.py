"""Tests of errors of out-of-tree plugins, and of plugin values in messages."""

import pytest

from kschedd.framework.faults import PluginError, plain_text, shown


class Text(str):
    """A plugin's string, which is not an exact `str`."""


class Unshowable:
    def __repr__(self) -> str:
        raise SystemExit("a plugin's code")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        pytest.param(Text("boom"), "boom", id="another-type"),
        pytest.param("a\udc80b", "a\\udc80b", id="not-encodable"),
        pytest.param("x" * 4000, "x" * 4000, id="as-long-as-it-may-be"),
        pytest.param("x" * 4001, "x" * 4000 + "...", id="too-long"),
    ],
)
def test_a_text_of_a_plugin_is_plain_and_of_limited_length(text: str, plain: str) -> None:
    found = plain_text(text)
    assert found == plain
    assert type(found) is str


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param([1, "a"], "[1, 'a']", id="repr"),
        pytest.param(["x" * 196], f"['{'x' * 196}']", id="as-long-as-it-may-be"),
        pytest.param("x" * 199, f"'{'x' * 199}...", id="too-long"),
        pytest.param(Unshowable(), "a Unshowable", id="repr-fails"),
        pytest.param(object(), "<object object>", id="without-address"),
    ],
)
def test_a_value_of_a_plugin_is_shown_in_short(value: object, text: str) -> None:
    assert shown(value) == text


def test_an_error_names_its_plugin() -> None:
    assert str(PluginError("Fit", "filter", "boom")) == "plugin Fit: boom"
    assert str(PluginError("", "filter", "boom")) == "boom"
