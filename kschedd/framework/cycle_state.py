"""CycleState: data that plugins store for themselves and for other plugins during one scheduling attempt.

The data are deleted at the end of the attempt or of the pod's binding cycle. A what-if evaluation (with a nominated pod
added, or victims removed) uses a clone. A value that a what-if evaluation changes must have a `clone` method; all other
values are shared.
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
    already_filtered_by: str = ""  # in-tree plugin whose PreFilterResult contains only nodes that pass its own filter
    skip_score: set[str] = attrs.field(factory=set)  # plugins that returned Skip from PreScore
    resizes: bool = False  # True if the pod already runs on its node, and its resize there is deferred
    scores_without_pods: bool = False  # True if an extender returned Node objects, which are scored without their pods

    def clone(self) -> "CycleState":
        copied = {key: value.clone() if isinstance(value, Clonable) else value for key, value in self.data.items()}
        skip_filter, skip_score = set(self.skip_filter), set(self.skip_score)
        return CycleState(copied, skip_filter, self.already_filtered_by, skip_score, self.resizes)
