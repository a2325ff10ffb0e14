"""Tests of `explain` on the corpus: the cause that it names, and the effect of its first remedy.

The remedy's commands are run on the cluster as a user would run them; the state of the whole workload afterwards
decides.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs
import pytest

from kschedd.causes.steps import RemedyStep
from kschedd.causes.trial import TrialOutcome, Trials
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot
from kschedd.simulation.engine import Engine
from tests.mistakes.asking import answer, step
from tests.mistakes.harms import harms
from tests.mistakes.mistake_files import WAIT, Step, file_parameters, load, run
from tests.mistakes.page import shown
from tests.mistakes.standing import displaced, standing
from tests.reference.markdown import cell

MOST_TO_THE_FIRST: Final = 5  # forks
MOST_FORKS: Final = 20


@attrs.define
class ForksMade:
    """Forks of one diagnosis. `first`: forks made up to the first verified remedy; 0 if there is none."""

    all: int = 0
    first: int = 0


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> ForksMade:
    counted = ForksMade()
    snapshot, tried = Engine.snapshot, Trials.run

    def counting(engine: Engine) -> ClusterSnapshot:
        counted.all += 1
        return snapshot(engine)

    def noting(trials: Trials, steps: Sequence[RemedyStep]) -> TrialOutcome:
        outcome = tried(trials, steps)
        if outcome.solves and not counted.first:
            counted.first = counted.all
        return outcome

    monkeypatch.setattr(Engine, "snapshot", counting)
    monkeypatch.setattr(Trials, "run", noting)
    return counted


@pytest.mark.parametrize("file", file_parameters())
def test_the_cause_is_named_and_the_first_remedy_solves_it(file: Path, forks: ForksMade) -> None:
    mistake = load(file)
    expect = mistake.expect
    cluster = mistake.build()
    before = standing(cluster, expect.ask, expect.namespace)
    found = answer(mistake, cluster)
    assert forks.first <= MOST_TO_THE_FIRST
    assert forks.all <= MOST_FORKS
    causes = [found["cause"], *found["also"]]
    assert causes[0]["code"] == expect.code
    assert {cause["code"] for cause in causes[1:]} >= set(expect.also)
    for cause in causes:
        message = cell(cause["message"])
        assert message == shown().get((cause["code"], file.name), message), "run: python -m tests.mistakes.page"
    text = " ".join(line for cause in causes for line in (cause["message"], *cause["evidence"]))
    assert [name for name in expect.names if name not in text] == []
    if not expect.solved:
        assert found["remedies"] == []
        return
    first = found["remedies"][0]
    assert first["verified"]
    assert first["rank"] == 1
    for command in map(step, first["commands"]):
        assert not harms(mistake, command) & set(expect.never)
        run(cluster, command)
    run(cluster, Step(f"advance {WAIT}"))
    after = standing(cluster, expect.ask, expect.namespace)
    assert displaced(before, after) == []
    assert after.scheduled == after.wanted >= (expect.replicas or before.wanted)
