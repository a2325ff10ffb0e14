"""What the methods over forks answer."""

from collections.abc import Sequence
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


@attrs.frozen
class ObjectName:
    kind: str
    namespace: str
    name: str


@attrs.frozen
class ExportAnswer:
    manifests: Annotated[str, "YAML, empty if nothing was written"]
    deleted: Annotated[Sequence[ObjectName], "the objects that were deleted or evicted"]
    config: Annotated[Sequence[Annotated[str, "text"]], "the changes of the configuration in words"]


@attrs.frozen
class ShapeAnswer:
    name: str
    price: float
    more: Annotated[int | None, "how many more fit with one more node of that shape, null at the limit"]


@attrs.frozen
class AlternativeAnswer:
    amount: Annotated[str, "of the resource, for each pod; its other requests are scaled likewise"]
    fits: int
    limited: Annotated[bool, "the limit was reached"]


@attrs.frozen
class FitsAnswer:
    specs: Sequence[ObjectName]
    fits: int
    nodes: Annotated[int, "how many nodes got some"]
    limited: Annotated[bool, "the limit was reached"]
    why: Annotated[str, "why not one more"]
    lacking: Annotated[int | None, "of which spec (an index)"]
    shapes: Sequence[ShapeAnswer]
    resource: Annotated[str, "by which alternatives are sized; empty: there are none"] = ""
    amount: Annotated[str, "of this resource, for each pod"] = ""
    alternatives: Annotated[Sequence[AlternativeAnswer], "pods of other sizes instead, the smallest first"] = ()


@attrs.frozen
class NeededShape:
    name: str
    count: int
    price: float


@attrs.frozen
class UnplacedAnswer:
    pod: str
    why: str


@attrs.frozen
class NeededAnswer:
    nodes: Sequence[NeededShape]
    price: float
    trials: int
    exact: Annotated[bool, "false where another mixture may be cheaper"]
    unplaced: Annotated[Sequence[UnplacedAnswer], "pods that have no place with the most nodes"]
