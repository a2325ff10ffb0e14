"""Daemons in child processes: start a daemon, wait until it is ready, and stop it."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from kschedd.errors import KscheddError

_LOOK_S, _END_S = 0.05, 10.0
_LOG_LINES = 15


@attrs.define(eq=False)
class DaemonStartError(KscheddError):
    """The error if the daemon ended before it was ready."""

    status: int
    log: str

    def __str__(self) -> str:
        return f"the daemon did not start (exit status {self.status}):\n{self.log}"


@attrs.frozen(eq=False)
class ChildDaemon:
    """A daemon in a child process, with its log file. The daemon appends to the file from offset `log_start`."""

    socket: Path
    log: Path
    process: "subprocess.Popen[bytes]"
    log_start: int

    @classmethod
    def start(cls, words: Sequence[str], socket: Path, log: Path) -> "ChildDaemon":
        """Start `kschedd WORDS --socket SOCKET`. Only this user can read the log file.

        The child has its own session: neither Ctrl-C nor closing the terminal ends it.
        """
        log.touch(mode=0o600)
        with log.open("ab") as output:
            log_start = output.tell()
            process = subprocess.Popen(
                [sys.executable, "-m", "kschedd.cli", *words, "--socket", str(socket)],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        return cls(socket, log, process, log_start)

    def wait_until_ready(self, on_look: Callable[[], None] = lambda: None) -> None:
        """Wait until the daemon serves requests; call `on_look` after each poll.

        Raises DaemonStartError if the daemon ends first.
        """
        from kschedd.rpc.blocking import BlockingClient

        while True:
            if self.process.poll() is not None:
                text = self.log.read_bytes()[self.log_start :].decode("utf-8", "replace")
                raise DaemonStartError(self.process.returncode, "\n".join(text.splitlines()[-_LOG_LINES:]))
            try:
                with BlockingClient(self.socket) as daemon:
                    if daemon.call("daemon.info")["pid"] == self.process.pid:
                        return
            except KscheddError:  # the daemon does not listen yet; if it fails to start, its process ends
                pass
            on_look()
            time.sleep(_LOOK_S)

    def latest(self) -> str:
        """Return the latest line of the log, without its time and level, to show the progress of a slow start."""
        text = self.log.read_bytes()[self.log_start :].decode("utf-8", "replace")
        lines = text.splitlines() or [""]
        return " ".join(lines[-1].rpartition("] ")[2].split())

    def stop(self) -> None:
        """Request the daemon to end, and kill the daemon if it does not."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(_END_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
