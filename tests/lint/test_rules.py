"""Tests that each rule of `kschedd lint` has an example with a finding and one without."""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kschedd.api.manifests import read_text
from kschedd.config.versions.kube_releases import Release
from kschedd.lint.catalogue.all import BY_CODE, RULES
from kschedd.lint.linting import lint
from kschedd.lint.rules import LEVELS
from kschedd.lint.subjects import LintedObject
from tests.lint.lint_examples import LintExample, examples, linted, manifest

SHARED = Path(os.environ.get("KSCHEDD_SHARED", "../shared"))
ALL = {each.code: each for each in examples()}


def test_each_rule_has_an_example() -> None:
    assert sorted(ALL) == sorted(BY_CODE)


@pytest.mark.parametrize("example", ALL.values(), ids=lambda example: example.code)
def test_a_rule_finds_the_bad_form_and_not_the_good_one(example: LintExample) -> None:
    release, target = example.releases
    found = linted(example.bad, release, target, whole=example.whole)
    assert example.code in [finding.rule.code for finding in found.findings]
    assert not found.faults
    right = linted(example.good, release, target, whole=example.whole)
    assert example.code not in [finding.rule.code for finding in right.findings]
    assert not right.faults


def test_a_rule_is_silent_in_a_release_that_does_what_the_object_says() -> None:
    for rule in RULES:
        for era in rule.eras:
            release = era.since or Release(30)
            if era.level == "fine" and release >= Release(30):
                example = ALL[rule.code]
                found = linted(example.bad, release, whole=example.whole)
                assert rule.code not in [finding.rule.code for finding in found.findings], (rule.code, release)


def test_each_entry_of_the_list_of_releases_is_a_rule() -> None:
    file = SHARED / "upstream-1.37" / "lint.jsonl"
    if not file.is_file():
        pytest.skip(f"{file} is not there: set KSCHEDD_SHARED")
    wanted = [json.loads(line)["id"] for line in file.read_text(encoding="utf-8").splitlines()]
    assert [code for code in wanted if code not in BY_CODE] == []


def test_eras_are_in_order_and_say_something() -> None:
    for rule in RULES:
        assert rule.eras[0].since is None or len(rule.eras) == 1, rule.code
        starts = [era.since for era in rule.eras[1:]]
        assert starts == sorted(starts), rule.code
        assert all(era.level in LEVELS and era.says and not era.says.endswith(".") for era in rule.eras), rule.code
        assert rule.fix.endswith("."), rule.code
        assert rule.source, rule.code


ODD: list[Any] = [None, True, 0, -1, 2**70, 1.5, "", "x", "a/b/c", [], [None], [[]], {}, {"a": None}, {"": {"": []}}]


def mutated(value: Any, draw: random.Random) -> Any:
    """Return the value with one part replaced by a value of another type."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        return {**value, key: mutated(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.9:
        place = draw.randrange(len(value))
        return [*value[:place], mutated(value[place], draw), *value[place + 1 :]]
    return draw.choice(ODD)


def objects_of(example: LintExample) -> Iterator[dict[str, Any]]:
    for each in read_text(manifest(example.bad), "x.yaml").manifests:
        yield each.raw


def test_objects_of_any_shape_fault_no_rule() -> None:
    draw = random.Random(46)
    raws = [list(objects_of(example)) for example in ALL.values()]
    for _ in range(3000):
        some = [dict(raw) for raw in draw.choice(raws)]
        place = draw.randrange(len(some))
        field = draw.choice([key for key in some[place] if key != "kind"])
        some[place][field] = mutated(some[place][field], draw)
        result = lint([LintedObject(raw, "odd") for raw in some], Release(36), target=Release(38), complete=True)
        assert result.faults == []
