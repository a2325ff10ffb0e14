"""Golden records of kube-scheduler 1.36.3, family by family, by the code `kschedd verify` runs.

Each record is run once: every other one evaluated from nothing, the rest by what earlier attempts left remembered.
"""

from pathlib import Path

import pytest

from kschedd.config.kube_versions import V1_36
from kschedd.conformance.records import read_records
from kschedd.conformance.report import RecordOutcome
from kschedd.conformance.verify import check, version_of
from tests.conftest import SharedPart

FAMILIES = (
    "balancedallocation",
    "csimigration",
    "declaredfeatures",
    "defaultpreemption",
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
    "podtopologyspread",
    "profiles",
    "resizedpods",
    "schedulinggates",
    "tainttoleration",
    "volumebinding",
    "volumerestrictions",
    "volumezone",
)
NEW = frozenset(("csimigration", "declaredfeatures", "imagevolumes", "resizedpods"))
EVERY = 4  # of the records whose inputs are those of 1.34.1, every fourth


@pytest.fixture
def golden(shared_part: SharedPart) -> Path:
    return shared_part("conformance-1.36")


@pytest.mark.parametrize("family", FAMILIES)
def test_records_come_out_as_kube_scheduler_1_36_has_them(golden: Path, family: str) -> None:
    file = golden / f"{family}.jsonl.gz"
    assert version_of(file) is V1_36
    wrong = []
    tried = 0
    for number, record in enumerate(read_records(file)):
        if family not in NEW and number % EVERY:
            continue
        tried += 1
        verdict = check(record, V1_36, remembered=tried % 2 == 0)
        if verdict.outcome is not RecordOutcome.PASSED:
            wrong.append(f"{record.id} {verdict.outcome}: {'; '.join(verdict.differences[:3])}")
    assert tried
    assert not wrong, "\n".join([f"{len(wrong)} of {tried}:", *wrong[:5]])
