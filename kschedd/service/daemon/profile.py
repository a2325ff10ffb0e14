"""The method `daemon.profile`, which samples the daemon's stacks."""

from typing import Any, Final

import attrs
import trio

from kschedd.service.daemon.answers import ProfiledAnswer, StackAnswer
from kschedd.service.daemon.profiling import Sampled, sample
from kschedd.service.errors import RpcError
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method

_LONGEST_S: Final = 600
_MOST_HERTZ: Final = 1000


@attrs.frozen(eq=False)
class ProfileMethods(Methods):
    _at_once: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(1))

    @method(
        "daemon.profile",
        (
            Param("seconds", "number", False, 5.0, "duration in seconds", (), 0.01, _LONGEST_S),
            Param("hertz", "number", False, 100.0, "samples per second", (), 1, _MOST_HERTZ),
        ),
        doc="Samples the stacks of the daemon's threads for the given time and then answers; other requests continue. "
        "One profile at a time.",
        answer=ProfiledAnswer,
    )
    async def profile(self, call: Call) -> Any:
        if self._at_once.available_tokens < 1:
            raise RpcError("conflict", f"{call.method}: another profile is running; try again later")
        gone = False

        def sampled() -> Sampled:
            return sample(float(call["seconds"]), float(call["hertz"]), lambda: gone)

        try:
            found = await call.services.workers.run_apart(sampled, self._at_once)
        finally:
            gone = True  # the client disconnected, so the thread ends at its next sample
        stacks = [
            StackAnswer(stack.thread, stack.frames, count)
            for stack, count in sorted(found.stacks.items(), key=lambda each: (-each[1], each[0].frames))
        ]
        return ProfiledAnswer(round(found.seconds, 3), found.looks, stacks)
