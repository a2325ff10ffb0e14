"""Settings and fixtures for all tests.

Hypothesis draws the same examples in every run, so that results are reproducible; KSCHEDD_EXPLORE=1 draws others.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import structlog
from hypothesis import HealthCheck, settings

from kschedd.bench.shared import VARIABLE, shared_folder
from tests.full_run import FULL, LEFT_OUT, LeftOut, examples, split

# Time limits of Hypothesis would make tests depend on the speed of the machine.
UNTIMED: Any = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, database=None, max_examples=examples(100), **UNTIMED)
settings.register_profile("explore", **UNTIMED)
settings.load_profile("explore" if os.environ.get("KSCHEDD_EXPLORE") else "repeatable")

# Processes that tests start compile each imported module of kschedd, 3 s of CPU, unless compiled modules may be stored.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

SharedPart = Callable[[str], Path]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exclude 20,000 tests and all modules from garbage collection, and traverse all other objects rarely.

    Otherwise, garbage collection takes a third of the time of collecting the tests, and a second in any later test.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(700, 10, 500)
        gc.enable()


# -- the everyday run and the full run (tests/full_run.py) -----------------------------------------------------------


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if FULL:
        return
    chosen, others = split(items)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = chosen
    LEFT_OUT.tests = len(others)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send the numbers of a worker process to the process that prints them."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["left_out"] = attrs.astuple(LEFT_OUT)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the numbers of a worker process, which has collected all tests and run some of them."""
    sent = LeftOut(*getattr(node, "workeroutput", {}).get("left_out", ()))
    LEFT_OUT.tests = max(LEFT_OUT.tests, sent.tests)
    LEFT_OUT.cases += sent.cases


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if FULL:
        terminalreporter.write_line("full run (KSCHEDD_FULL): nothing left out")
    elif LEFT_OUT.tests or LEFT_OUT.cases:
        terminalreporter.write_line(
            f"everyday run: {LEFT_OUT.tests} tests, and {LEFT_OUT.cases} recorded cases of other tests, are left out; "
            "KSCHEDD_FULL=1 runs them too"
        )


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
