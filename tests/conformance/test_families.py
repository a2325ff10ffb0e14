"""Tests of every golden record of kube-scheduler 1.34.1 by family, with the code of `kschedd verify`.

Each record is run once: every second record without caches, the others with the caches of earlier attempts. Traces are
run both ways. The everyday run takes every eighteenth record, and all of `corners`.
"""

from pathlib import Path

import pytest

from kschedd.conformance.records import read_records
from kschedd.conformance.report import RecordOutcome
from kschedd.conformance.verify import check
from tests.conftest import SharedPart
from tests.full_run import part

FAMILIES = (
    "balancedallocation",
    "corners",
    "defaultpreemption",
    "dynamicresources",
    "imagelocality",
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
    "schedulinggates",
    "tainttoleration",
    "traces",
    "volumebinding",
    "volumerestrictions",
    "volumezone",
)


@pytest.fixture
def golden(shared_part: SharedPart) -> Path:
    return shared_part("conformance")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_record_comes_out_as_kube_scheduler_has_it(golden: Path, family: str) -> None:
    wrong = []
    records = list(read_records(golden / f"{family}.jsonl.gz"))
    if family != "corners":
        records = list(part(18, records))
    for number, record in enumerate(records):
        for remembered in (False, True) if family == "traces" else (number % 2 == 1,):
            verdict = check(record, remembered=remembered)
            if verdict.outcome is not RecordOutcome.PASSED:
                wrong.append(f"{record.id} {verdict.outcome}: {'; '.join(verdict.differences[:3])}")
    assert records
    assert not wrong, "\n".join([f"{len(wrong)} of {len(records)} records:", *wrong[:5]])


def test_no_family_is_left_out(golden: Path) -> None:
    assert {file.name.removesuffix(".jsonl.gz") for file in golden.glob("*.jsonl.gz")} == set(FAMILIES)
