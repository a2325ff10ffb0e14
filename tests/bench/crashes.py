"""Test of thousands of crashes by kill -9: `python -m tests.bench.crashes --rounds 10000`.

A daemon is killed while clients write, read and watch, and then restarted with its state directory. After each start,
every acknowledged write must exist, every change that a client has observed must exist, and no version may be reused.
One in ten daemons ends itself at a chosen point of the journal's work; all others are killed at random times.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path

import trio

from tests.forked_daemons import forked_daemons
from tests.test_crashes import Run, drawn

_PATIENCE_S = 3600.0  # long, because the run may be paused for other measurements


async def main(rounds: int, seed: int) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="crashes") as name, forked_daemons(Path(name)) as daemons:
        run = Run(daemons, _PATIENCE_S)
        for number in range(rounds):
            chance = random.Random(f"{seed} {number}")
            await run.round(chance, *(drawn(number // 10, chance) if number % 10 == 9 else ()))
            if number % 100 == 99:
                print(
                    f"{number + 1} kills, {run.listener.answers} answers, {time.monotonic() - began:.0f} s", flush=True
                )
        await run.end()
        reached = daemons.reached()
    named = ", ".join(f"{point} {count}" for point, count in sorted(reached.items()))
    print(f"{rounds} kills, {reached.total()} at named points ({named})")
    print(f"{run.listener.answers} answered writes, {run.seen} events seen, resumed {run.resumed} times: all there")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    trio.run(main, given.rounds, given.seed)
