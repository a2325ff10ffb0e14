"""Tests of the effects of the driver: what is taken, what is left, and when there is something to take."""

from typing import Any

import attrs
import pytest

from kschedd.scheduling.effects import Effects, Eviction
from tests.scheduling.test_scheduler import pod

FIELDS = [field.name for field in attrs.fields(Effects)]


def listed(effects: Effects) -> dict[str, list[Any]]:
    """Return the fields that are not empty."""
    return {name: list(getattr(effects, name)) for name in FIELDS if getattr(effects, name)}


@pytest.mark.parametrize("name", FIELDS)
def test_effects_are_taken_once_and_later_ones_are_not_added_to_them(name: str) -> None:
    effects = Effects()
    assert not effects
    getattr(effects, name).append("first")
    assert bool(effects) is (name != "failures"), "failures come with entries of the log"
    taken = effects.take()
    assert listed(taken) == {name: ["first"]}
    assert (listed(effects), bool(effects)) == ({}, False)
    getattr(effects, name).append("second")
    assert listed(taken) == {name: ["first"]}
    assert listed(effects.take()) == {name: ["second"]}


def test_all_effects_are_taken_together() -> None:
    effects = Effects(*([name] for name in FIELDS))
    assert listed(effects.take()) == {name: [name] for name in FIELDS}
    assert listed(effects.take()) == {}


def test_an_eviction_is_of_a_pod_that_fails_with_its_victims_unless_stated_otherwise() -> None:
    eviction = Eviction(pod(), ())
    assert (eviction.gone_fails, eviction.preemptor) == (True, "pod")
