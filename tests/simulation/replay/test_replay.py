"""Tests that a replay gives identical decisions, independent of plugins, threads and preemption."""

import os
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio

from kschedd.api.pods import Pod
from kschedd.config.changing.changes import with_percentage
from kschedd.config.loading.load import config_from_raw, default_config
from kschedd.config.versions.kube_versions import V1_36
from kschedd.daemon import cluster_actors
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status
from kschedd.queue.entry import SubQueue
from kschedd.queue.operations import Force
from kschedd.recording.format import RecordingHeader
from kschedd.recording.notes import NoteKind
from kschedd.recording.reading import RecordingFile
from kschedd.recording.wiring import RecordOptions
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import Allow, ChangeConfig, UndoConfigChange
from kschedd.simulation.replay.player import Player
from kschedd.simulation.replay.run import Replay, StopAt, StopError
from kschedd.simulation.results.decisions import line
from tests.actors.clusters import comes_to, node, placed, pod, rejected, with_plugins
from tests.extenders.servers import serving
from tests.simulation.replay.live import busy_run, moody


class Gatekeeper:
    name: ClassVar = "Gatekeeper"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return Status(Code.WAIT), 600.0


def header_of(file: Path) -> RecordingHeader:
    with RecordingFile.open(file) as recording:
        return recording.header


def replayed(file: Path, stop: StopAt | None = None) -> tuple[str, Player]:
    lines: list[str] = []
    with RecordingFile.open(file) as recording:
        player = Player(recording)
        Replay(player, lambda attempt: lines.append(line(attempt))).run(stop or StopAt())
    return "".join(lines), player


@pytest.mark.parametrize("seed", range(3))
async def test_a_run_comes_out_as_it_was(tmp_path: Path, seed: int) -> None:
    live = await busy_run(tmp_path / "r", seed)
    log, player = replayed(tmp_path / "r")
    assert log.startswith(live)
    assert live.count("\n") > 40
    assert player.ended
    assert player.recording.broken == ""


@pytest.mark.parametrize("seed", range(3))
async def test_plugins_are_not_needed_for_it(tmp_path: Path, seed: int) -> None:
    config, registry = moody()
    live = await busy_run(tmp_path / "r", seed, config, registry)
    log, _ = replayed(tmp_path / "r")
    assert log.startswith(live)
    with RecordingFile.open(tmp_path / "r") as recording:
        kinds = {note[0] for note in recording.notes()}
    assert kinds >= {NoteKind.MADE, NoteKind.ANSWER, NoteKind.PLUGIN_CALLED}


async def test_another_process_with_other_hashes_writes_the_same_log(tmp_path: Path) -> None:
    config, registry = moody()
    live = await busy_run(tmp_path / "r", 9, config, registry)
    here, _ = replayed(tmp_path / "r")
    command = [sys.executable, "-m", "kschedd.cli", "replay", str(tmp_path / "r"), "--decisions", str(tmp_path / "log")]
    env = {**os.environ, "PYTHONHASHSEED": "4711"}
    done = await trio.run_process(command, env=env, capture_stdout=True, capture_stderr=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    there = (tmp_path / "log").read_text()
    assert there == here
    assert there.startswith(live)


async def test_extenders_are_not_needed_for_it(tmp_path: Path) -> None:
    turns: list[int] = []

    def choose(args: dict[str, Any]) -> dict[str, Any]:
        turns.append(1)
        names = args["NodeNames"]
        return {"NodeNames": names[len(turns) % len(names) :], "FailedNodes": {names[0]: "not now"}}

    verbs = {
        "filter": choose,
        "score": lambda args: [{"Host": name, "Score": len(turns) % 7} for name in args["NodeNames"]],
    }
    with serving(verbs) as extender:
        settings = {"urlPrefix": extender.url, "nodeCacheCapable": True, "httpTimeout": "30s", "weight": 3}
        raw = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [{**settings, "filterVerb": "filter", "prioritizeVerb": "score"}],
        }
        live = await busy_run(tmp_path / "r", 4, config_from_raw(raw), pods=15)
    log, _ = replayed(tmp_path / "r")
    assert log.startswith(live)
    assert "not now" in log or turns


