"""Tests of `kschedd run --detach`: a daemon in the background, and the message if it does not start."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kschedd.cli import main
from kschedd.commands.child_daemon import ChildDaemon


def _kschedd(*words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "kschedd.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_a_detached_daemon_is_ready_when_the_command_returns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    socket = tmp_path / "k.sock"
    started = _kschedd("run", "--detach", "--socket", str(socket), "--seed", "5")
    assert started.returncode == 0, started.stderr
    try:
        assert re.match(rf"The daemon is ready: pid \d+, socket {socket}, log {tmp_path}/k.log\n", started.stdout)
        assert started.stdout.endswith(f"Stop it with: kschedd --socket {socket} stop\n")
        assert started.stderr == ""
        log = tmp_path / "k.log"
        before = log.read_text()
        assert "started" in before
        assert log.stat().st_mode & 0o077 == 0
        again = _kschedd("run", "--detach", "--socket", str(socket))
        assert again.returncode == 1
        assert again.stderr.startswith(
            "error: the daemon did not start (exit status 1):\nerror: another daemon answers"
        )
        assert log.read_text().startswith(before)
    finally:
        assert main(["--socket", str(socket), "stop", "--yes"]) == 0
    capsys.readouterr()


def test_a_detached_daemon_with_a_rest_api_names_its_address(tmp_path: Path) -> None:
    socket = tmp_path / "k.sock"
    started = _kschedd("run", "--detach", "--socket", str(socket), "--http", "127.0.0.1:0")
    assert started.returncode == 0, started.stderr
    try:
        address = re.search(
            r"^REST API: (http://127\.0\.0\.1:\d+); kubeconfig for kubectl: (.*) > FILE$", started.stdout, re.M
        )
        assert address is not None
        assert address[2] == f"kschedd --socket {socket} kubeconfig"
        assert f"REST API:   {address[1]}\n" in _kschedd("--socket", str(socket), "status").stdout
    finally:
        assert main(["--socket", str(socket), "stop", "--yes"]) == 0


def test_a_daemon_that_does_not_start_is_reported_with_its_log(tmp_path: Path) -> None:
    done = _kschedd("run", "--detach", "--socket", str(tmp_path / "k.sock"), "--config", str(tmp_path / "none.yaml"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "the daemon did not start (exit status 1):\nerror: " in done.stderr
    assert "none.yaml: cannot be read" in done.stderr


def test_the_latest_line_of_the_log_is_the_progress_of_a_start(tmp_path: Path) -> None:
    log = tmp_path / "k.log"
    log.write_text("of an earlier run\n")
    child = ChildDaemon(tmp_path / "k.sock", log, subprocess.Popen(["true"]), log.stat().st_size)
    assert child.latest() == ""
    with log.open("a") as output:
        output.write("2026-11-29T13:11:17Z [info     ] journal       read='30,000 of 61,700 objects and writes'\n")
    assert child.latest() == "journal read='30,000 of 61,700 objects and writes'"
    child.process.wait()
