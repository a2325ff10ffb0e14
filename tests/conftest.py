"""Settings and fixtures for all tests.

Hypothesis draws the same examples in every run, so that results are reproducible; KSCHEDD_EXPLORE=1 draws others.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from kschedd.bench.shared import VARIABLE, shared_folder

# Time limits of Hypothesis would make tests depend on the speed of the machine.
UNTIMED: Any = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, database=None, **UNTIMED)
settings.register_profile("explore", **UNTIMED)
settings.load_profile("explore" if os.environ.get("KSCHEDD_EXPLORE") else "repeatable")

SharedPart = Callable[[str], Path]


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Restore the log settings, which commands in this process change."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture(scope="session")
def shared_part() -> SharedPart:
    """Return a function that finds a folder of recorded data by name, and skips the test if the folder is missing."""
    shared = shared_folder()

    def part(name: str) -> Path:
        if shared is None or not (shared / name).is_dir():
            pytest.skip(f"there is no shared folder with {name}/ in it: name one in {VARIABLE}")
        return shared / name

    return part
