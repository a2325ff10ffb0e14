"""The comparison of one release: inputs recorded by its oracle, then decided by kschedd."""

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from kschedd.config.versions.kube_versions import KubernetesVersion
from kschedd.conformance.records import read_records
from kschedd.conformance.verify import check
from tests.oracle.fuzz.draws import Raw
from tests.oracle.record import record

_NAMED = re.compile(r"\[\d+\]|node-\d+|\bp\d+\b|target")


@attrs.frozen
class Judged:
    records: list[Raw]
    left_out: Mapping[str, str]
    differences: Mapping[str, tuple[str, ...]]
    """By the id of each record that kschedd decides otherwise."""


@attrs.frozen
class Judge:
    oracle: str
    version: KubernetesVersion

    def judged(self, inputs: Sequence[Raw]) -> Judged:
        """Return the records of the inputs, and the differences between each and kschedd's decision."""
        recorded = record(self.oracle, inputs, *(("-bind",) if inputs and "pod" in inputs[0] else ()))
        return Judged(recorded.kept, recorded.left_out, self._differences(recorded.kept))

    def _differences(self, records: Sequence[Raw]) -> dict[str, tuple[str, ...]]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "records.jsonl")
            file.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
            verdicts = [check(one, self.version) for one in read_records(file)]
        return {one.record.id: one.differences for one in verdicts if one.differences}


def kind_of(difference: str) -> str:
    """Return a difference's place without names and numbers, so that alike ones can be counted together."""
    place, _, rest = difference.partition(": want ")
    return _NAMED.sub("*", place) if rest else _NAMED.sub("*", difference)[:80]
