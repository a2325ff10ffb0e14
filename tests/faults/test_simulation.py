"""Tests of the whole daemon under faults, from many seeds; the same tests must detect daemons with deliberate faults.

The everyday run simulates five seeds and every third of the broken daemons, the full run 200 seeds and all of them.
`python -m tests.faults` runs any number of seeds in several processes.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.broken import BROKEN
from tests.faults.simulation import simulate
from tests.full_run import every, everyday, part

SEEDS = 200
_BATCH = 20
_PATIENCE = 200  # number of seeds within which a broken daemon must be detected
#: Seeds that detect a fault which few seeds detect, for a shorter test.
FOUND_BY = {
    "does-not-flush": 3,
    "does-what-it-has-refused": 53,
    "compacts-to-the-oldest-state": 24,
    "tells-of-less-than-is-lost": 6,
}
#: Seeds that once revealed a fault.
#: 18: after an interrupted repair, the head was ahead of the journal.
#: 742: a bit at the end of the log flipped after a loss of power, and the flushed head did not cover that end yet.
#: 911: nothing was left of the journal, and the checker compared it with an end that no client could have read.
#: 519: a daemon was killed before it flushed a write; the next daemon showed the write, and lost it with the power.
#: 2634: a client waited forever for a daemon that was killed just after it opened its port (the simulation's fault).
#: 2384: compaction met a damaged page several times, while the daemon reported itself writable in between.
#: 8587: a salvage of a snapshot alone reported that it knew no later writes, and named an object "None".
ONCE_FAILED = (18, 519, 742, 911, 2384, 2634, 8587)


@pytest.mark.parametrize("first", everyday(range(0, SEEDS, _BATCH), lambda first: first == 0))
def test_nothing_answered_or_seen_is_lost_whatever_the_disk_does(first: int) -> None:
    failed = {}
    for seed in part(4, range(first, first + _BATCH)):
        if wrong := simulate(seed).violations:
            failed[seed] = wrong[:3]
    assert not failed, "to see it again: python -m tests.faults --seed N"


@pytest.mark.parametrize("seed", every(3, ONCE_FAILED))
def test_what_once_failed_does_not_fail_any_more(seed: int) -> None:
    assert simulate(seed).violations == []


@pytest.mark.parametrize("name", every(3, BROKEN))
def test_a_broken_daemon_is_found(name: str) -> None:
    first = FOUND_BY.get(name, 0)
    found = (simulate(seed, BROKEN[name]).violations for seed in range(first, first + _PATIENCE))
    assert any(found)


def test_a_seed_comes_to_the_same_history_in_every_process() -> None:
    seed = 3
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "tests.faults", "--seed", str(seed)]
    there = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=Path(__file__).parents[2])
    assert there.stderr == ""
    assert there.stdout == simulate(seed).text + "\n"
