"""Run: several consecutive attempts for pods whose only further step is Bind.

If most of an attempt is cached, the steps around it cost as much as the attempt; a run shares these steps. There are
two kinds of runs. In the first kind, all attempts are computed together, because no two of them visit the same node.
Each pod is attempted in a separate window of nodes, or on the node that it names. In the second kind, for pods whose
plugins count other pods, each attempt is made after the previous pods are assumed.

Invariant: the results equal those of attempting and completing one pod after the other.
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
