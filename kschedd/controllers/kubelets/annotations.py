"""Annotations that say how long a simulated pod takes to do things.

An annotation that cannot be read counts as absent.
"""

from typing import Final

from kschedd.api.pods import Pod

RUN_SECONDS: Final = "kschedd.io/run-seconds"
TERMINATION_SECONDS: Final = "kschedd.io/termination-seconds"


def annotated_seconds(pod: Pod, name: str) -> float | None:
    """The number of seconds in an annotation; None if it is missing or invalid."""
    text = pod.annotations.get(name)
    try:
        wanted = float(text) if text is not None else None
    except (TypeError, ValueError):
        return None
    return wanted if wanted is not None and 0 <= wanted < float("inf") else None
