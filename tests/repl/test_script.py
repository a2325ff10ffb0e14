"""Tests of scripts with a live socket: `kschedd repl < script`, -f, -c."""

import io
import os
import signal
import subprocess
import sys

import pytest
import trio

from kschedd.verbs.table import VERBS
from kschedd_repl import app
from kschedd_repl.app import run_repl
from kschedd_repl.own import OWN
from kschedd_repl.script import Script
from tests.verbs.fake_daemon import pod


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


def test_a_long_line_is_cut_short_in_what_is_told_of_it(served, capsys) -> None:
    assert run_repl(served.path, commands=["x" * 100_000]) == 2
    cut = f"{'x' * 200}..."
    assert (
        capsys.readouterr().err == f'error: unknown command "{cut}"; `help` lists all commands\n-c:1: failed: {cut}\n'
    )


def test_or_not_with_keep_going(served, capsys) -> None:
    commands = ["get podz", "get pods 'x", "get nodes -o name"]
    assert run_repl(served.path, commands=commands, keep_going=True) == 1
    captured = capsys.readouterr()
    assert captured.out.split() == ["node/node-a", "node/node-b"]
    assert "no closing quotation" in captured.err


def test_a_difference_found_is_an_answer_which_the_exit_status_tells(served, tmp_path, capsys) -> None:
    team = tmp_path / "team.yaml"
    team.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")
    commands = [f"diff -f {team}; get pod web-0 -o name", "get pod web-1 -o name"]
    assert run_repl(served.path, commands=commands) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == "diff -u -N LIVE/v1.Namespace..team MERGED/v1.Namespace..team"
    assert captured.out.splitlines()[-2:] == ["pod/web-0", "pod/web-1"]
    assert captured.err == ""


def test_a_failed_diff_is_a_failure(served, tmp_path, capsys) -> None:
    assert run_repl(served.path, commands=[f"diff -f {tmp_path / 'nothing'}", "get pods -o name"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "failed: diff -f" in captured.err


def test_a_script_must_say_that_it_means_to_stop_the_daemon(served, capsys) -> None:
    assert run_repl(served.path, commands=["stop"]) == 1
    assert not served.daemon.stopped
    assert run_repl(served.path, commands=["stop --yes"]) == 0
    assert served.daemon.stopped


def test_a_watched_verb(served, capsys) -> None:
    assert run_repl(served.path, commands=["watch -i 10ms --times 2 get pod web-0 -o name"]) == 0
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
    assert run_repl(served.path, commands=["api-resources"]) == 1
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
        ["bash", "-c", line, sys.executable, served.path], capture_output=True, text=True, timeout=180, check=True
    )
    assert done.stdout.startswith("NAME ")
    assert done.stderr == ""


# -- pipes, files, macros -------------------------------------------------------------------------------------------


def test_output_goes_into_files(served, tmp_path, capsys) -> None:
    file = tmp_path / "out"
    commands = [f"get nodes -o name > {file}", f"get pods -o name >> '{file}'; get pod web-0 -o name"]
    assert run_repl(served.path, commands=commands) == 0
    assert file.read_text().split() == ["node/node-a", "node/node-b", "pod/web-0", "pod/web-1"]
    assert capsys.readouterr().out == "pod/web-0\n"


def test_a_file_that_cannot_be_written(served, tmp_path, capsys) -> None:
    assert run_repl(served.path, commands=[f"get nodes > {tmp_path}/no/file"]) == 1
    assert "no/file: cannot be written: No such file" in capsys.readouterr().err


def test_output_goes_into_a_shell_command(served, tmp_path, capfd) -> None:
    commands = ["get nodes -o name | sed 's/node-//' | sort -r; get pod web-0 -o name", "help | grep ^.*explain"]
    assert run_repl(served.path, commands=commands) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[:3] == ["node/b", "node/a", "pod/web-0"]
    assert "Explain why a workload or pod is pending" in lines[3]


def test_a_shell_command_that_fails_is_told(served, capfd) -> None:
    assert run_repl(served.path, commands=["get nodes | sh -c 'cat >/dev/null; exit 3'"]) == 3
    assert "(sh ended with status 3)" in capfd.readouterr().err
    assert run_repl(served.path, commands=["get nodes | nothing-of-that-name"]) == 127
    assert "(nothing-of-that-name: command not found: status 127)" in capfd.readouterr().err
    assert run_repl(served.path, commands=["get nodes | kill -9 $$"]) != 0
    assert "(kill was ended by SIGKILL)" in capfd.readouterr().err


def test_a_shell_command_that_reads_only_a_part_is_told(served, capfd) -> None:
    served.daemon.objects += [pod(f"many-{number}") for number in range(3000)]
    assert run_repl(served.path, commands=["get pods -o json | head -1"]) == 0
    captured = capfd.readouterr()
    assert captured.out == "{\n"
    assert "(head ended before it had read everything)" in captured.err


def test_a_watch_ends_with_the_shell_command_that_reads_it(served, capfd) -> None:
    changed = {"type": "MODIFIED", "object": served.daemon.objects[2], "resource_version": 10}
    served.daemon.streams["objects.watch"] = [changed] * 2000
    assert run_repl(served.path, commands=["get pods -w | head -1"]) == 0
    assert capfd.readouterr().out.startswith("NAME ")


def test_macros_within_a_script(served, capfd) -> None:
    commands = ["macro two = get nodes -o name; get pod $1 -o name", "two web-1", "two web-0 | tail -1", "two"]
    assert run_repl(served.path, commands=commands) == 2
    captured = capfd.readouterr()
    assert captured.out.split() == ["node/node-a", "node/node-b", "pod/web-1", "pod/web-0"]
    assert "error: two needs 1 word after it" in captured.err


def test_a_failed_command_ends_its_line(served, capsys) -> None:
    assert run_repl(served.path, commands=["get podz; get nodes; get pods"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "(the 2 commands after it are not run)" in captured.err


def test_a_script_is_never_asked(served, capsys) -> None:
    assert run_repl(served.path, commands=["delete pods --all", "delete node node-a"]) == 0
    assert capsys.readouterr().out.count("deleted") == 3


def test_what_is_not_text_is_refused(served, capsys) -> None:
    assert run_repl(served.path, commands=["get pods \0", "get \udcff"], keep_going=True) == 2
    assert capsys.readouterr().err.count("the line has characters that are not text") == 2


def test_every_command_has_help_with_examples(served, capsys) -> None:
    names = [*sorted({verb.name for verb in VERBS}), *OWN]
    assert run_repl(served.path, commands=[f"help {name}" for name in names]) == 0
    assert capsys.readouterr().out.count("\nexamples:\n") == len(names)
