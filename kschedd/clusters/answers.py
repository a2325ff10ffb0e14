"""What the methods over forks answer."""

from typing import Annotated

import attrs


@attrs.frozen
class ForkAnswer:
    name: str
    of: Annotated[str, "the fork that it was made of, empty for the cluster itself"]
    age_s: Annotated[float, "of the machine's time"]
    idle_s: Annotated[float, "for how long nobody has used it, of the machine's time"]
    elapsed_s: Annotated[float, "the virtual time that has passed in it"]
    nodes: int
    pods: Annotated[int, "those that have a node"]
    pending: int
    writes: Annotated[int, "how many there were in it"]
    begins_again: Annotated[
        str,
        "the pod whose attempt the debugger had stopped (empty: none), which in the fork begins again, as if nothing "
        "of it had been changed by hand, while nothing is stopped there",
    ]


@attrs.frozen
class AdvanceAnswer:
    elapsed_s: float
    now_s: float
    at_rest: Annotated[bool, "false if something was left to do at the limit"]
