"""Test of a terminal client for Kubernetes (kop, on PyPI as kop-cli) on the REST API over TCP: it shows the pods.

Without the client, the test is skipped; `KSCHEDD_KOP` may contain its path. The client is a process in a terminal, in
real time; a key is pressed again until the expected screen appears.
"""

import os
import pty
import select
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pyte
import pytest

from tests.apiserver.asking import pod
from tests.apiserver.test_clients import KUBECONFIG, in_thread, serving

_ROWS, _COLUMNS = 40, 120
_AGAIN = 5.0  # seconds after which a key is pressed again
_PATIENCE = 100.0


class _Terminal:
    """A program in a terminal, with its screen and its keyboard."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._own, theirs = pty.openpty()
        ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self._program = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        self._screen = pyte.Screen(_COLUMNS, _ROWS)
        self._stream = pyte.ByteStream(self._screen)

    def press_until(self, keys: bytes, shown: Callable[[str], bool]) -> None:
        """Press these keys repeatedly until the screen is as expected."""
        give_up, press_at = time.monotonic() + _PATIENCE, time.monotonic() + _AGAIN
        while not shown(text := "\n".join(self._screen.display)):
            assert time.monotonic() < give_up, text
            if keys and time.monotonic() > press_at:
                os.write(self._own, keys)
                press_at = time.monotonic() + _AGAIN
            ready, _, _ = select.select([self._own], [], [], 0.2)
            if ready:
                self._stream.feed(os.read(self._own, 1 << 16))

    def close(self) -> None:
        self._program.kill()
        self._program.wait()
        os.close(self._own)


async def test_it_shows_nodes_and_pods(tmp_path: Path) -> None:
    kop = os.environ.get("KSCHEDD_KOP") or shutil.which("kop")
    if not kop:
        pytest.skip("kop is not installed: pip install kop-cli, or name it in KSCHEDD_KOP")

    def work(url: str) -> list[str]:
        config = tmp_path / ".kube" / "config"
        config.parent.mkdir()
        config.write_text(KUBECONFIG.format(url=url))
        environment = {"HOME": str(tmp_path), "KUBECONFIG": str(config), "TERM": "xterm-256color", "PATH": os.defpath}
        terminal = _Terminal([kop], environment)
        reported = []
        try:
            terminal.press_until(b"", lambda text: "Enter to connect" in text and "v1.34.9" in text)
            reported.append("connects")
            terminal.press_until(b"\r", lambda text: "Nodes (1 items)" in text)
            reported.append("a node")
            terminal.press_until(b"\x1b[B\r", lambda text: "seen-by-kop" in text and "Running" in text)
            reported.append("a pod")
        finally:
            terminal.close()
        return reported

    async with serving() as url:
        await in_thread(_create, url)
        assert await in_thread(work, url) == ["connects", "a node", "a pod"]


def _create(url: str) -> None:
    from kubernetes import client

    with client.ApiClient(client.Configuration(host=url)) as api:
        client.CoreV1Api(api).create_namespaced_pod("default", pod("seen-by-kop"))