async def test_a_gang_is_placed_together_again(tmp_path: Path) -> None:
    config = default_config(version=V1_36, feature_gates={"GenericWorkload": True, "GangScheduling": True})
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    async with cluster_actors(config, seed=1, record=RecordOptions(tmp_path / "r")) as cluster:
        await cluster.store.create(node("n1"))
        await cluster.store.create(group)
        for name in ("a", "b", "c"):
            await cluster.store.create(pod(name, schedulingGroup={"podGroupName": "gang"}))
        assert await placed(cluster, "a", "b", "c") == {"a": "n1", "b": "n1", "c": "n1"}
    log, player = replayed(tmp_path / "r")
    assert player.ended
    assert log.count('"node":"n1"') == 3


async def test_what_was_done_by_hand_is_done_again(tmp_path: Path) -> None:
    config, registry = with_plugins(Gatekeeper)
    async with cluster_actors(config, registry=registry, seed=1, record=RecordOptions(tmp_path / "r")) as cluster:
        await cluster.store.create(node("n1"))
        await cluster.store.create(pod("web"))
        await comes_to(cluster.scheduler, lambda driver: len(driver.bindings.permit_waits), 1)

        def change(driver: SchedulingDriver) -> None:
            (uid,) = driver.bindings.permit_waits
            driver.step(Allow(uid, "Gatekeeper"))
            driver.step(ChangeConfig(with_percentage(driver.machine.config, 40, None), "percentage 40"), 1.0)

        await cluster.scheduler.query(change)
        assert await placed(cluster, "web") == {"web": "n1"}
        await cluster.store.create(pod("large", cpu="99"))
        await rejected(cluster, "large")
        await cluster.queue.query(lambda owner: owner.operations.step(Force("default/large", SubQueue.ACTIVE), 0))
        await cluster.scheduler.query(lambda driver: driver.step(UndoConfigChange()))
    _, player = replayed(tmp_path / "r")
    assert player.ended
    assert player.driver.bindings.pods_bound == 1
    assert not player.driver.config_changes.made
    with RecordingFile.open(tmp_path / "r") as recording:
        kinds = [note[0] for note in recording.notes()]
    for kind in (NoteKind.ALLOW, NoteKind.CHANGE_CONFIG, NoteKind.UNDO_CONFIG, NoteKind.FORCE):
        assert kinds.count(kind) == 1


def test_it_stops_where_it_is_told_to(busy: Path) -> None:
    whole, _ = replayed(busy)
    log, player = replayed(busy, StopAt(attempts=7))
    assert whole.startswith(log)
    assert (player.attempts, log.count("\n")) == (7, 7)
    log, player = replayed(busy, StopAt(pod="default/large"))
    assert whole.startswith(log)
    assert '"default/large"' not in log
    assert player.driver.popped.head is not None
    assert (player.driver.popped.head.key, player.driver.popped.head.attempts) == ("default/large", 1)
    header = header_of(busy)
    log, player = replayed(busy, StopAt.parse("0.2s", None, header.start_s))
    assert whole.startswith(log)
    assert player.now_s <= header.start_s + 0.2


def test_a_moment_that_it_does_not_come_to_is_said(busy: Path) -> None:
    header = header_of(busy)
    for stop, why in (
        (StopAt(pod="default/larger"), 'no attempt of such a pod; did you mean "default/large"'),
        (StopAt(pod="default/large", attempt=99), "the last attempt of that pod in the recording is"),
        (StopAt(attempts=1000), "after its start, with"),
        (StopAt.parse("9h", None, header.start_s), "the recording ends at"),
    ):
        with pytest.raises(StopError, match=why):
            replayed(busy, stop)


@pytest.mark.parametrize(
    ("until", "to", "why"),
    [
        pytest.param("3", "web", "give one of them", id="both"),
        pytest.param("soon", None, "a number of attempts is expected", id="no-moment"),
        pytest.param(None, "web#first", "POD or POD#ATTEMPT is expected", id="no-attempt"),
    ],
)
def test_a_moment_that_is_none_is_refused(until: str | None, to: str | None, why: str) -> None:
    with pytest.raises(StopError, match=why):
        StopAt.parse(until, to, 0.0)
