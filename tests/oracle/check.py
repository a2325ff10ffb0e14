"""A check of the oracle against earlier records: `python -m tests.oracle.check ORACLE FILE.jsonl.gz ...`.

The oracle runs recorded cases or traces, and its answers are compared with the recorded ones. It prints a line for each
file on standard output, and a line for each record that differs on standard error; the exit status is 1 if any does.
"""

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from kschedd.conformance.compare import differences
from tests.oracle.answers import CASE, Raw, ask, mode_of

SAME = "same"
_SHOWN = 4  # number of differences shown per record


def compared(record: Raw, answer: Raw | None) -> tuple[str, object]:
    """Return `SAME`, or the kind of difference between a record and the oracle's answer, with details."""
    if answer is None:
        return "no answer", None
    if mode_of(record) == CASE:
        return _compared_case(record, answer)
    if "refused" in answer:
        return "refused", answer["refused"]
    wanted, got = ([_in_order(step) for step in one["want"]["steps"]] for one in (record, answer))
    found = list(islice(differences(wanted, got, "steps"), _SHOWN))
    return ("differs", found) if found else (SAME, None)


def _compared_case(record: Raw, answer: Raw) -> tuple[str, object]:
    if "want" not in answer:
        return "refused", answer.get("refused") or answer.get("panic", "")[:600]
    recorded, got = ({key: one.get(key) for key in ("want", "binding")} for one in (record, answer))
    found = list(islice(differences(recorded, got), _SHOWN))
    if found:
        return "differs", found
    if answer.get("variants"):
        return "differs between runs", len(answer["variants"])
    if answer.get("cycle") and not answer["cycle"]["agrees"]:
        return "the whole cycle at once disagrees", answer["cycle"]
    return SAME, None


def _in_order(step: Raw) -> Raw:
    """Return the step with its deletions sorted by name, since older records have them in order of arrival."""
    attempts = [{**one, "deleted": sorted(one["deleted"])} if "deleted" in one else one for one in step["attempts"]]
    return {**step, "deleted": sorted(step["deleted"]), "attempts": attempts}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.check", description=__doc__)
    parser.add_argument("oracle", help="path of an oracle that tests/oracle/build has made")
    parser.add_argument("files", nargs="+", type=Path, help="records, gzip-compressed")
    options = parser.parse_args(arguments)
    total = Counter[str]()
    for file in options.files:
        records = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines() if line.strip()]
        answers = ask(options.oracle, mode_of(records[0]), records)
        count = Counter[str]()
        for record in records:
            kind, what = compared(record, answers.get(record["id"]))
            count[kind] += 1
            if kind != SAME:
                print(json.dumps([record["id"], kind, what], ensure_ascii=False), file=sys.stderr)
        print(file, dict(count), flush=True)
        total.update(count)
    print(f"all files: {dict(total)}")
    return 0 if set(total) <= {SAME} else 1


if __name__ == "__main__":
    sys.exit(main())
