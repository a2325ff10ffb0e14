"""A toolbox over a cluster in virtual time, with the official client connected to it in this process."""

from typing import Any

from kschedd.assistants.command import ServedCluster
from kschedd.assistants.toolbox import Toolbox
from kschedd.scenarios.commands import ScenarioCluster


def target_of(cluster: ScenarioCluster) -> ServedCluster:
    engine = cluster.cluster.engine

    def sleep(seconds: float) -> None:
        engine.advance(engine.now + seconds)

    def run_to_rest() -> None:
        engine.run_to_rest(600)

    return ServedCluster(cluster.connect(), lambda: engine.now, sleep, 86_400.0, run_to_rest)


def toolbox_of(cluster: ScenarioCluster, *, writes: bool = False) -> Toolbox:
    return Toolbox(target_of(cluster), writes=writes)


def text_of(result: Any) -> str:
    """Return the text of a tool's result."""
    (content,) = result.content
    text: str = content.text
    return text
