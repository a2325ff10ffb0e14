"""Run all records of the shared folder and write docs/FIDELITY.md: `python -m tests.fidelity`. It takes minutes."""

import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kschedd.bench.shared import shared_folder
from kschedd.conformance.report import RecordOutcome, VerifyReport
from kschedd.conformance.verify import VerifyOptions, verify
from tests.apiserver.recorded import FAMILIES, counted, run
from tests.fidelity.page import Count, Counts, fidelity_page

ROOT: Final = Path(__file__).parents[2]
#: releases by their folder of records
RELEASES: Final = {
    "conformance": "1.34.1",
    "conformance-1.35": "1.35",
    "conformance-1.36": "1.36",
    "conformance-1.37": "1.37",
}


def measured(shared: Path) -> Counts:
    """Run all records."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    requests = {}
    for family in FAMILIES:
        found = counted(run(shared / "apiserver", family, ""))
        requests[family] = {part: Count(alike, of) for part, (alike, of) in found.items()}
    return Counts(
        commit,
        f"{datetime.now(UTC):%Y-%m-%d}",
        {release: _families(shared / folder) for folder, release in RELEASES.items()},
        _families(shared / "pools"),
        requests,
    )


def _families(folder: Path) -> Mapping[str, Count]:
    report = verify(VerifyOptions((folder,)))
    if report.faults:
        sys.exit(f"error: {report.faults[0]}")
    return _counts(report)


def _counts(report: VerifyReport) -> Mapping[str, Count]:
    return {
        name: Count(family.counts[RecordOutcome.PASSED], sum(family.counts.values()))
        for name, family in report.families.items()
    }


def main() -> None:
    shared = shared_folder()
    if shared is None:
        sys.exit("error: there is no shared folder: set KSCHEDD_SHARED")
    page = ROOT / "docs" / "FIDELITY.md"
    page.write_text(fidelity_page(measured(shared)), encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
