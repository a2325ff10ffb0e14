"""Tests that cycles evict what the real descheduler evicts (`../shared/pools`)."""

import pytest

from kschedd.conformance.records import GoldenRecord, read_records
from kschedd.conformance.verify import check
from kschedd.descheduler.policy import read_policy
from tests.conftest import SharedPart

FAMILIES = (
    *("antiaffinity", "defaultevictor", "duplicates", "failedpods", "highnodeutilization", "limits"),
    *("lownodeutilization", "mixed", "nodeaffinity", "nodetaints", "pdb", "podlifetime", "restarts", "topologyspread"),
)


@pytest.fixture(scope="module")
def records(shared_part: SharedPart) -> dict[str, list[GoldenRecord]]:
    found: dict[str, list[GoldenRecord]] = {}
    for record in read_records(shared_part("pools") / "descheduler.jsonl.gz"):
        found.setdefault(record.family.removeprefix("descheduler/"), []).append(record)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_evictions_are_those_of_the_real_descheduler(records: dict[str, list[GoldenRecord]], family: str) -> None:
    assert len(records[family]) > 50
    assert {record.id: found for record in records[family] if (found := check(record).differences)} == {}


def test_no_family_is_left_out(records: dict[str, list[GoldenRecord]]) -> None:
    assert {*records} == {*FAMILIES}


def test_the_examples_of_policies_can_be_read(shared_part: SharedPart) -> None:
    files = sorted((shared_part("pools") / "data" / "descheduler-policies").iterdir())
    policies = {file.stem: read_policy(file.read_text(encoding="utf-8"), file.name) for file in files}
    assert len(policies) == 9
    assert [name for name, _ in policies["policy"].profiles[0].balance] == [
        "RemoveDuplicates",
        "LowNodeUtilization",
        "RemovePodsViolatingTopologySpreadConstraint",
    ]
