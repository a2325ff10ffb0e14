"""A pod as the scheduling queue holds it, and the record of one of its moves.

An entry is made when the pod first comes in and stays the same object through all places, attempts included, until
the pod is bound or deleted. The queue alone writes to it, but for one thing: whoever ran the attempt sets
`unschedulable_plugins`, `pending_plugins` (and a fresher `pod`) before handing the entry back.

Units: all times are integer nanoseconds of whatever clock the caller uses; 0 means never.
"""

from enum import StrEnum

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.status import Status
from kschedd.values import value

NO_PLUGINS: frozenset[str] = frozenset()
SECOND = 1_000_000_000


class Place(StrEnum):
    """Where a pod is. A pod has one place; `unschedulable` and `gated` are upstream's unschedulablePods."""

    OUTSIDE = "outside"
    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error_backoff"  # waits after an error, and is never popped before its time
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in_flight"  # popped, not yet done: being scheduled, waiting in Permit, or being bound


@attrs.define(eq=False)
class QueuedPod:
    pod: Pod
    key: str  # namespace/name
    timestamp: int  # when it was added, or when its last failed attempt ended
    place: Place = Place.OUTSIDE
    attempts: int = 0  # pops, the running one included
    unschedulable_count: int = 0  # attempts that plugins rejected
    consecutive_errors: int = 0  # attempts that ended in an error, since the last that did not
    backoff_expiration: int = 0  # worked out when first needed after an attempt
    initial_attempt: int | None = None  # when it first got into the active queue
    unschedulable_plugins: frozenset[str] = NO_PLUGINS  # who rejected it; gating plugins too
    pending_plugins: frozenset[str] = NO_PLUGINS  # who rejected it with Pending: their Queue skips the backoff
    gating_plugin: str = ""  # the PreEnqueue plugin that keeps it out
    gating_status: Status | None = None  # what that plugin said

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def gated(self) -> bool:
        return self.gating_plugin != ""


@value
class Move:
    """One change of place, for the history of a pod.

    `event` is upstream's label of what moved it (`NodeAdd`, `ScheduleAttemptFailure`, `BackoffComplete`). `plugin`
    is whose hint said Queue ("" if none had to), or who gates it; `seen` the event that this hint spoke of, where
    that came in while the pod was in flight.
    """

    when: int
    key: str
    uid: str
    source: Place
    target: Place
    event: str
    plugin: str = ""
    seen: str = ""
