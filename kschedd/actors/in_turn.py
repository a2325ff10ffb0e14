"""Queries to several actors in turn; each answer triggers the next query.

The caller continues only after the last answer. Waking it after each answer would take one more iteration of a busy
event loop each time. Each answer is at least as recent as the previous one. For example, a pod that has just left the
queue is found in the scheduler or its records.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import trio

from kschedd.actors.mailbox import ActorRef, OwnerQuery, Reply

Query = tuple[ActorRef[Any], Callable[[Any], Any]]


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
class _Queries:
    queries: Sequence[Query]
    answers: list[_Answer] = attrs.field(factory=list)
    # set when all queries are answered, or the next one cannot be sent
    over: trio.Event = attrs.field(factory=trio.Event)

    def send_next(self) -> None:
        if len(self.answers) < len(self.queries):
            whom, question = self.queries[len(self.answers)]
            answer = _Answer(self.send_next)
            self.answers.append(answer)
            if whom.pass_on(OwnerQuery(question, answer)):
                return
        self.over.set()


async def query_in_turn(*queries: Query) -> list[Any]:
    """Query the actors in turn, and return the answers in the same order. Raises the exceptions of `ActorRef.query`."""
    sent = _Queries(queries)
    sent.send_next()
    await sent.over.wait()
    answers, sent.answers = sent.answers, []  # break the reference cycle
    found = [await answer.value() for answer in answers if answer.is_there]
    for whom, question in queries[len(found) :]:  # sending failed because the channel is full or its receiver has ended
        found.append(await whom.query(question))
    return found
