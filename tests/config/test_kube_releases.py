"""Tests that releases compare by number, and that a rule is valid from its first to its last release."""

import pytest

from kschedd.config.versions.kube_releases import Release
from kschedd.config.versions.rules import RULES, Rules


def test_releases_are_in_the_order_of_their_numbers() -> None:
    in_order = ["1.34", "1.34.1", "1.34.9", "1.34.10", "1.35", "1.35.6", "1.36"]
    assert [str(release) for release in sorted(map(Release.of, reversed(in_order)))] == in_order


@pytest.mark.parametrize(
    ("release", "deleted"), [("1.34.3", False), ("1.34.4", True), ("1.34.9", True), ("1.35", False), ("1.36.3", False)]
)
def test_a_rule_holds_from_its_first_release_until_the_one_that_ended_it(release: str, deleted: bool) -> None:
    assert Rules.of(Release.of(release)).terminating_victims_deleted is deleted


def test_every_rule_holds_in_some_release() -> None:
    ends = [(rule.since, rule.until) for rule in RULES.values() if rule.until is not None]
    assert ends
    assert all(since < until for since, until in ends)
    assert set(Rules.of_any_release().names) == set(RULES)
