"""A daemon in a process of its own, driven by the command line, for tests with programs of other projects."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs


@attrs.frozen
class CommandLineDaemon:
    """`folder` contains the socket, and the kubeconfig after `kubeconfig`."""

    folder: Path

    def kschedd(self, *words: str, given: str = "", timeout_s: float = 60) -> str:
        """Run a command with the daemon's socket; return its output."""
        done = subprocess.run(self.command(*words), input=given, capture_output=True, text=True, timeout=timeout_s)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def command(self, *words: str) -> list[str]:
        """Return a command line with the daemon's socket."""
        return [sys.executable, "-m", "kschedd", *words, "--socket", str(self.folder / "k.sock")]

    def kubeconfig(self) -> Path:
        """Write a kubeconfig for the daemon's REST API; return its path."""
        path = self.folder / "kubeconfig"
        path.write_text(self.kschedd("kubeconfig"))
        return path


@contextmanager
def command_line_daemon(folder: Path, *flags: str, nodes: int = 1) -> Iterator[CommandLineDaemon]:
    """Run a daemon with a REST API and nodes of 8 CPUs, whose pods start immediately and stop within a second."""
    daemon = CommandLineDaemon(folder)
    behavior = "start=0s,finish-jobs=1s,terminate=1s"
    daemon.kschedd("run", "--detach", "--http", "127.0.0.1:0", "--pod-behavior", behavior, *flags)
    try:
        if nodes:
            daemon.kschedd(
                "apply", "-f", "-", given="---\n".join(_node(f"n{number}") for number in range(1, nodes + 1))
            )
        yield daemon
    finally:
        daemon.kschedd("stop")


def _node(name: str) -> str:
    capacity = "{cpu: 8, memory: 32Gi, pods: 110}"
    return f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nstatus: {{capacity: {capacity}}}\n"
