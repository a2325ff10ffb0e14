"""What `explain` answers to a planted mistake, and its remedy's commands as a scenario runs them."""

import json
from typing import Any

from kschedd.scenarios.commands import ScenarioCluster
from tests.mistakes.mistake_files import Mistake, Step


def answer(mistake: Mistake, cluster: ScenarioCluster) -> dict[str, Any]:
    """Return what `explain -o json` says."""
    result = cluster.execute(f"explain {mistake.expect.ask} -n {mistake.expect.namespace} -o json", "")
    assert result.status == 0, result.text
    found: dict[str, Any] = json.loads(result.text)
    return found


def step(command: str) -> Step:
    """Return a command of a remedy, which is for a shell, as a scenario runs it."""
    line, _, given = command.partition("\n")
    words = line.removesuffix(" <<'EOF'").removeprefix("kschedd ")
    return Step(words, given.removesuffix("\nEOF"))
