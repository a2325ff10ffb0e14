"""Log entries of the scheduling driver: attempts, bound pods and preempted pods."""

from operator import attrgetter
from typing import Any, Final

from kschedd.api.pods import Pod
from kschedd.values import fast_frozen


@fast_frozen
class Lead:
    """The difference between the selected node's score and that of the second-best node."""

    margin: int
    runner_up: str


@fast_frozen(eq=False)
class AttemptRecord:
    """One attempt, or, with `of_binding`, a binding that failed after its attempt had found a node."""

    at_s: float  # seconds since the epoch
    pod: str  # "namespace/name"
    uid: str
    attempt: int
    node: str  # "" if none was found
    feasible: int
    visited: int
    ties: int
    score: int | None  # None if only one node was feasible
    took_s: float
    message: str = ""
    nominated_node: str = ""
    of_binding: bool = False
    #: for repeating the attempt: version of the last write that the scheduler had observed, and the attempted pod
    version: int = 0
    attempted: Pod | None = None
    lead: Lead | None = None  # None if not recorded, or if only one node was feasible

    @property
    def outcome(self) -> tuple[Any, ...]:
        """The fields in OUTCOME, which a decision log contains for an attempt."""
        return _outcome(self)


#: AttemptRecord's fields in a decision log
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


@fast_frozen(eq=False)
class PodBound:
    """The end of a binding: the pod is bound to its node."""

    at_s: float
    pod: str  # "namespace/name"
    uid: str
    node: str
    scheduler: str  # the name of the profile


@fast_frozen(eq=False)
class PodPreempted:
    """A pod that was evicted from its node to make room for another pod."""

    at_s: float
    pod: str  # "namespace/name"
    uid: str
    node: str
    preemptor: Pod
    in_memory: bool  # True if the pod was assumed but not bound, so only its binding was rejected
    group: str = ""  # uid of the preemptor's PodGroup, if the group preempted


Happened = AttemptRecord | PodBound | PodPreempted
