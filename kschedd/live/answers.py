"""What is answered of a real cluster whose objects are held, or whose pods are scheduled, here."""

from typing import Annotated

import attrs


@attrs.frozen
class MirrorAnswer:
    server: str
    context: str
    unheard_s: Annotated[float | None, "for how long nothing has come from it"]
    unreachable: Annotated[str | None, "why it cannot be asked now, null if it can"]


@attrs.frozen
class LeaderAnswer:
    leads: Annotated[bool, "that cluster is scheduled from here now"]
    lease: Annotated[str, "by which Lease (empty: without one)"]
    leader: Annotated[str, "who holds that"]
