"""Tests that node pools behave as in transcribed cases of upstream's own tests (`../shared/pools`)."""

import pytest

from kschedd.conformance.records import GoldenRecord, read_records
from kschedd.conformance.verify import check
from tests.conftest import SharedPart
from tests.full_run import part

AUTOSCALER = ("drain", "eligibility", "estimator", "expander", "min-size", "planner", "scale-up", "unneeded")

OVERLAY = ("apply", "price")
DISRUPTION = (
    *("balanced", "balanced-score", "budget", "budget-schedule", "buffer", "candidate", "cost", "delete"),
    *("do-not-disrupt", "drift", "empty", "expiry", "multi", "pdb", "replace", "spread", "static", "ttl"),
)

PROVISIONING = (
    *("affinity", "basic", "claim", "daemonset", "deleting", "existing", "hostport", "in-flight", "instance-types"),
    *("labels", "limits", "minvalues", "operators", "packing", "pod-affinity", "pool", "preferences", "price"),
    *("requirements", "reserved", "spread", "static", "taints", "termination-grace", "volumes", "weight"),
)
# upstream's test has one instance type with room for 1,024 pods; the case has types with room for 5 pods
TRANSCRIBED_DIFFERENTLY = frozenset(("karpenter-provisioning-282",))


@pytest.fixture(scope="module")
def records(shared_part: SharedPart) -> dict[str, list[GoldenRecord]]:
    found: dict[str, list[GoldenRecord]] = {}
    for file in ("cluster-autoscaler", "karpenter-overlay", "karpenter-disruption", "karpenter-provisioning"):
        for record in read_records(shared_part("pools") / f"{file}.jsonl"):
            found.setdefault(record.family, []).append(record)
    return found


@pytest.mark.parametrize("topic", AUTOSCALER)
def test_cluster_autoscaler_decides_as_in_its_own_tests(records: dict[str, list[GoldenRecord]], topic: str) -> None:
    cases = records[f"cluster-autoscaler/{topic}"]
    assert cases
    assert {record.id: found for record in cases if (found := check(record).differences)} == {}


@pytest.mark.parametrize(
    "family",
    [
        *(f"overlay/{topic}" for topic in OVERLAY),
        *(f"disruption/{topic}" for topic in DISRUPTION),
        *(f"provisioning/{topic}" for topic in PROVISIONING),
    ],
)
def test_karpenter_decides_as_in_its_own_tests(records: dict[str, list[GoldenRecord]], family: str) -> None:
    cases = records[f"karpenter/{family}"]
    assert cases
    cases = part(3, cases) if len(cases) > 12 else cases
    different = {record.id: found for record in cases if (found := check(record).differences)}
    assert different.keys() == TRANSCRIBED_DIFFERENTLY & {record.id for record in cases}, different


def test_no_family_is_left_out(records: dict[str, list[GoldenRecord]]) -> None:
    karpenter = [f"disruption/{topic}" for topic in DISRUPTION] + [f"overlay/{topic}" for topic in OVERLAY]
    karpenter += [f"provisioning/{topic}" for topic in PROVISIONING]
    autoscaler = [f"cluster-autoscaler/{topic}" for topic in AUTOSCALER]
    assert {*records} == {*autoscaler, *(f"karpenter/{family}" for family in karpenter)}
