"""DecisionsActor: the record of the latest scheduling attempts, and their rate per second.

Receives: batches of `AttemptRecord` from the scheduling actor; `OwnerQuery` over the record.
Owns: the DecisionRecord.  Ends: when its last sender closes.
"""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Any

import attrs
import trio

from kschedd.actors.mailbox import OwnerQuery, batch_from
from kschedd.scheduling.records import AttemptRecord

KEPT = 20_000
_MOST = 64
_RATE_S = 5  # seconds over which the rate is averaged


class DecisionRecord:
    """The latest attempts, oldest first, and their number in each of the last seconds."""

    def __init__(self, kept: int = KEPT) -> None:
        self.latest: deque[AttemptRecord] = deque(maxlen=kept)
        self.scheduled = 0
        self.failed = 0
        self._seconds: deque[tuple[float, int]] = deque()  # (second, attempts in it)

    def extend(self, decisions: Sequence[AttemptRecord]) -> None:
        """Record these attempts, made one after the other."""
        self.latest.extend(decisions)
        scheduled = len([decision for decision in decisions if decision.node])
        self.scheduled += scheduled
        self.failed += len(decisions) - scheduled
        for second, many in Counter([decision.at_s // 1 for decision in decisions]).items():
            if self._seconds and self._seconds[-1][0] == second:
                many += self._seconds.pop()[1]
            self._seconds.append((second, many))
            while self._seconds[0][0] < second - _RATE_S:
                self._seconds.popleft()

    def rate(self, now_s: float) -> float:
        """Attempts per second, over the last few seconds that had any."""
        recent = [(second, count) for second, count in self._seconds if second > now_s - _RATE_S]
        if not recent:
            return 0.0
        return sum(count for _, count in recent) / max(now_s - recent[0][0], 1.0)

    def of(self, pod: str | None = None, limit: int | None = None) -> list[AttemptRecord]:
        """The attempts for this pod (None: any pod), oldest first."""
        found: list[AttemptRecord] = []
        for decision in reversed(self.latest):
            if limit is not None and len(found) >= limit:
                break
            if pod is None or decision.pod == pod:
                found.append(decision)
        return found[::-1]


Message = Sequence[AttemptRecord] | OwnerQuery[DecisionRecord, Any]


@attrs.define(eq=False)
class DecisionsActor:
    _record: DecisionRecord
    _inbox: trio.MemoryReceiveChannel[Message]

    async def run(self) -> None:
        async with self._inbox:
            try:
                while True:
                    for message in await batch_from(self._inbox, _MOST):
                        if isinstance(message, OwnerQuery):
                            message.evaluate(self._record)
                            message.reply.publish()
                        else:
                            self._record.extend(message)
            except trio.EndOfChannel:
                return
