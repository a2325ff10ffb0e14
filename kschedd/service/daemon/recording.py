"""Recording a daemon's run, from now on: `recording.start` and `recording.stop`."""

from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.recording.recorder import RecordingState
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method

_WAIT_S: Final = 10.0
_MOST_WAIT_S: Final = 900


@attrs.frozen(eq=False)
class RecordingMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "recording.start",
        (
            Param("file", "string", doc="a new file on the daemon's machine: an absolute path"),
            Param("wait_s", "number", False, _WAIT_S, "for how long at most", (), 0.1, _MOST_WAIT_S),
        ),
        doc="Records the run from now on, beginning with the state of the cluster, for `kschedd replay`. No pod "
        "is taken up until those that are being scheduled or bound are done, which is waited for. Not over "
        "the network, and not with out-of-tree plugins: those need `run --record`.",
        answer=RecordingState,
    )
    async def start(self, call: Call) -> Any:
        file = Path(call["file"])
        if call.services.caller.address:
            why = "a file of the daemon's machine is written by who is on that machine"
            raise RpcError("forbidden", f"{call.method}: {why}; call it over the Unix socket")
        if not file.is_absolute() or "\0" in call["file"]:
            raise RpcError("bad_params", f"{call.method}: file: an absolute path is expected")
        return await self._cluster.start_recording(file, call["wait_s"])

    @method(
        "recording.stop",
        doc="Ends the recording, whoever began it. The file is whole when this returns.",
        answer=RecordingState,
    )
    async def stop(self, call: Call) -> Any:
        return await self._cluster.end_recording()
