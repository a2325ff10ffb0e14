"""Tests of the parts of sets that the everyday run keeps."""

import pytest

from tests import full_run
from tests.full_run import LeftOut, every, everyday, examples, part


def kept(parameters: list[object]) -> list[object]:
    return [one for one in parameters if not getattr(one, "marks", ())]


def test_every_nth_case_and_chosen_cases_run_every_day_and_all_are_collected() -> None:
    assert kept(every(3, range(7))) == [0, 3, 6]
    assert kept(everyday("abc", lambda case: case == "b")) == ["b"]
    assert len(every(3, range(7))) == 7
    marked = every(3, range(7))[1]
    assert (marked.values, [mark.name for mark in marked.marks]) == ((1,), ["full"])


def test_cases_of_a_loop_that_are_left_out_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = LeftOut()
    monkeypatch.setattr(full_run, "LEFT_OUT", counted)
    monkeypatch.setattr(full_run, "FULL", False)
    assert list(part(4, range(10))) == [0, 4, 8]
    assert counted == LeftOut(tests=0, cases=7)
    assert examples(100) == 20
    assert examples(3) == 1


def test_the_full_run_leaves_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = LeftOut()
    monkeypatch.setattr(full_run, "LEFT_OUT", counted)
    monkeypatch.setattr(full_run, "FULL", True)
    assert list(part(4, range(10))) == list(range(10))
    assert counted == LeftOut()
    assert examples(100) == 100
