"""Run: attempts that are made one right after the other, for pods that are next and have nothing before them but to be
bound, and what they have come to.

What goes with an attempt costs as much as the attempt itself where most of that is known: a run shares it. There are
two kinds of runs. In one the attempts are made together, since no two of them look at the same node and nothing else
that changes between them matters: a window of nodes for each pod, or the node that it names. In the other, of pods
whose plugins count pods, each attempt is made with the pods before it on their nodes.

Invariant: everything comes to what it comes to where one pod is attempted, and acted on, after the other.
"""

import attrs

from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.failure import FailedAttempt


@attrs.frozen(eq=False)
class AttemptRun:
    """`outcomes`: of each attempt the pod that is assumed on its node, or how it failed; None where that is still to be
    done, pod by pod."""

    results: list[ScheduleResult] = attrs.field(factory=list)
    outcomes: list[AssumedPod | FailedAttempt | None] = attrs.field(factory=list)

    def __len__(self) -> int:
        return len(self.results)
