"""Methods for the cluster's time: read the time, set its speed, and advance virtual time."""

from typing import Any

import attrs

from kschedd.actors.time_control import NotVirtual
from kschedd.answers import extended
from kschedd.api.text.times import LAST_S, stamp
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.params import Param
from kschedd.service.scheduling.answers import MovedTime, TimeAnswer
from kschedd.service.table import Call, Methods, Stream, StreamAnswer, method

_FASTEST = 1_000_000


@attrs.frozen(eq=False)
class TimeMethods(Methods):
    _cluster: ClusterBackend

    def _time(self) -> TimeAnswer:
        clock = self._cluster.clock
        now = clock.now()
        return TimeAnswer(now, stamp(now), clock.speed, clock.is_virtual, clock.next_deadline(), clock.ahead_s)

    def _moved(self, moved: str | None) -> MovedTime:
        return extended(MovedTime, self._time(), moved=moved)

    @method("time.get", reads=True, doc="Returns the cluster's time.", answer=TimeAnswer)
    async def get(self, call: Call) -> Any:
        return self._time()

    @method(
        "time.set_speed",
        (Param("speed", "number", doc="1: real time; 0: virtual", minimum=0, maximum=_FASTEST),),
        doc="Sets the speed at which time passes from now on; 0 stops time (virtual time).",
        answer=TimeAnswer,
    )
    async def set_speed(self, call: Call) -> Any:
        await self._cluster.time.set_speed(float(call["speed"]))
        return self._time()

    @method(
        "time.advance",
        (
            Param("seconds", "number", False, doc="duration to move", minimum=0),
            Param("until_s", "number", False, doc="target time, in seconds since the epoch"),
        ),
        doc="Moves virtual time from one deadline to the next; the work of each deadline is done before time moves "
        "on. The method ends early if the debugger stops scheduling. If the stream is cancelled or disconnected, time "
        "stops where it is; `time.get` returns the time.",
        answer=StreamAnswer,
        item=MovedTime,
        items="one item after each move",
    )
    async def advance(self, call: Call) -> Any:
        seconds, until = call["seconds"], call["until_s"]
        if (seconds is None) == (until is None):
            raise RpcError("bad_params", "time.advance: give either seconds or until_s")
        clock = self._cluster.clock
        if not clock.is_virtual:
            raise NotVirtual(clock.speed)
        end = until if seconds is None else clock.now() + seconds
        if end < clock.now():
            raise RpcError("invalid", f"time does not go back: it is {stamp(clock.now())}")
        if end > LAST_S:
            raise RpcError("invalid", f"cannot advance beyond {stamp(LAST_S)} (current time: {stamp(clock.now())})")

        async def feed(stream: Stream) -> None:
            async def on_moved() -> None:
                await stream.send(self._moved(None))

            moved = await self._cluster.time.advance(end, on_moved)
            await stream.send(self._moved(moved.value))

        return StreamAnswer(call.open_stream(feed))
