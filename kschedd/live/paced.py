"""Requests about one object at the pace that the configuration allows; what is not answered in time is given up."""

from typing import Any, Final

import trio

from kschedd.live.api_server import ApiServer
from kschedd.live.connection import ServerRequest
from kschedd.live.errors import LiveError
from kschedd.live.rate_limit import RateLimit

ANSWER_S: Final = 10.0  # for which an answer is waited for, from when it is asked for


async def ask_at_pace(server: ApiServer, rate: RateLimit, asked: ServerRequest) -> dict[str, Any]:
    """The object that the request is answered with. Raises LiveError."""
    await trio.sleep_until(rate.next_at(trio.current_time()))
    with trio.move_on_after(ANSWER_S):
        return await server.ask(asked)
    raise LiveError(server.url, f"{asked.method} {asked.path} was not answered within {ANSWER_S:.0f} s")
