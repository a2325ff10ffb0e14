"""Run: attempts made one right after the other, for the next pods that need no step but Bind, and their results.

The steps around an attempt cost as much as the attempt itself if most of it is cached; a run shares them. There are two
kinds of runs. In one, the attempts are made together, because no two of them visit the same node and no other change
between them matters: each pod has its own window of nodes, or names its node. In the other, for pods whose plugins
count pods, each attempt is made with the previous pods on their nodes.

Invariant: all results equal those of attempting and completing one pod after the other.
"""

import attrs

from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.failure import FailedAttempt


@attrs.frozen(eq=False)
class AttemptRun:
    """The results of a run.

    `outcomes`: for each attempt the pod as assumed on its node, or its failure; None if it must still be completed, pod
    by pod.
    """

    results: list[ScheduleResult] = attrs.field(factory=list)
    outcomes: list[AssumedPod | FailedAttempt | None] = attrs.field(factory=list)

    def __len__(self) -> int:
        return len(self.results)
