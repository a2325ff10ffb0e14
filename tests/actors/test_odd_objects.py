"""Tests that no accepted object crashes a cluster or prevents its restart.

Each batch of unusual objects runs through a live cluster with a journal and controllers; the next batch starts from
this journal, some time later. No object may cause a recorded fault.

200 objects run with the other tests, in the full run 400. `KSCHEDD_ODD_OBJECTS=10000 pytest
tests/actors/test_odd_objects.py` runs that many, and `KSCHEDD_ODD_SEED` gives others.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.controllers.embedded import embedded_controllers
from kschedd.daemon import cluster_actors
from kschedd.startup.state import StateOptions
from kschedd.store.store import Store
from tests.actors.odd_objects import OddObjects
from tests.full_run import FULL

WANTED = int(os.environ.get("KSCHEDD_ODD_OBJECTS") or (400 if FULL else 200))
SEED = int(os.environ.get("KSCHEDD_ODD_SEED", "0"))
A_BATCH = 100
ROUNDS_OF_REST = 20  # number of checks of the store without a write, after which the cluster is idle
LATER_S = (0.0, 5.0, 60.0, 86_400.0)


async def come_to_rest(cluster: LiveCluster) -> None:
    """Let controllers and scheduler work until they make no more writes."""
    quiet, before = 0, -1
    with trio.move_on_after(20):
        while quiet < ROUNDS_OF_REST:
            version = await cluster.store.do(lambda store: store.version)
            await cluster.scheduler.query(lambda driver: len(driver.bindings.cycles))
            quiet, before = (quiet + 1, version) if version == before else (0, version)


async def faults_of(cluster: LiveCluster) -> list[str]:
    return [f"{fault.ref}: {fault.component}: {fault.why}" for fault in await cluster.faults()]


@pytest.mark.parametrize("first", range(0, WANTED, A_BATCH * 4))
async def test_odd_objects_end_nothing(tmp_path: Path, first: int) -> None:
    source = OddObjects(SEED + first)
    now = 1_767_225_600.0
    restarts = 0
    while source.accepted < min(A_BATCH * 4, WANTED):
        now += LATER_S[restarts % len(LATER_S)]
        restarts += 1
        journal = tmp_path / "journal.db"
        clock = Clock.started(now)
        async with cluster_actors(
            state=StateOptions(journal=journal), controllers=embedded_controllers(), clock=clock
        ) as cluster:
            await come_to_rest(cluster)
            for _ in range(A_BATCH // 10):
                await cluster.store.do(batch(source, 10))
            await come_to_rest(cluster)
            assert await faults_of(cluster) == []
    assert restarts >= 2


def batch(source: OddObjects, size: int) -> Callable[[Store], None]:
    def make(store: Store) -> None:
        for _ in range(size):
            source.step(store)

    return make
