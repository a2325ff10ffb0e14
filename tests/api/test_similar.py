"""Suggestions for misspelled names."""

from kschedd.api.text.similar import allowed_names, did_you_mean

_NAMES = ("nodes", "pods", "services")


def test_a_suggestion_replaces_the_list() -> None:
    assert did_you_mean("podz", _NAMES) == '; did you mean "pods"?'
    assert allowed_names("PODZ", _NAMES) == '; did you mean "pods"?'
    assert allowed_names("x", _NAMES) == ": allowed are nodes, pods, services"


def test_nothing_is_suggested_for_a_word_like_no_name() -> None:
    assert did_you_mean("x", _NAMES) == ""
    assert did_you_mean("podz", ()) == ""
