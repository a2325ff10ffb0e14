"""The API server as everybody sees it: the embedded store is one implementation, a real cluster can be another.

Three interfaces, each containing the one before:

    ClusterReader   what there is now: objects are values, and so is a listing
    ClusterWriter   and the verbs of the API; what a function is given that runs within one request
    ClusterApi      the same from afar: every request is awaited, and a watch tells of what was written

Rules that hold whoever implements them (`tests/store/test_cluster_api.py` is run against each of them):

* Every write has a higher resourceVersion than all before it; one that changes nothing is none.
* A write that names a resourceVersion or a uid which is not the object's is refused and does nothing: with Conflict,
  or with Invalid where a patch would give the object another uid.
* A watch tells of every write after its version, in their order, once; where they are no longer kept it raises Gone.
* The answers of a batch are in the order of its writes; a refused one keeps none of the others from being done.
* `do` runs its function over the cluster with no other request in between where the implementation is embedded. A
  remote one can promise each write on its own only: a rule that depends on more names a resourceVersion.

Scheduling, binding, controllers and the methods of the socket know nothing else of the store.
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
from kschedd.errors import KscheddError, without_traceback
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.creating.updates import Subresource
from kschedd.store.deletion import Propagation
from kschedd.store.errors import ApiError
from kschedd.store.objects.listing import in_order
from kschedd.store.objects.log import WatchEvent
from kschedd.store.patches.patching import PatchType
from kschedd.store.trial import Changes, Key
from kschedd.store.writes import Bind, Create, Delete, Evict, FinalizeNamespace, Patch, Update, Write
from kschedd.values import in_parts, run_steps

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Applied = Literal["created", "configured", "unchanged"]
_PART: Final = 1_000  # objects made events of between two pauses: about 1 ms


class ClusterReader(Protocol):
    """The objects as they are now. Reading changes nothing."""

    @property
    def version(self) -> int:
        """The resourceVersion of the last write."""

    max_object_bytes: int
    """How large an object may be."""

    @property
    def history_used(self) -> tuple[int, int]: ...
    @property
    def admitted_used(self) -> tuple[int, int]: ...
    @property
    def node_affinities_used(self) -> tuple[int, int]: ...

    def shown_after(self, version: int) -> Sequence[WatchEvent]:
        """What was written after that version and may be shown, oldest first. Raises Gone if it is no longer kept."""

    def written_after(self, version: int) -> Sequence[WatchEvent]:
        """The same, shown or not."""

    @property
    def features(self) -> frozenset[str]:
        """The names of the rules that hold in the version of Kubernetes whose API server it is."""

    @property
    def now(self) -> float:
        """Seconds since the epoch, by the clock that stamps objects."""

    def find(self, kind: str, namespace: str, name: str) -> Object | None: ...

    def get(self, kind: str, namespace: str, name: str) -> Object:
        """Raises NotFound."""

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: LabelSelector | None = None,
        field_selector: FieldSelector | None = None,
    ) -> Sequence[Object]:
        """All objects of a kind, sorted by namespace and name; `namespace` None means all of them."""

    def present(self, kind: str, namespace: str | None = None) -> Sequence[Sequence[Object]]:
        """What `list` sorts and narrows, by namespace, in no order: `listing.in_order` makes one, in slices."""

    def kinds(self) -> Sequence[str]:
        """The kinds of which there is at least one object."""

    def kind_of(self, raw: Raw) -> Kind: ...
    def count(self, kind: str) -> int: ...

    def owned_by(self, uid: str) -> Sequence[Object]:
        """The objects that name this uid in their ownerReferences, in order of creation."""

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """The pods that have this node, finished ones too, in the order in which they got it."""

    def in_namespace(self, namespace: str) -> Sequence[Object]:
        """All that lives in a namespace."""


class ClusterWriter(ClusterReader, Protocol):
    """The verbs. Each raises an ApiError, and then it has done nothing.

    What is written belongs to the `manager` ("": nobody is noted for it): see `kschedd.store.managing`.
    """

    def on_behalf_of(self, user: UserInfo) -> AbstractContextManager[builtins.list[str]]:
        """What is done inside is asked for by this user; the list takes what the user is to be warned of."""

    def warn(self, text: str) -> None:
        """Tell the user in whose name something is done."""

    def one_request(self) -> AbstractContextManager[None]:
        """What is written inside is one request's, whose manifests nobody changes meanwhile."""

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
        """Create each on its own; the answers in the same order."""

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
        """Bind each on its own, all at one time; why each could not be bound (None: it is), in the same order.

        That is an ApiError, or, where the pod is at fault, whatever handling it raises.
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
        """Delete a pod if its disruption budget allows that. Raises TooManyRequests where it does not (now)."""

    def finalize_namespace(self, name: str) -> Object: ...

    def fork(self) -> "ClusterWriter":
        """A cluster of its own with the same objects at this moment's time, to try writes on, in any thread."""

    def forking(self, since: int | None = None) -> "Generator[None, None, ClusterWriter]":
        """In steps, between which nobody may write: such a cluster, which with `since` goes on as this one would: its
        watches can begin at that version, and it makes the same names and uids."""

    def changes_since(self, version: int) -> Changes:
        """What became of the objects after this version: of a fork, since it was made."""

    def adopt(self, changes: Changes) -> Generator[None, None, Mapping[Key, Object] | None]:
        """Do here what was done to a fork, step by step; what the objects became here, or None if that is stale."""

    def take_in(self, objects: Iterable[Object]) -> Generator[None, None, list[Object]]:
        """Hold objects as they stood in another cluster, step by step; those here that stayed in their place."""

    def refuse_writes(self, refusal: ApiError) -> None:
        """From now on nothing changes but by `reflect`."""

    def reflect(self, objects: Iterable[Object], gone: Iterable[Key]) -> Generator[None, None, None]:
        """Hold objects as they stand in the cluster that this one mirrors, step by step, without those that are gone
        there."""


