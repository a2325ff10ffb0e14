"""PrioritySort: sorts pods by descending priority, and pods of equal priority by the time of entering the queue.

Source: Kubernetes v1.34, plugins/queuesort/priority_sort.go, Less.
"""

from typing import Any, ClassVar, Self

import attrs

from kschedd.framework.handle import Handle


@attrs.frozen
class PrioritySort:
    name: ClassVar = "PrioritySort"

    @classmethod
    def from_args(cls, args: object, handle: Handle) -> Self:
        return cls()

    def sort_key(self, entry: Any) -> tuple[int, Any]:
        return -entry.priority, entry.timestamp
