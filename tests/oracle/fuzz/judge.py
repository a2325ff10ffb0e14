"""The comparison of one release: inputs recorded by its oracle, then decided by kschedd in each of its ways.

These ways are: attempts that know nothing from before, attempts that know the evaluations of earlier ones, and, for
traces without extenders, the actors of the daemon.
"""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import trio
from trio.testing import MockClock

from kschedd.config.versions.kube_versions import KubernetesVersion
from kschedd.conformance.records import GoldenRecord, read_records
from kschedd.conformance.verify import check
from tests.conformance.actors_lockstep import actors_differences
from tests.oracle.fuzz.draws import Raw
from tests.oracle.record import Recorded, record

DRAWN = "one of several equal nodes is drawn"
_CHOSEN = re.compile(r"\.best: want \['([^']+)'\], got \[.*'\1'.*\]$")
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
        """Return the records of the inputs, and the differences between each and kschedd's decision.

        Only inputs that differ are run more often, to see whether kube-scheduler's answer depends on chance.
        """
        flags = ("-bind",) if inputs and "pod" in inputs[0] else ("-more",)
        recorded = record(self.oracle, inputs, *flags, once=True)
        found = self._differences(recorded.kept)
        if found:
            again = record(self.oracle, [one for one in inputs if one["id"] in found], *flags)
            kept = [one for one in recorded.kept if one["id"] not in found]
            recorded = Recorded([*kept, *again.kept], {**recorded.left_out, **again.left_out})
            found = self._differences(again.kept)
        ranked = {one["id"] for one in inputs if "prioritizeVerb" in json.dumps(one["config"])}
        drawn = {name for name, differences in found.items() if name in ranked and is_drawn(differences)}
        return Judged(
            [one for one in recorded.kept if one["id"] not in drawn],
            {**recorded.left_out, **dict.fromkeys(drawn, DRAWN)},
            {name: differences for name, differences in found.items() if name not in drawn},
        )

    def _differences(self, records: Sequence[Raw]) -> dict[str, tuple[str, ...]]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "records.jsonl")
            file.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
            return {one.id: found for one in read_records(file) if (found := tuple(self._of_all_ways(one)))}

    def _of_all_ways(self, record: GoldenRecord) -> Iterator[str]:
        plain = check(record, self.version).differences
        yield from plain
        for difference in check(record, self.version, remembered=True).differences:
            if difference not in plain:
                yield f"remembered: {difference}"
        if "ops" in record.raw and _same_through_actors(record):
            for difference in self._through_actors(record):
                if difference not in plain:
                    yield f"through actors: {difference}"

    def _through_actors(self, record: GoldenRecord) -> list[str]:
        clock = MockClock()
        try:
            return trio.run(actors_differences, record, clock, self.version, clock=clock)
        except Exception as bug:
            return [f"kschedd broke down: {bug!r}"]


def _same_through_actors(record: GoldenRecord) -> bool:
    """Return whether the actors of the daemon are expected to do as recorded.

    They hear of a binding's first writes before its last one fails, and clear its nomination; and they call extenders
    beside the trace's clock. None of their bindings can be held, and no trace waits for their cycle of a PodGroup.
    """
    held = any(op["op"] == "fail" or op.get("hold") for op in record.raw["ops"])
    groups = record.raw["feature_gates"].get("GenericWorkload")
    return not held and not groups and not (record.config or {}).get("extenders")


def is_drawn(differences: Sequence[str]) -> bool:
    """Return whether the only difference is that kschedd has other nodes beside the chosen one among the best.

    kube-scheduler draws among equal nodes where an extender scores, and only the drawn one is in the record.
    """
    return all(_CHOSEN.search(one) for one in differences)


def kind_of(difference: str) -> str:
    """Return a difference's place without names and numbers, so that alike ones can be counted together."""
    place, _, rest = difference.partition(": want ")
    return _NAMED.sub("*", place) if rest else _NAMED.sub("*", difference)[:80]
