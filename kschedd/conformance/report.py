"""The report of a conformance run as a table or as JSON: counts by family, and the first differences."""

import json
from collections import Counter
from enum import StrEnum

import attrs

from kschedd.conformance.records import GoldenRecord, RecordError

_LINES_A_RECORD = 5


class RecordOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"


@attrs.frozen(eq=False)
class Verdict:
    record: GoldenRecord
    outcome: RecordOutcome
    differences: tuple[str, ...] = ()  # differences, or the reason for an unsupported record


@attrs.define(eq=False)
class Family:
    counts: dict[RecordOutcome, int] = attrs.field(factory=lambda: dict.fromkeys(RecordOutcome, 0))
    not_passed: list[Verdict] = attrs.field(factory=list)


@attrs.define(eq=False)
class VerifyReport:
    families: dict[str, Family] = attrs.field(factory=dict)
    evidence: dict[str, Counter[RecordOutcome]] = attrs.field(factory=dict)  # counts of facts by source
    faults: list[RecordError] = attrs.field(factory=list)  # files that could not be read completely

    def add(self, verdict: Verdict) -> None:
        family = self.families.setdefault(verdict.record.family, Family())
        family.counts[verdict.outcome] += 1
        if verdict.record.evidence:
            self.evidence.setdefault(verdict.record.evidence, Counter())[verdict.outcome] += 1
        if verdict.outcome is not RecordOutcome.PASSED:
            family.not_passed.append(verdict)

    @property
    def passed(self) -> bool:
        """Return whether every file could be read and all records passed."""
        return not self.faults and not any(family.not_passed for family in self.families.values())

    def as_json(self) -> str:
        families = {
            name: {outcome.value: count for outcome, count in family.counts.items()}
            for name, family in sorted(self.families.items())
        }
        if not self.evidence:
            return json.dumps({"families": families})
        evidence = {
            name: {outcome.value: counts[outcome] for outcome in RecordOutcome}
            for name, counts in sorted(self.evidence.items())
        }
        return json.dumps({"families": families, "evidence": evidence})

    def as_table(self, show: int = 1) -> str:
        """Return the counts of each family, with the first differences of its first `show` failed records."""
        rows = [("FAMILY", *(outcome.name for outcome in RecordOutcome))]
        for name, family in sorted(self.families.items()):
            rows.append((name, *(str(family.counts[outcome]) for outcome in RecordOutcome)))
        if len(self.families) > 1:
            totals = (sum(family.counts[outcome] for family in self.families.values()) for outcome in RecordOutcome)
            rows.append(("total", *map(str, totals)))
        for name, counts in sorted(self.evidence.items()):
            rows.append((f"evidence: {name}", *(str(counts[outcome]) for outcome in RecordOutcome)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "   ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        for _, family in sorted(self.families.items()):
            for verdict in family.not_passed[:show]:
                lines += ["", f"{verdict.record.id} {verdict.outcome.value}:"]
                lines += [f"  {line}" for line in verdict.differences[:_LINES_A_RECORD]]
                left = len(verdict.differences) - _LINES_A_RECORD
                if left > 0:
                    lines.append(f"  and {left} more")
        return "\n".join(lines)
