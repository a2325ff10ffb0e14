"""Plans of PreBind and Bind: writes as data, and a condition for which to wait after the writes.

A plugin only returns a plan; the scheduler's connection to the API server executes it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kschedd.framework.status import Status
from kschedd.store.writes import Bind, Create, Delete, Update, Write
from kschedd.store.writes import Patch as MergePatch
from kschedd.values import fast_frozen

if TYPE_CHECKING:
    from kschedd.cache.scheduler_cache import SchedulerCache

__all__ = ["Bind", "Create", "Delete", "MergePatch", "Plan", "Update", "Write"]


@fast_frozen
class Plan:
    """Writes that are executed in order, followed by a wait for `ready`.

    `ready(cluster)` is called whenever the cluster has changed: None continues the wait; a Status ends it, even if its
    code is SUCCESS. After `timeout_s` seconds the wait ends with the Status `timed_out`. If the binding is cancelled
    meanwhile, it ends with `cancelled`.
    """

    writes: tuple[Write, ...] = ()
    ready: "Callable[[SchedulerCache], Status | None] | None" = None
    timeout_s: float = 0.0
    timed_out: Status | None = None
    cancelled: Status | None = None
