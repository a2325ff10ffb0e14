"""Answers of methods about a real cluster that this daemon mirrors, or whose pods it schedules."""

from typing import Annotated

import attrs


@attrs.frozen
class MirrorAnswer:
    server: str
    context: str
    unheard_s: Annotated[float | None, "seconds since the last data from the API server"]
    unreachable: Annotated[str | None, "why the API server cannot be reached, null if it can"]


@attrs.frozen
class LeaderAnswer:
    leads: Annotated[bool, "this daemon currently schedules that cluster"]
    lease: Annotated[str, "`namespace/name` of the Lease (empty: there is none)"]
    leader: Annotated[str, "the holder of the Lease"]
