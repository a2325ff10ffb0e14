"""Tests of the signals that end the daemon, and of those that make it reload its files."""

import os
import pty
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, trio
from kschedd.shutdown import heeded, lift_deadline

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests under nohup ignores it

async def main():
    done = trio.Event()
    def told(number, count):
        os.write(int(sys.argv[1]), number.name.encode() + b"\\n")
        lift_deadline()
        done.set()
    def reload():
        os.write(int(sys.argv[1]), b"reload\\n")
    with heeded(told, reload):
        os.write(int(sys.argv[1]), b"ready\\n")
        await done.wait()

trio.run(main)
"""


@pytest.mark.parametrize("terminal", [True, False], ids=["with-a-terminal", "without"])
def test_a_hang_up_that_somebody_sends_is_no_end(terminal: bool) -> None:
    answer, out = os.pipe()
    held, there = pty.openpty() if terminal else (-1, -1)
    command = [sys.executable, "-c", PROGRAM, str(out)]
    if terminal:  # which becomes the controlling terminal of a new session
        command = [sys.executable, "-c", TAKES_THE_TERMINAL, str(there), *command]
    child = subprocess.Popen(command, pass_fds=[out, *([there] if terminal else [])], start_new_session=True)
    os.close(out)
    if terminal:
        os.close(there)
    with os.fdopen(answer, "rb") as heard:
        assert heard.readline() == b"ready\n"
        child.send_signal(signal.SIGHUP)
        assert heard.readline() == b"reload\n"
        if terminal:
            os.close(held)  # now it goes
            assert heard.readline() == b"SIGHUP\n"
        else:
            child.send_signal(signal.SIGTERM)
            assert heard.readline() == b"SIGTERM\n"
    assert child.wait(60) == 0


TAKES_THE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(int(sys.argv[1]), termios.TIOCSCTTY, 0)
os.close(int(sys.argv[1]))
os.execv(sys.argv[2], sys.argv[2:])
"""
