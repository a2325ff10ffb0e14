"""A ClusterApi made of a few dicts, for tests that need only the API server's basic rules.

It shares no code with the embedded store. It neither validates nor defaults objects, and has no admission; names,
versions, preconditions, binding, graceful deletion, eviction and watching follow `kschedd.store.cluster_api`.
"""

import builtins
import copy
import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import trio

from kschedd.actors.mailbox import OwnerQuery, Reply
from kschedd.api.objects import Object, Raw, parse
from kschedd.api.pods import Pod
from kschedd.api.schemas.kinds import Kind, kind_of
from kschedd.store.cluster_api import Applied, perform
from kschedd.store.errors import AlreadyExists, ApiError, Conflict, Gone, Invalid, NotFound, TooManyRequests
from kschedd.store.objects.log import WatchEvent
from kschedd.store.trial import Changes
from kschedd.store.writes import Bind, Write

T = TypeVar("T")
Key = tuple[str, str, str]
_NOW = "1970-01-01T00:00:00Z"


class FakeCluster:
    """The verbs. `history`: the number of events kept for watches."""

    def __init__(self, history: int = 1000) -> None:
        self.objects: dict[Key, Object] = {}
        self.events: list[WatchEvent] = []
        self.history = history
        self.max_object_bytes = 1 << 20
        self.version = 0
        self.now = 0.0
        self.rings: list[Callable[[], None]] = []
        self._uids = itertools.count(1)

    # -- reading

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        return self.objects.get((kind, namespace, name))

    def get(self, kind: str, namespace: str, name: str) -> Object:
        found = self.find(kind, namespace, name)
        if found is None:
            raise NotFound(kind, name)
        return found

    def list(
        self, kind: str, namespace: str | None = None, label_selector: Any = None, field_selector: Any = None
    ) -> Sequence[Object]:
        return [
            obj
            for key, obj in sorted(self.objects.items())
            if key[0] == kind
            and namespace in (None, key[1])
            and (label_selector is None or label_selector.matches(obj.labels))
            and (field_selector is None or field_selector.matches(obj.raw))
        ]

    def present(self, kind: str, namespace: str | None = None) -> Sequence[Sequence[Object]]:
        return [self.list(kind, namespace)]

    def kinds(self) -> Sequence[str]:
        return sorted({kind for kind, _, _ in self.objects})

    def kind_of(self, raw: Raw) -> Kind:
        return kind_of(raw)

    def count(self, kind: str) -> int:
        return len(self.list(kind))

    def owned_by(self, uid: str) -> Sequence[Object]:
        owners = ((obj, obj.metadata.get("ownerReferences") or ()) for obj in self.objects.values())
        return [obj for obj, references in owners if any(each["uid"] == uid for each in references)]

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        return [obj for obj in self.objects.values() if isinstance(obj, Pod) and obj.node_name == node_name]

    def in_namespace(self, namespace: str) -> Sequence[Object]:
        return [obj for key, obj in sorted(self.objects.items()) if namespace and key[1] == namespace]

    # -- writing

    def create(
        self, raw: Raw, *, dry_run: bool = False, restore: bool = False, as_client: bool = False, manager: str = ""
    ) -> Object:
        made = copy.deepcopy(dict(raw))
        meta = made["metadata"] = dict(made["metadata"])
        if kind_of(raw).namespaced:
            meta.setdefault("namespace", "default")
        if not meta.get("name"):
            meta["name"] = f"{meta['generateName']}{next(self._uids):05}"
        key = (raw["kind"], meta.get("namespace", ""), meta["name"])
        if key in self.objects:
            raise AlreadyExists(key[0], key[2])
        meta.setdefault("uid", f"uid-{next(self._uids)}")
        meta.setdefault("creationTimestamp", _NOW)
        if key[0] == "Pod" and not restore:
            made["status"] = {"phase": "Pending"}
        return self._put(key, made, dry_run)

    def one_request(self) -> AbstractContextManager[None]:
        return nullcontext()

    def create_many(self, raws: Iterable[Raw], *, restore: bool = False) -> builtins.list[Object | ApiError]:
        return [_answer(lambda raw=raw: self.create(raw, restore=restore)) for raw in raws]

    def bind_many(self, bindings: Iterable[Bind]) -> builtins.list[Exception | None]:
        answers = [_answer(lambda wanted=wanted: perform(self, wanted)) for wanted in bindings]
        return [answer if isinstance(answer, Exception) else None for answer in answers]

    def update(
        self,
        raw: Raw,
        *,
        subresource: str = "",
        with_status: bool = False,
        dry_run: bool = False,
        as_client: bool = False,
    ) -> Object:
        meta = raw["metadata"]
        old = self.get(raw["kind"], meta.get("namespace", "default" if kind_of(raw).namespaced else ""), meta["name"])
        self._check(old, meta.get("uid", ""), meta.get("resourceVersion", ""))
        given = copy.deepcopy(dict(raw))
        if subresource == "status":
            given = {**old.raw, "status": given.get("status", {})}
        elif not with_status:
            given["status"] = old.raw.get("status", {})
        given["metadata"] = {
            **given["metadata"],
            **{
                k: v
                for k, v in old.metadata.items()
                if k not in given["metadata"] and k not in ("labels", "annotations", "finalizers")
            },
        }
        return self._put(self._key(old), given, dry_run)

    def merge_patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        patch: Raw,
        *,
        subresource: str = "",
        with_status: bool = False,
        dry_run: bool = False,
        manager: str = "",
    ) -> Object:
        old = self.get(kind, namespace, name)
        meta = patch.get("metadata") or {}
        self._check(old, "", meta.get("resourceVersion", ""))
        if meta.get("uid", old.uid) != old.uid:
            raise Invalid(kind, name, ())
        merged = _merged(old.raw, patch)
        if subresource == "status":
            merged = {**old.raw, "status": merged.get("status", {})}
        elif "status" in old.raw:
            merged["status"] = old.raw["status"]
        return self._put(self._key(old), merged, dry_run)

    def patch(
        self, kind: str, namespace: str, name: str, patch: Any, patch_type: str = "strategic", **options: Any
    ) -> tuple[Object, tuple[str, ...]]:
        assert patch_type == "merge", "the fake knows merge patches only"
        return self.merge_patch(kind, namespace, name, patch, subresource=options.get("subresource", "")), ()

    def apply(self, raw: Raw, **options: Any) -> tuple[Object, Applied]:
        meta = raw["metadata"]
        namespace = meta.get("namespace", "default") if kind_of(raw).namespaced else ""
        old = self.find(raw["kind"], namespace, meta["name"])
        if old is None:
            return self.create(raw), "created"
        new = self.merge_patch(old.kind, old.namespace, old.name, raw)
        return new, "unchanged" if new is old else "configured"

    def delete(
        self,
        kind: str,
        namespace: str,
        name: str,
        *,
        grace_period_s: int | None = None,
        uid: str = "",
        resource_version: int | None = None,
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> Object:
        old = self.get(kind, namespace, name)
        self._check(old, uid, "" if resource_version is None else str(resource_version))
        grace = 0
        if isinstance(old, Pod) and old.node_name and not old.finished:
            grace = 30 if grace_period_s is None else grace_period_s
        marked = {"deletionTimestamp": _NOW, "deletionGracePeriodSeconds": grace}
        if not grace and not old.metadata.get("finalizers"):
            if dry_run:
                return old
            if kind == "Pod" and not old.deleting:
                old = self._put(self._key(old), {**old.raw, "metadata": {**old.metadata, **marked}}, False)
            return self._drop(old)
        return self._put(self._key(old), {**old.raw, "metadata": {**old.metadata, **marked}}, dry_run)

    def bind(self, namespace: str, name: str, node_name: str, *, uid: str = "") -> Pod:
        pod = self.get("Pod", namespace, name)
        assert isinstance(pod, Pod)
        self._check(pod, uid, "")
        if pod.deletion_timestamp or pod.node_name:
            raise Conflict("Pod", name, f"pod {name} cannot be assigned to a host", "binding")
        conditions = [{"type": "PodScheduled", "status": "True"}]
        raw = {**pod.raw, "spec": {**pod.raw["spec"], "nodeName": node_name}}
        bound = self._put(self._key(pod), {**raw, "status": {**pod.status, "conditions": conditions}})
        assert isinstance(bound, Pod)
        return bound

    def evict(
        self,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: int | None = None,
        grace_period_s: int | None = None,
        dry_run: bool = False,
    ) -> Pod:
        assert not dry_run, "nobody here tries an eviction"
        pod = self.get("Pod", namespace, name)
        assert isinstance(pod, Pod)
        self._check(pod, uid, "" if resource_version is None else str(resource_version))
        for budget in self.list("PodDisruptionBudget", namespace):
            wanted = budget.spec["selector"]["matchLabels"].items()
            if pod.status.get("phase") == "Running" and wanted <= pod.labels.items():
                allowed = budget.status.get("disruptionsAllowed", 0)
                if not allowed:
                    raise TooManyRequests(budget.name, "")
                self.merge_patch(
                    budget.kind,
                    namespace,
                    budget.name,
                    {"status": {"disruptionsAllowed": allowed - 1}},
                    subresource="status",
                )
        gone = self.delete("Pod", namespace, name, grace_period_s=grace_period_s)
        assert isinstance(gone, Pod)
        return gone

    def renew_lease(self, namespace: str, name: str) -> Object:
        return self.get("Lease", namespace, name)

    def is_watched(self, kind: str) -> bool:
        return False

    def finalize_namespace(self, name: str) -> Object:
        old = self.get("Namespace", "", name)
        return self._drop(old)

    def fork(self) -> "FakeCluster":
        other = FakeCluster(self.history)
        other.objects, other.version, other.now = dict(self.objects), self.version, self.now
        return other

    def changes_since(self, version: int) -> Changes:
        before: dict[Key, Object | None] = {}
        for event in self.events:
            if event.version > version:
                before.setdefault(self._key(event.new), event.old)
        return Changes(version, {key: (old, self.objects.get(key)) for key, old in before.items()})

    def adopt(self, changes: Changes) -> Generator[None, None, dict[Key, Object] | None]:
        if any(self.objects.get(key) is not old for key, (old, _) in changes.objects.items()):
            return None
        adopted: dict[Key, Object] = {}
        for key, (old, new) in changes.objects.items():
            if new is not None:
                adopted[key] = self._put(key, new.raw)
            elif old is not None:
                self._drop(old)
            yield
        return adopted

    # -- how

    def _check(self, old: Object, uid: str, version: str) -> None:
        if (uid and uid != old.uid) or (version and version != str(old.resource_version)):
            raise Conflict(old.kind, old.name)

    def _key(self, obj: Object) -> Key:
        return obj.kind, obj.namespace, obj.name

    def _put(self, key: Key, raw: Raw, dry_run: bool = False) -> Object:
        old = self.objects.get(key)
        meta = {**raw["metadata"], "resourceVersion": old.metadata["resourceVersion"] if old else ""}
        if old is not None and {**raw, "metadata": meta} == old.raw:
            return old
        new = parse({**raw, "metadata": {**meta, "resourceVersion": str(self.version + 1)}})
        if not dry_run:
            self.objects[key] = new
            self._tell("ADDED" if old is None else "MODIFIED", old, new)
        return new

    def _drop(self, old: Object) -> Object:
        del self.objects[self._key(old)]
        gone = parse({**old.raw, "metadata": {**old.metadata, "resourceVersion": str(self.version + 1)}})
        self._tell("DELETED", old, gone)
        return gone

    def _tell(self, kind: Any, old: Object | None, new: Object) -> None:
        self.version += 1
        self.events.append(WatchEvent(kind, old, new, self.version))
        del self.events[: -self.history]
        for ring in self.rings:
            ring()


class FakeWatch:
    def __init__(self, cluster: FakeCluster, kinds: Iterable[str] | None, since: int, bell: Any) -> None:
        self.first: list[WatchEvent] = []
        self.version = since
        self.ended = False
        self._cluster = cluster
        self._kinds = None if kinds is None else set(kinds)
        self._bell = bell
        self._rung = trio.Event()
        self._news()
        cluster.rings.append(self.ring)

    def ring(self) -> None:
        self._rung.set()
        if self._bell is not None:
            self._bell.ring()

    @property
    def lag(self) -> int:
        return self._cluster.version - self.version

    @property
    def behind(self) -> bool:
        return bool(self.first) or self._cluster.version > self.version

    def take(self, limit: int | None = None) -> Sequence[WatchEvent]:
        if self.first:
            cut = len(self.first) if limit is None else limit
            taken, self.first = self.first[:cut], self.first[cut:]
            return taken
        news = self._news()[:limit]
        self.version += len(news)
        return [event for event in news if self._kinds is None or event.new.kind in self._kinds]

    async def wait(self) -> bool:
        await self._rung.wait()
        self._rung = trio.Event()
        return not self.ended

    def close(self) -> None:
        self._cluster.rings.remove(self.ring)

    def end(self) -> None:
        self.ended = True
        self.ring()

    def _news(self) -> list[WatchEvent]:
        oldest = self._cluster.version - len(self._cluster.events)
        if self.version < oldest:
            raise Gone(self.version, oldest)
        return self._cluster.events[self.version - oldest :]


class FakeClusterApi:
    """The same, awaited."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self._watches: builtins.list[FakeWatch] = []

    async def do(self, request: Callable[[Any], T], *, once: bool = False) -> T:
        return await (await self.ask(request)).value()

    async def ask(self, request: Callable[[Any], T], *, once: bool = False) -> Reply[T]:
        await trio.lowlevel.checkpoint()
        reply: Reply[T] = Reply()
        OwnerQuery(request, reply).evaluate(self.cluster)
        reply.publish()
        return reply

    async def do_in_steps(self, work: Callable[[Any], Generator[None, None, T]]) -> T:
        await trio.lowlevel.checkpoint()
        steps = work(self.cluster)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return done.value

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        return await self.do(lambda cluster: cluster.get(kind, namespace, name))

    async def find(self, kind: str, namespace: str, name: str) -> Object | None:
        return await self.do(lambda cluster: cluster.find(kind, namespace, name))

    async def list(
        self, kind: str, namespace: str | None = None, label_selector: Any = None, field_selector: Any = None
    ) -> Sequence[Object]:
        return await self.do(lambda cluster: cluster.list(kind, namespace, label_selector, field_selector))

    async def watch(
        self,
        kinds: Iterable[str] | None = None,
        since_version: int | None = None,
        *,
        with_present: bool = False,
        bell: Any = None,
    ) -> FakeWatch:
        await trio.lowlevel.checkpoint()
        cluster = self.cluster
        since = cluster.version if since_version is None or with_present else since_version
        watch = FakeWatch(cluster, kinds, since, bell)
        if with_present:
            wanted = cluster.kinds() if kinds is None else sorted(kinds)
            present = [obj for kind in wanted for obj in cluster.list(kind)]
            watch.first = [WatchEvent("ADDED", None, obj, obj.resource_version) for obj in present]
        self._watches.append(watch)
        return watch

    async def create(self, raw: Raw) -> Object:
        return await self.do(lambda cluster: cluster.create(raw))

    async def create_many(self, raws: Sequence[Raw], *, restore: bool = False) -> builtins.list[Object | ApiError]:
        return await self.do(lambda cluster: cluster.create_many(raws, restore=restore))

    async def update(self, raw: Raw, *, subresource: str = "") -> Object:
        return await self.do(lambda cluster: cluster.update(raw, subresource=subresource))

    async def patch(self, kind: str, namespace: str, name: str, patch: Raw, *, subresource: str = "") -> Object:
        return await self.do(lambda cluster: cluster.merge_patch(kind, namespace, name, patch, subresource=subresource))

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str = "", grace_period_s: int | None = None
    ) -> Object:
        return await self.do(
            lambda cluster: cluster.delete(kind, namespace, name, uid=uid or None, grace_period_s=grace_period_s)
        )

    async def bind(self, namespace: str, name: str, node_name: str, *, uid: str = "") -> Object:
        return await self.do(lambda cluster: cluster.bind(namespace, name, node_name, uid=uid))

    async def evict(self, namespace: str, name: str, *, uid: str = "", grace_period_s: int | None = None) -> Object:
        return await self.do(
            lambda cluster: cluster.evict(namespace, name, uid=uid or None, grace_period_s=grace_period_s)
        )

    async def perform(self, write: Write) -> Object:
        return await self.do(lambda cluster: perform(cluster, write))

    async def perform_each(self, writes: Sequence[Write]) -> builtins.list[Object | ApiError]:
        return await self.do(lambda cluster: [_answer(lambda write=write: perform(cluster, write)) for write in writes])

    async def until_writable(self) -> None:
        await trio.lowlevel.checkpoint()

    async def condition(self) -> None:
        await trio.lowlevel.checkpoint()

    async def end_watches(self) -> None:
        await trio.lowlevel.checkpoint()
        for watch in self._watches:
            watch.end()

    def close(self) -> None:
        pass


def _answer(work: Callable[[], Object]) -> Object | ApiError:
    try:
        return work()
    except ApiError as refusal:
        return refusal


def _merged(old: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    known = old if isinstance(old, dict) else {}
    kept = {name: value for name, value in known.items() if name not in patch}
    return kept | {name: _merged(known.get(name), value) for name, value in patch.items() if value is not None}
