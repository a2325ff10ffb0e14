"""What the scheduling driver tells of its work: a record of every attempt, and the events a user is shown."""

from kschedd.values import value

NORMAL = "Normal"
WARNING = "Warning"


@value(eq=False)
class AttemptRecord:
    """One attempt; or, with `of_binding`, a binding that failed after its attempt had found a node."""

    at_s: float  # seconds since the epoch
    pod: str  # "namespace/name"
    uid: str
    attempt: int
    node: str  # "" if it got none
    feasible: int
    visited: int
    ties: int
    score: int | None  # None where there was nothing to compare
    took_s: float
    message: str = ""
    nominated_node: str = ""
    of_binding: bool = False


@value(eq=False)
class SchedulerEvent:
    """What `kubectl get events` would show of a pod. Its words are made when somebody looks."""

    at_s: float
    type: str  # NORMAL or WARNING
    reason: str
    namespace: str
    name: str  # of the pod
    about: str  # the message, or what it is made of

    @property
    def message(self) -> str:
        if self.reason == "Scheduled":
            return f"Successfully assigned {self.namespace}/{self.name} to {self.about}"
        return self.about
