"""Run the simulation from many seeds: `python -m tests.faults --seeds 10000 --jobs 2`.

Ends at the first seed that comes to a violation, and prints what it was and how to see it again. `--seed N` runs one,
and prints its whole history.
"""

import argparse
import gc
import os
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain

from kschedd.garbage_collection import freeze_gc
from tests.faults.simulation import simulate

_BATCH = 20  # seeds in one piece of work
_SHOWN = 10  # violations of a seed


def outcome(seed: int) -> str:
    """Return the violations that this seed causes, or "" if there are none."""
    try:
        wrong = simulate(seed).violations
        return "\n".join([*wrong[:_SHOWN], *([f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else [])])
    except Exception:  # whatever the daemon raises is a finding, too
        return traceback.format_exc()


def outcomes(seeds: range) -> list[tuple[int, str]]:
    found = [(seed, outcome(seed)) for seed in seeds]
    gc.collect()  # of what many daemons leave, each with forks, the process would become large
    return found


def run(seeds: range, jobs: int) -> Iterator[tuple[int, str]]:
    """Each seed and what was wrong with it, in order."""
    batches = [seeds[start : start + _BATCH] for start in range(0, len(seeds), _BATCH)]
    with ProcessPoolExecutor(jobs, initializer=freeze_gc) as pool:
        yield from chain.from_iterable(pool.map(outcomes, batches))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="run this one only, and print its history")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--go-on", action="store_true", help="go on after a seed that fails")
    options = parser.parse_args()
    if options.seed is not None:
        found = simulate(options.seed)
        print(found.text)
        return 1 if found.violations else 0
    began, failed = time.monotonic(), 0
    number = 0
    for number, (seed, wrong) in enumerate(run(range(options.first, options.first + options.seeds), options.jobs), 1):
        if wrong:
            failed += 1
            print(f"seed {seed}:\n{wrong}\nto see it again: python -m tests.faults --seed {seed}", flush=True)
            if not options.go_on:
                return 1
        if number % 100 == 0:
            print(f"{number} seeds, {failed} failed, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print(f"{number} seeds, {failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
