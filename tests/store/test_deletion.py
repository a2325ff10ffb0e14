"""Tests of the steps of a deletion: preconditions, grace periods, finalizers, and the end of the object."""

from typing import Any

import pytest

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.api.text.times import seconds, stamp
from kschedd.store.deletion import (
    begin_deletion,
    check_delete_preconditions,
    check_grace_period,
    finished,
    grace_of,
    marked,
    marked_pod,
)
from kschedd.store.errors import Invalid, PreconditionFailed

NOW_S = seconds("2026-01-01T00:01:00Z")
NOW, BEFORE = stamp(NOW_S), stamp(NOW_S - 10)


def at(seconds_later: int) -> str:
    return stamp(NOW_S + seconds_later)


def made(kind: str = "ConfigMap", *, spec: Any = None, status: Any = None, **meta: Any) -> Object:
    meta = {"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7", **meta}
    raw = {"apiVersion": "v1", "kind": kind, "metadata": meta}
    return parse({**raw, **({"spec": spec} if spec is not None else {}), **({"status": status} if status else {})})


def pod(grace: int | None = 30, phase: str = "Running", node: str = "n", **meta: Any) -> Pod:
    spec: dict[str, Any] = {"nodeName": node, "containers": []}
    if grace is not None:
        spec["terminationGracePeriodSeconds"] = grace
    found = made("Pod", spec=spec, status={"phase": phase}, **meta)
    assert isinstance(found, Pod)
    return found


# -- requests ----------------------------------------------------------------------------------------------------------


def test_preconditions_are_the_uid_and_the_version_of_the_object() -> None:
    obj = made()
    for uid, version in ((None, None), ("u", None), (None, 7), (None, "7"), ("u", 7)):
        check_delete_preconditions(obj, uid, version)
    with pytest.raises(
        PreconditionFailed, match=r"the UID in the precondition \(v\) does not match the UID in record \(u"
    ):
        check_delete_preconditions(obj, "v", 7)
    for version in (8, "8", "07"):
        with pytest.raises(
            PreconditionFailed, match=rf"\({version}\) does not match the ResourceVersion in record \(7\)"
        ):
            check_delete_preconditions(obj, "u", version)


def test_a_grace_period_has_64_bits() -> None:
    for requested in (None, 0, -(2**63), 2**63 - 1):
        check_grace_period(requested)
    for requested in (-(2**63) - 1, 2**63):
        with pytest.raises(Invalid, match="must be a 64-bit integer"):
            check_grace_period(requested)


@pytest.mark.parametrize(
    ("obj", "requested", "grace"),
    [
        pytest.param(pod(), None, 30, id="of-the-pod"),
        pytest.param(pod(), 5, 5, id="requested"),
        pytest.param(pod(), 0, 0, id="none-requested"),
        pytest.param(pod(None), None, 0, id="pod-without-one"),
        pytest.param(pod(-1), None, 1, id="negative"),
        pytest.param(pod(), -5, 1, id="negative-requested"),
        pytest.param(pod(node=""), 5, 0, id="without-a-node"),
        pytest.param(pod(phase="Failed"), 5, 0, id="finished"),
        pytest.param(made(), 5, 0, id="another-kind"),
    ],
)
def test_only_a_pod_that_runs_has_a_grace_period(obj: Object, requested: int | None, grace: int) -> None:
    assert grace_of(obj, requested) == grace


# -- the mark ----------------------------------------------------------------------------------------------------------


def test_the_last_event_of_an_object_has_no_grace_period() -> None:
    assert marked(made(), NOW_S)["metadata"] == {
        **made().metadata,
        "deletionTimestamp": NOW,
        "deletionGracePeriodSeconds": 0,
    }
    assert marked(made(generation=3), NOW_S)["metadata"]["generation"] == 4
    going = made(generation=3, deletionTimestamp=BEFORE, deletionGracePeriodSeconds=30)
    assert marked(going, NOW_S)["metadata"] == {**going.metadata, "deletionGracePeriodSeconds": 0}
    last = marked_pod(pod(generation=1), NOW_S, 9)
    assert (last.resource_version, last.metadata["resourceVersion"], last.deletion_timestamp) == (9, "9", NOW)
    assert (last.metadata["generation"], last.node_name, last.phase) == (2, "n", "Running")


@pytest.mark.parametrize(
    ("obj", "requested", "changes"),
    [
        pytest.param(pod(), None, {"deletionTimestamp": at(30), "deletionGracePeriodSeconds": 30}, id="pod"),
        pytest.param(pod(), 5, {"deletionTimestamp": at(5), "deletionGracePeriodSeconds": 5}, id="requested"),
        pytest.param(
            pod(generation=3),
            None,
            {"deletionTimestamp": at(30), "deletionGracePeriodSeconds": 30, "generation": 4},
            id="generation",
        ),
        pytest.param(
            made(finalizers=["x"]), None, {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0}, id="finalizers"
        ),
        pytest.param(
            pod(deletionTimestamp=at(20), deletionGracePeriodSeconds=30),
            5,
            {"deletionTimestamp": at(-5), "deletionGracePeriodSeconds": 5},
            id="shorter",
        ),
        pytest.param(pod(deletionTimestamp=at(20), deletionGracePeriodSeconds=30), 60, {}, id="longer"),
        pytest.param(pod(deletionTimestamp=at(20), deletionGracePeriodSeconds=30), None, {}, id="again"),
        pytest.param(
            pod(10, deletionTimestamp=at(20), deletionGracePeriodSeconds=30),
            None,
            {},
            id="again-with-a-shorter-default",
        ),
        pytest.param(
            pod(deletionTimestamp=at(20), deletionGracePeriodSeconds=30, finalizers=["x"]),
            0,
            {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0},
            id="at-once-with-finalizers",
        ),
        pytest.param(
            pod(deletionTimestamp=at(50), deletionGracePeriodSeconds=30, finalizers=["x"]),
            0,
            {"deletionTimestamp": at(20), "deletionGracePeriodSeconds": 0},
            id="at-once-before-its-deletion-began",
        ),
        pytest.param(
            pod(phase="Failed", deletionTimestamp=at(20), deletionGracePeriodSeconds=30, finalizers=["x"]),
            None,
            {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0},
            id="pod-that-has-finished-meanwhile",
        ),
        pytest.param(
            made("Namespace", namespace="", spec={"finalizers": ["kubernetes"]}),
            None,
            {"deletionTimestamp": NOW},
            id="namespace",
        ),
    ],
)
def test_a_deletion_begins_with_a_mark(obj: Object, requested: int | None, changes: dict[str, Any]) -> None:
    found = begin_deletion(obj, requested, "", NOW_S)
    assert found is not None
    assert found["metadata"] == {**obj.metadata, **changes}
    assert obj.kind != "Namespace" or found["status"] == {"phase": "Terminating"}


