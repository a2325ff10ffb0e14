"""Queries to several owners in turn, in which each answer triggers the next query.

The caller is woken only after the last answer. Waking the caller after each answer would cost an iteration of a busy
event loop each time. Each owner is queried after the previous owner has answered, so no answer is older than the
previous one. For example, a pod that has already left the queue is found in the scheduler or its records.
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
    over: trio.Event = attrs.field(factory=trio.Event)  # all queries are answered, or the next cannot be sent

    def send_next(self) -> None:
        if len(self.answers) < len(self.queries):
            whom, question = self.queries[len(self.answers)]
            answer = _Answer(self.send_next)
            self.answers.append(answer)
            if whom.pass_on(OwnerQuery(question, answer)):
                return
        self.over.set()


async def query_in_turn(*queries: Query) -> list[Any]:
    """Query the owners in turn, and return the answers in the same order. Raises the exceptions of `ActorRef.query`."""
    sent = _Queries(queries)
    sent.send_next()
    await sent.over.wait()
    answers, sent.answers = sent.answers, []  # break the reference cycle
    found = [await answer.value() for answer in answers if answer.is_there]
    for whom, question in queries[len(found) :]:  # the channel is full, or its receiver has ended
        found.append(await whom.query(question))
    return found
