"""What the scheduling driver reports: a record of every attempt, and the events shown to users."""

from operator import attrgetter
from typing import Any, Final

from kschedd.api.pods import Pod
from kschedd.values import fast_frozen

NORMAL = "Normal"
WARNING = "Warning"


@fast_frozen(eq=False)
class AttemptRecord:
    """One attempt; or, with `of_binding`, a binding that failed after its attempt had found a node."""

    at_s: float  # seconds since the epoch
    pod: str  # "namespace/name"
    uid: str
    attempt: int
    node: str  # "" if none was found
    feasible: int
    visited: int
    ties: int
    score: int | None  # None where only one node was feasible
    took_s: float
    message: str = ""
    nominated_node: str = ""
    of_binding: bool = False
    #: what the attempt can be worked out from again: the last write that the scheduler had seen, and the pod as it was
    version: int = 0
    attempted: Pod | None = None

    @property
    def outcome(self) -> tuple[Any, ...]:
        """What a log of decisions has of it besides the time, by OUTCOME."""
        return _outcome(self)


#: fields of an AttemptRecord
OUTCOME: Final = (
    "pod",
    "attempt",
    "node",
    "feasible",
    "visited",
    "ties",
    "score",
    "message",
    "nominated_node",
)
_outcome = attrgetter(*OUTCOME)

_LONGEST: Final = 1024  # bytes of an event's message
_CUT: Final = " ..."


@fast_frozen(eq=False)
class SchedulerEvent:
    """A pod's event as `kubectl get events` would show it. Its message is formatted on demand; a long one is cut.

    Source: Kubernetes v1.34, scheduler/schedule_one.go (truncateMessage).
    """

    at_s: float
    type: str  # NORMAL or WARNING
    reason: str
    namespace: str
    name: str  # of the pod
    about: str  # the message, or the values to format it from
    uid: str = ""  # of the pod
    scheduler: str = ""  # the name of the profile that reports it
    preemptor: Pod | None = None  # of a pod that was preempted

    @property
    def message(self) -> str:
        if self.reason == "Scheduled":
            return f"Successfully assigned {self.namespace}/{self.name} to {self.about}"
        said = self.about.encode()
        if len(said) <= _LONGEST:
            return self.about
        return said[: _LONGEST - len(_CUT)].decode(errors="ignore") + _CUT
