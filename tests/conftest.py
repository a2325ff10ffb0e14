"""Settings and fixtures for all tests.

Hypothesis draws the same examples in every run, so that what passed passes again; KSCHEDD_EXPLORE=1 has it draw others.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from kschedd.bench.shared import VARIABLE, shared_folder

# Hypothesis' limits of time would make a test depend on how fast the machine is.
UNTIMED: Any = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, database=None, **UNTIMED)
settings.register_profile("explore", **UNTIMED)
settings.load_profile("explore" if os.environ.get("KSCHEDD_EXPLORE") else "repeatable")

SharedPart = Callable[[str], Path]


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Commands that are run in this process set up the log for themselves; the next test finds it as it was."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture(scope="session")
def shared_part() -> SharedPart:
    """Return a function that finds a folder of recorded data by its name; it skips the test if the folder is absent."""
    shared = shared_folder()

    def part(name: str) -> Path:
        if shared is None or not (shared / name).is_dir():
            pytest.skip(f"there is no shared folder with {name}/ in it: name one in {VARIABLE}")
        return shared / name

    return part
