"""PermitWaiter: one task for each pod that waits at Permit, which enforces the Permit timeout.

Receives: a later deadline, after the plugin with the shortest timeout has allowed the pod. Sends: `Expired` at the
deadline. Owns: nothing. Ends: when the scheduling actor closes the channel because the pod was allowed or rejected.
"""

import attrs
import trio

from kschedd.actors.clock import Clock
from kschedd.actors.mailbox import Doorbell


@attrs.frozen
class Expired:
    uid: str


@attrs.define(eq=False)
class PermitWaiter:
    _uid: str
    _deadline_s: float
    _clock: Clock
    _later: trio.MemoryReceiveChannel[float]
    _expired: "trio.MemorySendChannel[Expired]"
    _bell: Doorbell

    async def run(self) -> None:
        with self._later:
            try:
                while True:
                    with self._clock.move_on_at(self._deadline_s):
                        self._deadline_s = await self._later.receive()
                        continue
                    await self._expired.send(Expired(self._uid))
                    self._bell.ring()
                    self._deadline_s = await self._later.receive()
            except trio.EndOfChannel:
                return
