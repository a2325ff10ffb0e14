"""The answer of `explain` to a planted mistake, and its remedy's commands as a scenario runs them."""

import json
from typing import Any

from kschedd.scenarios.commands import ScenarioCluster
from tests.mistakes.mistake_files import Mistake, Step


def answer(mistake: Mistake, cluster: ScenarioCluster) -> dict[str, Any]:
    """Return the output of `explain -o json`."""
    result = cluster.execute(f"explain {mistake.expect.ask} -n {mistake.expect.namespace} -o json", "")
    assert result.status == 0, result.text
    found: dict[str, Any] = json.loads(result.text)
    return found


def step(command: str) -> Step:
    """Return a remedy's shell command in the form of a scenario's."""
    line, _, given = command.partition("\n")
    words = line.removesuffix(" <<'EOF'").removeprefix("kschedd ")
    return Step(words, given.removesuffix("\nEOF"))
