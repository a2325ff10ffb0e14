"""OneNode: evaluation of a pod on one node without caches.

Preemption uses OneNode in a cluster with trial changes. Nothing is cached, because the trial changes are undone
later.

Source: Kubernetes v1.37, scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods).
"""

from collections.abc import Collection

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status
from kschedd.scheduling.attempt.node_search import NodeSearch
from kschedd.scheduling.attempt.pre_filtering import PreFiltering
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.filtering.evaluation import Evaluations
from kschedd.scheduling.filtering.node_local_plugins import PluginFault
from kschedd.scheduling.nominations.counted import NominatedByRow


@attrs.frozen(eq=False)
class OneNode:
    """The evaluation of a pod on one node, without caches."""

    table: NodeTable
    pre_filters: PreFiltering
    evaluations: Evaluations
    search: NodeSearch

    def why_not(
        self, pod: Pod, node_name: str, counted: NominatedByRow, skipped: Collection[str] = ()
    ) -> Work[Status | None]:
        """Return why the pod does not currently fit on the node, or None if it fits.

        `counted` are the nominated pods that are treated as running on the node. Filters in `skipped` are not called.
        """
        state = CycleState()
        pre_filtered = yield from self.pre_filters.run(state, pod, None)
        if pre_filtered.status is not None:
            return pre_filtered.status
        state.skip_filter.update(skipped)
        known = self.evaluations.apart(state)
        at = known.place[[self.table.row_of[node_name]]]
        try:
            found = yield from self.search.run(known, state, pod, at, 0, 1, counted)
        except PluginFault as fault:
            return Status(Code.ERROR, (fault.message,), fault.plugin)
        return found.verdicts.status(0)
