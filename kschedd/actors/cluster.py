"""A cluster at work, as those see it who are not one of its actors: sockets, benchmarks, tests.

Everything here asks an owner and awaits the answer; nothing is held.
"""

from pathlib import Path
from typing import Any

import attrs

from kschedd.actors.clock import Clock
from kschedd.actors.decisions import DecisionRecord
from kschedd.actors.events import EventRecord
from kschedd.actors.mailbox import Asking
from kschedd.actors.queue import QueueActor
from kschedd.actors.store import StoreClient
from kschedd.scheduling.driver import SchedulingDriver


@attrs.frozen(eq=False)
class LiveCluster:
    """The ways in. `journal` is the journal's file, if there is one; `epoch` names the history of the store: in another
    one a resourceVersion may mean something else."""

    store: StoreClient
    scheduler: Asking[SchedulingDriver]
    queue: Asking[QueueActor]
    events: Asking[EventRecord]
    decisions: Asking[DecisionRecord]
    clock: Clock
    seed: int
    journal: Path | None
    epoch: str

    async def end(self) -> None:
        """Have the actors end, one after the other, each when it has done what was asked of it."""
        await self.store.end_watches()
        ways: tuple[Any, ...] = (self.scheduler, self.queue, self.events, self.decisions, self.store)
        for way in ways:
            way.close()
