"""Trials: a remedy is applied to the fork, the pod is attempted once more, and the fork is as it was again.

Only what comes of an attempt counts: a remedy that a plugin promised, and with which the pod is still rejected, has
failed. A pod that preemption then makes room for is placed too, once its victims are gone.
Owns nothing: the fork that it works on belongs to whoever made it, and is not used by anybody else meanwhile.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs
import numpy as np

from kschedd.api.base import Object
from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.explain.judging import judge
from kschedd.framework.changes import Change
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import PRE_ENQUEUE, PreEnqueuePlugin
from kschedd.framework.status import Code
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.nominations.counted import Nominated, NominatedPods


@attrs.frozen
class TrialResult:
    """`node`: where the pod is then placed. `displaced`: the pods that are gone for it."""

    node: str
    displaced: tuple[str, ...] = ()


def try_changes(scheduler: Scheduler, pod: Pod, nominated: Nominated, changes: Sequence[Change]) -> TrialResult | None:
    """Where the pod is placed after these changes; None if it still is not."""
    gone = tuple(dict.fromkeys(key for change in changes for key in change.displaced))
    with applied(scheduler.cluster, pod, changes) as changed:
        if any(_holds_back(plugin, changed) for plugin in scheduler.profile.at(PRE_ENQUEUE)):
            return None
        left = {node: [other for other in pods if other.key not in gone] for node, pods in nominated.items()}
        outcome = drive(scheduler.attempt(changed, left))
    if not isinstance(outcome, FitError):
        return TrialResult(outcome.node_name, gone)
    post = outcome.post_filter
    if post is None or post.status.code != Code.SUCCESS or not post.nominated_node:
        return None
    return TrialResult(post.nominated_node, (*gone, *(victim.key for victim in post.victims)))


def passes(scheduler: Scheduler, pod: Pod, nominated: Nominated, changes: Sequence[Change], name: str) -> bool:
    """Whether the node passes all filters after these changes."""
    gone = {key for change in changes for key in change.displaced}
    left = {node: [other for other in pods if other.key not in gone] for node, pods in nominated.items()}
    with applied(scheduler.cluster, pod, changes) as changed:
        state = CycleState()
        rejected = scheduler.pre_filters.at_once(state, changed).status
        row = scheduler.cluster.table.row_of.get(name)
        if rejected is not None or row is None:
            return False
        rows = np.array([row], dtype=np.int64)
        counted = NominatedPods(scheduler.cluster.table, changed, left).everywhere
        (verdict,) = judge(scheduler.filters, state, changed, rows, counted, lambda point, plugin: None)
    return not verdict.rejections


def try_node(scheduler: Scheduler, pod: Pod, name: str, change: Change) -> TrialResult | None:
    """As `try_changes`, for a pod whose spec names a node that the change makes: it must fit there."""
    return TrialResult(name) if passes(scheduler, pod, {}, [change], name) else None


def _holds_back(plugin: PreEnqueuePlugin, pod: Pod) -> bool:
    try:
        status = plugin.pre_enqueue(pod)
    except Exception:  # a plugin's fault ends here: it does not let the pod in
        return True
    return status is not None and status.code != Code.SUCCESS


@contextmanager
def applied(cluster: SchedulerCache, pod: Pod, changes: Sequence[Change]) -> Iterator[Pod]:
    """The pod as it is after the changes, while they are applied."""
    before: list[tuple[Object, Object | None]] = []  # what was put or removed, and what was there
    try:
        for change in changes:
            applied = change.apply(cluster, pod)
            for obj in applied.remove:
                before.append((obj, _present(cluster, obj)))
                cluster.remove(obj)
            for obj in applied.put:
                if isinstance(obj, Pod) and obj.key == pod.key:
                    pod = obj
                    continue
                before.append((obj, _present(cluster, obj)))
                cluster.put(obj)
        yield pod
    finally:
        for obj, old in reversed(before):
            if old is None:
                cluster.remove(obj)
            else:
                cluster.put(old)


def _present(cluster: SchedulerCache, obj: Object) -> Object | None:
    if isinstance(obj, Pod):
        return cluster.pod(obj.uid)
    if isinstance(obj, Node):
        row = cluster.table.row_of.get(obj.name)
        return None if row is None else cluster.table.nodes[row]
    return cluster.get(obj.kind, obj.key)
