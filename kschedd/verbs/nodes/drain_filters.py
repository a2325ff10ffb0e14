"""kubectl's drain filters: the pods of a node that `drain` evicts, ignores, or rejects.

The filters run in kubectl's order. The last filter decides about a pod; warnings of earlier filters are dropped.
Source: kubectl v1.34, pkg/drain/filters.go.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

import attrs

from kschedd.api.text.times import seconds

Raw = Mapping[str, Any]

MIRROR: Final = "kubernetes.io/config.mirror"
DAEMON_SET_FATAL: Final = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
DAEMON_SET_WARNING: Final = "ignoring DaemonSet-managed Pods"
LOCAL_STORAGE_FATAL: Final = "Pods with local storage (use --delete-emptydir-data to override)"
LOCAL_STORAGE_WARNING: Final = "deleting Pods with local storage"
UNMANAGED_FATAL: Final = "cannot delete Pods that declare no controller (use --force to override)"
UNMANAGED_WARNING: Final = "deleting Pods that declare no controller"


@attrs.frozen
class DrainFlags:
    force: bool = False
    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False
    skip_wait_for_delete_timeout_s: int = 0


@attrs.frozen
class PodDeleteStatus:
    """The decision whether a pod is evicted, with a message."""

    delete: bool
    reason: Literal["Okay", "Skip", "Warning", "Error"]
    message: str = ""


_OKAY: Final = PodDeleteStatus(True, "Okay")
_SKIP: Final = PodDeleteStatus(False, "Skip")

DaemonSetError = Callable[[str, str], str | None]
"""A function from a DaemonSet's namespace and name to the API server's error if it does not exist, else None."""


def delete_status(pod: Raw, flags: DrainFlags, daemon_set_error: DaemonSetError, now: float) -> PodDeleteStatus:
    """Return the decision about the pod."""
    filters: tuple[Callable[[], PodDeleteStatus], ...] = (
        lambda: _SKIP if is_long_deleted(pod, flags.skip_wait_for_delete_timeout_s, now) else _OKAY,
        lambda: _daemon_set(pod, flags, daemon_set_error),
        lambda: _SKIP if MIRROR in (pod["metadata"].get("annotations") or {}) else _OKAY,
        lambda: _local_storage(pod, flags),
        lambda: _unmanaged(pod, flags),
    )
    status = _OKAY
    for judge in filters:
        status = judge()
        if not status.delete:
            break
    return status


def is_long_deleted(pod: Raw, limit_s: int, now: float) -> bool:
    """Return whether the pod's deletionTimestamp is more than `limit_s` seconds ago; 0: no limit."""
    deleted = pod["metadata"].get("deletionTimestamp")
    return limit_s > 0 and bool(deleted) and int(now - seconds(deleted)) > limit_s


def controller_of(pod: Raw) -> Raw | None:
    return next((ref for ref in pod["metadata"].get("ownerReferences") or () if ref.get("controller")), None)


def _finished(pod: Raw) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _daemon_set(pod: Raw, flags: DrainFlags, daemon_set_error: DaemonSetError) -> PodDeleteStatus:
    owner = controller_of(pod)
    if owner is None or owner.get("kind") != "DaemonSet" or _finished(pod):
        return _OKAY
    error = daemon_set_error(pod["metadata"].get("namespace") or "", owner.get("name") or "")
    if error is not None:
        return PodDeleteStatus(True, "Warning", error) if flags.force else PodDeleteStatus(False, "Error", error)
    if not flags.ignore_daemonsets:
        return PodDeleteStatus(False, "Error", DAEMON_SET_FATAL)
    return PodDeleteStatus(False, "Warning", DAEMON_SET_WARNING)


def _local_storage(pod: Raw, flags: DrainFlags) -> PodDeleteStatus:
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    if _finished(pod) or all(volume.get("emptyDir") is None for volume in volumes):
        return _OKAY
    if not flags.delete_emptydir_data:
        return PodDeleteStatus(False, "Error", LOCAL_STORAGE_FATAL)
    return PodDeleteStatus(True, "Warning", LOCAL_STORAGE_WARNING)


def _unmanaged(pod: Raw, flags: DrainFlags) -> PodDeleteStatus:
    if _finished(pod) or controller_of(pod) is not None:
        return _OKAY
    if not flags.force:
        return PodDeleteStatus(False, "Error", UNMANAGED_FATAL)
    return PodDeleteStatus(True, "Warning", UNMANAGED_WARNING)


def warnings(found: Iterable[tuple[Raw, PodDeleteStatus]]) -> str:
    """Return the warnings, each once with all its pods."""
    return "; ".join(f"{message}: {pods}" for message, pods in _by_message(found, "Warning"))


def errors(found: Iterable[tuple[Raw, PodDeleteStatus]]) -> list[str]:
    """Return the errors that prevent the drain, each once with all its pods."""
    return [
        f"{message}: {pods}" if message.lower().startswith("cannot delete") else f"cannot delete {message}: {pods}"
        for message, pods in _by_message(found, "Error")
    ]


def _by_message(found: Iterable[tuple[Raw, PodDeleteStatus]], reason: str) -> list[tuple[str, str]]:
    together: dict[str, list[str]] = {}
    for pod, status in found:
        if status.reason == reason:
            meta = pod["metadata"]
            together.setdefault(status.message, []).append(f"{meta.get('namespace')}/{meta['name']}")
    return [(message, ", ".join(names)) for message, names in together.items()]
