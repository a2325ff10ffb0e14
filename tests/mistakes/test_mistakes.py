"""The corpus of planted mistakes: each file is well formed, its mistake is real, and its fix solves it.

These tests use nothing of `explain`: they prove the corpus that `explain` is measured by.
"""

import re

import pytest

from tests.mistakes.mistake_files import FOLDER, REMEDIES, SETTLE, Mistake, Step, load, mistakes, run
from tests.mistakes.standing import displaced, standing

FILES = [pytest.param(file, id=file.stem) for file in sorted(FOLDER.glob("*.yaml"))]
#: Causes that leave all replicas scheduled, or that only time ends.
CALM = frozenset({"NothingIsWrong", "OnlyTimeHelps"})


def codes() -> set[str]:
    """The codes that the page lists."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


@pytest.mark.parametrize("file", FILES)
def test_the_expectation_is_well_formed(file) -> None:
    mistake = load(file)
    expect = mistake.expect
    assert "https://" in mistake.story
    assert len(mistake.story.splitlines()) >= 3
    assert {expect.code, *expect.also} <= codes()
    assert expect.names
    assert all(isinstance(name, str) for name in expect.names)
    assert expect.remedy in REMEDIES
    assert expect.solved == (expect.remedy != "none")
    assert expect.solved == bool(mistake.fix), "a mistake that can be solved has a fix"
    assert 5 <= len({node["metadata"]["name"] for node in mistake.nodes if node["kind"] == "Node"}) <= 60


def test_every_code_of_the_page_has_a_file() -> None:
    used = {code for mistake in mistakes() for code in (mistake.expect.code, *mistake.expect.also)}
    assert used == codes()


def symptoms(mistake: Mistake, cluster) -> list[str]:
    """Return the assertions of the file that do not hold."""
    findings = {line: cluster.expect(f"expect {line}") for line in mistake.expect.shows}
    return [f"{line}: {finding.found}" for line, finding in findings.items() if not finding.met]


@pytest.mark.parametrize("file", FILES)
def test_the_mistake_is_real_and_the_fix_solves_it(file) -> None:
    mistake = load(file)
    expect = mistake.expect
    cluster = mistake.build()
    before = standing(cluster, expect.ask, expect.namespace)
    assert symptoms(mistake, cluster) == []
    assert expect.shows or not before.complete, "the workload has all its replicas, and the file shows no other symptom"
    if not expect.solved:
        return
    for step in mistake.fix:
        run(cluster, step)
    run(cluster, Step(f"advance {SETTLE}"))
    after = standing(cluster, expect.ask, expect.namespace)
    assert (after.scheduled, displaced(before, after)) == (after.wanted, [])
    assert symptoms(mistake, cluster) != [] or not expect.shows, "the symptom is still there"
