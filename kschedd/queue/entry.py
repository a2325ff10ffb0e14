"""The queue's entry for a pod (upstream's QueuedPodInfo), and the record of one move between sub-queues.

An entry is created when the pod is first added and stays the same object in every sub-queue and during attempts,
until the pod is bound or deleted. Only the queue writes to it, with one exception: after a failed attempt the caller
sets `unschedulable_plugins`, `pending_plugins` (and a newer `pod`) before requeueing the entry.

Units: all times are integer nanoseconds of the caller's clock; 0 means never.
"""

from enum import StrEnum

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.status import Status
from kschedd.values import fast_frozen

NO_PLUGINS: frozenset[str] = frozenset()
SECOND = 1_000_000_000


class SubQueue(StrEnum):
    """The sub-queue a pod is in, exactly one; `unschedulable` and `gated` together are upstream's unschedulablePods."""

    OUTSIDE = "outside"
    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error_backoff"  # backs off after an error; never popped early
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in_flight"  # popped, not yet done: being scheduled, waiting in Permit, or being bound

    __hash__ = str.__hash__  # an enum's own is plain Python, and every move looks something up by its places


@attrs.define(eq=False)
class QueuedPod:
    pod: Pod
    key: str  # namespace/name
    timestamp: int  # when it was added, or when its last failed attempt ended
    place: SubQueue = SubQueue.OUTSIDE
    attempts: int = 0  # pops, the running one included
    unschedulable_count: int = 0  # attempts that plugins rejected
    consecutive_errors: int = 0  # attempts that ended in an error, since the last that did not
    backoff_expiration: int = 0  # computed on first use after an attempt
    initial_attempt: int | None = None  # when it first entered the active queue
    unschedulable_plugins: frozenset[str] = NO_PLUGINS  # plugins that rejected it, gating plugins included
    pending_plugins: frozenset[str] = NO_PLUGINS  # plugins that rejected it as Pending: their Queue hint skips backoff
    gating_plugin: str = ""  # the PreEnqueue plugin that rejected it
    gating_status: Status | None = None  # the status that plugin returned
    since: int = 0  # when it got to its place
    popped_early: int = 0  # when its backoff would have expired, if it was popped from the backoff queue; else 0

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def gated(self) -> bool:
        return self.gating_plugin != ""


@fast_frozen
class Move:
    """One move between sub-queues, an entry of the log.

    `event` is upstream's label of the cause (`NodeAdd`, `ScheduleAttemptFailure`, `BackoffComplete`). `plugin` is the
    plugin whose queueing hint returned Queue ("" if no hint was needed), or the gating plugin. `seen` is the event
    that hint was called for, if it was observed while the pod was in flight.
    """

    when: int
    pod: str  # "namespace/name"
    uid: str
    source: SubQueue
    target: SubQueue
    event: str
    plugin: str = ""
    seen: str = ""
    stayed: int = attrs.field(default=0, eq=False)  # how long it was at `source`, nanoseconds
