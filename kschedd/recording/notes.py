"""Notes: one for each call of a state machine and for each value from outside, in the order in which they happened.

A note is a tuple of its kind and its values. Calls of the driver and of the queue form one sequence, in the order in
which they began. With out-of-tree plugins, calls of the driver and of the queue may overlap in threads. Even if calls
overlap, the order of the calls of each state machine is preserved. The order within each state machine is sufficient,
because the two state machines interact only through messages and plugins.

Times are seconds (driver) or nanoseconds (queue) since the epoch.
"""

from enum import IntEnum
from typing import Any, Final

from kschedd.queue.entry import SECOND
from kschedd.scheduling.records import OUTCOME, AttemptRecord

Note = tuple[Any, ...]


class NoteKind(IntEnum):
    """The kind of a note; the comments list its values.

    The numbers are part of the file format and are never reused.
    """

    # -- driver
    OBSERVE = 1  # now, events: each (type, kind, packed object, version)
    STARTED = 2  # version; all events up to this version describe the cluster at the start
    POPPED = 3  # number of entries that the queue returned, in the order of the queue
    NOMINATED = 4  # number of pods that the queue returned, in the order of the queue
    BEGIN = 5  # now, uid
    # packed results of the out-of-tree plugins and extenders that the attempt called; None without such results
    SEND = 6
    BROKEN = 7  # packed status: the attempt was aborted with this result
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
    MADE = 23  # creation of an out-of-tree plugin: name, its packed description
    CONFIG_REFUSED = 24  # a change of the configuration failed; the plugins created for this change are discarded
    # number 25 was a manual change as text
    GROUP_CYCLE = 26  # now, uid of the first of the popped pods of a PodGroup; SEND follows, and no COMPLETE
    STEPPED = 27  # the attempt that has just begun runs one plugin at a time
    INTERVENED = 28  # a manual change: number of the attempt's stop point, verb, node, plugin, score
    # -- queue; times in nanoseconds
    DONE = 32  # now
    APPLY = 33  # now, number of events of the operation in this part (-1: the whole operation)
    POP = 34  # now
    FLUSH_BACKOFF = 35  # now, most
    FLUSH_LEFTOVER = 36  # now
    TAKE_NOMINATED = 37
    MOVE_ACTIVE = 38  # now, keys
    FORCE = 39  # key, place, now
    POP_GROUP = 40  # now; the queue pops the other pods of the PodGroup of the pod that was popped last
    # -- both
    ANSWER = 48  # stream, plugin, method, answer packed; plugin "" is the clock
    FAULT = 49  # stream, plugin, method, why, whether it was a timeout
    # -- first notes of a recording that begins on a running daemon (`kschedd.recording.state`)
    LAYOUT = 50  # name of the node in each row, and the free rows; the notes OBSERVE and STARTED follow
    DRIVER_STATE = 51  # packed
    QUEUE_STATE = 52  # packed
    # -- store
    OWN = 56  # first and last version of a range of writes by the daemon's own controllers and the scheduler


DRIVER: Final = 0  # streams
QUEUE: Final = 1


MESSAGE_AT: Final = 1 + OUTCOME.index("message")  # index in the result of `line_of`


def line_of(record: AttemptRecord) -> tuple[Any, ...]:
    """Return the values of an attempt that a TAKE note contains."""
    return record.at_s, *record.outcome, record.of_binding


#: the index of the time in a note, by its kind
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
    """Return the time of the note in seconds since the epoch; None if the note has no time."""
    place = _TIME_AT.get(note[0])
    at: Any = note[place] if place is not None and place < len(note) else None
    if not isinstance(at, int | float):
        return None
    return at / SECOND if NoteKind.DONE <= note[0] < NoteKind.ANSWER else float(at)
