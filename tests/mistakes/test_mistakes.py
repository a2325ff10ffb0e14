"""Tests of the corpus of planted mistakes: each file is well formed, its mistake has its effect, and its fix solves it.

These tests do not use `explain`, which the corpus evaluates.
"""

import re
from pathlib import Path

import pytest

from kschedd.scenarios.commands import ScenarioCluster
from tests.mistakes.mistake_files import FOLDER, WAIT, Mistake, Step, file_parameters, load, mistakes, run
from tests.mistakes.standing import displaced, standing

FILES = [pytest.param(file, id=file.stem) for file in sorted(FOLDER.glob("*.yaml"))]


def listed(heading: str) -> set[str]:
    """Return the names in the first column of the table below this heading of the page."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| ")]
    return {name for row in rows[1:] for name in re.findall(r"`([\w-]+)`", row)}


@pytest.mark.parametrize("file", FILES)
def test_the_expectation_is_well_formed(file: Path) -> None:
    mistake = load(file)
    expect = mistake.expect
    assert "https://" in mistake.story
    assert len(mistake.story.splitlines()) >= 3
    assert {expect.code, *expect.also} <= listed("Codes")
    assert expect.names
    assert all(isinstance(name, str) for name in expect.names)
    assert expect.remedy in listed("Kinds of remedies")
    assert set(expect.never) <= listed("Remedies that do harm")
    assert expect.solved == (expect.remedy != "none")
    assert expect.solved == bool(mistake.fix), "a mistake that can be solved has a fix"
    assert 5 <= len({node["metadata"]["name"] for node in mistake.nodes if node["kind"] == "Node"}) <= 60


def test_every_name_of_the_page_has_a_file() -> None:
    expectations = [mistake.expect for mistake in mistakes()]
    assert {code for expect in expectations for code in (expect.code, *expect.also)} == listed("Codes")
    assert {expect.remedy for expect in expectations} == listed("Kinds of remedies")
    assert {name for expect in expectations for name in expect.never} == listed("Remedies that do harm")


def test_the_first_half_consists_of_files() -> None:
    names = (FOLDER / "first-half.txt").read_text(encoding="utf-8").split()
    assert len(names) == len(set(names))
    assert {name for name in names if not (FOLDER / f"{name}.yaml").exists()} == set()


def symptoms(mistake: Mistake, cluster: ScenarioCluster) -> list[str]:
    """Return the assertions of the file that fail."""
    findings = {line: cluster.expect(f"expect {line}") for line in mistake.expect.shows}
    return [f"{line}: {finding.found}" for line, finding in findings.items() if not finding.met]


@pytest.mark.parametrize("file", file_parameters())
def test_the_mistake_is_real_and_the_fix_solves_it(file: Path) -> None:
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
    run(cluster, Step(f"advance {WAIT}"))
    after = standing(cluster, expect.ask, expect.namespace)
    assert displaced(before, after) == []
    assert after.scheduled == after.wanted >= (expect.replicas or before.wanted)
    assert symptoms(mistake, cluster) != [] or not expect.shows, "the symptom is still there"


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("host-port-held-by-daemonset", "delete pods -n monitoring -l app=node-exporter"),
        ("cluster-full", "scale deployment back --replicas=8"),
        ("anti-affinity-of-another-workload", "delete daemonset matcher"),
        ("full-behind-other-taints", "cordon general-1 general-2\ndelete pods -l app=services"),
    ],
)
def test_harm_to_other_workloads_is_seen(name: str, harm: str) -> None:
    mistake = load(FOLDER / f"{name}.yaml")
    cluster = mistake.build()
    before = standing(cluster, mistake.expect.ask, mistake.expect.namespace)
    for command in harm.splitlines():
        run(cluster, Step(command))
    run(cluster, Step(f"advance {WAIT}"))
    assert displaced(before, standing(cluster, mistake.expect.ask, mistake.expect.namespace))
