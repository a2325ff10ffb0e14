"""The queue's entry for a pod (upstream's QueuedPodInfo), and the record of one move between sub-queues.

An entry is created when the pod is first added, and is used in every sub-queue and during attempts until the pod is
bound or deleted. Only the queue changes an entry, with one exception: after a failed attempt the caller sets
`unschedulable_plugins`, `pending_plugins` (and a newer `pod`) before requeueing the entry. With the rule
`groups_queued`, the pods of a PodGroup are members of one entry. A PodGroup's entry moves and backs off as a whole.

Units: all times are integer nanoseconds of the caller's clock; 0 means unset.
"""

from enum import StrEnum

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.status import Status
from kschedd.values import fast_frozen

NO_PLUGINS: frozenset[str] = frozenset()
SECOND = 1_000_000_000
POD, POD_GROUP = "pod", "podgroup"  # types of entries


class SubQueue(StrEnum):
    """The sub-queue of a pod; `unschedulable` and `gated` together are upstream's unschedulablePods."""

    OUTSIDE = "outside"
    ACTIVE = "active"
    BACKOFF = "backoff"
    ERROR_BACKOFF = "error_backoff"  # pods that back off after an error; never popped early
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in_flight"  # pods that are being scheduled, waiting at Permit, or being bound
    PENDING_GROUP = "pending_group"  # pods that wait for the end of their PodGroup's cycle
    INCOMPLETE_GROUP = "incomplete_group"  # pods whose PodGroup does not exist yet

    __hash__ = str.__hash__  # faster than an enum's own hash; every move looks up sub-queues


@attrs.define(eq=False)
class QueuedPod:
    pod: Pod
    key: str  # namespace/name
    timestamp: int  # time at which the pod was added, or its last failed attempt ended
    place: SubQueue = SubQueue.OUTSIDE
    attempts: int = 0  # number of pops, including the pop for the running attempt
    unschedulable_count: int = 0  # number of attempts in which plugins rejected the pod
    consecutive_errors: int = 0  # number of consecutive attempts that ended in an error
    backoff_expiration: int = 0  # end of the backoff, computed on demand after an attempt
    initial_attempt: int | None = None  # time at which the pod first entered the active queue
    unschedulable_plugins: frozenset[str] = NO_PLUGINS  # plugins that rejected the pod, including gating plugins
    pending_plugins: frozenset[str] = NO_PLUGINS  # plugins that returned Pending; no backoff if their hint is Queue
    gating_plugin: str = ""  # PreEnqueue plugin that gates the pod
    gating_status: Status | None = None  # status that the gating plugin returned
    since: int = 0  # time at which the pod moved to `place`
    # original end of the backoff, if the pod was popped early; else 0
    popped_early: int = 0
    was_flushed: bool = False  # true if the timeout for unschedulable pods has moved the pod since its last attempt

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def priority(self) -> int:
        return self.pod.priority

    @property
    def gated(self) -> bool:
        return self.gating_plugin != ""


@attrs.define(eq=False)
class QueuedGroup(QueuedPod):
    """A PodGroup and its waiting pods as one entry (upstream's QueuedPodGroupInfo).

    `pod` is one of the group's pods; all counts and times apply to the group. Plugins do not reject groups,
    so a failed group backs off as after an error.
    """

    group: str = ""  # namespace/name
    group_priority: int = 0
    members: list[QueuedPod] = attrs.field(factory=list)  # entries of the group's pods, in the order of their attempts

    @property
    def priority(self) -> int:
        return self.group_priority


@fast_frozen
class Move:
    """One move between sub-queues, an entry of the log.

    `event` is kube-scheduler's label for the cause of the move (`NodeAdd`, `ScheduleAttemptFailure`,
    `BackoffComplete`). `plugin` is the gating plugin, or the plugin whose queueing hint returned Queue ("" if no hint
    was needed). `seen` is the event for which this hint was called, if it occurred while the pod was in flight.
    `entity` is the type (pod or PodGroup) of the entry that enters the queue; "" if none enters. If several pods of a
    PodGroup move, only one move has the type.
    """

    when: int
    pod: str  # "namespace/name"
    uid: str
    source: SubQueue
    target: SubQueue
    event: str
    plugin: str = ""
    seen: str = ""
    stayed: int = attrs.field(default=0, eq=False)  # time in `source` before the move, in nanoseconds
    entity: str = attrs.field(default="", eq=False)
