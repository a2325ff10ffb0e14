"""Golden records of kube-scheduler 1.36.3, family by family, by the code `kschedd verify` runs.

Each record is run once: every other one evaluated from nothing, the rest by what earlier attempts left remembered.
"""

from itertools import islice
from pathlib import Path

import pytest

from kschedd.config.kube_versions import V1_36
from kschedd.conformance.records import read_records
from kschedd.conformance.report import RecordOutcome
from kschedd.conformance.verify import check, version_of
from tests.conftest import SharedPart

FAMILIES = (
    "balancedallocation",
    "beforebinding",
    "bindingconditions",
    "changes",
    "consumablecapacity",
    "corners",
    "csimigration",
    "declaredfeatures",
    "defaultpreemption",
    "devicepools",
    "devicetaints",
    "dynamicresources",
    "extendedresources",
    "imagelocality",
    "imagevolumes",
    "interpodaffinity",
    "mixed",
    "nodeaffinity",
    "nodename",
    "nodeports",
    "noderesourcesfit",
    "nodeunschedulable",
    "nodevolumelimits",
    "partitionabledevices",
    "podtopologyspread",
    "prioritizedlist",
    "profiles",
    "resizedpods",
    "schedulinggates",
    "tainttoleration",
    "traces",
    "volumebinding",
    "volumerestrictions",
    "volumezone",
)
# Traces of what was changed in 1.37, for which rules are missing: which pods are signed for opportunistic batching, the
# hint for a deleted pod's own anti-affinity, how gated pods are judged, and the answer to a binding with another UID.
MISSED = "traces-1.37"
WHOLE = frozenset(("changes", "corners", "traces"))
EVERY = 4  # of the other families: `kschedd verify` runs them whole


@pytest.fixture
def golden(shared_part: SharedPart) -> Path:
    return shared_part("conformance-1.36")


def mistakes(file: Path, every: int) -> tuple[int, list[str]]:
    """Judge each `every`-th record; return how many were judged, and the differences of those that failed."""
    assert version_of(file) is V1_36
    wrong, tried = [], 0
    for record in islice(read_records(file), 0, None, every):
        tried += 1
        verdict = check(record, V1_36, remembered=tried % 2 == 0)
        if verdict.outcome is not RecordOutcome.PASSED:
            wrong.append(f"{record.id} {verdict.outcome}: {'; '.join(verdict.differences[:3])}")
    return tried, wrong


@pytest.mark.parametrize("family", FAMILIES)
def test_records_come_out_as_kube_scheduler_1_36_has_them(golden: Path, family: str) -> None:
    tried, wrong = mistakes(golden / f"{family}.jsonl.gz", 1 if family in WHOLE else EVERY)
    assert tried
    assert not wrong, "\n".join([f"{len(wrong)} of {tried}:", *wrong[:5]])


@pytest.mark.xfail(reason="rules are missing: see MISSED", raises=AssertionError)
def test_traces_of_what_1_37_changed_come_out_as_kube_scheduler_1_36_has_them(golden: Path) -> None:
    tried, wrong = mistakes(golden / f"{MISSED}.jsonl.gz", 1)
    assert not wrong, "\n".join([f"{len(wrong)} of {tried}:", *wrong[:5]])


def test_no_family_is_left_out(golden: Path) -> None:
    assert {file.name.removesuffix(".jsonl.gz") for file in golden.glob("*.jsonl.gz")} == {*FAMILIES, MISSED}
