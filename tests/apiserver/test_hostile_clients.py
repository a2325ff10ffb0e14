"""Tests of clients that send arbitrary bytes; `python -m tests.bench.http_fuzz` sends a million messages."""

import pytest
import trio.testing

from tests.apiserver.hostile_clients import attack


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_sent_every_connection_is_answered_and_ends(
    autojump_clock: trio.testing.MockClock, seed: int
) -> None:
    tally = await attack(seed, 60)
    assert tally.conversations == 60
    assert tally.answers > 60
    assert 200 in tally.by_status
