"""Interfaces of the API server.

The embedded store implements these interfaces; a client of a real cluster can implement them as well.

There are three interfaces. Each interface extends the previous one:

    ClusterReader   the current objects; objects and listings are immutable values
    ClusterWriter   also the verbs of the API; passed to functions that run within one request
    ClusterApi      the same as asynchronous requests, and watches of the writes

Rules for every implementation (`tests/store/test_cluster_api.py` checks each of them):

* Every write has a higher resourceVersion than all earlier writes. A write that changes nothing is a no-op.
* A write with a precondition (resourceVersion or uid) that is not met fails and changes nothing. A write with a failed
  precondition raises Conflict, or Invalid if a patch would change the object's uid.
* A watch yields every write after its version, in order, exactly once. A watch raises Gone if these writes have been
  compacted.
* The results of a batch are in the order of its writes. A failed write does not prevent other writes of the batch.
* An embedded implementation runs the function passed to `do` without any other request in between. A remote
  implementation guarantees only that each single write is atomic. Code that needs a stronger guarantee must set a
  resourceVersion.

Scheduling, binding, controllers and the socket methods depend only on these interfaces.
"""

import builtins
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Literal, Protocol, TypeVar

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.schemas.decoding import FieldValidation
from kschedd.api.schemas.kinds import Kind
from kschedd.api.selecting.selector_text import FieldSelector
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.api.simulation.pod_behavior import PodBehavior
from kschedd.errors import KscheddError, without_traceback
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.authorization.judge import RbacJudge
from kschedd.store.awaited import WebhooksNeeded
from kschedd.store.creating.updates import Subresource
from kschedd.store.deletion import Propagation
from kschedd.store.errors import ApiError
from kschedd.store.managing import Component
from kschedd.store.objects.listing import in_order
from kschedd.store.objects.log import WatchEvent
from kschedd.store.patches.patching import PatchType
from kschedd.store.remarks import Remarks
from kschedd.store.trial import Changes, Key
from kschedd.store.writes import Bind, Create, Delete, Evict, FinalizeNamespace, Patch, RenewLease, Update, Write
from kschedd.values import in_parts, run_steps

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Applied = Literal["created", "configured", "unchanged"]
_UNMANAGED: Final = frozenset(("Pod", "Node", "Lease"))
_PART: Final = 1_000  # number of objects converted into events in one step, which takes about 1 ms


class ClusterReader(Protocol):
    """The current objects. Reading changes nothing."""

    @property
    def version(self) -> int:
        """The resourceVersion of the last write."""

    max_object_bytes: int
    """Maximum size of an object in bytes."""

    @property
    def history_used(self) -> tuple[int, int]: ...
    @property
    def history_bytes_used(self) -> tuple[int, int]: ...
    @property
    def admitted_used(self) -> tuple[int, int]: ...
    @property
    def node_affinities_used(self) -> tuple[int, int]: ...

    def shown_after(self, version: int) -> Sequence[WatchEvent]:
        """Return the writes after that version that watches may already receive, oldest first.

        Raises Gone if the writes have been compacted.
        """

    def written_after(self, version: int) -> Sequence[WatchEvent]:
        """Return all writes after that version, including writes that watches may not receive yet."""

    @property
    def features(self) -> frozenset[str]:
        """Names of the features of the emulated kube-apiserver version."""

    pod_behavior: PodBehavior | None
    """The default behavior of new pods. None: only their annotations determine their behavior."""

    service_range: str
    """The networks of cluster IPs, separated by commas."""

    def keep_jobs_running(self) -> None:
        """Let the pods of Jobs that are created from now on run until they are deleted."""

    def become_copy(self) -> None:
        """Change the behavior of pods to the behavior in a copy of another cluster, before a dump is loaded."""

    @property
    def rbac(self) -> RbacJudge:
        """The judge of requests by the Roles and bindings of the cluster."""

    @property
    def now(self) -> float:
        """The clock that sets the timestamps of objects, in seconds since the epoch."""

    def find(self, kind: str, namespace: str, name: str) -> Object | None: ...

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """Return the object. Raises NotFound."""

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: LabelSelector | None = None,
        field_selector: FieldSelector | None = None,
    ) -> Sequence[Object]:
        """Return all objects of a kind, sorted by namespace and name; `namespace` None means all namespaces."""

    def present(self, kind: str, namespace: str | None = None) -> Sequence[Sequence[Object]]:
        """Return the objects of a kind, unsorted, by namespace; `listing.in_order` can sort them in slices."""

    def is_watched(self, kind: str) -> bool:
        """Return whether a client watches objects of this kind."""

    def kinds(self) -> Sequence[str]:
        """Return the kinds that have at least one object."""

    def kind_of(self, raw: Raw) -> Kind: ...
    def count(self, kind: str) -> int: ...

    def owned_by(self, uid: str) -> Sequence[Object]:
        """Return the objects whose ownerReferences contain this UID, in order of creation."""

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """Return the pods bound to this node, including finished ones, in the order of their binding."""

    def in_namespace(self, namespace: str) -> Sequence[Object]:
        """Return all objects in a namespace."""


