"""Tests that node pools behave as in transcribed cases of upstream's own tests (`../shared/pools`)."""

import pytest

from kschedd.conformance.records import GoldenRecord, read_records
from kschedd.conformance.verify import check
from tests.conftest import SharedPart

AUTOSCALER = ("drain", "eligibility", "estimator", "expander", "min-size", "planner", "scale-up", "unneeded")


@pytest.fixture(scope="module")
def records(shared_part: SharedPart) -> dict[str, list[GoldenRecord]]:
    found: dict[str, list[GoldenRecord]] = {}
    for file in ("cluster-autoscaler", "karpenter-overlay", "karpenter-disruption"):
        for record in read_records(shared_part("pools") / f"{file}.jsonl"):
            found.setdefault(record.family, []).append(record)
    return found


@pytest.mark.parametrize("topic", AUTOSCALER)
def test_cluster_autoscaler_decides_as_in_its_own_tests(records: dict[str, list[GoldenRecord]], topic: str) -> None:
    cases = records[f"cluster-autoscaler/{topic}"]
    assert cases
    assert {record.id: found for record in cases if (found := check(record).differences)} == {}
