"""Tests of recordings that start while the cluster is running."""

from pathlib import Path

import pytest

from kschedd.daemon import cluster_actors
from kschedd.framework.registry import Registry
from kschedd.recording.format import RecordingError
from kschedd.recording.plugins import out_of_tree
from kschedd.recording.wiring import RecordOptions
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.simulation.replay.other import compare_with
from kschedd.simulation.replay.run import StopAt
from tests.actors.clusters import node, placed, pod, with_plugins
from tests.simulation.replay.live import Fickle, busy_run, moody
from tests.simulation.replay.test_other import PACKED
from tests.simulation.replay.test_replay import replayed


@pytest.mark.parametrize("seed", range(2))
async def test_what_follows_comes_out_as_it_was(tmp_path: Path, seed: int) -> None:
    live = await busy_run(tmp_path / "r", seed, pods=24, late=True)
    log, player = replayed(tmp_path / "r")
    assert log.startswith(live)
    assert live.count("\n") > 3  # the number of decisions before the start depends on the machine's speed
    assert player.ended
    assert player.recording.broken == ""


@pytest.mark.parametrize("seed", range(2))
async def test_the_answers_of_plugins_are_in_it_from_then_on(tmp_path: Path, seed: int) -> None:
    config, registry = moody()
    live = await busy_run(tmp_path / "r", seed, config, registry, pods=24, late=True)
    log, player = replayed(tmp_path / "r")
    assert log.startswith(live)
    assert live.count("\n") > 3  # the number of decisions before the start depends on the machine's speed
    assert player.ended
    assert player.recording.header.plugins.keys() == {"Moody"}


async def test_a_plugin_is_heard_only_while_the_run_is_recorded(tmp_path: Path) -> None:
    config, registry = with_plugins(Fickle)
    async with cluster_actors(config, registry=registry, seed=1) as cluster:

        def listened(owner: SchedulingDriver) -> list[bool]:
            return [plugin.listener is not None for plugin in out_of_tree(owner.machine)]

        assert await cluster.scheduler.query(listened) == [False]
        await cluster.store.create(node("n"))
        await cluster.start_recording(tmp_path / "r", 90)
        assert await cluster.scheduler.query(listened) == [True]
        await cluster.end_recording()
        assert await cluster.scheduler.query(listened) == [False]


def test_a_moment_of_it_is_attached_to_and_another_configuration_tried(late_run: Path) -> None:
    _, player = replayed(late_run, StopAt(pod="default/large"))
    assert not player.ended
    assert player.driver.popped.head is not None
    assert player.driver.popped.head.key == "default/large"
    found = compare_with(late_run, Registry(), PACKED, "packed", None)
    assert found["pods"] >= 6
    assert found["broken"] == ""


async def test_one_at_a_time_and_each_into_a_new_file(tmp_path: Path) -> None:
    async with cluster_actors(seed=1) as cluster:
        assert cluster.recording() is None
        with pytest.raises(RecordingError, match="the run is not being recorded"):
            await cluster.end_recording()
        for number in range(3):
            await cluster.store.create(node(f"n{number}"))
            await cluster.start_recording(tmp_path / f"r{number}", 90)
            with pytest.raises(RecordingError, match="the run is already being recorded"):
                await cluster.start_recording(tmp_path / "other", 90)
            await cluster.store.create(pod(f"p{number}"))
            await placed(cluster, f"p{number}")
            state = await cluster.end_recording()
            assert (state.file, state.failure) == (str(tmp_path / f"r{number}"), "")
        with pytest.raises(RecordingError, match="already exists"):
            await cluster.start_recording(tmp_path / "r0", 90)
        await cluster.store.create(pod("after"))
        await placed(cluster, "after")
    for number in range(3):
        log, player = replayed(tmp_path / f"r{number}")
        assert player.ended
        assert [f"p{number}" in line for line in log.splitlines()] == [True]
        assert len(player.objects) >= 2 * number + 2


async def test_one_that_was_begun_with_the_run_is_ended(tmp_path: Path) -> None:
    async with cluster_actors(seed=1, record=RecordOptions(tmp_path / "r")) as cluster:
        await cluster.store.create(node("n"))
        await cluster.store.create(pod("p"))
        await placed(cluster, "p")
        await cluster.end_recording()
        await cluster.store.create(pod("unseen"))
        await placed(cluster, "unseen")
    log, player = replayed(tmp_path / "r")
    assert player.ended
    assert [line.count("default/p") for line in log.splitlines()] == [1]


async def test_where_it_cannot_begin_that_is_said_and_the_run_goes_on(tmp_path: Path) -> None:
    async with cluster_actors(seed=1) as cluster:
        with pytest.raises(RecordingError, match="cannot be written: No such file or directory"):
            await cluster.start_recording(tmp_path / "none" / "r", 90)
        with pytest.raises(RecordingError, match="cannot be written: File name too long"):
            await cluster.start_recording(tmp_path / ("r" * 300), 90)
        await cluster.store.create(node("n"))
        await cluster.store.create(pod("p"))
        assert await placed(cluster, "p") == {"p": "n"}
        assert cluster.recording() is None