class ClusterWriter(ClusterReader, Protocol):
    """The verbs. If a method raises an ApiError, nothing has changed.

    `manager` is the field manager of the write; "": no field manager is recorded.
    """

    def on_behalf_of(self, user: UserInfo) -> AbstractContextManager[Remarks]:
        """Make the requests inside the context as this user; yield the remarks of admission about them."""

    def warn(self, text: str) -> None:
        """Add a warning for the user of the current request."""

    def one_request(self) -> AbstractContextManager[None]:
        """Execute the writes inside the context as one request.

        The caller must not modify the manifests of the writes inside the context.
        """

    def create(
        self,
        raw: Raw,
        *,
        dry_run: bool = False,
        restore: bool = False,
        as_client: bool = False,
        manager: str = "",
    ) -> Object: ...

    def create_many(self, raws: Iterable[Raw], *, restore: bool = False) -> builtins.list[Object | ApiError]:
        """Create each object independently; return the results in the same order."""

    def update(
        self,
        raw: Raw,
        *,
        subresource: Subresource = "",
        with_status: bool = False,
        dry_run: bool = False,
        as_client: bool = False,
        manager: str = "",
    ) -> Object: ...

    def merge_patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: Raw,
        *,
        subresource: Subresource = "",
        with_status: bool = False,
        dry_run: bool = False,
        manager: str = "",
    ) -> Object: ...

    def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: Any,
        patch_type: PatchType = "strategic",
        *,
        subresource: Subresource = "",
        validation: FieldValidation = "Strict",
        dry_run: bool = False,
        manager: str = "",
        duplicates: Sequence[str] = (),
    ) -> tuple[Object, tuple[str, ...]]: ...

    def apply(
        self,
        raw: Raw,
        *,
        dry_run: bool = False,
        restore: bool = False,
        as_client: bool = False,
        manager: str = "",
        annotated: bool = True,
    ) -> tuple[Object, Applied]: ...

    def server_side_apply(
        self,
        kind: str,
        namespace: str,
        name: str,
        config: Raw,
        manager: str,
        *,
        api_version: str = "",
        force: bool = False,
        subresource: Subresource = "",
        dry_run: bool = False,
    ) -> tuple[Object, Applied]: ...

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        grace_period_s: int | None = None,
        uid: str | None = None,
        resource_version: int | str | None = None,
        propagation: Propagation = "Background",
        dry_run: bool = False,
    ) -> Object: ...

    def bind(self, namespace: str, name: str, node_name: str, *, uid: str = "") -> Pod: ...

    def bind_many(self, bindings: Iterable[Bind]) -> builtins.list[Exception | None]:
        """Bind each pod independently.

        Return an error for each pod (None: bound), in the same order. An error is an ApiError, or another exception
        that an invalid pod caused.
        """

    def evict(
        self,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        resource_version: int | str | None = None,
        grace_period_s: int | None = None,
        dry_run: bool = False,
    ) -> Pod:
        """Delete a pod if its disruption budgets allow the eviction.

        Raises TooManyRequests if a budget does not allow the eviction now.
        """

    def finalize_namespace(self, name: str) -> Object: ...

    def renew_lease(self, namespace: str, name: str) -> Object:
        """Write the current renewal of a Lease to the store, if kschedd renews this Lease; return the Lease."""

    def roll_back(self, version: int) -> None:
        """Undo the writes after this version; none of them may have been delivered to watches."""

    def fork(self) -> "ClusterWriter":
        """Return an independent cluster with the same objects and time, for trial writes.

        Any thread may use the fork.
        """

    def forking(self, since: int | None = None) -> "Generator[None, None, ClusterWriter]":
        """Create a fork step by step; no write is allowed between the steps.

        With `since`, watches of the fork can start at that version, and the fork generates the same names and UIDs as
        this cluster.
        """

    def changes_since(self, version: int) -> Changes:
        """Return the changed objects after this version; for a fork, after its creation."""

    def adopt(self, changes: Changes) -> Generator[None, None, Mapping[Key, Object] | None]:
        """Apply a fork's changes to this cluster, step by step.

        Return the resulting objects; None if objects of this cluster have changed since the fork.
        """

    def take_in(self, objects: Iterable[Object]) -> Generator[None, None, list[Object]]:
        """Store objects exactly as they are in another cluster, step by step.

        Return the existing objects that conflict; they are not overwritten.
        """

    def refuse_writes(self, refusal: ApiError) -> None:
        """Reject all writes from now on, except `reflect`."""

    def reflect(self, objects: Iterable[Object], gone: Iterable[Key]) -> Generator[None, None, None]:
        """Store objects exactly as in the mirrored cluster, step by step, and remove the objects that it deleted."""


