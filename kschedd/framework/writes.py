"""What PreBind and Bind want done: writes as data, and what to wait for after them.

Whoever owns the connection to the API server carries a plan out; a plugin only says it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kschedd.framework.status import Status
from kschedd.store.writes import Bind, Create, Delete, Update, Write
from kschedd.store.writes import Patch as MergePatch
from kschedd.values import value

if TYPE_CHECKING:
    from kschedd.cache.cluster import Cluster

__all__ = ["Bind", "Create", "Delete", "MergePatch", "Plan", "Update", "Write"]


@value
class Plan:
    """First the writes in order, each answered, then it must be `ready`.

    `ready(cluster)` is asked again whenever the cluster changed: None means not yet, a Status (code SUCCESS or not)
    ends the waiting. After `timeout_s` the waiting ends with `timed_out`.
    """

    writes: tuple[Write, ...] = ()
    ready: "Callable[[Cluster], Status | None] | None" = None
    timeout_s: float = 0.0
    timed_out: Status | None = None
