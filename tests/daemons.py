"""Daemons in separate processes, for tests that kill them."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

PROGRAM = """
import sys, trio
from functools import partial
from pathlib import Path
from kschedd.serving import run_daemon
from kschedd.startup.options import DaemonOptions

class Status:
    def started(self, path):
        print("started", path, flush=True)

here = Path(sys.argv[1])
options = DaemonOptions(socket=here / "k.sock", state_dir=here / "state", seed=1)
sys.exit(trio.run(partial(run_daemon, options, task_status=Status())))
"""


@asynccontextmanager
async def process(where: Path) -> AsyncIterator["subprocess.Popen[bytes]"]:
    """Run a daemon in a separate process; yield it when it is ready."""
    with (where / "log").open("ab") as log:
        started = subprocess.Popen(  # noqa: ASYNC220 - starting takes a moment, and nothing else runs
            [sys.executable, "-c", PROGRAM, str(where)],
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=Path(__file__).parents[1],
        )
    assert started.stdout is not None
    try:
        with trio.fail_after(120):
            line = await trio.to_thread.run_sync(started.stdout.readline, abandon_on_cancel=True)
        assert line.startswith(b"started"), (where / "log").read_text()
        yield started
    finally:
        started.kill()
        started.wait()
        started.stdout.close()
