"""Tests that a redacted recording has no original names, and gives the same decisions."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from kschedd.actors.clock import Clock
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_36
from kschedd.controllers.embedded import embedded_controllers
from kschedd.daemon import cluster_actors
from kschedd.recording.format import RecordingError
from kschedd.recording.notes import NoteKind
from kschedd.recording.reading import RecordingFile
from kschedd.recording.redaction import redact
from kschedd.recording.wiring import RecordOptions
from kschedd.simulation.engine import EPOCH
from kschedd.simulation.replay.player import Player
from kschedd.simulation.replay.run import Replay, StopAt
from kschedd.simulation.results.decisions import line
from tests.actors.clusters import node, pod, until
from tests.simulation.replay.live import SPEED

OURS = ("large", "later", "web", "n4", "n9", "p11")


def decided(file: Path) -> list[dict[str, Any]]:
    """Return the decision log without anything that contains a name."""
    lines: list[dict[str, Any]] = []
    with RecordingFile.open(file) as recording:
        Replay(Player(recording), lambda attempt: lines.append(json.loads(line(attempt)))).run(StopAt())
    return [
        {**each, "pod": "", "node": bool(each["node"]), "nominated": bool(each["nominated"]), "message": ""}
        for each in lines
    ]


@pytest.mark.parametrize("run", ["busy", "moody_run", "late_run"])
def test_a_redacted_recording_has_no_names_and_the_same_decisions(
    run: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file: Path = request.getfixturevalue(run)
    redact(file, tmp_path / "r")
    assert decided(tmp_path / "r") == decided(file)
    with RecordingFile.open(tmp_path / "r") as recording:
        assert recording.header.redacted
        texts = repr([note for note in recording.notes() if note[0] != NoteKind.MADE])
    with RecordingFile.open(file) as recording:
        before = repr(list(recording.notes()))
    for name in OURS:
        assert f"default/{name}" not in texts
        assert f"\\xa{len(name):x}{name}" not in texts, "as MessagePack has a short text"
        assert name in before


def device(name: str, gigabytes: int) -> dict[str, Any]:
    taken = [{"counterSet": "gpu-set", "counters": {"memory": {"value": f"{gigabytes}Gi"}}}]
    return {"name": name, "consumesCounters": taken}


def of_devices(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


async def devices_run(file: Path) -> None:
    """Record requests for halves of a GPU by claim, extended resource and class name; one waits for a deletion."""
    config = default_config(version=V1_36)
    record = RecordOptions(file)
    controllers = embedded_controllers()
    clock = Clock.started(EPOCH, SPEED)
    async with cluster_actors(config, controllers=controllers, seed=3, clock=clock, record=record) as cluster:
        pool = {"driver": "gpu.example.com", "nodeName": "n1", "pool": {"name": "gpus", "generation": 1}}
        pool["pool"]["resourceSliceCount"] = 2
        halves = [device("half-a", 40), device("half-b", 40), device("whole", 80)]
        requests = {"deviceClassName": "cards"}
        claim = of_devices(
            "ResourceClaim", "shared-claim", devices={"requests": [{"name": "asked", "exactly": requests}]}
        )
        claim["metadata"]["namespace"] = "default"
        chosen = [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]
        counters = [{"name": "gpu-set", "counters": {"memory": {"value": "80Gi"}}}]
        await cluster.store.create_many(
            [
                node("n1"),
                of_devices("DeviceClass", "cards", selectors=chosen, extendedResourceName="example.com/gpu"),
                of_devices("ResourceSlice", "counting", sharedCounters=counters, **pool),
                of_devices("ResourceSlice", "devices", devices=halves, **pool),
                claim,
                pod("claiming", resourceClaims=[{"name": "mine", "resourceClaimName": "shared-claim"}]),
            ]
        )
        await until(cluster, lambda store: store.get("Pod", "default", "claiming").node_name)
        for name, resource in (("by-name", "deviceclass.resource.kubernetes.io/cards"), ("next", "example.com/gpu")):
            wanted = pod(name)
            wanted["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}}
            await cluster.store.create(wanted)
            await until(cluster, lambda store, name=name: store.get("Pod", "default", name).status.get("conditions"))
        await cluster.store.delete("Pod", "default", "by-name", grace_period_s=0)
        await until(cluster, lambda store: store.get("Pod", "default", "next").node_name)


def test_a_redacted_recording_has_the_devices_that_claims_refer_to(tmp_path: Path) -> None:
    trio.run(devices_run, tmp_path / "d")
    redact(tmp_path / "d", tmp_path / "r")
    assert decided(tmp_path / "r") == decided(tmp_path / "d")
    assert sum(each["node"] for each in decided(tmp_path / "d")) == 3
    with RecordingFile.open(tmp_path / "r") as recording:
        texts = repr(list(recording.notes()))
    for name in ("gpu-set", "half-a", "cards", "asked", "shared-claim", "by-name"):
        assert name not in texts


def test_the_new_recording_needs_a_new_file(busy: Path) -> None:
    with pytest.raises(RecordingError, match="is there already"):
        redact(busy, busy)
