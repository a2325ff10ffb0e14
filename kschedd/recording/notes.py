"""Notes: one for each call of a machine, or value that came from outside, in the order in which they happened.

A note is a tuple: its kind, then its values. Calls of the driver and of the queue follow each other in one order, which
is the order in which they began. With out-of-tree plugins the two may overlap, in threads; then each one's own calls
and answers are in order, and that is all that counts: they meet in messages and plugins only.

Times are seconds (driver) or nanoseconds (queue) since the epoch.
"""

from enum import IntEnum
from typing import Any, Final

from kschedd.queue.entry import SECOND
from kschedd.scheduling.records import OUTCOME, AttemptRecord

Note = tuple[Any, ...]


class NoteKind(IntEnum):
    """What a note says; its values are in the comment. Numbers are the file's: they are never used again."""

    # of the driver
    OBSERVE = 1  # now, events: each (type, kind, packed object, version)
    STARTED = 2  # version: all events before it are the cluster as it stood at the start
    POPPED = 3  # number of entries, in the order in which the queue handed them out
    NOMINATED = 4  # number of pods, likewise
    BEGIN = 5  # now, uid
    SEND = 6  # answers of out-of-tree plugins and extenders that the attempt had asked for, packed; None without any
    BROKEN = 7  # status packed: the attempt was broken off, and this is what it came to
    COMPLETE = 8  # now, seconds it took
    PLAN_EXECUTED = 9  # uid, status packed, now
    PLUGIN_CALLED = 10  # uid, answer packed, now
    TICK = 11  # now
    RESUME_DECIDED = 12  # now
    RESUME_READY = 13  # now
    RESUME_STOPPED = 14  # now
    EVICTION_FAILED = 15  # uid
    TAKE = 16  # records of attempts
    CHANGE_CONFIG = 17  # text, flush_s, what, now
    UNDO_CONFIG = 18
    RECONFIGURE = 19  # text, flush_s
    ALLOW = 20  # uid, plugin
    REJECT = 21  # uid, plugin, reason
    ACTIVATE = 22  # uids
    MADE = 23  # an out-of-tree plugin: name, its description packed
    CONFIG_REFUSED = 24  # a change of the configuration failed; the plugins made for it are of no use
    # 25 was a change by hand, in words
    GROUP_CYCLE = 26  # now, uid of the first of the popped pods of a PodGroup; SEND follows, and no COMPLETE
    STEPPED = 27  # the attempt that has just begun is run plugin by plugin
    INTERVENED = 28  # number of the attempt's stop point, verb, node, plugin, score: what somebody changed of it there
    # of the queue; times in nanoseconds
    DONE = 32  # now
    APPLY = 33  # now, events of the operation that this part has (-1: the whole operation)
    POP = 34  # now
    FLUSH_BACKOFF = 35  # now, most
    FLUSH_LEFTOVER = 36  # now
    TAKE_NOMINATED = 37
    MOVE_ACTIVE = 38  # now, keys
    FORCE = 39  # key, place, now
    POP_GROUP = 40  # now: the others of the group of the pod that was popped last
    # of both
    ANSWER = 48  # stream, plugin, method, answer packed; plugin "" is the clock
    FAULT = 49  # stream, plugin, method, why, whether it came too late
    # of a recording that begins on a running daemon, before all others (`kschedd.recording.state`)
    LAYOUT = 50  # nodes by row, free rows; OBSERVE and STARTED follow
    DRIVER_STATE = 51  # packed
    QUEUE_STATE = 52  # packed
    # of the store
    OWN = 56  # first and last version of writes by the cluster's own controllers and the scheduler


DRIVER: Final = 0  # streams
QUEUE: Final = 1


MESSAGE_AT: Final = 1 + OUTCOME.index("message")  # in what `line_of` gives


def line_of(record: AttemptRecord) -> tuple[Any, ...]:
    """What a recording has of an attempt, for TAKE."""
    return record.at_s, *record.outcome, record.of_binding


#: which of a note's values is the time, by its kind
_TIME_AT: Final = {
    **dict.fromkeys((NoteKind.OBSERVE, NoteKind.BEGIN, NoteKind.GROUP_CYCLE, NoteKind.COMPLETE, NoteKind.TICK), 1),
    **dict.fromkeys((NoteKind.RESUME_DECIDED, NoteKind.RESUME_READY, NoteKind.RESUME_STOPPED), 1),
    **dict.fromkeys((NoteKind.PLAN_EXECUTED, NoteKind.PLUGIN_CALLED), 3),
    NoteKind.CHANGE_CONFIG: 4,
    **dict.fromkeys(
        (NoteKind.APPLY, NoteKind.POP, NoteKind.FLUSH_BACKOFF, NoteKind.FLUSH_LEFTOVER, NoteKind.MOVE_ACTIVE), 1
    ),
    NoteKind.FORCE: 3,
}


def time_of(note: Note) -> float | None:
    """When it happened, if it says that: seconds since the epoch."""
    place = _TIME_AT.get(note[0])
    at: Any = note[place] if place is not None and place < len(note) else None
    if not isinstance(at, int | float):
        return None
    return at / SECOND if NoteKind.DONE <= note[0] < NoteKind.ANSWER else float(at)
