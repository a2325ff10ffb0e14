"""Tests of the prompt with keys from a pipe and output without a terminal."""

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from kschedd_repl import app
from kschedd_repl.prompt.history import LineHistory, history_file
from kschedd_repl.prompt.names import Names
from kschedd_repl.prompt.terminal import BarText, Terminal


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe:
        yield pipe


def _terminal(keys: PipeInput) -> Terminal:
    options = {"input": keys, "output": DummyOutput()}
    return Terminal(Names, lambda: "default", lambda: BarText("bar"), False, options=options)


async def test_lines_interrupts_and_the_end(keys: PipeInput) -> None:
    terminal = _terminal(keys)
    with trio.fail_after(180):
        keys.send_text("get pods\r")
        assert await terminal.ask() == "get pods"
        keys.send_text("half\x03")
        assert await terminal.ask() == ""
        keys.send_text("\x04")
        assert await terminal.ask() is None


async def test_lines_pasted_at_once_are_lines(keys: PipeInput) -> None:
    terminal = _terminal(keys)
    with trio.fail_after(180):
        keys.send_text("\x1b[200~apply -f -\nkind: Pod\n.\nget pods\x1b[201~\r")
        assert await terminal.ask() == "apply -f -"
        assert terminal.ask_block() == b"kind: Pod\n"
        assert await terminal.ask() == "get pods"


async def test_a_pasted_line_that_is_too_long_is_not_taken(keys: PipeInput) -> None:
    terminal = _terminal(keys)
    with trio.fail_after(180):
        keys.send_text(f"get \x1b[200~{'x' * 16_385}\x1b[201~pods\r")
        assert await terminal.ask() == "get pods"
        keys.send_text(f"\x1b[200~get {'x' * 16_380}\x1b[201~\r")
        assert await terminal.ask() == f"get {'x' * 16_380}"
        keys.send_text(f"\x1b[200~a\n{'x' * 16_385}\x1b[201~kind: Pod\r\x04")
        assert terminal.ask_block() == b"kind: Pod\n"


async def test_a_cancelled_prompt_ends(keys: PipeInput) -> None:
    terminal = _terminal(keys)
    with trio.fail_after(180):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(terminal.ask)
            await trio.testing.wait_all_tasks_blocked(0.05)
            nursery.cancel_scope.cancel()
    assert not terminal.asking


async def test_a_name_is_completed_with_tab(keys: PipeInput, monkeypatch) -> None:
    terminal = _terminal(keys)
    with trio.fail_after(180):
        keys.send_text("uncor\t\r")
        assert await terminal.ask() == "uncordon "


def test_history_is_for_its_owner_alone(tmp_path) -> None:
    LineHistory(history_file()).keep("get pods")
    assert history_file().stat().st_mode & 0o777 == 0o600
    assert "get pods" in history_file().read_text()


def test_history_that_cannot_be_kept_is_no_obstacle(tmp_path) -> None:
    (tmp_path / "state").write_text("a file, where a folder should be")
    history = LineHistory(history_file())
    history.keep("get pods")
    assert history.get_strings() == ["get pods"]


def test_a_conversation(served, keys: PipeInput, monkeypatch, capsys) -> None:
    def terminal(*args: Any) -> Terminal:
        return Terminal(*args, options={"input": keys, "output": DummyOutput()})

    monkeypatch.setattr(app, "Terminal", terminal)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    shell = app.Shell(served.path, [], False, "default", "The daemon keeps running.")
    keys.send_text("get nodes -o name\rgte\rlabel node node-a x=y\r\x04")

    async def converse() -> int:
        with trio.fail_after(180):
            return await shell.run()

    assert trio.run(converse) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[1:] == ["node/node-a", "node/node-b", "node/node-a labeled: x", "The daemon keeps running."]
    assert 'did you mean "get"' in captured.err
