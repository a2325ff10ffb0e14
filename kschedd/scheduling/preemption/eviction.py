"""Writes of preemption: clear nominations, set the victims' DisruptionTarget condition, and delete the victims.

If a victim was deleted meanwhile, it is treated as evicted. If the write of a victim's condition or its deletion is
rejected, the other victims are not evicted: kube-scheduler cancels the remaining writes and retries the preemptor. If
every victim was already deleted, no deletion event requeues the preemptor. 1.34 and older releases therefore requeue it
immediately; 1.35 and newer ones leave it in the queue (rule `gone_victims_evicted`).

Source: Kubernetes v1.34.1, scheduler/framework/preemption/preemption.go (prepareCandidateAsync); v1.35 (PreemptPod).
This module does no I/O: the caller passes the write function and the pod lookup. Owns nothing.
"""

from collections.abc import Callable, Iterable

import attrs

from kschedd.framework.status import Status, error
from kschedd.framework.writes import Delete, MergePatch, Write

ALL_GONE = "all victims were gone already"


def evict(
    writes: Iterable[Write],
    perform: Callable[[Write], Status | None],
    uid_of: Callable[[str, str], str | None],
    *,
    gone_fails: bool = True,
) -> Status | None:
    """Do the writes in order. Return why the preemptor must be requeued immediately; None if it must wait.

    `uid_of(namespace, name)` returns the uid of the current pod with this name, or None if there is no such pod.
    `gone_fails`: the eviction fails if every victim was already deleted.
    """
    outcome = EvictionOutcome(gone_fails)
    for write in writes:
        if not outcome.wants(write):
            continue
        why = perform(write)
        pod = None if why is None else outcome.asks_about(write)
        outcome.note(write, why, pod is not None and pod.is_gone(uid_of(pod.namespace, pod.name)))
    return outcome.failure


@attrs.frozen
class WrittenPod:
    """The pod to which a write applies."""

    namespace: str
    name: str
    uid: str  # "" means any pod with this name

    def is_gone(self, uid_now: str | None) -> bool:
        """Return whether the pod no longer exists.

        `uid_now` is the uid of the current pod with this name, or None if there is no such pod.
        """
        return uid_now is None or (bool(self.uid) and self.uid != uid_now)


@attrs.define
class EvictionOutcome:
    """The result of an eviction. `gone_fails`: the eviction fails if every victim was already deleted."""

    gone_fails: bool = True
    _refusal: Status | None = None
    _victims: int = 0
    _evicted: bool = False
    # victims deleted before their condition was written
    _gone: set[tuple[str, str]] = attrs.field(factory=set)
    _cancelled: bool = False

    def wants(self, write: Write) -> bool:
        """Return whether to execute a write.

        A write is omitted after a rejection, and if it deletes a victim that no longer exists.
        """
        if self._cancelled:
            return False
        if not isinstance(write, Delete) or (write.namespace, write.name) not in self._gone:
            return True
        self._victims += 1
        return False

    @staticmethod
    def asks_about(write: Write) -> WrittenPod | None:
        """Return the pod to look up if the write is rejected; None if no lookup is needed."""
        match write:
            case Delete(_, namespace, name, uid):
                return WrittenPod(namespace, name, uid)
            case MergePatch(_, namespace, name, patch):
                return WrittenPod(namespace, name, (patch.get("metadata") or {}).get("uid") or "")
            case _:
                return None

    def note(self, write: Write, why: Status | None, gone: bool) -> None:
        """Record the result of a write.

        `why` is None if the write succeeded; `gone` is true if the pod no longer exists.
        """
        if isinstance(write, Delete):
            self._victims += 1
            self._evicted = self._evicted or not gone
        if why is None:
            return
        if isinstance(write, MergePatch) and gone:
            self._gone.add((write.namespace, write.name))
        if not gone:
            self._refusal = self._refusal or why
            self._cancelled = self._cancelled or _of_victim(write)

    @property
    def failure(self) -> Status | None:
        """The reason to requeue the preemptor immediately, or None."""
        if self._refusal is not None:
            return self._refusal
        return error(ALL_GONE) if self.gone_fails and self._victims and not self._evicted else None


def _of_victim(write: Write) -> bool:
    """Return whether the write is for a victim; other writes clear the nomination of another pod."""
    return isinstance(write, Delete) or (isinstance(write, MergePatch) and "conditions" in write.patch["status"])
