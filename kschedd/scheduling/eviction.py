"""Carrying out what preemption wants written: nominations taken away, victims told and deleted.

While it is going on the world may have moved: a pod that went by itself is as good as evicted, and what was to be
written to it is passed over. Only where every victim was gone before we came is there no deletion left to wake the
preemptor, so then, as after a refusal, it has to be tried again at once.

Source: Kubernetes v1.34.1, scheduler/framework/preemption/preemption.go (prepareCandidateAsync).
Talks to nobody: whoever runs attempts says how to write and which pods are there. Owns nothing.
"""

from collections.abc import Callable, Iterable

from kschedd.framework.status import Status, error
from kschedd.framework.writes import Delete, MergePatch, Write

ALL_GONE = "all victims were gone already"


def evict(
    writes: Iterable[Write], perform: Callable[[Write], Status | None], uid_of: Callable[[str, str], str | None]
) -> Status | None:
    """Do the writes in order. Returns why the preemptor is to be tried again at once, None if it is to wait.

    `uid_of(namespace, name)` is the uid of the pod that has this name now, None if there is none.
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
