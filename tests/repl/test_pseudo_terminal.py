"""Tests of the REPL as a separate process at a real pseudo-terminal."""

import codecs
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

PROMPT = "kschedd ❯"  # noqa: RUF001 - the sign of a prompt
PATIENCE_S = 180.0
_AGAIN_S = 1.0
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()=>78][A-Z0-9]?|\x1b\][^\x07]*\x07")
_UNFINISHED = re.compile(r"\x1b(\[[0-9;?]*|[()]|\][^\x07]*)?\Z")  # an incomplete escape sequence at the end


@attrs.define(eq=False)
class Screen:
    """A user's screen and keyboard. `text` is the output since the last `expect`, without escapes."""

    keys: int
    state: Path
    text: str = ""
    _decoder: codecs.IncrementalDecoder = attrs.field(factory=codecs.getincrementaldecoder("utf-8"))
    _unread: str = ""  # incomplete escape sequence

    def type(self, keys: str) -> None:
        os.write(self.keys, keys.encode())

    def expect(self, words: str, *, again: str = "") -> str:
        """Wait until these words appear, and return all text up to them.

        Until then `again` is typed repeatedly on an empty line, since completion with Tab needs names that arrive by a
        watch.
        """
        end = time.monotonic() + PATIENCE_S
        while words not in self.text:
            left_s = max(end - time.monotonic(), 0)
            ready, _, _ = select.select([self.keys], [], [], min(left_s, _AGAIN_S) if again else left_s)
            if ready:
                self._read()
            else:
                assert left_s, f"{words!r} was not shown; shown was {self.text!r}"
                self.type(f"\x15{again}")
        before, _, self.text = self.text.partition(words)
        return before + words

    def _read(self) -> None:
        shown = self._unread + self._decoder.decode(os.read(self.keys, 65536))
        unfinished = _UNFINISHED.search(shown)
        end = len(shown) if unfinished is None else unfinished.start()
        self.text, self._unread = self.text + _ESCAPE.sub("", shown[:end]), shown[end:]

    def history(self) -> list[str]:
        lines = (self.state / "kschedd" / "history").read_text().splitlines()
        return [line.removeprefix("+") for line in lines if line.startswith("+")]


@pytest.fixture
def screen(served, tmp_path: Path) -> Iterator[Screen]:
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "TERM": "xterm",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "LC_ALL": "C.UTF-8",
    }
    command = [sys.executable, "-m", "kschedd.cli", "repl", "--socket", served.path]
    child = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    shown = Screen(ours, tmp_path / "state")
    try:
        shown.expect(PROMPT)
        yield shown
        shown.type("\x15exit\r")
        shown.expect("The daemon keeps running.")
        assert child.wait(PATIENCE_S) == 0
    finally:
        child.kill()
        child.wait()
        os.close(ours)


def test_tab_takes_what_all_entries_have_in_common(screen: Screen) -> None:
    screen.type("get pods w\t")
    screen.expect("web-", again="get pods w\t")
    screen.type("1 -o name\r")
    screen.expect("pod/web-1")
    screen.type("get nodes nod\t\tb -o name\r")
    screen.expect("node/node-b")
    screen.type("lab\tnode node-b x=y\r")
    screen.expect("labeled: x")


def test_a_pasted_manifest_ends_with_its_dot(screen: Screen) -> None:
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pasted}\n.\n"
    screen.type("apply -f -\r")
    screen.expect("...")
    screen.type(f"\x1b[200~{manifest}\x1b[201~")
    screen.expect("configmap/pasted created")
    screen.type(f"\x1b[200~apply -f -\n{manifest}get nodes -o name\x1b[201~\r")
    screen.expect("configmap/pasted created")
    screen.expect("node/node-b")


def test_what_is_pasted_after_a_failed_line_is_dropped(screen: Screen) -> None:
    screen.type("\x1b[200~aply -f -\nkind: Pod\n.\x1b[201~\r")
    screen.expect("the 2 lines pasted after it are dropped")
    screen.type("\x1b[200~aply -f -\nget pods\x1b[201~\r")
    screen.expect("the line pasted after it is dropped")


def test_failed_lines_do_not_enter_the_history(screen: Screen) -> None:
    screen.type("get nodes -o name\r")
    screen.expect("node/node-b")
    screen.type("gte nodes\r")
    screen.expect('did you mean "get"')
    screen.type("get nothing\r")
    screen.expect("there is no kind")
    screen.type("api-resources -o json\r")
    screen.expect('"namespaced"')
    screen.expect(PROMPT)
    assert screen.history() == ["get nodes -o name", "api-resources -o json"]


def test_a_failed_line_can_be_recalled_once_to_be_mended(screen: Screen) -> None:
    screen.type("get nodess -o name\r")
    screen.expect("there is no kind")
    screen.expect(PROMPT)
    screen.type("\x1b[A\x01" + "\x1b[C" * len("get node") + "\x1b[3~\x1b[3~\x05\r")
    screen.expect("node/node-b")
    screen.expect(PROMPT)
    assert screen.history() == ["get node -o name"]