class Bell(Protocol):
    """Rung when a watch has more; closed when it will have no more."""

    def ring(self) -> None: ...
    def close(self) -> None: ...
    async def wait(self) -> bool: ...


class ClusterWatch(Protocol):
    """A place in the sequence of writes. What was there when it began may come first, as if just added."""

    @property
    def version(self) -> int:
        """Every write up to this version has been taken or was of no interest: where to resume."""

    @property
    def first(self) -> Sequence[WatchEvent]:
        """What was there when it began, as far as that has not been taken."""

    @property
    def behind(self) -> bool:
        """Whether there may be something to take."""

    @property
    def lag(self) -> int:
        """How many writes it has not looked at."""

    @property
    def ended(self) -> bool:
        """Whether there will be no more writes: the cluster is ending."""

    def take(self, limit: int | None = None) -> Sequence[WatchEvent]:
        """What happened since the last time, oldest first. Raises Gone if that is no longer kept."""

    async def wait(self) -> bool:
        """Wait until there may be more; False when the cluster is ending."""

    def close(self) -> None: ...


class PendingAnswer(Protocol[T_co]):
    """What comes of a request that has been sent."""

    async def value(self) -> T_co:
        """Wait for it, once; raises what the request raises."""


class ClusterApi(Protocol):
    """Requests to the API server. One for each user of it, who closes it at the end."""

    async def do(self, request: Callable[[ClusterWriter], T], *, once: bool = False) -> T:
        """Run a function over the cluster as one request; returns what it returns, raises what it raises.

        Where writes can fail to be kept, a function that only read may be run again, unless it may run `once` only.
        """

    async def ask(self, request: Callable[[ClusterWriter], T], *, once: bool = False) -> PendingAnswer[T]:
        """As `do`, for who does not wait for the answer yet: requests are done in the order in which they are asked."""

    async def do_in_steps(self, work: Callable[[ClusterWriter], Generator[None, None, T]]) -> T:
        """Run a generator over the cluster, a few milliseconds at a time: all of it is one write, or none of it is."""

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
        """Of these kinds (None: all), after this version (None: from now on), with what is there at first or without.

        `bell` is rung in place of one of the watch's own. Where all events of a batch are False to `concerns`
        it need not be rung for them; they are taken all the same, with the next ones. Raises Gone.
        """

    async def create(self, raw: Raw) -> Object: ...
    async def create_many(self, raws: Sequence[Raw], *, restore: bool = False) -> builtins.list[Object | ApiError]:
        """A batch of new objects in one request, answered as `perform_each` does.

        `restore` keeps status and uid as the manifest has them.
        """

    async def update(self, raw: Raw, *, subresource: Subresource = "") -> Object: ...

    async def patch(self, kind: str, namespace: str, name: str, patch: Raw, *, subresource: Subresource = "") -> Object:
        """An RFC 7386 merge patch."""

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str = "", grace_period_s: int | None = None
    ) -> Object: ...

    async def bind(self, namespace: str, name: str, node_name: str, *, uid: str = "") -> Object: ...
    async def evict(self, namespace: str, name: str, *, uid: str = "", grace_period_s: int | None = None) -> Object: ...
    async def perform(self, write: Write) -> Object: ...

    async def perform_each(self, writes: Sequence[Write]) -> builtins.list[Object | ApiError]:
        """A batch in one request: each write on its own, the answers in the same order."""

    async def until_writable(self) -> None:
        """Wait until writes are taken; returns as well when the cluster is ending."""

    async def condition(self) -> KscheddError | None:
        """What keeps writes from being taken now, if anything does."""

    async def end_watches(self) -> None:
        """The program is ending: no watch will have more."""

    def close(self) -> None: ...


