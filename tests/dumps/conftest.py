"""Fixtures shared by the tests of dumps."""

from pathlib import Path

import pytest

from kschedd.scenarios.commands import ScenarioCluster


@pytest.fixture
def scenario() -> ScenarioCluster:
    return ScenarioCluster(Path())
