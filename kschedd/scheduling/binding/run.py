"""Run: several attempts made one right after the other, for pods that need no further step except Bind.

The steps around an attempt cost as much as the attempt itself if most of the attempt is cached; a run shares these
steps. There are two kinds of runs. In the first kind, the attempts are made together, because no two attempts visit the
same node and no other change between them matters: each pod has its own window of nodes, or names its node. In the
second kind, for pods with plugins that count pods, each attempt is made after the previous pods are assumed on their
nodes.

Invariant: the results equal those of attempting and completing one pod after the other.
"""

import attrs

from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.failure import FailedAttempt


@attrs.frozen(eq=False)
class AttemptRun:
    """The results of a run.

    `outcomes` holds for each attempt the pod as assumed on its node, its failure, or None if the attempt must still be
    completed by itself.
    """

    results: list[ScheduleResult] = attrs.field(factory=list)
    outcomes: list[AssumedPod | FailedAttempt | None] = attrs.field(factory=list)

    def __len__(self) -> int:
        return len(self.results)
