"""Look for faults that a module's tests do not detect: `python -m tests.mutation --module kschedd/queue/backoff.py`.

Each mutant is the module with one small fault: an inverted comparison, a dropped condition, a changed number, a removed
statement. The module's own test file is run with the mutant, in a copy of the tree. Surviving mutants are printed with
line and fault; the exit status is 1 if there are any. Faults that change only the running time, or nothing, are listed
with the reason in `tests/mutation/argued.py`.
"""

import argparse
import sys
import time
from pathlib import Path

from tests.mutation.argued import why_argued
from tests.mutation.mutants import chosen, mutants
from tests.mutation.trial import ROOT, AlreadyFailing, copied, files_testing


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--module", required=True, help="path of the module, e.g. kschedd/queue/backoff.py")
    parser.add_argument("--tests", action="append", help="test file to run (default: the one named after the module)")
    parser.add_argument("--mutants", type=int, default=20, help="number of mutants to try (default: 20)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (default: 1)")
    parser.add_argument("--line", type=int, help="try the mutants of this line only")
    parser.add_argument("--limit", type=float, default=900, help="stop after this many seconds (default: 900)")
    options = parser.parse_args(arguments)
    path = ROOT / options.module
    if not path.is_file():
        parser.error(f"--module: there is no file {options.module} in {ROOT}")
    tests = options.tests or files_testing(options.module)
    if not tests:
        parser.error(f"--tests is required: there is no test_{Path(options.module).name} under tests/")
    text = path.read_text(encoding="utf-8")
    found = mutants(text)
    if options.line is not None:
        found = [mutant for mutant in found if mutant.line == options.line]
    drawn = chosen(found, options.mutants, options.seed)
    print(f"{options.module}: {len(drawn)} of {len(found)} mutants, tests: {' '.join(tests)}", flush=True)
    ends_at = time.monotonic() + options.limit
    tried = survived = argued = 0
    with copied(options.module, tests) as copy:
        try:
            seconds = copy.seconds_without_fault(options.limit)
        except AlreadyFailing as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        for mutant in drawn:
            if time.monotonic() > ends_at:
                print(f"stopped after {options.limit:.0f} s (--limit)")
                break
            tried += 1
            if copy.notices(mutant, seconds):
                continue
            if why := why_argued(options.module, text, mutant):
                argued += 1
                print(f"argued: {options.module}:{mutant.line}: {mutant}: {why}", flush=True)
            else:
                survived += 1
                print(f"survived: {options.module}:{mutant.line}: {mutant}", flush=True)
    print(f"{tried} tried, {tried - survived - argued} noticed, {argued} argued, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
