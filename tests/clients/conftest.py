"""A fresh daemon with one node for each test of a client, and the folder of installed clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line_daemons import command_line_daemon
from tests.installed_clients import Clients, installed_clients

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def clients() -> Clients:
    return installed_clients()


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Start a daemon; return its kubeconfig."""
    with command_line_daemon(tmp_path) as daemon:
        yield daemon.kubeconfig()
