"""Tests of the pods that `drain` evicts, with the cases of kubectl's filters_test.go and drain_test.go."""

from typing import Any

import pytest

from kschedd.verbs.nodes import drain_filters as filters
from kschedd.verbs.nodes.drain_filters import DrainFlags, PodDeleteStatus, delete_status, errors, warnings

NOW = 1_735_689_600.0  # 2025-01-01T00:00:00Z
OKAY, SKIP = PodDeleteStatus(True, "Okay"), PodDeleteStatus(False, "Skip")
MISSING = 'daemonsets.apps "ds" not found'
MIRROR = {filters.MIRROR: "x"}


def pod(
    name: str = "p",
    owner: str = "",
    phase: str = "Running",
    volumes: tuple[str, ...] = (),
    deleted: str = "",
    **meta: Any,
) -> dict[str, Any]:
    whole: dict[str, Any] = {"name": name, "namespace": "default", **meta}
    if owner:
        whole["ownerReferences"] = [{"kind": owner, "name": owner[:1].lower() + "s", "uid": "u", "controller": True}]
    if owner == "DaemonSet":
        whole["ownerReferences"][0]["name"] = "ds"
    if deleted:
        whole["deletionTimestamp"] = deleted
    return {
        "metadata": whole,
        "spec": {"volumes": [{"name": "v", kind: {}} for kind in volumes]},
        "status": {"phase": phase},
    }


def fatal(message: str) -> PodDeleteStatus:
    return PodDeleteStatus(False, "Error", message)


def warned(message: str, delete: bool = True) -> PodDeleteStatus:
    return PodDeleteStatus(delete, "Warning", message)


FORCE = DrainFlags(force=True)
IGNORE = DrainFlags(ignore_daemonsets=True)
EMPTY_DIR = DrainFlags(delete_emptydir_data=True)
ALL = DrainFlags(force=True, ignore_daemonsets=True, delete_emptydir_data=True)
NONE = DrainFlags()


