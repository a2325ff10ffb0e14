"""Tests of hints for methods that resemble a method of a plugin but are never called."""

from kschedd.framework.look_alikes import look_alikes


class Plugin:
    name = "Plugin"
    filters = ("a", "b")  # not a method
    filter_row = 1

    def _filter(self) -> None: ...

    def filter(self) -> None: ...

    def fliter(self) -> None: ...

    def preFilter(self) -> None: ...

    def events_to_registr(self) -> None: ...

    def dependson(self) -> None: ...

    def idle_fro(self) -> None: ...

    def from_arg(self) -> None: ...

    def validat(self) -> None: ...

    def helper(self) -> None: ...


def test_a_public_method_that_resembles_a_known_one_is_named_with_it() -> None:
    assert look_alikes(Plugin) == [
        "events_to_registr (events_to_register?)",
        "fliter (filter?)",
        "from_arg (from_args?)",
        "idle_fro (idle_for?)",
        "preFilter (pre_filter?)",
        "validat (validate?)",
    ]


def test_a_class_without_such_methods_has_none() -> None:
    assert look_alikes(object) == []
