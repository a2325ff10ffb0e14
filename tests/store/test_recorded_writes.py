"""Tests of patches and updates against a real kube-apiserver's answers: acceptance and resulting objects.

Fields that the server, its plugins or its controllers fill in for these kinds are ignored by their paths, since only
the rules of patching and of immutable fields are compared.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.store.recorded import CONTENT_TYPES, agreement, answer, bare, differences, records

# Fields that the server's encoding always writes, or that plugins and controllers fill in.
_ADDED = re.compile(
    r"""
    \.status\.conditions(\[\d+\])?(\.last\w+)? | \.status\.(nodeInfo|daemonEndpoints|allocatable)
    | \.spec\.taints | \.spec\.podCIDRs? | \.status
    | \.spec\.(clusterIPs?|ipFamilies|ipFamilyPolicy|selector) | \.spec\.ports\[\d+\]\.nodePort
    | (\.spec\.template)?\.metadata(\.labels(\.(batch\.kubernetes\.io/)?(controller-uid|job-name))?)?
    | \.metadata\.finalizers | \.spec\.drivers(\[\d+\]\.topologyKeys)? | \.spec\.devices
    """,
    re.VERBOSE,
)
_NOT_ADDED_KINDS = frozenset(("Deployment", "ConfigMap", "Lease", "StorageClass", "PriorityClass"))


def wrong_objects(record: dict[str, Any], got: Any) -> list[str]:
    found = differences(bare(record["want"]["object"]), bare(got.object or {}))
    return [text for text in found if not _ADDED.fullmatch(text.partition(": want ")[0])]


def patches(patch_type: str) -> Iterator[dict[str, Any]]:
    for record in records("patch"):
        if CONTENT_TYPES.get(record["content_type"]) == patch_type:
            yield record


@pytest.mark.parametrize(
    ("patch_type", "known"),
    [
        ("json", set()),
        # Differences outside of patching: ephemeral containers have no subresource here, and a Service gets no
        # addresses.
        ("merge", {"Pod/ephemeralcontainers"}),
        ("strategic", {"Pod/ephemeralcontainers", "Service/"}),
    ],
)
def test_a_patch_is_taken_or_refused_as_a_real_server_does(patch_type: str, known: set[str]) -> None:
    seen = 0
    wrong = []
    for record in patches(patch_type):
        seen += 1
        got = answer(record)
        assert got is not None
        if not agreement(record, got)["accepted"] and f"{record['kind']}/{record['subresource']}" not in known:
            wrong.append(f"{record['id']}: {got.message or 'taken'}")
    assert seen > 50
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("patch_type", ["json", "merge", "strategic"])
def test_an_object_comes_out_of_a_patch_as_from_a_real_server(patch_type: str) -> None:
    wrong = []
    for record in patches(patch_type):
        got = answer(record)
        if record["want"]["code"] >= 300 or got is None or not got.accepted or record["subresource"] == "status":
            continue
        wrong += [f"{record['id']}{text}" for text in wrong_objects(record, got)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("patch_type", ["json", "merge", "strategic"])
def test_warnings_of_a_patch_are_those_of_a_real_server(patch_type: str) -> None:
    for record in patches(patch_type):
        got = answer(record)
        wanted = [text for text in record["want"].get("warnings", ()) if "unknown field" in text]
        if got is not None and got.accepted and wanted:
            assert [text.partition(";")[0] for text in got.warnings] == wanted, record["id"]


_FIXED = re.compile(r"immutable|may not change|may not be changed|are forbidden|only deletion|can not be|tandem")


def test_what_may_not_change_is_refused_as_by_a_real_server() -> None:
    """Compare the immutable fields; a real server may reject other fields for other reasons."""
    seen = 0
    wrong = []
    for record in records("update"):
        causes = record["want"].get("status", {}).get("causes", [])
        fixed = {cause["field"] for cause in causes if _FIXED.search(cause["message"])}
        if not fixed or record["kind"] == "Service":
            continue
        got = answer(record)
        if got is None:
            continue
        seen += 1
        if not fixed <= got.fields:
            wrong.append(f"{record['id']}: want {sorted(fixed)}, got {sorted(got.fields)}")
    assert seen > 80
    assert not wrong, "\n".join(wrong)


def test_what_may_change_is_not_refused() -> None:
    seen = 0
    wrong = []
    for record in records("update"):
        if record["want"]["code"] >= 300 or record["subresource"] not in ("", "status"):
            continue
        got = answer(record)
        if got is None or got.accepted:
            seen += got is not None
            continue
        if "<nodePort>" not in str(record["new"]):
            wrong.append(f"{record['id']}: {got.message[:200]}")
    assert seen > 300
    assert not wrong, "\n".join(wrong)
