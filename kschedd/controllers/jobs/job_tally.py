"""The tally of a Job: its running pods, and its ended pods that it has not counted yet.

For active pods, a sync of the Job needs only their number and their indexes. Pods that ended or are being deleted are
examined one by one. Ended and terminating pods are few, because the Job soon counts or deletes them.
"""

from collections.abc import Mapping

import attrs

from kschedd.api.conditions import is_true
from kschedd.api.pods import Pod
from kschedd.controllers.jobs.indexes import UNKNOWN_INDEX, completion_index
from kschedd.controllers.jobs.job_pods import is_tracked
from kschedd.controllers.workloads.tallies import PodsByState, Terms
from kschedd.values import fast_frozen


@attrs.frozen
class JobTerms(Terms):
    indexed: bool = False


@fast_frozen
class _State:
    active: bool  # False if the pod has ended or is being deleted
    ready: bool
    restarts: int  # restarts of the pod's containers, while the pod is pending or running


class JobTally(PodsByState[_State]):
    def __init__(self, terms: JobTerms) -> None:
        super().__init__()
        self.terms = terms
        self._index: dict[str, int] = {}  # uid -> index of active pods of an Indexed Job
        self._by_index: dict[int, dict[str, None]] = {}

    def counts(self, dependent: Pod) -> bool:
        return not dependent.finished or is_tracked(dependent)

    def state_of(self, item: Pod, now: float) -> tuple[_State, None]:
        active = not item.finished and not item.deletion_timestamp
        return _State(active, active and is_true(item.status, "Ready"), _restarts(item)), None

    def put(self, dependent: Pod, now: float) -> None:
        super().put(dependent, now)
        if self.terms.indexed:
            active = not dependent.finished and not dependent.deletion_timestamp
            self._file(dependent.uid, completion_index(dependent) if active else None)

    def drop(self, dependent: Pod, now: float) -> None:
        super().drop(dependent, now)
        self._file(dependent.uid, None)

    def _file(self, uid: str, index: int | None) -> None:
        before = self._index.get(uid)
        if before == index:
            return
        if before is not None:
            del self._by_index[before][uid], self._index[uid]
            if not self._by_index[before]:
                del self._by_index[before]
        if index is not None:
            self._index[uid] = index
            self._by_index.setdefault(index, {})[uid] = None

    @property
    def actives(self) -> int:
        return self.count(lambda pod: pod.active)

    @property
    def ready(self) -> int:
        return self.count(lambda pod: pod.ready)

    @property
    def restarts(self) -> int:
        return sum(state.restarts * len(group) for state, group in self.groups.items())

    @property
    def indexes(self) -> Mapping[int, object]:
        """The indexes of active pods, including UNKNOWN_INDEX if a pod has no index."""
        return self._by_index

    def active(self) -> list[Pod]:
        """Return the active pods in order of arrival."""
        return self._in_order(active=True)

    def ended(self) -> list[Pod]:
        """Return the pods that ended or are being deleted, in order of arrival."""
        return self._in_order(active=False)

    def _in_order(self, *, active: bool) -> list[Pod]:
        wanted = frozenset(self.names(lambda pod: pod.active is active))
        if len(wanted) == len(self.items):
            return list(self.items.values())
        return [pod for uid, pod in self.items.items() if uid in wanted] if wanted else []

    def is_tracked(self, uid: str) -> bool:
        """Return whether the pod exists and the Job has not counted it yet."""
        pod = self.items.get(uid)
        return pod is not None and is_tracked(pod)

    def misplaced(self, completions: int) -> bool:
        """Return whether any active pod has no index, an index that is too high, or the index of another pod."""
        if UNKNOWN_INDEX in self._by_index or len(self._index) > len(self._by_index):
            return True
        return any(index >= completions for index in self._by_index)


def _restarts(pod: Pod) -> int:
    if pod.phase not in ("Running", "Pending"):
        return 0
    return sum(
        container.get("restartCount") or 0
        for field in ("initContainerStatuses", "containerStatuses")
        for container in pod.status.get(field) or ()
    )