@pytest.mark.parametrize(
    ("given", "flags", "expected"),
    [
        # whose pod it is
        *[
            pytest.param(pod(owner=kind), NONE, OKAY, id=f"{kind}-pods-go")
            for kind in ("ReplicationController", "ReplicaSet", "Job", "StatefulSet")
        ],
        pytest.param(pod(owner="Custom"), NONE, OKAY, id="any-controller-will-do"),
        pytest.param(pod(), NONE, fatal(filters.UNMANAGED_FATAL), id="a-bare-pod-stops-the-drain"),
        pytest.param(pod(), FORCE, warned(filters.UNMANAGED_WARNING), id="a-bare-pod-goes-by-force"),
        pytest.param(pod(), IGNORE, fatal(filters.UNMANAGED_FATAL), id="ignoring-daemons-does-not-help-bare-pods"),
        pytest.param(pod(phase="Succeeded"), NONE, OKAY, id="a-bare-pod-that-succeeded-goes"),
        pytest.param(pod(phase="Failed"), NONE, OKAY, id="a-bare-pod-that-failed-goes"),
        pytest.param(pod(phase="Pending"), NONE, fatal(filters.UNMANAGED_FATAL), id="a-bare-pod-that-waits-stops-it"),
        pytest.param(
            pod(ownerReferences=[{"kind": "Node", "name": "n", "uid": "u"}]),
            NONE,
            fatal(filters.UNMANAGED_FATAL),
            id="an-owner-that-is-no-controller-does-not-count",
        ),
        # daemons
        pytest.param(pod(owner="DaemonSet"), NONE, fatal(filters.DAEMON_SET_FATAL), id="a-daemon-stops-the-drain"),
        pytest.param(
            pod(owner="DaemonSet"), FORCE, fatal(filters.DAEMON_SET_FATAL), id="a-daemon-does-not-go-by-force"
        ),
        pytest.param(
            pod(owner="DaemonSet"), IGNORE, warned(filters.DAEMON_SET_WARNING, False), id="a-daemon-is-left-when-told"
        ),
        pytest.param(pod(owner="DaemonSet"), ALL, warned(filters.DAEMON_SET_WARNING, False), id="and-with-all-flags"),
        pytest.param(pod(owner="DaemonSet", phase="Succeeded"), NONE, OKAY, id="a-daemon-that-succeeded-goes"),
        pytest.param(pod(owner="DaemonSet", phase="Failed"), IGNORE, OKAY, id="a-daemon-that-failed-goes"),
        pytest.param(pod("orphan", "DaemonSet"), NONE, fatal(MISSING), id="a-daemon-whose-set-is-gone-stops-it"),
        pytest.param(pod("orphan", "DaemonSet"), IGNORE, fatal(MISSING), id="also-when-daemons-are-ignored"),
        pytest.param(pod("orphan", "DaemonSet"), FORCE, OKAY, id="it-goes-by-force-and-later-filters-have-the-say"),
        pytest.param(
            pod("orphan", "DaemonSet", volumes=("emptyDir",)),
            FORCE,
            fatal(filters.LOCAL_STORAGE_FATAL),
            id="which-may-hold-it-back",
        ),
        # mirror pods
        pytest.param(pod(annotations=MIRROR), NONE, SKIP, id="a-mirror-pod-is-passed-over"),
        pytest.param(pod(annotations=MIRROR), ALL, SKIP, id="a-mirror-pod-is-passed-over-by-force-too"),
        pytest.param(
            pod(annotations=MIRROR, volumes=("emptyDir",)), NONE, SKIP, id="a-mirror-pod-with-local-storage-too"
        ),
        pytest.param(
            pod(owner="DaemonSet", annotations=MIRROR), NONE, fatal(filters.DAEMON_SET_FATAL), id="daemons-come-first"
        ),
        # local storage
        pytest.param(
            pod(owner="Job", volumes=("emptyDir",)),
            NONE,
            fatal(filters.LOCAL_STORAGE_FATAL),
            id="local-storage-stops-it",
        ),
        pytest.param(
            pod(owner="Job", volumes=("emptyDir",)), FORCE, fatal(filters.LOCAL_STORAGE_FATAL), id="force-is-not-enough"
        ),
        pytest.param(
            pod(owner="Job", volumes=("emptyDir",)),
            EMPTY_DIR,
            OKAY,
            id="local-storage-goes-when-told-and-its-warning-is-lost",
        ),
        pytest.param(
            pod(volumes=("emptyDir",)), EMPTY_DIR, fatal(filters.UNMANAGED_FATAL), id="a-bare-pod-with-it-needs-force"
        ),
        pytest.param(pod(volumes=("emptyDir",)), ALL, warned(filters.UNMANAGED_WARNING), id="the-last-filter-is-heard"),
        pytest.param(
            pod(volumes=("emptyDir",)), NONE, fatal(filters.LOCAL_STORAGE_FATAL), id="local-storage-comes-before-bare"
        ),
        pytest.param(pod(phase="Failed", volumes=("emptyDir",)), NONE, OKAY, id="what-ended-has-nothing-to-lose"),
        pytest.param(pod(owner="Job", volumes=("hostPath", "configMap")), NONE, OKAY, id="other-volumes-do-not-matter"),
        pytest.param(
            pod(owner="Job", volumes=("secret", "emptyDir")),
            NONE,
            fatal(filters.LOCAL_STORAGE_FATAL),
            id="one-of-several-volumes-is-enough",
        ),
        # pods that are being deleted
        pytest.param(
            pod(owner="Job", deleted="2024-12-31T23:00:00Z"), NONE, OKAY, id="without-a-limit-it-is-waited-for"
        ),
        pytest.param(
            pod(owner="Job", deleted="2024-12-31T23:58:00Z"),
            DrainFlags(skip_wait_for_delete_timeout_s=60),
            SKIP,
            id="deleted-longer-ago-than-the-limit",
        ),
        pytest.param(
            pod(owner="Job", deleted="2024-12-31T23:59:00Z"),
            DrainFlags(skip_wait_for_delete_timeout_s=60),
            OKAY,
            id="deleted-just-as-long-ago-as-the-limit",
        ),
        pytest.param(
            pod(deleted="2024-12-31T23:00:00Z"),
            DrainFlags(skip_wait_for_delete_timeout_s=60),
            SKIP,
            id="which-comes-before-all-else",
        ),
        pytest.param(
            pod(owner="Job", deleted="2025-01-01T00:01:00Z"),
            DrainFlags(skip_wait_for_delete_timeout_s=1),
            OKAY,
            id="a-deletion-that-is-still-to-come",
        ),
        pytest.param(
            pod(owner="Job"), DrainFlags(skip_wait_for_delete_timeout_s=1), OKAY, id="a-pod-that-is-not-deleted"
        ),
    ],
)
def test_what_becomes_of_a_pod(given: dict[str, Any], flags: DrainFlags, expected: PodDeleteStatus) -> None:
    missing = MISSING if given["metadata"]["name"] == "orphan" else None
    assert delete_status(given, flags, lambda namespace, name: missing, NOW) == expected


def test_each_message_is_said_once_with_all_of_its_pods() -> None:
    found = [(p, delete_status(p, NONE, lambda *_: None, NOW)) for p in (pod("a"), pod("b"), pod("d", "DaemonSet"))]
    assert errors(found) == [
        "cannot delete Pods that declare no controller (use --force to override): default/a, default/b",
        "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): default/d",
    ]
    found = [(p, delete_status(p, ALL, lambda *_: None, NOW)) for p in (pod("a"), pod("d", "DaemonSet"), pod("b"))]
    assert warnings(found) == (
        "deleting Pods that declare no controller: default/a, default/b; ignoring DaemonSet-managed Pods: default/d"
    )
    assert errors(found) == []
    assert warnings([(pod(), OKAY)]) == ""
