"""Writes of preemption: clear nominations, set the victims' DisruptionTarget condition and delete the victims.

The cluster may change meanwhile: a pod that is already deleted counts as evicted. Once a victim's condition or
deletion is refused, the other victims stay: kube-scheduler cancels what is left, and tries the preemptor again. If
every victim was gone before, there is no deletion event to wake the preemptor; up to 1.34 it is then requeued at once,
as after a refused write (rule gone_victims_evicted: it is not).

Source: Kubernetes v1.34.1, scheduler/framework/preemption/preemption.go (prepareCandidateAsync); v1.35 (PreemptPod).
Does no I/O itself: the caller passes the write function and the pod lookup. Owns nothing.
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
    """Do the writes in order. Returns why the preemptor must be requeued at once, None if it is to wait.

    `uid_of(namespace, name)` is the uid of the pod that has this name now, None if no pod has. `gone_fails`: see
    `EvictionOutcome`.
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
    """The pod that a write was meant for."""

    namespace: str
    name: str
    uid: str  # "": whichever has the name

    def is_gone(self, uid_now: str | None) -> bool:
        """`uid_now`: of the pod that has this name now, None if no pod has."""
        return uid_now is None or (bool(self.uid) and self.uid != uid_now)


@attrs.define
class EvictionOutcome:
    """The result of an eviction. `gone_fails`: it fails if every victim was gone before."""

    gone_fails: bool = True
    _refusal: Status | None = None
    _victims: int = 0
    _evicted: int = 0
    _gone: set[tuple[str, str]] = attrs.field(factory=set)  # victims that were gone before their condition was written
    _cancelled: bool = False

    def wants(self, write: Write) -> bool:
        """Return whether a write is to be done: none after a refusal, and no deletion of a victim that is gone."""
        if self._cancelled:
            return False
        if not isinstance(write, Delete) or (write.namespace, write.name) not in self._gone:
            return True
        self._victims += 1
        return False

    @staticmethod
    def asks_about(write: Write) -> WrittenPod | None:
        """The pod of which is to be found out, where the write is refused, whether it is gone."""
        match write:
            case Delete(_, namespace, name, uid):
                return WrittenPod(namespace, name, uid)
            case MergePatch(_, namespace, name, patch):
                return WrittenPod(namespace, name, (patch.get("metadata") or {}).get("uid") or "")
            case _:
                return None

    def note(self, write: Write, why: Status | None, gone: bool) -> None:
        """The write was done (None), or refused, because the pod is gone or for another reason."""
        if isinstance(write, Delete):
            self._victims += 1
            self._evicted += not gone
        if why is None:
            return
        if isinstance(write, MergePatch) and gone:
            self._gone.add((write.namespace, write.name))
        if not gone:
            self._refusal = self._refusal or why
            self._cancelled = self._cancelled or _of_victim(write)

    @property
    def failure(self) -> Status | None:
        """As `evict` returns it."""
        if self._refusal is not None:
            return self._refusal
        return error(ALL_GONE) if self.gone_fails and self._victims and not self._evicted else None


def _of_victim(write: Write) -> bool:
    """Return whether the write is a victim's, and not one that clears the nomination of another pod."""
    return isinstance(write, Delete) or (isinstance(write, MergePatch) and "conditions" in write.patch["status"])
