"""Methods that start and stop the recording of a daemon's run: `recording.start` and `recording.stop`."""

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
            Param("file", "string", doc="absolute path of a new file on the daemon's host"),
            Param("wait_s", "number", False, _WAIT_S, "maximum wait in seconds", (), 0.1, _MOST_WAIT_S),
        ),
        doc="Records the run from now on, for `kschedd replay`; the recording begins with the present state of the "
        "cluster. First, running attempts and bindings are completed, and no new attempt is started. This method is "
        "not available over the network, nor with out-of-tree plugins; start the daemon with `run --record` to record "
        "those.",
        answer=RecordingState,
    )
    async def start(self, call: Call) -> Any:
        file = Path(call["file"])
        if call.services.caller.address:
            why = "remote clients may not write files on the daemon's host"
            raise RpcError("forbidden", f"{call.method}: {why}; call it over the Unix socket")
        if not file.is_absolute() or "\0" in call["file"]:
            raise RpcError("bad_params", f"{call.method}: file: an absolute path is expected")
        return await self._cluster.start_recording(file, call["wait_s"])

    @method(
        "recording.stop",
        doc="Ends the recording, even if another client started it. The file is complete when this method returns.",
        answer=RecordingState,
    )
    async def stop(self, call: Call) -> Any:
        return await self._cluster.end_recording()
