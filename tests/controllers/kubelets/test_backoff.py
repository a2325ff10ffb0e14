import pytest

from kschedd.controllers.kubelets.backoff import RestartBackoff


def waits(run_s: float, restarts: int) -> list[float]:
    """Return the delay of each restart of a container that runs for `run_s` each time."""
    backoff, now, found = RestartBackoff(), 1000.0, []
    for _ in range(restarts):
        ended = now + run_s
        now = backoff.restart_at(ended)
        found.append(now - ended)
        backoff = backoff.after_restart(ended, now)
    return found


@pytest.mark.parametrize(
    ("run_s", "expected"),
    [
        pytest.param(1, [0, 10, 20, 40, 80, 160, 300, 300], id="at-once-then-10-s-doubling-to-5-minutes"),
        pytest.param(600, [0, 10, 20, 40], id="10-minutes-are-not-long-enough"),
        pytest.param(601, [0, 0, 0, 0], id="more-than-10-minutes-forgive"),
    ],
)
def test_how_long_restarts_wait(run_s: float, expected: list[float]) -> None:
    assert waits(run_s, len(expected)) == expected


@pytest.mark.parametrize(("restarts", "wait"), [(0, 0), (1, 10), (2, 20), (6, 300), (1_000_000, 300)])
def test_what_is_presumed_of_restarts_that_nobody_saw(restarts: int, wait: float) -> None:
    assert RestartBackoff.presumed(restarts, 5.0).wait_s == wait
