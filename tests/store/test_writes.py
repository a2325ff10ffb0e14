"""Tests of writes as values: patches for an object, and how often a request to a real API server is sent."""

import pytest

from kschedd.api.objects import parse
from kschedd.store.writes import (
    MOST_TRIES,
    Bind,
    Delete,
    Patch,
    Write,
    is_sent_again,
    patch_of,
    status_of,
    status_write,
    tries_of,
)

GROUP = "PodGroup.scheduling.k8s.io"


@pytest.mark.parametrize(
    ("code", "why", "conflicts", "again"),
    [
        pytest.param(500, "", False, True, id="internal-error"),
        pytest.param(503, "", False, True, id="unavailable"),
        pytest.param(404, "", True, False, id="not-found"),
        pytest.param(409, "", False, False, id="conflict"),
        pytest.param(409, "", True, True, id="conflict-of-a-write-that-may-be-repeated"),
        pytest.param(0, "dial: Connection refused", False, True, id="connection-refused"),
        pytest.param(0, "timed out", False, False, id="no-response"),
        pytest.param(400, "connection refused", False, False, id="a-response-with-these-words"),
    ],
)
def test_a_request_is_sent_again(code: int, why: str, conflicts: bool, again: bool) -> None:
    assert is_sent_again(code, why, conflicts=conflicts) is again
    if not conflicts:
        assert is_sent_again(code, why) is again


@pytest.mark.parametrize(
    ("write", "tries"),
    [
        pytest.param(Bind("d", "p", "", "n"), 1, id="binding"),
        pytest.param(Bind("d", "p", "", "n", 4), 4, id="binding-that-is-repeated"),
        pytest.param(Patch("Pod", "d", "p", {}, "status"), 4, id="status-of-a-pod"),
        pytest.param(Patch(GROUP, "d", "g", {}, "status"), 4, id="status-of-a-group"),
        pytest.param(Patch("Pod", "d", "p", {}), 1, id="pod"),
        pytest.param(Patch("ResourceClaim", "d", "c", {}, "status"), 1, id="status-of-another-kind"),
        pytest.param(Delete("Pod", "d", "p"), 1, id="deletion"),
    ],
)
def test_kube_scheduler_sends_a_write_so_many_times(write: Write, tries: int) -> None:
    assert tries_of(write) == tries
    assert MOST_TRIES == 4


JOB = parse(
    {
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "d", "uid": "u", "resourceVersion": "7"},
        "status": {"active": 2, "succeeded": 1},
    }
)


def test_a_patch_is_for_this_object_and_on_request_for_this_version_only() -> None:
    patch = patch_of(JOB, {"metadata": {"labels": {"a": "b"}}, "spec": {}})
    assert patch.patch == {"metadata": {"labels": {"a": "b"}, "uid": "u"}, "spec": {}}
    assert (patch.kind, patch.namespace, patch.name, patch.seen, patch.guarded) == (JOB.kind, "d", "j", JOB, False)
    exact = patch_of(JOB, {"spec": {}}, exactly=True)
    assert exact.patch == {"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {}}
    assert exact.guarded
    assert not Patch("Pod", "d", "p", {}).guarded


@pytest.mark.parametrize("guarded", [True, False])
def test_a_status_is_patched_in_its_subresource(guarded: bool) -> None:
    patch = status_of(JOB, {"active": 1}, guarded=guarded)
    assert patch.patch == {"metadata": {"uid": "u"}, "status": {"active": 1}}
    assert (patch.subresource, patch.guarded) == ("status", guarded)
    assert not status_of(JOB, {"active": 1}).guarded


@pytest.mark.parametrize(
    ("status", "always", "written"),
    [
        pytest.param({"active": 2}, (), None, id="equal"),
        pytest.param({"active": 1, "succeeded": 1}, (), {"active": 1, "succeeded": 1}, id="different"),
        pytest.param({"failed": 0}, (), None, id="a-count-of-0-is-omitted"),
        pytest.param({"active": 0}, (), {"active": None}, id="a-count-that-becomes-0-is-removed"),
        pytest.param({"failed": 0}, ("failed",), {"failed": 0}, id="a-count-that-is-always-there"),
    ],
)
def test_a_status_is_written_if_it_differs(
    status: dict[str, int], always: tuple[str, ...], written: dict[str, int | None] | None
) -> None:
    found = [write.patch["status"] for write in status_write(JOB, status, always) if isinstance(write, Patch)]
    assert found == ([] if written is None else [written])