@pytest.mark.parametrize(
    ("obj", "requested"),
    [
        pytest.param(made(), None, id="another-kind"),
        pytest.param(pod(), 0, id="pod-at-once"),
        pytest.param(pod(node=""), None, id="pod-without-a-node"),
        pytest.param(pod(deletionTimestamp=at(20), deletionGracePeriodSeconds=30), 0, id="pod-at-once-after-all"),
        pytest.param(made("Namespace", namespace=""), None, id="namespace-without-finalizers"),
    ],
)
def test_an_object_without_a_reason_to_wait_is_removed(obj: Object, requested: int | None) -> None:
    assert begin_deletion(obj, requested, "", NOW_S) is None


# -- finalizers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "present", "propagation", "finalizers"),
    [
        pytest.param("ConfigMap", ["x"], "Orphan", ["x", "orphan"], id="orphan"),
        pytest.param("ConfigMap", ["orphan", "x"], "Foreground", ["x", "foregroundDeletion"], id="another-propagation"),
        pytest.param("ConfigMap", ["x", "orphan"], "Background", ["x"], id="background"),
        pytest.param("ConfigMap", ["foregroundDeletion", "x"], "", ["foregroundDeletion", "x"], id="of-the-object"),
        pytest.param("ReplicationController", [], "", ["orphan"], id="default-of-the-kind"),
        pytest.param(
            "ReplicationController", ["foregroundDeletion"], "", ["foregroundDeletion"], id="before-the-default"
        ),
    ],
)
def test_the_propagation_of_a_deletion_is_a_finalizer(
    kind: str, present: list[str], propagation: Any, finalizers: list[str]
) -> None:
    found = begin_deletion(made(kind, finalizers=present), None, propagation, NOW_S)
    assert found is not None
    assert found["metadata"]["finalizers"] == finalizers


def test_an_object_whose_last_finalizer_goes_is_removed() -> None:
    assert begin_deletion(made(finalizers=["orphan"]), None, "Background", NOW_S) is None
    going = made(finalizers=["orphan"], deletionTimestamp=BEFORE, deletionGracePeriodSeconds=0)
    assert begin_deletion(going, None, "Background", NOW_S) is None
    going = pod(finalizers=["orphan"], deletionTimestamp=at(20), deletionGracePeriodSeconds=30)
    found = begin_deletion(going, 5, "Background", NOW_S)
    assert found is not None
    assert "finalizers" not in found["metadata"]


@pytest.mark.parametrize(
    "going",
    [
        pytest.param(pod(finalizers=["x"], deletionTimestamp=at(20), deletionGracePeriodSeconds=30), id="pod"),
        pytest.param(
            made(
                "Namespace",
                namespace="",
                spec={"finalizers": ["kubernetes"]},
                finalizers=["x"],
                deletionTimestamp=BEFORE,
            ),
            id="namespace",
        ),
    ],
)
def test_the_finalizers_of_an_object_that_waits_do_not_change(going: Object) -> None:
    for requested in (None, 60):
        found = begin_deletion(going, requested, "Foreground", NOW_S)
        assert found is not None
        assert found["metadata"]["finalizers"] == ["x"]


# -- the end -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "meta", "spec", "is_finished"),
    [
        pytest.param("Pod", {"deletionTimestamp": NOW}, {}, True, id="without-a-grace-period"),
        pytest.param("Pod", {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0}, {}, True, id="grace-period-0"),
        pytest.param("Pod", {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 1}, {}, False, id="grace-period"),
        pytest.param("Pod", {"deletionTimestamp": NOW, "finalizers": ["x"]}, {}, False, id="finalizers"),
        pytest.param("Pod", {}, {}, False, id="not-being-deleted"),
        pytest.param("Namespace", {"deletionTimestamp": NOW}, {"finalizers": ["kubernetes"]}, False, id="namespace"),
        pytest.param("Namespace", {"deletionTimestamp": NOW}, None, True, id="empty-namespace"),
        pytest.param("Pod", {"deletionTimestamp": NOW}, {"finalizers": ["x"]}, True, id="other-field-of-that-name"),
    ],
)
def test_a_deletion_ends_without_finalizers_and_grace_period(
    kind: str, meta: Any, spec: Any, is_finished: bool
) -> None:
    assert finished(kind, {"metadata": meta, "spec": spec}) is is_finished
