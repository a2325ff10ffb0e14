"""Tests of the codes of a plugin's verdict, and of the texts of a plugin's exceptions."""

import traceback
from collections.abc import Callable
from typing import Any

import pytest

from kschedd.framework import status
from kschedd.framework.faults import PluginError
from kschedd.framework.status import Code, Status, error, fault_text, is_ours, unresolvable, unschedulable


def test_codes_have_the_numbers_and_names_of_kube_scheduler() -> None:
    assert [(int(code), code.label) for code in Code] == [
        (0, "Success"),
        (1, "Error"),
        (2, "Unschedulable"),
        (3, "UnschedulableAndUnresolvable"),
        (4, "Wait"),
        (5, "Skip"),
        (6, "Pending"),
    ]
    rejected = {code for code in Code if Status(code).rejected}
    assert rejected == {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING}


def test_a_status_keeps_the_first_plugin_that_it_names() -> None:
    first = unschedulable("full", "tainted").by("Fit")
    assert first == Status(Code.UNSCHEDULABLE, ("full", "tainted"), "Fit")
    assert first.by("Taints") is first
    assert first.message == "full, tainted"


def test_reasons_make_a_status_of_their_code() -> None:
    assert unresolvable("no") == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("no",))
    assert error("boom") == Status(Code.ERROR, ("boom",))


def function(code: str, file: str, **names: Any) -> Callable[[], object]:
    """Return the function `f` of this code, which is in this file."""
    exec(compile(code, file, "exec"), names)
    return names["f"]  # type: ignore[no-any-return]


def raised(work: Callable[[], object]) -> BaseException:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - any exception of a plugin
        work()
    return caught.value


_LIBRARY = function("def f():\n\n    raise ValueError('boom')", "/env/site-packages/library.py")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param("def f():\n    raise ValueError('boom')", "ValueError: boom (mine.py:2)", id="in-the-plugin"),
        pytest.param("def f():\n    raise KeyError", "KeyError (mine.py:2)", id="without-a-message"),
        pytest.param("def f():\n    library()", "ValueError: boom (mine.py:2)", id="in-a-library"),
        pytest.param("def f():\n    traceback.StackSummary.from_list(0)", "(mine.py:2)", id="in-the-standard-library"),
        pytest.param("def f():\n    status.Code(9)", "(mine.py:2)", id="in-our-own-code"),
    ],
)
def test_an_exception_has_the_line_of_the_plugins_code(code: str, text: str) -> None:
    plugin = function(code, "/plugins/mine.py", library=_LIBRARY, traceback=traceback, status=status)
    assert fault_text(raised(plugin)).endswith(text)


def test_an_exception_without_a_traceback_has_no_line() -> None:
    assert fault_text(ValueError("boom")) == "ValueError: boom"


def test_a_syntax_error_has_its_own_line() -> None:
    found = fault_text(raised(lambda: compile("a = 1\nb = (", "/plugins/mine.py", "exec")))
    assert found == "SyntaxError: '(' was never closed (mine.py:2)"


def test_an_error_of_a_guarded_plugin_is_its_reason() -> None:
    assert fault_text(PluginError("Fit", "filter", "ValueError: boom (mine.py:2)")) == "ValueError: boom (mine.py:2)"


def test_an_exception_whose_text_fails_has_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise SystemExit

    assert fault_text(Mute()) == "Mute"


def test_files_of_kschedd_and_of_the_import_system_are_ours() -> None:
    assert is_ours(status.__file__)
    assert is_ours("<frozen importlib._bootstrap>")
    assert not is_ours(__file__)
