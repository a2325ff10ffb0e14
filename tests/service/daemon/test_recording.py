"""Tests of the methods recording.start and recording.stop: their users and their files."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kschedd.access.users import Caller
from kschedd.recording.recorder import RecordingState
from kschedd.service.daemon.recording import RecordingMethods
from kschedd.service.errors import RpcError


class Recorded:
    """A stand-in for a cluster."""

    def __init__(self) -> None:
        self.started: list[tuple[Path, float]] = []

    async def start_recording(self, file: Path, wait_s: float) -> RecordingState:
        self.started.append((file, wait_s))
        return RecordingState(str(file), 100, 3, 5.0, "")

    async def end_recording(self) -> RecordingState:
        return RecordingState("/tmp/r", 200, 7, 5.0, "")


async def called(cluster: Recorded, method: str, address: str = "", **params: Any) -> Any:
    table = {each.name: each for each in RecordingMethods(cast(Any, cluster)).table()}
    call = SimpleNamespace(method=method, services=SimpleNamespace(caller=Caller(address=address)))

    class Given(SimpleNamespace):
        def __getitem__(self, name: str) -> Any:
            return params[name]

    return await table[method].handler(cast(Any, Given(**vars(call))))


async def test_a_run_is_recorded_into_a_file_of_the_daemons_machine() -> None:
    cluster = Recorded()
    state = await called(cluster, "recording.start", file="/tmp/r", wait_s=3.0)
    assert cluster.started == [(Path("/tmp/r"), 3.0)]
    assert state == RecordingState("/tmp/r", 100, 3, 5.0, "")
    assert (await called(cluster, "recording.stop")).notes == 7


@pytest.mark.parametrize(
    ("file", "address", "why"),
    [
        pytest.param("/tmp/r", "10.0.0.1", "call it over the Unix socket", id="over-the-network"),
        pytest.param("r", "", "an absolute path is expected", id="somewhere"),
        pytest.param("/tmp/\0", "", "an absolute path is expected", id="no-path"),
    ],
)
async def test_a_recording_is_refused(file: str, address: str, why: str) -> None:
    cluster = Recorded()
    with pytest.raises(RpcError, match=why):
        await called(cluster, "recording.start", address, file=file, wait_s=3.0)
    assert not cluster.started
