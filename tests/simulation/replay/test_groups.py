"""Tests of a recorded run with PodGroups: replayed, stopped before their cycles, redacted, and with another version."""

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from kschedd.actors.clock import Clock
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34, V1_36
from kschedd.daemon import cluster_actors
from kschedd.framework.registry import Registry
from kschedd.log.log import Log
from kschedd.recording.reading import RecordingFile
from kschedd.recording.redaction import redact
from kschedd.recording.wiring import RecordOptions
from kschedd.simulation.engine import EPOCH, LoggedAttempt
from kschedd.simulation.replay.other import compare_with
from kschedd.simulation.replay.player import Player
from kschedd.simulation.replay.run import Replay, StopAt
from kschedd.simulation.results.decisions import line
from tests.actors.clusters import node, pod, until
from tests.simulation.replay.live import SPEED, decision_log
from tests.simulation.replay.test_attach import attached

GATES = {"GenericWorkload": True, "GangScheduling": True}


def gang(name: str, min_count: int) -> dict[str, Any]:
    kind = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
    meta = {"name": name, "namespace": "default"}
    return {**kind, "metadata": meta, "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}}}


def member(name: str, group: str) -> dict[str, Any]:
    return pod(name, cpu="1", schedulingGroup={"podGroupName": group})


@attrs.frozen
class Recorded:
    file: Path
    log: str


async def gangs(file: Path) -> str:
    """Record a run in which `red` uses three of four places; `blue` needs two, and is placed after a node is added."""
    async with cluster_actors(
        default_config(version=V1_36, feature_gates=GATES),
        seed=3,
        clock=Clock.started(EPOCH, SPEED),
        record=RecordOptions(file),
    ) as cluster:
        await cluster.store.create_many([node("n1", cpu="2"), node("n2", cpu="2"), gang("red", 3), gang("blue", 2)])
        await cluster.store.create_many([member(f"red-{number}", "red") for number in range(3)])
        await until(cluster, lambda store: store.get("Pod", "default", "red-2").node_name)
        await cluster.store.create_many([member(f"blue-{number}", "blue") for number in range(2)])
        await until(cluster, lambda store: "Insufficient" in str(store.get("Pod", "default", "blue-1").status))
        await cluster.store.create(node("n3", cpu="1"))
        await until(cluster, lambda store: store.get("Pod", "default", "blue-1").node_name)
        records = await cluster.log.query(Log.attempts)
        return decision_log(records, cluster.started_s)
    raise AssertionError("the run has a log")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    file = tmp_path_factory.mktemp("recordings") / "gangs"
    return Recorded(file, trio.run(gangs, file))


def played(file: Path, stop: StopAt) -> tuple[str, Replay]:
    lines: list[str] = []

    def note(attempt: LoggedAttempt) -> None:
        lines.append(line(attempt))

    with RecordingFile.open(file) as recording:
        replay = Replay(Player(recording), note)
        replay.run(stop)
    return "".join(lines), replay


def test_the_decisions_come_out_byte_for_byte(recorded: Recorded) -> None:
    assert played(recorded.file, StopAt())[0] == recorded.log


@pytest.mark.parametrize("name", ["blue-0", "blue-1"])
def test_it_stops_before_the_cycle_of_any_pod_of_a_group(recorded: Recorded, name: str) -> None:
    log, replay = played(recorded.file, StopAt(pod=f"default/{name}"))
    assert log == "".join(recorded.log.splitlines(keepends=True)[:3])
    assert {entry.key for entry in replay.player.next_pods} == {"default/blue-0", "default/blue-1"}


async def test_the_debugger_stops_before_and_behind_the_cycle_of_a_group(recorded: Recorded, tmp_path: Path) -> None:
    async with attached(recorded.file, tmp_path, StopAt(pod="default/blue-1")) as client:
        state = await client.call("debug.next")
        assert state["stopped"]["why"] == "next"
        assert "default/blue-0" not in {each["pod"] for each in await client.call("scheduler.decisions")}
        await client.call("debug.next")
        tried = [each for each in await client.call("scheduler.decisions") if each["pod"].startswith("default/blue")]
        assert {each["attempt"] for each in tried} == {1}
        await client.call("debug.break_add", pod="default/blue-1")
        await client.call("debug.resume")
        async with client.subscribe("debug.wait") as states:
            state = await anext(states)
        assert state["stopped"]["why"] == "breakpoint 1"


def test_a_redacted_recording_has_the_groups_of_the_pods(recorded: Recorded, tmp_path: Path) -> None:
    redact(recorded.file, tmp_path / "r")
    log, replay = played(tmp_path / "r", StopAt())
    assert log.count("\n") == recorded.log.count("\n")
    assert "blue" not in log
    groups = {key[2] for key in replay.player.objects if key[0].startswith("PodGroup")}
    assert {one.pod_spec.pod_group_name for one in replay.player.pods.values()} == groups


def test_another_version_is_told_of_every_pod_of_a_group(recorded: Recorded) -> None:
    alike = compare_with(recorded.file, Registry(), None, "", V1_36)
    assert (alike["pods"], alike["different"], alike["pending"]) == (5, [], [0, 0])
    assert (alike["recorded"], alike["refused"]) == (5, [])
    ungrouped = compare_with(recorded.file, Registry(), None, "", V1_34)
    assert (ungrouped["pods"], ungrouped["pending"]) == (5, [0, 0])