def perform(cluster: ClusterWriter, write: Write) -> Object:
    """Do one write; raises what the cluster raises."""
    match write:
        case Create(raw):
            return cluster.create(raw)
        case Update(raw, subresource):
            return cluster.update(raw, subresource=subresource)
        case Bind(namespace, name, uid, node_name):
            return cluster.bind(namespace, name, node_name, uid=uid)
        case Patch(kind, namespace, name, patch, subresource):
            return cluster.merge_patch(kind, namespace, name, patch, subresource=subresource)
        case Delete(kind, namespace, name, uid, grace, propagation):
            return cluster.delete(kind, namespace, name, grace_period_s=grace, uid=uid or None, propagation=propagation)
        case Evict(namespace, name, uid, grace):
            return cluster.evict(namespace, name, uid=uid or None, grace_period_s=grace)
        case FinalizeNamespace(name):
            return cluster.finalize_namespace(name)


def perform_each(cluster: ClusterWriter, writes: Iterable[Write]) -> list[Object | ApiError]:
    """Each write on its own; the answers in the same order."""
    answers: builtins.list[Object | ApiError] = []
    with cluster.one_request():
        for write in writes:
            try:
                answers.append(perform(cluster, write))
            except ApiError as refusal:
                answers.append(without_traceback(refusal))
    return answers


def listed(cluster: ClusterReader, kinds: frozenset[str] | None) -> list[WatchEvent]:
    """All objects of these kinds as ADDED events: what a watcher starts from, before it watches `version` on."""
    return run_steps(listing(cluster, kinds))


def listing(cluster: ClusterReader, kinds: frozenset[str] | None) -> Generator[None, None, list[WatchEvent]]:
    """The same in steps, between which nobody may write."""
    events: list[WatchEvent] = []
    for kind in cluster.kinds():
        if kinds is None or kind in kinds:
            for some in in_parts((yield from in_order(cluster.present(kind))), _PART):
                events += (WatchEvent("ADDED", None, obj, obj.resource_version, True) for obj in some)
                yield
    return events
