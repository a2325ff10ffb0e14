"""Look for faults that a module's tests do not detect: `python -m tests.mutation kschedd/queue/backoff.py`.

Each mutant is the module with one small fault: an inverted comparison, a dropped condition, a changed number, a removed
statement. The module's own test files are run with the mutant, in a copy of the tree. Surviving mutants are printed
with line and fault; the exit status is 1 if there are any. Faults that change only the running time, or nothing, are
listed with the reason in `tests/mutation/argued.py`. For several modules, or for a folder, a table of all results
follows.
"""

import argparse
import sys
import time
from pathlib import Path

from tests.mutation.argued import why_argued
from tests.mutation.mutants import Mutant, chosen, mutants
from tests.mutation.results import Result, Results, table
from tests.mutation.trial import ROOT, AlreadyFailing, copied, files_testing


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="module, or folder of modules, e.g. kschedd/queue")
    parser.add_argument("--tests", action="append", help="test file to run (default: the ones of the module)")
    parser.add_argument("--mutants", type=int, default=20, help="number of mutants to try of a module (default: 20)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (default: 1)")
    parser.add_argument("--line", type=int, help="try the mutants of this line only")
    parser.add_argument("--limit", type=float, default=900, help="stop a module after this many seconds (default: 900)")
    parser.add_argument("--results", type=Path, help="file of results; unchanged modules in it are not tried again")
    options = parser.parse_args(arguments)
    modules = []
    for path in options.paths:
        if not (found := _modules(path)):
            parser.error(f"PATH: there is no module {path} in {ROOT}")
        modules += found
    results = Results(options.results)
    of_modules: list[Result] = []
    fails = False
    for module in modules:
        tests = options.tests or files_testing(module)
        if not tests:
            parser.error(f"--tests is required: there is no test_{Path(module).name} under tests/")
        drawn = _drawn(module, options)
        print(f"{module}: {len(drawn)} mutants, tests: {' '.join(tests)}", flush=True)
        undetected = results.of(module, tests, drawn)
        if undetected is None:
            try:
                tried, undetected = _tried(module, tests, drawn, options.limit)
            except AlreadyFailing as error:
                print(f"error: {error}", file=sys.stderr)
                fails = True
                continue
            if tried == len(drawn):
                results.add(module, tests, drawn, undetected)
            else:
                print(f"stopped after {options.limit:.0f} s (--limit)")
        else:
            tried = len(drawn)
        of_modules.append(_printed(module, tried, undetected))
    if len(of_modules) > 1:
        print(table(of_modules))
    return 2 if fails else 1 if any(result.survived for result in of_modules) else 0


def _modules(path: str) -> list[str]:
    """Return the module, or the modules of the folder, without the empty ones."""
    there = ROOT / path
    found = sorted(there.rglob("*.py")) if there.is_dir() else [there] if there.is_file() else []
    return [str(each.relative_to(ROOT)) for each in found if mutants(each.read_text(encoding="utf-8"))]


def _drawn(module: str, options: argparse.Namespace) -> list[Mutant]:
    found = mutants((ROOT / module).read_text(encoding="utf-8"))
    if options.line is not None:
        found = [mutant for mutant in found if mutant.line == options.line]
    return chosen(found, options.mutants, options.seed)


def _tried(module: str, tests: list[str], drawn: list[Mutant], limit_s: float) -> tuple[int, list[Mutant]]:
    """Try these mutants of a module, as many as the time allows. Return their number, and the undetected ones."""
    ends_at = time.monotonic() + limit_s
    tried, undetected = 0, []
    with copied(module, tests) as copy:
        seconds = copy.seconds_without_fault(limit_s)
        for mutant in drawn:
            if time.monotonic() > ends_at:
                break
            tried += 1
            if not copy.notices(mutant, seconds):
                undetected.append(mutant)
    return tried, undetected


def _printed(module: str, tried: int, undetected: list[Mutant]) -> Result:
    """Print the undetected mutants, the argued ones with the reason, and return the result."""
    text = (ROOT / module).read_text(encoding="utf-8")
    argued, survived = [], []
    for mutant in undetected:
        if why := why_argued(module, text, mutant):
            argued.append(f"argued: {module}:{mutant.line}: {mutant}: {why}")
        else:
            survived.append(f"survived: {module}:{mutant.line}: {mutant}")
    result = Result(module, tried, argued, survived)
    print(*argued, *survived, sep="\n", end="\n" if undetected else "")
    print(f"{tried} tried, {result.detected} detected, {len(argued)} argued, {len(survived)} survived", flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
