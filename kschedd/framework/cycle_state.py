"""CycleState: data that plugins store for themselves and for other plugins during one scheduling attempt.

The data end with the attempt, or with the pod's binding cycle. A what-if (nominated pod added,
victims removed) uses a clone. A value that a what-if changes must have a `clone` method; all other values are shared.
"""

from typing import Any, Protocol, runtime_checkable

import attrs


@runtime_checkable
class Clonable(Protocol):
    def clone(self) -> Any: ...


@attrs.define(eq=False)
class CycleState:
    data: dict[str, Any] = attrs.field(factory=dict)
    skip_filter: set[str] = attrs.field(factory=set)  # plugins that returned Skip from PreFilter
    already_filtered_by: str = ""  # plugin whose PreFilterResult names only nodes that its own filter passes
    skip_score: set[str] = attrs.field(factory=set)  # plugins that returned Skip from PreScore
    resizes: bool = False  # True if the pod already runs on its node and must be resized there
    scores_without_pods: bool = False  # True if an extender returned Node objects, which are scored without their pods

    def clone(self) -> "CycleState":
        copied = {key: value.clone() if isinstance(value, Clonable) else value for key, value in self.data.items()}
        skip_filter, skip_score = set(self.skip_filter), set(self.skip_score)
        return CycleState(copied, skip_filter, self.already_filtered_by, skip_score, self.resizes)
