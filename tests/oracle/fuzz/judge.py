"""A comparison for one release: its oracle records inputs, then kschedd decides them in each of its modes.

These modes are: attempts without cached evaluations, attempts with them, and, for traces without extenders, the actors
of the daemon.
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
        """Return the records of the inputs, and the differences between each record and kschedd's decision.

        Only inputs that differ get further runs, which show whether kube-scheduler's answer is random.
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
    """Return whether the actors of the daemon can reproduce this trace.

    They cannot if a binding fails after its first write, since they see that write and clear its nomination, nor with
    extenders, which they call outside the trace's clock. They can neither hold a binding nor run a PodGroup's cycle
    within a trace.
    """
    held = any(op["op"] == "fail" or op.get("hold") for op in record.raw["ops"])
    groups = record.raw["feature_gates"].get("GenericWorkload")
    return not held and not groups and not (record.config or {}).get("extenders")


def is_drawn(differences: Sequence[str]) -> bool:
    """Return whether the only difference is that kschedd has further best nodes beside the chosen one.

    If an extender scores, kube-scheduler draws among equal nodes, and the record has only the drawn one.
    """
    return all(_CHOSEN.search(one) for one in differences)


def kind_of(difference: str) -> str:
    """Return a difference's path without names and numbers, for counting equal differences."""
    place, _, rest = difference.partition(": want ")
    return _NAMED.sub("*", place) if rest else _NAMED.sub("*", difference)[:80]
