"""Writes of preemption: clear nominations, set the victims' DisruptionTarget condition and delete the victims.

The cluster may change meanwhile: a pod that is already deleted counts as evicted, and further writes to it are
skipped. Only where every victim was gone beforehand is there no deletion event to wake the
preemptor, so then, as after a refused write, the preemptor has to be requeued at once.

Source: Kubernetes v1.34.1, scheduler/framework/preemption/preemption.go (prepareCandidateAsync).
Does no I/O itself: the caller passes the write function and the pod lookup. Owns nothing.
"""

from collections.abc import Callable, Iterable

from kschedd.framework.status import Status, error
from kschedd.framework.writes import Delete, MergePatch, Write

ALL_GONE = "all victims were gone already"


def evict(
    writes: Iterable[Write], perform: Callable[[Write], Status | None], uid_of: Callable[[str, str], str | None]
) -> Status | None:
    """Do the writes in order. Returns why the preemptor must be requeued at once, None if it is to wait.

    `uid_of(namespace, name)` is the uid of the pod that has this name now, None if no pod has.
    """
    refusal: Status | None = None
    victims = evicted = 0
    for write in writes:
        why = perform(write)
        gone = why is not None and _gone(write, uid_of)
        if isinstance(write, Delete):
            victims += 1
            evicted += not gone
        if why is not None and not gone and refusal is None:
            refusal = why
    if refusal is not None:
        return refusal
    return error(ALL_GONE) if victims and not evicted else None


def _gone(write: Write, uid_of: Callable[[str, str], str | None]) -> bool:
    match write:
        case Delete(_, namespace, name, uid):
            there = uid_of(namespace, name)
        case MergePatch(_, namespace, name, patch):
            there, uid = uid_of(namespace, name), (patch.get("metadata") or {}).get("uid") or ""
        case _:
            return False
    return there is None or (bool(uid) and uid != there)
