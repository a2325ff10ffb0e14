"""A fresh daemon with one node for each test of a client, and the folder of installed clients."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

FOLDER = "KSCHEDD_CLIENTS"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {capacity: {cpu: 8, memory: 32Gi, pods: 110}}\n"
PROGRAMS = Path(__file__).parent / "programs"


@attrs.frozen
class Clients:
    """The environments that .ci/clients has installed."""

    folder: Path | None

    def environment(self, name: str) -> Path:
        """Return the folder of a client's environment, or skip the test."""
        if self.folder is None:
            pytest.skip(f"the client {name} is not installed: run .ci/clients and set {FOLDER} to the folder it prints")
        if not (self.folder / name).is_dir():
            pytest.skip(f"the client {name} could not be installed in {self.folder}")
        return self.folder / name


@pytest.fixture(scope="session")
def clients() -> Clients:
    named = os.environ.get(FOLDER)
    return Clients(Path(named) if named else None)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Start a daemon whose pods start, complete and stop quickly; return its kubeconfig."""

    def kschedd(*words: str, given: str = "") -> str:
        command = [sys.executable, "-m", "kschedd", *words, "--socket", str(tmp_path / "k.sock")]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    behavior = "start=0s,finish-jobs=1s,terminate=1s"
    kschedd("run", "--detach", "--http", "127.0.0.1:0", "--pod-behavior", behavior)
    try:
        kschedd("apply", "-f", "-", given=NODE)
        (tmp_path / "kubeconfig").write_text(kschedd("kubeconfig"))
        yield tmp_path / "kubeconfig"
    finally:
        kschedd("stop")
