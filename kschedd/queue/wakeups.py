"""Which wake-ups were worth it: for each plugin and event, how many pods that it woke got a node, and how many did not.

A pod is woken when an event moves it out of the unschedulable pods, or keeps it from getting there because it came
during the attempt. The wake-up helped if the next attempt finds a node, and was in vain if that fails. Pods that only
the timeout woke and that got a node should have been woken earlier: `late` counts them.
A recorder for SchedulingQueue; owns its counts and who was woken by what, until that pod's next attempt has ended.
"""

from typing import Any

import attrs

from kschedd.framework.events import SCHEDULE_ATTEMPT_FAILURE, UNSCHEDULABLE_TIMEOUT
from kschedd.queue.entry import Move, Place

_ASLEEP = (Place.UNSCHEDULABLE, Place.GATED)
_TIMEOUT = UNSCHEDULABLE_TIMEOUT.label


@attrs.define
class Worth:
    helped: int = 0
    in_vain: int = 0


@attrs.define(eq=False)
class Wakeups:
    counts: dict[tuple[str, str], Worth] = attrs.field(factory=dict)  # (plugin or "", event) -> what came of it
    _woken: dict[str, tuple[str, str]] = attrs.field(factory=dict, init=False)  # uid -> by whom

    def __call__(self, move: Move) -> None:
        if move.source is Place.IN_FLIGHT:
            failed = move.event == SCHEDULE_ATTEMPT_FAILURE
            by = self._woken.pop(move.uid, None)
            if by is not None:
                worth = self.counts.setdefault(by, Worth())
                if failed:
                    worth.in_vain += 1
                else:
                    worth.helped += 1
            if failed and move.seen:
                self._woken[move.uid] = (move.plugin, move.seen)
        elif move.source in _ASLEEP and move.target not in _ASLEEP:
            if move.target is Place.OUTSIDE:
                self._woken.pop(move.uid, None)
            else:
                self._woken[move.uid] = (move.plugin, move.event)
        elif move.target is Place.OUTSIDE:
            self._woken.pop(move.uid, None)

    @property
    def late(self) -> int:
        """Pods that got a node only because the timeout woke them."""
        return sum(worth.helped for (_, event), worth in self.counts.items() if event == _TIMEOUT)

    def as_data(self) -> list[dict[str, Any]]:
        """The counts as plain maps, those with most wake-ups in vain first."""
        ordered = sorted(self.counts.items(), key=lambda item: (-item[1].in_vain, item[0]))
        return [
            {"plugin": plugin, "event": event, "helped": worth.helped, "in_vain": worth.in_vain}
            for (plugin, event), worth in ordered
        ]
