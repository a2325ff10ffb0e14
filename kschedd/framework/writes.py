"""What a plugin or the scheduler wants written to the API server, as data; whoever owns the connection carries it out.

Source: Kubernetes API v1.34: verbs and subresources of these names.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from kschedd.framework.status import Status

if TYPE_CHECKING:
    from kschedd.cache.cluster import Cluster


@attrs.frozen
class Bind:
    namespace: str
    name: str
    uid: str
    node_name: str


@attrs.frozen
class Create:
    raw: Mapping[str, Any]


@attrs.frozen
class Update:
    """Replace the object; its metadata.resourceVersion must still be the current one."""

    raw: Mapping[str, Any]


@attrs.frozen
class MergePatch:
    """RFC 7386 merge patch; `subresource` is "" or "status"."""

    kind: str
    namespace: str
    name: str
    patch: Mapping[str, Any]
    subresource: str = ""


@attrs.frozen
class Delete:
    """Delete, of a pod with its own grace period unless one is given; only if `uid` ("": any) is still the object's."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    grace_period_s: int | None = None


Write = Bind | Create | Update | MergePatch | Delete


@attrs.frozen
class Plan:
    """What PreBind or Bind needs done: first the writes in order, each answered, then `settled` must come true.

    `settled(cluster)` is asked again whenever the cluster changed: None means not yet, a Status (code SUCCESS or not) ends
    the waiting. After `timeout_s` the waiting ends with `timed_out`.
    """

    writes: tuple[Write, ...] = ()
    settled: "Callable[[Cluster], Status | None] | None" = None
    timeout_s: float = 0.0
    timed_out: Status | None = None
