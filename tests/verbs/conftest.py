"""A session with a fake daemon, and the output of its verbs."""

import shlex
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from kschedd.printing.terminal.style import TerminalStyle
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.table import run_words
from tests.verbs.fake_daemon import NOW, FakeDaemon, node, pod


@attrs.define(eq=False)
class Typed:
    """A session that runs lines as a user types them."""

    daemon: FakeDaemon
    input: bytes = b""
    agrees: bool = True
    namespace: str = "default"
    style: TerminalStyle = attrs.field(factory=TerminalStyle)
    slept: list[float] = attrs.field(factory=list)
    on_sleep: Callable[[], None] = lambda: None  # changes of the cluster while a verb waits
    editor: Callable[[Path], int] | None = None
    folder: Path = Path()
    out: str = ""
    err: str = ""

    def __call__(self, line: str) -> int:
        self.out = self.err = ""
        session = VerbSession(
            lambda: self.daemon,
            self._write,
            self._complain,
            self.style,
            now=lambda: NOW,
            sleep=self._sleep,
            read_input=lambda: self.input,
            confirm=lambda question: self.agrees,
            namespace=self.namespace,
            folder=self.folder,
            open_editor=self.editor,
        )
        return run_words(session, shlex.split(line), ("run", "repl"))

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.on_sleep()

    def _write(self, text: str) -> None:
        self.out += text

    def _complain(self, text: str) -> None:
        self.err += text


@pytest.fixture
def daemon() -> FakeDaemon:
    return FakeDaemon(
        node("node-a"),
        node("node-b", "zone-b", unschedulable=True, taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
        pod("web-0", "node-a"),
        pod("web-1"),
        pod("db-0", "node-b", namespace="team", cpu="1500m"),
        {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": "default", "creationTimestamp": "2024-12-31T23:59:00Z"},
        },
    )


@pytest.fixture
def typed(daemon: FakeDaemon) -> Callable[[str], int]:
    return Typed(daemon)
