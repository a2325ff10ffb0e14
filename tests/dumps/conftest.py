"""What tests of dumps have in common."""

from pathlib import Path

import pytest

from kschedd.scenarios.commands import ScenarioCluster


@pytest.fixture
def scenario() -> ScenarioCluster:
    return ScenarioCluster(Path())