class Bell(Protocol):
    """A signal that a watch has more events; it is closed after the last event."""

    def ring(self) -> None: ...
    def close(self) -> None: ...
    async def wait(self) -> bool: ...


class ClusterWatch(Protocol):
    """A watch: a position in the sequence of writes.

    The watch may first deliver all existing objects, as ADDED events.
    """

    @property
    def version(self) -> int:
        """The version from which to resume: all earlier writes were taken by the caller or filtered out."""

    @property
    def first(self) -> Sequence[WatchEvent]:
        """The objects that existed when the watch began and that the caller has not taken yet."""

    @property
    def behind(self) -> bool:
        """True if there may be events that the caller has not taken."""

    @property
    def lag(self) -> int:
        """Number of writes that the watch has not examined yet."""

    @property
    def ended(self) -> bool:
        """True if the cluster is shutting down, so that no further writes will occur."""

    def take(self, limit: int | None = None) -> Sequence[WatchEvent]:
        """Return the events since the last call, oldest first. Raises Gone if the events have been compacted."""

    async def wait(self) -> bool:
        """Wait for more events; return False if the cluster is shutting down."""

    def close(self) -> None: ...


class PendingAnswer(Protocol[T_co]):
    """The pending result of a request that has been sent."""

    async def value(self) -> T_co:
        """Wait for the result, once. Raises the error with which the request failed."""


