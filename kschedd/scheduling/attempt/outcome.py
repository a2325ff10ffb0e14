"""Results of one attempt: a node for the pod (ScheduleResult), or the reasons why no node is feasible (FitError)."""

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, Rows
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import PostFilterResult
from kschedd.framework.status import Code, Status
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.profiles.profile import Framework
from kschedd.scheduling.verdicts import Diagnosis, Verdicts
from kschedd.values import fast_frozen


@fast_frozen(eq=False)
class ScheduleResult:
    """The node selected for the pod; nothing has been assumed yet."""

    pod: Pod
    node_name: str
    framework: Framework  # the profile whose plugins selected the node
    state: CycleState
    feasible: Rows
    visited: int
    totals: Ints | None  # None if only one node was feasible
    score: int | None  # the highest total
    ties: int
    verdicts: Verdicts | None  # None for attempts of a run (`Runs.together`)


@attrs.frozen(eq=False)
class FitError:
    """A failed attempt.

    `status` is Error for an internal error, otherwise the code with which the nodes were rejected.
    """

    pod: Pod
    status: Status
    diagnosis: Diagnosis
    state: CycleState
    post_filter: PostFilterResult | None = None
    nominated_node: str | None = ""  # None: do not change the pod's nomination; "": clear the nomination

    @property
    def message(self) -> str:
        """The message of the PodScheduled condition."""
        if self.status.code == Code.ERROR or self.diagnosis.node_count == 0:
            return self.status.message
        return self.diagnosis.message


Attempt = Work[ScheduleResult | FitError]
