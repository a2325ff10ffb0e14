"""CycleState: data that plugins store for themselves and each other within one scheduling attempt.

Owned by the attempt; ends with the attempt, or with the pod's binding cycle. A what-if (nominated pod added, victims
removed) works on a clone. Values that such a run changes must have a `clone` method; all others are shared.
"""

from typing import Any, Protocol, runtime_checkable

import attrs


@runtime_checkable
class Clonable(Protocol):
    def clone(self) -> Any: ...


@attrs.define(eq=False)
class CycleState:
    data: dict[str, Any] = attrs.field(factory=dict)
    skip_filter: set[str] = attrs.field(factory=set)  # plugins whose PreFilter returned Skip
    already_filtered_by: str = ""  # the plugin whose PreFilterResult names only nodes its filter passes
    skip_score: set[str] = attrs.field(factory=set)  # plugins whose PreScore returned Skip
    resizes: bool = False  # the pod already runs on its node, and is to be resized there
    scores_without_pods: bool = False  # an extender returned Node objects, which are scored without pods

    def clone(self) -> "CycleState":
        copied = {key: value.clone() if isinstance(value, Clonable) else value for key, value in self.data.items()}
        skip_filter, skip_score = set(self.skip_filter), set(self.skip_score)
        return CycleState(copied, skip_filter, self.already_filtered_by, skip_score, self.resizes)
