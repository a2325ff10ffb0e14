"""Tests of golden records of kube-scheduler 1.35, 1.36 and 1.37 by family, with the code of `kschedd verify`.

Each record is run once: every second record without caches, the others with the caches of earlier attempts. The
everyday run takes a part of the records of 1.35 and 1.36, and of the traces.
"""

from itertools import islice

import pytest

from kschedd.config.versions.kube_versions import V1_35, V1_36, V1_37, KubernetesVersion
from kschedd.conformance.records import GoldenRecord, read_records
from kschedd.conformance.report import RecordOutcome
from kschedd.conformance.verify import check, version_of
from tests.conftest import SharedPart
from tests.full_run import part

COMMON = (
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
NEW_IN_1_37 = (
    "allcapacity",
    "allocationconfig",
    "capacitylimits",
    "changes137",
    "devicetaintrules",
    "gatednominations",
    "imagecounts",
    "missingdrivers",
    "namespaceselectors",
    "overlappingbudgets",
    "poolcounters",
    "resizedcontainers",
    "selectorerrors",
    "storagecapacity",
)
RELEASES: dict[str, tuple[KubernetesVersion, tuple[str, ...]]] = {
    "conformance-1.35": (V1_35, (*COMMON, "nomination-without-post-filter")),
    "conformance-1.36": (V1_36, (*COMMON, "traces-1.37")),
    "conformance-1.37": (V1_37, (*COMMON, *NEW_IN_1_37, "traces-1.37")),
}
WHOLE = frozenset(("changes", "changes137", "corners", "traces", "traces-1.37", "nomination-without-post-filter"))
TRACES = frozenset(("traces", "traces-1.37"))
EVERY = 5  # of the other families: only every fifth record is run; `kschedd verify` runs all
LARGE = 50  # families with more records are run in part for the releases before the newest, in the everyday run
OLDER = 16  # of these families: every sixteenth of the records above


def judged(records: list[GoldenRecord], version: KubernetesVersion) -> list[str]:
    """Return the differences of the records that fail."""
    wrong = []
    for number, record in enumerate(records, 1):
        verdict = check(record, version, remembered=number % 2 == 0)
        if verdict.outcome is not RecordOutcome.PASSED:
            wrong.append(f"{record.id} {verdict.outcome}: {'; '.join(verdict.differences[:3])}")
    return wrong


@pytest.mark.parametrize(
    ("folder", "family"), [(folder, family) for folder, (_, families) in RELEASES.items() for family in families]
)
def test_records_come_out_as_kube_scheduler_has_them(shared_part: SharedPart, folder: str, family: str) -> None:
    file, (version, _) = shared_part(folder) / f"{family}.jsonl.gz", RELEASES[folder]
    assert version_of(file) is version
    records = list(islice(read_records(file), 0, None, 1 if family in WHOLE else EVERY))
    assert records
    if version is not V1_37 and (family not in WHOLE or len(records) > LARGE):
        records = list(part(OLDER, records))
    elif family in TRACES:
        records = list(part(4, records))
    wrong = judged(records, version)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(records)}:", *wrong[:5]])


@pytest.mark.parametrize("folder", RELEASES)
def test_no_family_is_left_out(shared_part: SharedPart, folder: str) -> None:
    files = {file.name.removesuffix(".jsonl.gz") for file in shared_part(folder).glob("*.jsonl.gz")}
    assert files == set(RELEASES[folder][1])
