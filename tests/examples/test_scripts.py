"""The example scripts, and the demo, against a real daemon in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kschedd.commands.demo import daemon_of_its_own
from kschedd.rpc.blocking import BlockingClient

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def socket() -> Iterator[str]:
    with daemon_of_its_own(seed=1) as path:
        with BlockingClient(path) as daemon:
            cluster = (ROOT / "examples" / "demo" / "01-cluster.yaml").read_text()
            assert not daemon.call("objects.apply", manifests=cluster)["errors"]
        yield path


def _run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_bytes_written_by_hand_place_a_pod(socket: str) -> None:
    out = _run("examples/scripts/raw_rpc.py", socket)
    assert out.startswith("-> 94 00 01 ad 6f 62 6a 65 63 74 73")
    assert "pod by-hand went to node-" in out


def test_our_client_follows_what_it_applied(socket: str) -> None:
    out = _run("examples/scripts/client.py", KSCHEDD_SOCKET=socket)
    assert out.startswith("Deployment from-python created\n")
    assert out.count(" went to node-") == 3
    assert "points were: node-" in out


def test_a_session_from_a_file(socket: str) -> None:
    out = _run("-m", "kschedd.cli", "--socket", socket, "repl", "--script", "examples/scripts/session.txt")
    assert "deployment.apps/web scaled: 6 -> 9" in out
    assert "pod/inline created" in out


@pytest.mark.full
def test_the_demo_ends_with_0_where_there_is_no_terminal() -> None:
    out = _run("-m", "kschedd.cli", "demo")
    assert out.count("   Running   ") == 13
    assert out.count("   Pending   ") == 1
    assert "0/7 nodes are available: 1 node(s) had untolerated taint(s), 6 Insufficient memory" in out
    assert "default/report fits on no node." in out
