"""Tests of the screen that the console tests read: which rows are joined."""

import os
from collections.abc import Iterator

import pyte
import pytest

from tests.repl.screens import Emulator


@pytest.fixture
def screen() -> Iterator[Emulator]:
    read, write = os.pipe()
    yield Emulator(10, 4, write)
    os.close(read)
    os.close(write)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        pytest.param(b"0123456789\r\nnext", "0123456789\nnext", id="a-full-row-with-a-newline-ends-a-line"),
        pytest.param(b"0123456789next", "0123456789next", id="a-wrapped-row-goes-on-in-the-next"),
        pytest.param(b"0123456789ab\x1b[H\x1b[Knew\x1b[2;4H", "new\nab", id="a-wrapped-row-that-is-rewritten-ends"),
        pytest.param(b"a\r\nb\r\n0123456789next\r\nc", "b\n0123456789next\nc", id="wraps-scroll-with-their-rows"),
    ],
)
def test_rows_become_lines(screen: Emulator, written: bytes, text: str) -> None:
    pyte.ByteStream(screen).feed(written)
    assert screen.text().rstrip() == text
