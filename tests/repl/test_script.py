"""Scripts against a live socket: `kschedd repl < script`, -f, -c."""

import io
import os
import signal
import subprocess
import sys

import pytest
import trio

from kschedd_repl import app
from kschedd_repl.app import run_repl
from kschedd_repl.script import Script


@pytest.fixture
def from_input(monkeypatch):
    def give(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    return give


def test_a_script_from_standard_input(served, from_input, capsys) -> None:
    from_input("# what there is\nget nodes -o name\n\nget pods \\\n  -o name\nexit\nget nothing\n")
    assert run_repl(served.path) == 0
    assert capsys.readouterr().out.split() == ["node/node-a", "node/node-b", "pod/web-0", "pod/web-1"]


def test_manifests_within_a_script_end_with_a_dot(served, from_input, capsys) -> None:
    from_input("apply -f -\napiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n.\nuse team\nget pods -o name\n")
    assert run_repl(served.path) == 0
    captured = capsys.readouterr()
    assert captured.out == "namespace/team created\nnow in namespace team\n"
    assert captured.err == ""


def test_a_failed_command_ends_the_script_with_its_line(served, tmp_path, capsys) -> None:
    script = tmp_path / "script"
    script.write_text("get pods -o name\nget podz\nget nodes -o name\n")
    assert run_repl(served.path, files=[str(script)]) == 1
    captured = capsys.readouterr()
    assert captured.out.split() == ["pod/web-0", "pod/web-1"]
    assert captured.err.endswith(f"{script}:2: failed: get podz\n")


def test_or_not_with_keep_going(served, capsys) -> None:
    commands = ["get podz", "get pods 'x", "get nodes -o name"]
    assert run_repl(served.path, commands=commands, keep_going=True) == 1
    captured = capsys.readouterr()
    assert captured.out.split() == ["node/node-a", "node/node-b"]
    assert "no closing quotation" in captured.err


def test_a_script_must_say_that_it_means_to_stop_the_daemon(served, capsys) -> None:
    assert run_repl(served.path, commands=["stop"]) == 1
    assert not served.daemon.stopped
    assert run_repl(served.path, commands=["stop --yes"]) == 0
    assert served.daemon.stopped


def test_a_watched_verb(served, capsys) -> None:
    assert run_repl(served.path, commands=["watch -i 0.01 --times 2 get pod web-0 -o name"]) == 0
    assert capsys.readouterr().out == "pod/web-0\npod/web-0\n"


def test_without_a_daemon_it_says_so(tmp_path) -> None:
    from kschedd.rpc.errors import NoDaemonError

    with pytest.raises(NoDaemonError, match="kschedd run"):
        run_repl(str(tmp_path / "nobody"), commands=["get pods"])


def test_a_daemon_that_goes_fails_the_command(served, capsys) -> None:
    async def goes() -> None:
        served.stop()
        await trio.sleep_forever()

    served.daemon.objects_kinds = goes
    assert run_repl(served.path, commands=["kinds"]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_ctrl_c_ends_the_command_that_runs(served, capsys, monkeypatch) -> None:
    gone = {**served.daemon.objects[2], "status": {"phase": "Failed", "reason": "Evicted"}}
    served.daemon.streams["objects.watch"] = [{"type": "MODIFIED", "object": gone, "resource_version": 10}]
    shell = app.Shell(served.path, [Script("x", ["get pods -w", "get nodes"])], False, "default", "")
    written = shell._session._write

    def interrupt_at_the_change(text: str) -> None:
        written(text)
        if "Evicted" in text:
            os.kill(os.getpid(), signal.SIGINT)

    shell._session._write = interrupt_at_the_change
    assert trio.run(shell.run) == 130
    captured = capsys.readouterr()
    assert "(cancelled)" in captured.err
    assert "node-a   Ready" not in captured.out


def test_help(served, capsys) -> None:
    assert run_repl(served.path, commands=["help", "help get", "help use"]) == 0
    out = capsys.readouterr().out
    assert "explain" in out
    assert "usage: get" in out


def test_a_watch_ends_with_the_program_that_reads_it(served) -> None:
    line = '"$0" -m kschedd repl --socket "$1" -c "get pods -w" -c "get nodes" | head -1'
    done = subprocess.run(
        ["bash", "-c", line, sys.executable, served.path], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.startswith("NAME ")
    assert done.stderr == ""
