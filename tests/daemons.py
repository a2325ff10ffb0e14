"""Daemons in processes of their own, for tests that end them in ways from which no `finally` helps."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from kschedd.rpc.client import Client
from kschedd.rpc.errors import NoDaemonError

PROGRAM = """
import sys, trio
from pathlib import Path
from kschedd.daemon import DaemonOptions, run_daemon
here = Path(sys.argv[1])
sys.exit(trio.run(run_daemon, DaemonOptions(socket=here / "k.sock", state_dir=here / "state", seed=1)))
"""


@asynccontextmanager
async def process(where: Path) -> AsyncIterator["subprocess.Popen[bytes]"]:
    """A daemon in a process of its own, ready to answer."""
    with (where / "log").open("ab") as log:
        started = subprocess.Popen(  # noqa: ASYNC220 - starting takes a moment, and nothing else runs
            [sys.executable, "-c", PROGRAM, str(where)], stderr=log, cwd=Path(__file__).parents[1]
        )
    try:
        with trio.fail_after(30):
            while True:
                try:
                    async with Client.connect(where / "k.sock") as client:
                        await client.call("rpc.ping")
                        break
                except NoDaemonError:  # not there yet, or left by one that was killed
                    assert started.poll() is None, (where / "log").read_text()
                    await trio.sleep(0.01)
        yield started
    finally:
        started.kill()
        started.wait()
