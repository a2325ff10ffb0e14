"""A fresh daemon with one node for each test of a client, and the folder of installed clients."""

import os
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.command_line_daemons import command_line_daemon

FOLDER = "KSCHEDD_CLIENTS"
PROGRAMS = Path(__file__).parent / "programs"


@attrs.frozen
class Clients:
    """The environments of client libraries that .ci/clients has installed."""

    folder: Path | None

    def environment(self, name: str) -> Path:
        """Return the folder of a client's environment; skip the test if the client is not installed."""
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
    """Start a daemon; return its kubeconfig."""
    with command_line_daemon(tmp_path) as daemon:
        yield daemon.kubeconfig()
