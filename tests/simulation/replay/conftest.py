"""Recordings for several tests."""

from pathlib import Path

import pytest
import trio

from tests.simulation.replay.live import busy_run, moody


@pytest.fixture(scope="session")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a busy run of 12 pods and some more."""
    file = tmp_path_factory.mktemp("recordings") / "busy"
    trio.run(busy_run, file, 5, None, None, 12)
    return file


@pytest.fixture(scope="session")
def moody_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a busy run with an unpredictable plugin."""
    file = tmp_path_factory.mktemp("recordings") / "moody"
    trio.run(busy_run, file, 5, *moody(), 12)
    return file


@pytest.fixture(scope="session")
def late_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record the second half of a busy run."""
    file = tmp_path_factory.mktemp("recordings") / "late"
    trio.run(busy_run, file, 5, None, None, 12, True)
    return file
