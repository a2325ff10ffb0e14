"""Between two slices of long work, other tasks run several times if a client has sent a request recently."""

import pytest

from kschedd.actors.courtesy import Courtesy


@pytest.mark.parametrize(
    ("passed_s", "times"),
    [
        pytest.param(0.0, 3, id="somebody-asks-now"),
        pytest.param(0.04, 3, id="a-moment-ago"),
        pytest.param(0.06, 0, id="longer-ago"),
    ],
)
async def test_questions_are_answered_between_the_turns_of_others(passed_s: float, times: int) -> None:
    now_s = 100.0
    courtesy = Courtesy(lambda: now_s)
    answered = []

    async def answer() -> None:
        answered.append(now_s)

    await courtesy.pause(answer)
    assert answered == []  # nobody has asked yet
    courtesy.request_began()
    now_s += passed_s
    await courtesy.pause(answer)
    assert len(answered) == times
