"""Run: several consecutive attempts for pods whose only further step is Bind.

If most of an attempt is cached, the steps before and after it take as much time as the attempt; a run shares them.
There are two kinds of runs. In a run of the first kind, all attempts are computed together, because no two attempts
visit the same node. Each pod of such a run is attempted in a separate window of nodes, or on the node that the pod
names. In a run of the second kind, whose plugins count other pods or whose attempts visit the same nodes, each attempt
is made after the previous pods are assumed.

Invariant: the results are the same as if each pod were attempted and completed before the next.
"""

import attrs

from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.failure import FailedAttempt


@attrs.frozen(eq=False)
class AttemptRun:
    """The results of a run.

    `outcomes` contains for each attempt the pod as assumed on its node, its failure, or None if the attempt must still
    be completed alone.
    """

    results: list[ScheduleResult] = attrs.field(factory=list)
    outcomes: list[AssumedPod | FailedAttempt | None] = attrs.field(factory=list)

    def __len__(self) -> int:
        return len(self.results)