class ClusterApi(Protocol):
    """A connection to the API server. Each component opens its own connection and closes it at the end."""

    async def do(self, request: Callable[[ClusterWriter], T], *, once: bool = False) -> T:
        """Run a function on the cluster as one request. Returns the result of the function, or raises its error.

        If persisting fails, a function that only reads may run twice, unless it is marked `once`.
        """

    async def ask(self, request: Callable[[ClusterWriter], T], *, once: bool = False) -> PendingAnswer[T]:
        """Send a request like `do`, but return without waiting for the result.

        Requests run in the order in which they are sent.
        """

    async def do_in_steps(self, work: Callable[[ClusterWriter], Generator[WebhooksNeeded | None, None, T]]) -> T:
        """Run a generator on the cluster in slices of a few milliseconds.

        If it yields WebhooksNeeded, the evaluations are known in its next step.

        All writes of the generator are committed together, or none are.
        """

    async def get(self, kind: str, namespace: str, name: str) -> Object: ...
    async def find(self, kind: str, namespace: str, name: str) -> Object | None: ...

    async def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: LabelSelector | None = None,
        field_selector: FieldSelector | None = None,
    ) -> Sequence[Object]: ...

    async def watch(
        self,
        kinds: Iterable[str] | None = None,
        since_version: int | None = None,
        *,
        with_present: bool = False,
        bell: Bell | None = None,
        concerns: Callable[[WatchEvent], bool] | None = None,
    ) -> ClusterWatch:
        """Watch these kinds (None: all) after this version (None: now), optionally with the existing objects first.

        `bell` is notified instead of the watch's default bell. If `concerns` returns False for all events of a batch,
        the notification may be omitted; the events are then delivered with the next batch. Raises Gone.
        """

    async def create(self, raw: Raw) -> Object: ...
    async def create_many(self, raws: Sequence[Raw], *, restore: bool = False) -> builtins.list[Object | ApiError]:
        """Create a batch of objects in one request; return results as in `perform_each`.

        With `restore`, the status and UID in each manifest are used.
        """

    async def update(self, raw: Raw, *, subresource: Subresource = "") -> Object: ...

    async def patch(self, kind: str, namespace: str, name: str, patch: Raw, *, subresource: Subresource = "") -> Object:
        """Apply an RFC 7386 merge patch."""

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str = "", grace_period_s: int | None = None
    ) -> Object: ...

    async def bind(self, namespace: str, name: str, node_name: str, *, uid: str = "") -> Object: ...
    async def evict(self, namespace: str, name: str, *, uid: str = "", grace_period_s: int | None = None) -> Object: ...
    async def perform(self, write: Write) -> Object: ...

    async def perform_each(self, writes: Sequence[Write]) -> builtins.list[Object | ApiError]:
        """Perform a batch of writes in one request, each independently, with the results in the same order."""

    async def until_writable(self) -> None:
        """Wait until writes are accepted or the cluster is shutting down."""

    async def condition(self) -> KscheddError | None:
        """Return the reason why writes are currently rejected; None if they are accepted."""

    async def end_watches(self) -> None:
        """End all watches because the program is shutting down."""

    def close(self) -> None: ...


def perform(cluster: ClusterWriter, write: Write, manager: str = "") -> Object:
    """Perform one write; raise its error if it fails. `manager` is the field manager of a created or patched object.

    No field manager is recorded in pods, nodes and Leases, because every reader of pods would compute their fields.
    """
    match write:
        case Create(raw):
            return cluster.create(raw, manager="" if raw.get("kind") in _UNMANAGED else manager)
        case Update(raw, subresource):
            return cluster.update(raw, subresource=subresource)
        case Bind(namespace, name, uid, node_name):
            return cluster.bind(namespace, name, node_name, uid=uid)
        case Patch(kind, namespace, name, patch, subresource):
            who = "" if kind in _UNMANAGED else Component(manager) if subresource == "status" and manager else manager
            return cluster.merge_patch(kind, namespace, name, patch, subresource=subresource, manager=who)
        case Delete(kind, namespace, name, uid, grace, propagation):
            return cluster.delete(kind, namespace, name, grace_period_s=grace, uid=uid or None, propagation=propagation)
        case Evict(namespace, name, uid, grace):
            return cluster.evict(namespace, name, uid=uid or None, grace_period_s=grace)
        case FinalizeNamespace(name):
            return cluster.finalize_namespace(name)
        case RenewLease(namespace, name):
            return cluster.renew_lease(namespace, name)


def perform_each(cluster: ClusterWriter, writes: Iterable[Write]) -> list[Object | ApiError]:
    """Perform each write independently; return the results in the same order."""
    answers: builtins.list[Object | ApiError] = []
    with cluster.one_request():
        for write in writes:
            try:
                answers.append(perform(cluster, write))
            except ApiError as refusal:
                answers.append(without_traceback(refusal))
    return answers


def listed(cluster: ClusterReader, kinds: frozenset[str] | None) -> list[WatchEvent]:
    """Return all objects of these kinds as ADDED events at `version`, for the start of a watch."""
    return run_steps(listing(cluster, kinds))


def listing(cluster: ClusterReader, kinds: frozenset[str] | None) -> Generator[None, None, list[WatchEvent]]:
    """Build the list of `listed` step by step; no write is allowed between the steps."""
    events: list[WatchEvent] = []
    for kind in cluster.kinds():
        if kinds is None or kind in kinds:
            for some in in_parts((yield from in_order(cluster.present(kind))), _PART):
                events += (WatchEvent("ADDED", None, obj, obj.resource_version, True) for obj in some)
                yield
    return events
