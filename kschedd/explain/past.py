"""Restoration of the cluster of an earlier attempt: later writes are undone on a fork.

Only attempt records are stored for explanations of past attempts. Each record contains the pod and the store version
that the scheduler had processed. The later writes are in the store's log, unless it has dropped them. Pods that were
assumed at that time and bound later are found in the records of earlier attempts.

`rewind` changes a fork, and may run in any thread. The configuration, the visiting order of nodes and the state of
out-of-tree plugins are not restored.
"""

from collections.abc import Iterable, Sequence

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.scheduling.nominations.counted import Nominated
from kschedd.scheduling.records import AttemptRecord
from kschedd.store.objects.log import WatchEvent


@attrs.frozen(eq=False)
class Past:
    """`before` contains the records up to the attempt, oldest first.

    `since` contains the writes after the version that the attempt had processed. `record` is None if another scheduler
    made the attempt.
    """

    record: AttemptRecord | None
    before: Sequence[AttemptRecord]
    since: Sequence[WatchEvent]

    def rewind(self, cluster: SchedulerCache, observed: int) -> None:
        """Undo the later writes in a fork whose cache contains the writes up to `observed`."""
        undone = [event for event in self.since if event.version <= observed]
        placed = _placed(self.before)
        for assumed in cluster.assumed_pods():
            if assumed.uid not in placed:
                cluster.remove_pod(assumed)
        for event in reversed(undone):
            if event.old is None:
                cluster.remove(event.new)
            elif isinstance(event.old, Pod) and not event.old.node_name:
                cluster.remove(event.old)
            else:
                cluster.put(event.old)
        bound_since = {event.new.uid for event in self.since if _binds(event)}
        for uid, (pod, node_name) in placed.items():
            if uid in bound_since and cluster.pod(uid) is None:
                cluster.assume(pod, node_name)

    def nominated(self, now: Nominated) -> Nominated:
        """Return the nominations at the time of the attempt, derived from the present nominations."""
        by_uid = {pod.uid: pod for pods in now.values() for pod in pods}
        for event in reversed(self.since):
            if not isinstance(event.new, Pod):
                continue
            by_uid.pop(event.new.uid, None)
            old = event.old
            if isinstance(old, Pod) and old.nominated_node_name and not old.node_name:
                by_uid[old.uid] = old
        found: dict[str, list[Pod]] = {}
        for pod in by_uid.values():
            found.setdefault(pod.nominated_node_name, []).append(pod)
        return {node: tuple(pods) for node, pods in found.items()}


def _placed(records: Iterable[AttemptRecord]) -> dict[str, tuple[Pod, str]]:
    """Return the selected node of each pod by UID, without pods whose binding failed."""
    found: dict[str, tuple[Pod, str]] = {}
    for record in records:
        if record.of_binding:
            found.pop(record.uid, None)
        elif record.node and record.attempted is not None:
            found[record.uid] = record.attempted, record.node
    return found


def _binds(event: WatchEvent) -> bool:
    old, new = event.old, event.new
    return isinstance(new, Pod) and isinstance(old, Pod) and bool(new.node_name) and not old.node_name
