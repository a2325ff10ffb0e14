"""What all clients share, over HTTP or the socket: time on the event loop, threads, and places for lists."""

import attrs

from kschedd.service.turns import FairLimiter, Turns
from kschedd.service.workers import WorkerPool


@attrs.define(eq=False)
class FairShares:
    """See the module. `large` are the places for answers that grow with the cluster: four, one of each client."""

    turns: Turns = attrs.field(factory=Turns)
    workers: WorkerPool = attrs.field(factory=WorkerPool)
    large: FairLimiter = attrs.field(factory=lambda: FairLimiter(4, share=1))
