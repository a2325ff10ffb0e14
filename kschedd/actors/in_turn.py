"""Queries to several owners in turn, of which each answer sends the next query.

Whoever asks is woken once, at the end: while the event loop has much to do, to be woken between two answers costs
an iteration of it each time. Each owner is asked after the one before has answered, so that no answer is older than the
one before it: a pod that the queue has let go of is in what the scheduler and its records say after that.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import trio

from kschedd.actors.mailbox import ActorRef, OwnerQuery, Reply

Asked = tuple[ActorRef[Any], Callable[[Any], Any]]


class _Answer(Reply[Any]):
    __slots__ = ("_then", "is_there")

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self.is_there = False
        self._then = then

    def publish(self) -> None:
        super().publish()
        self.is_there = True
        self._then()


@attrs.define(eq=False)
class _Questions:
    asked: Sequence[Asked]
    answers: list[_Answer] = attrs.field(factory=list)
    over: trio.Event = attrs.field(factory=trio.Event)  # all are answered, or the next cannot be sent now

    def send_next(self) -> None:
        if len(self.answers) < len(self.asked):
            whom, question = self.asked[len(self.answers)]
            answer = _Answer(self.send_next)
            self.answers.append(answer)
            if whom.pass_on(OwnerQuery(question, answer)):
                return
        self.over.set()


async def ask_in_turn(*asked: Asked) -> list[Any]:
    """The answers, in the same order. Raises what `ActorRef.query` does."""
    questions = _Questions(asked)
    questions.send_next()
    await questions.over.wait()
    answers, questions.answers = questions.answers, []  # which know it: nothing is left that forms a cycle
    told = [await answer.value() for answer in answers if answer.is_there]
    for whom, question in asked[len(told) :]:  # there was no room for a message, or its receiver has ended
        told.append(await whom.query(question))
    return told
