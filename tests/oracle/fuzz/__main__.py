"""Decisions of kube-scheduler and of kschedd on random inputs: `python -m tests.oracle.fuzz --oracle PATH ...`.

Inputs are generated from the seed and recorded by the oracle; those with random answers are excluded. Each record that
kschedd decides differently is shrunk and written to a folder, with a line for each kind of difference. The exit status
is 1 if there are any.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from kschedd.config.versions.kube_versions import kube_version
from tests.oracle.fuzz.cases import case
from tests.oracle.fuzz.draws import Raw
from tests.oracle.fuzz.extenders import answered
from tests.oracle.fuzz.groups import domain_trace, group_trace
from tests.oracle.fuzz.judge import Judge, kind_of
from tests.oracle.fuzz.resizes import resize_trace
from tests.oracle.fuzz.shrink import shrunk
from tests.oracle.fuzz.traces import trace

CHUNK = 50


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m tests.oracle.fuzz", description=__doc__)
    found.add_argument("--oracle", required=True, help="path of an oracle that tests/oracle/build has made")
    found.add_argument("--kube-version", required=True, type=kube_version, help="its release, e.g. 1.36")
    found.add_argument("--cases", type=int, default=200, help="number of cases (default: 200)")
    found.add_argument("--traces", type=int, default=20, help="number of traces (default: 20)")
    found.add_argument("--groups", type=int, default=0, help="number of traces with PodGroups, since 1.37 (default: 0)")
    found.add_argument(
        "--domains", type=int, default=0, help="number of traces with topology constraints of PodGroups, since 1.37"
    )
    found.add_argument("--resizes", type=int, default=0, help="number of traces with deferred resizes, since 1.37")
    found.add_argument("--seed", type=int, default=1, help="seed of all draws (default: 1)")
    found.add_argument("--first", type=int, default=0, help="number of the first case and trace (default: 0)")
    found.add_argument(
        "--shrink", type=int, default=1, help="number of records to shrink for each kind of difference (default: 1)"
    )
    found.add_argument("--out", type=Path, help="folder for records that differ (default: none are written)")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    minor = int(options.kube_version.name.split(".")[1])
    judge = Judge(options.oracle, options.kube_version)
    wanted = (options.cases, options.traces, options.groups, options.domains, options.resizes)
    numbers = [range(options.first, options.first + many) for many in wanted]
    results = Results(judge, options.shrink)
    with answered():
        for make, own in zip((case, trace, group_trace, domain_trace, resize_trace), numbers, strict=True):
            for start in range(0, len(own), CHUNK):
                results.add([make(options.seed, number, minor) for number in own[start : start + CHUNK]])
    print(results.table())
    if options.out is not None:
        results.write(options.out)
    return 1 if results.differing else 0


class Results:
    """Counts by family, and the records that differ, by kind of difference."""

    def __init__(self, judge: Judge, shrink: int) -> None:
        self._judge = judge
        self._shrink = shrink
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._kinds = Counter[str]()
        self.differing: list[Raw] = []
        self.shrunk: list[Raw] = []

    def add(self, inputs: Sequence[Raw]) -> None:
        judged = self._judge.judged(inputs)
        for one in inputs:
            self._counts[one["family"]]["inputs"] += 1
        for name, why in judged.left_out.items():
            self._counts[name.partition("/")[0]]["left out"] += 1
            print(f"left out: {name}: {why[:300]}", file=sys.stderr)
        for one in judged.records:
            found = judged.differences.get(one["id"])
            self._counts[one["family"]]["differ" if found else "equal"] += 1
            if found:
                self._differs(one, found)

    def _differs(self, record: Raw, differences: Sequence[str]) -> None:
        kind = kind_of(differences[0])
        self._kinds[kind] += 1
        self.differing.append(record)
        print(f"differs: {record['id']}: {differences[0][:600]}", flush=True)
        if self._kinds[kind] <= self._shrink:
            smaller = shrunk(record, lambda inputs: self._still(inputs, kind))
            self.shrunk += self._judge.judged([smaller]).records
            text = json.dumps({key: value for key, value in smaller.items() if key != "family"})
            print(f"shrunk to {len(smaller['objects'])} objects: {text[:3000]}", flush=True)

    def _still(self, inputs: Sequence[Raw], kind: str) -> list[bool]:
        renamed = [one | {"id": f"{one['family']}/{place}"} for place, one in enumerate(inputs)]
        found = self._judge.judged([one for one in renamed if one.get("ops") != []]).differences
        return [kind in map(kind_of, found.get(one["id"], ())) for one in renamed]

    def table(self) -> str:
        columns = ("inputs", "left out", "equal", "differ")
        lines = [f"{'family':<16}" + "".join(f"{name:>10}" for name in columns)]
        total = Counter[str]()
        for family, counts in self._counts.items():
            total.update(counts)
            lines.append(f"{family:<16}" + "".join(f"{counts[name]:>10}" for name in columns))
        lines.append(f"{'all':<16}" + "".join(f"{total[name]:>10}" for name in columns))
        lines += [f"{count:>6} x {kind}" for kind, count in self._kinds.most_common()]
        return "\n".join(lines)

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, records in (("differing.jsonl", self.differing), ("shrunk.jsonl", self.shrunk)):
            folder.joinpath(name).write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
        print(f"kschedd verify {folder / 'shrunk.jsonl'} --kube-version {self._judge.version.name}")


if __name__ == "__main__":
    sys.exit(main())
