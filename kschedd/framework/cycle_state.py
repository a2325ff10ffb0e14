"""What plugins leave for each other and for themselves within one attempt to schedule one pod.

Owned by the attempt; it ends with it, or with the pod's binding. A what-if (a nominated pod added, victims taken
away) works on a clone, so values that such a run changes must have a `clone` method; all others are shared.
"""

from typing import Any, Protocol, runtime_checkable

import attrs


@runtime_checkable
class Clonable(Protocol):
    def clone(self) -> Any: ...


@attrs.define(eq=False)
class CycleState:
    data: dict[str, Any] = attrs.field(factory=dict)
    skip_filter: set[str] = attrs.field(factory=set)  # plugins whose PreFilter said Skip
    already_filtered_by: str = ""  # the plugin whose PreFilter narrowed the nodes to some its filter lets pass
    skip_score: set[str] = attrs.field(factory=set)  # plugins whose PreScore said Skip

    def clone(self) -> "CycleState":
        copied = {key: value.clone() if isinstance(value, Clonable) else value for key, value in self.data.items()}
        return CycleState(copied, set(self.skip_filter), self.already_filtered_by, set(self.skip_score))
