"""Outcomes of requeues: for each plugin and event, how many requeued pods found a node, and how many did not.

A pod is requeued (woken) if an event moves it out of unschedulablePods. An event during the pod's attempt also requeues
the pod, if the event keeps it out of unschedulablePods. The wake-up was useful if the next attempt finds a node, and
useless if that attempt fails. A pod that found a node after the timeout requeued it should have been requeued earlier:
`late` counts these pods. SchedulingQueue calls this recorder. The cause of each wake-up is stored until the pod's next
attempt ends.
"""

from collections.abc import Collection, Sequence
from typing import Any

import attrs

from kschedd.framework.events import SCHEDULE_ATTEMPT_FAILURE, UNSCHEDULABLE_TIMEOUT
from kschedd.queue.entry import Move, SubQueue

_ASLEEP = (SubQueue.UNSCHEDULABLE, SubQueue.GATED)
_TIMEOUT = UNSCHEDULABLE_TIMEOUT.label


@attrs.define
class RequeueOutcome:
    helped: int = 0
    in_vain: int = 0


@attrs.define(eq=False)
class RequeueStats:
    counts: dict[tuple[str, str], RequeueOutcome] = attrs.field(factory=dict)  # (plugin or "", event) -> outcomes
    _woken: dict[str, tuple[str, str]] = attrs.field(factory=dict, init=False)  # uid -> (plugin, event) of last wake-up

    def observe(self, moves: Sequence[Move], kinds: Collection[tuple[SubQueue, str]]) -> None:
        """Count these moves of pods between sub-queues; `kinds` contains the sources and events of the moves."""
        if self._woken or any(source in _ASLEEP or event == SCHEDULE_ATTEMPT_FAILURE for source, event in kinds):
            for move in moves:
                self(move)

    def __call__(self, move: Move) -> None:
        if move.source is SubQueue.IN_FLIGHT:
            failed = move.event == SCHEDULE_ATTEMPT_FAILURE
            by = self._woken.pop(move.uid, None)
            if by is not None:
                worth = self.counts.setdefault(by, RequeueOutcome())
                if failed:
                    worth.in_vain += 1
                else:
                    worth.helped += 1
            if failed and move.seen:
                self._woken[move.uid] = (move.plugin, move.seen)
        elif move.source in _ASLEEP and move.target not in _ASLEEP:
            if move.target is SubQueue.OUTSIDE:
                self._woken.pop(move.uid, None)
            else:
                self._woken[move.uid] = (move.plugin, move.event)
        elif move.target is SubQueue.OUTSIDE:
            self._woken.pop(move.uid, None)

    @property
    def late(self) -> int:
        """The number of pods that found a node only after the timeout requeued them."""
        return sum(worth.helped for (_, event), worth in self.counts.items() if event == _TIMEOUT)

    def as_data(self) -> list[dict[str, Any]]:
        """Return the counts as plain maps, sorted by descending number of useless wake-ups."""
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1].in_vain, item[0]))
        return [
            {"plugin": plugin, "event": event, "helped": worth.helped, "in_vain": worth.in_vain}
            for (plugin, event), worth in ordered
        ]
