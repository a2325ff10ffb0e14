"""A million messages of clients that send arbitrary bytes: `python -m tests.bench.http_fuzz [MESSAGES] [SEED]`.

They are sent to the whole REST API in this process, over connections in memory and in virtual time: 200 concurrent
connections, and a new cluster for each 2,000 of them. The test stops at the first invalid response, connection that
stays open, or bug.
"""

import resource
import sys
import time
from collections import Counter

import trio
import trio.testing

from tests.apiserver.hostile_clients import attack

_CONVERSATIONS = 2_000


def main(messages: int, seed: int) -> None:
    began, sent, answers, statuses = time.perf_counter(), 0, 0, Counter[int]()
    while sent < messages:
        clock = trio.testing.MockClock(autojump_threshold=0.001)
        tally = trio.run(attack, seed, _CONVERSATIONS, clock=clock)
        seed, sent, answers = seed + 1, sent + tally.messages, answers + tally.answers
        statuses.update(tally.by_status)
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        took = time.perf_counter() - began
        print(f"{sent:,} messages, {answers:,} answers, {took:.0f} s, {largest:.0f} MiB", flush=True)
    print(" ".join(f"{status}:{count}" for status, count in sorted(statuses.items())))


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*[*given, *(1_000_000, 1)[len(given) :]])
