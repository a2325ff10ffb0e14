"""Golden records from inputs: `python -m tests.oracle.record ORACLE <inputs.jsonl >records.jsonl`.

An input is recorded only if kube-scheduler's answer is the same in all runs. Cases are run nine times or more, with one
worker and with sixteen (`oracle case -plan`); traces are run nine times. The reasons for omitted inputs are counted on
standard error.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from tests.oracle.answers import CASE, TRACE, Raw, ask, mode_of

CHUNK = 100
RUNS_OF_A_TRACE = 9
_INPUT = ("id", "family", "config", "objects", "pod")

UNDETERMINED = "differs between runs"
CRASHED = "ends kube-scheduler"
REFUSED = "refused"


@attrs.define
class Recorded:
    kept: list[Raw] = attrs.Factory(list)
    left_out: dict[str, str] = attrs.Factory(dict)
    """The reason for each input without a record, by id."""

    def extend(self, other: "Recorded") -> None:
        self.kept += other.kept
        self.left_out |= other.left_out


def record(oracle: str, inputs: Sequence[Raw], *flags: str, once: bool = False) -> Recorded:
    """Return records of the inputs, which are all cases or all traces. `once`: make one run of each."""
    found = Recorded()
    for start in range(0, len(inputs), CHUNK):
        chunk = inputs[start : start + CHUNK]
        mode = mode_of(chunk[0])
        if mode == CASE:
            found.extend(_cases(oracle, chunk, (("-cycle=false", *flags) if once else ("-plan", *flags))))
        else:
            found.extend(_traces(oracle, chunk, flags, 1 if once else RUNS_OF_A_TRACE))
    return found


def _cases(oracle: str, inputs: Sequence[Raw], flags: Sequence[str]) -> Recorded:
    found = Recorded()
    answers = ask(oracle, CASE, inputs, *flags)
    for one in inputs:
        answer = answers.get(one["id"])
        why = CRASHED if answer is None else _undetermined(answer)
        if answer is None or why:
            found.left_out[one["id"]] = why
            continue
        binding = {"binding": answer["binding"]} if answer.get("binding") else {}
        found.kept.append({key: one[key] for key in _INPUT} | {"want": answer["want"]} | binding)
    return found


def _undetermined(answer: Raw) -> str:
    """Return the reason why a case's answer cannot be recorded, otherwise ""."""
    if answer.get("refused"):
        return f"{REFUSED}: {answer['refused']}"
    if answer.get("panic"):
        return CRASHED
    if answer.get("variants"):
        return UNDETERMINED
    if answer.get("cycle") and not answer["cycle"]["agrees"]:
        return "the whole cycle at once disagrees with its phases"
    return ""


def _traces(oracle: str, inputs: Sequence[Raw], flags: Sequence[str], count: int) -> Recorded:
    found = Recorded()
    runs = [ask(oracle, TRACE, inputs, *flags) for _ in range(count)]
    for one in inputs:
        answers = [run.get(one["id"]) for run in runs]
        first = answers[0]
        if first is None:
            found.left_out[one["id"]] = CRASHED
        elif "refused" in first:
            found.left_out[one["id"]] = f"{REFUSED}: {first['refused']}"
        elif any(answer != first for answer in answers):
            found.left_out[one["id"]] = UNDETERMINED
        else:
            found.kept.append(first)
    return found


def _lines(records: Sequence[Raw]) -> Iterator[str]:
    for one in records:
        yield json.dumps(one, ensure_ascii=False) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.record", description=__doc__)
    parser.add_argument("oracle", help="path of an oracle that tests/oracle/build has made")
    parser.add_argument("flags", nargs=argparse.REMAINDER, help="flags for the oracle, e.g. -bind")
    options = parser.parse_args(arguments)
    inputs = [json.loads(line) for line in sys.stdin if line.strip()]
    found = Recorded()
    for mode in (CASE, TRACE):
        found.extend(record(options.oracle, [one for one in inputs if mode_of(one) == mode], *options.flags))
    sys.stdout.writelines(_lines(found.kept))
    for name, why in found.left_out.items():
        print(f"{name}: {why}", file=sys.stderr)
    reasons = Counter(why.partition(":")[0] for why in found.left_out.values())
    print(f"{len(found.kept)} records, left out: {dict(reasons)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
