"""MirrorActor: copies a real cluster's objects and follows every change.

Receives: pages and events from the cluster's API server.  Sends: `reflect` requests to the store.

Owns: for each resource, the version up to which changes were received.
Ends: when it is cancelled.

Fails: if the server cannot be reached, requests are retried after increasing pauses. If the server has discarded the
history of a resource, the resource is listed again. A resource that the server does not serve, or that this client may
not read, is omitted, and a log message names it. An object that cannot be stored is omitted as well.

Only the mirror may write to the store. All other clients may only read the data received so far.
"""

import random
from collections.abc import Collection, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final

import attrs
import structlog
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.actors.queue import QueueActor
from kschedd.api.objects import Object
from kschedd.api.schemas.kinds import BY_NAME, name_in_group
from kschedd.controllers.embedded import embedded_controllers
from kschedd.live.answers import LeftOutObject, MirrorAnswer, UnreadKind
from kschedd.live.api_server import PAGE, ApiServer, ServedResource, WatchBatch
from kschedd.live.errors import HistoryLost, LiveError, NotServed, RequestFailed
from kschedd.live.holding import as_held, is_text, new_importer
from kschedd.live.permissions import affected_by
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.store.cluster_api import ClusterApi, ClusterWriter
from kschedd.store.custom_resources.rule_kinds import scheduled_by
from kschedd.store.errors import Mirrored
from kschedd.store.importing import Importer
from kschedd.store.trial import Key, key_of
from kschedd.values import in_parts

log = structlog.get_logger("kschedd.mirror")

MIRRORED: Final = (
    *("Namespace", "Node", "PriorityClass", "RuntimeClass", "ResourceQuota", "LimitRange", "PodDisruptionBudget"),
    *("StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity", "PersistentVolume", "PersistentVolumeClaim"),
    *("VolumeAttachment", "DeviceClass", "ResourceSlice", "ResourceClaimTemplate", "ResourceClaim"),
    *("Service", "ReplicationController", "ReplicaSet", "StatefulSet", "Deployment", "DaemonSet", "Job", "CronJob"),
    "Pod",
)
DECIDED_BY: Final = frozenset(
    (
        *("Namespace", "Node", "PodDisruptionBudget", "StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity"),
        *("PersistentVolume", "PersistentVolumeClaim", "DeviceClass", "ResourceSlice", "ResourceClaim", "Service"),
        *("ReplicationController", "ReplicaSet", "StatefulSet", "Pod", "DeviceTaintRule"),
    )
)
"""Kinds that a scheduler reads.

If the scheduler may not read one that is served, its decisions would be wrong; it therefore does not start.
"""
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0  # as in client-go
_STEADY_S: Final = 10.0  # minimum duration in seconds of a healthy watch
_FORBIDDEN: Final = 403
_MOST_PAGES: Final = 1 << 13  # maximum number of pages in one list: four million objects
_AT_ONCE: Final = 4  # concurrent page requests
_FIRST_TRIES: Final = 10  # maximum number of attempts to list a resource at the start
_LONGEST_FIRST_PAUSE: Final = 4  # maximum pause between these attempts, in first pauses
_PART: Final = 1000  # number of objects processed between two pauses, in less than a millisecond
_FEW: Final = 32  # maximum number of objects that are converted in the event loop, without a thread
_MOST_LOGGED: Final = 1000  # maximum number of distinct messages to log, each once, and of objects left out
_LONGEST_TOLD: Final = 500  # maximum number of characters of a message

Raw = dict[str, Any]


@attrs.define(eq=False)
class MirrorActor:
    server: ApiServer
    _store: ClusterApi
    _own: frozenset[str]  # schedulers whose pods this daemon schedules
    _kinds: Sequence[Sequence[ServedResource]]  # for each resource: all its versions, preferred version first
    _rules: str  # Kubernetes version whose scheduling rules apply
    _unread: list[UnreadKind] = attrs.field(factory=list, init=False)
    _since: dict[ServedResource, str | None] = attrs.field(factory=dict, init=False)
    heard_at: float | None = attrs.field(default=None, init=False)  # time of the last data, on Trio's clock
    # resource whose requests are being retried -> error message
    _unreachable: dict[ServedResource, str] = attrs.field(factory=dict, init=False)
    _left_out: dict[Key, str] = attrs.field(factory=dict, init=False)  # objects that cannot be stored -> reason
    _importers: dict[ServedResource, Importer] = attrs.field(factory=dict, init=False)
    _logged: set[str] = attrs.field(factory=set, init=False)
    _listing: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(_AT_ONCE), init=False)
    _back: trio.Event = attrs.field(factory=trio.Event, init=False)  # set when the server responds again after an error

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Copy all objects, and then receive changes.

        Raises LiveError if copying fails before the mirror has started.
        """
        await self._fill()
        release = self.server.release or await self._read_release()
        log.info("mirrored", server=self.server.url, resources=len(self._since), release=release, rules=self._rules)
        task_status.started()
        async with trio.open_nursery() as nursery:
            for resource in self._since:
                nursery.start_soon(self._follow, resource)

    async def _read_release(self) -> str:
        """Return the server's release, or "" if the user of the kubeconfig may not read it."""
        try:
            return await self.server.read_release()
        except LiveError as failure:
            log.warning("release_unknown", server=self.server.url, why=failure.why)
            return ""

    async def _fill(self) -> None:
        failures: list[LiveError] = []

        async def fill_one(versions: Sequence[ServedResource]) -> None:
            try:
                await self._begin(versions)
            except LiveError as failure:
                failures.append(failure)
                nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            for versions in self._kinds:
                nursery.start_soon(fill_one, versions)
        if failures:
            raise failures[0]

    async def _begin(self, versions: Sequence[ServedResource]) -> None:
        """List the resource in the first version that the server serves."""
        absent: NotServed | None = None
        for resource in versions:
            try:
                self._since[resource] = await self._list_at_first(resource)
                return
            except NotServed as failure:
                absent = absent or failure
        kind, plural = versions[0].kind, versions[0].plural
        if self._own and absent is not None and absent.code == _FORBIDDEN and kind in DECIDED_BY:
            raise LiveError(self.server.url, f"no permission to read {plural}, which a scheduler needs: {absent.why}")
        if absent is not None and absent.code == _FORBIDDEN:
            self._unread.append(UnreadKind(plural, kind, affected_by(kind)))
        log.warning("not_mirrored", resource=plural, affects=affected_by(kind), why=absent and absent.why)

    async def _list_at_first(self, resource: ServedResource) -> str:
        """List the resource; if the server was reached but fails or goes away, retry."""
        for tries in range(1, _FIRST_TRIES):
            try:
                return await self._list(resource)
            except LiveError as failure:
                # HistoryLost means that a page's continue token has expired
                fails = isinstance(failure, RequestFailed | HistoryLost)
                if not fails and not (self._since and (failure.is_lost or failure.is_refused)):
                    raise
                self._log_once(f"the first list of {resource.plural} is repeated: {failure.why}")
            await trio.sleep(min(tries, _LONGEST_FIRST_PAUSE) * _FIRST_PAUSE_S)
        return await self._list(resource)

    async def _follow(self, resource: ServedResource) -> None:
        pause, back = _FIRST_PAUSE_S, self._back
        while True:
            begun = trio.current_time()
            try:
                await self._watch(resource)
            except HistoryLost:
                self._since[resource] = None
            except LiveError as failure:
                if not self._unreachable:
                    log.warning("unreachable", server=self.server.url, why=failure.why)
                self._unreachable[resource] = failure.why
                self._since[resource] = None  # list again: the server may be another or have older data
            else:
                pause = _FIRST_PAUSE_S
                await trio.sleep_until(begun + pause)  # some servers end each watch immediately
                continue
            if back.is_set() or trio.current_time() - begun > _STEADY_S:  # the first failure of another outage
                pause = _FIRST_PAUSE_S
            back = self._back
            await trio.sleep(_FIRST_PAUSE_S * random.uniform(0.5, 1.5))  # some servers respond and fail immediately
            with trio.move_on_after((pause - _FIRST_PAUSE_S) * random.uniform(0.5, 1.5)):
                await back.wait()
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _watch(self, resource: ServedResource) -> None:
        """Receive the changes of the resource until the server ends the watch."""
        since = self._since[resource]
        if since is None:
            since = self._since[resource] = await self._list(resource)
        async with aclosing(self.server.watch(resource, since)) as watch:
            async for batch in watch:
                self._hear(resource)
                if batch.events:
                    await self._take(resource, batch)

    def _hear(self, resource: ServedResource) -> None:
        self.heard_at = trio.current_time()
        if self._unreachable.pop(resource, None) is None:
            return
        self._back.set()
        self._back = trio.Event()
        if not self._unreachable:
            log.info("reached_again", server=self.server.url)

    @property
    def followed(self) -> Mapping[ServedResource, str | None]:
        """The version up to which the changes of each resource were received; None: it must be listed again."""
        return self._since

    def describe(self) -> MirrorAnswer:
        unheard_s = None if self.heard_at is None else trio.current_time() - self.heard_at
        unreachable = next(iter(self._unreachable.values()), None)
        server, unread = self.server, sorted(self._unread, key=lambda each: each.resource)
        left_out = [LeftOutObject(*key, why, affected_by(key[0])) for key, why in sorted(self._left_out.copy().items())]
        return MirrorAnswer(
            server.url, server.context, unheard_s, unreachable, server.release, self._rules, unread, left_out
        )

    async def _list(self, resource: ServedResource) -> str:
        """Replace the stored objects of the resource by those in the server's list; return the list's version."""
        objects: list[Object] = []
        importer, more = self._importer_of(resource), ""
        for key in list(self._left_out):
            if key[0] == resource.kind:
                del self._left_out[key]
        try:
            for _ in range(_MOST_PAGES):
                async with self._listing:
                    page = await self.server.page(resource, more)
                    # some servers ignore the page size
                    for part in in_parts(zip(page.items, page.likenesses, strict=True), PAGE):
                        objects += await trio.to_thread.run_sync(self._as_held, importer, part)
                if not (more := page.more):
                    await self._store.do_in_steps(partial(_replace, resource.kind, objects))
                    return page.version
        finally:
            importer.forget()
        raise LiveError(self.server.url, f"its list of {resource.plural} does not end")

    async def _take(self, resource: ServedResource, batch: WatchBatch) -> None:
        last: dict[Key, tuple[Mapping[str, Any], Hashable]] = {}  # last event of each object, with its likeness
        version = self._since[resource]
        for event, likeness in zip(batch.events, batch.likenesses, strict=True):
            meta = event["object"]["metadata"]
            if event["type"] != "BOOKMARK":
                last[resource.kind, str(meta.get("namespace") or ""), str(meta.get("name"))] = event, likeness
            if is_text(meta.get("resourceVersion")):
                version = meta["resourceVersion"]
        for key in last:
            self._left_out.pop(key, None)
        present = [(event["object"], likeness) for event, likeness in last.values() if event["type"] != "DELETED"]
        importer = self._importer_of(resource)
        try:
            if batch.is_small and len(present) <= _FEW:  # for few objects, a thread costs more than the conversion
                objects = self._as_held(importer, present)
            else:
                objects = await trio.to_thread.run_sync(self._as_held, importer, present)
        finally:
            importer.forget()
        held = set(map(key_of, objects))
        gone = [key for key in last if key not in held]  # includes objects that can no longer be stored
        if last:
            await self._store.do_in_steps(lambda store: store.reflect(objects, gone))
        self._since[resource] = version

    def _importer_of(self, resource: ServedResource) -> Importer:
        """Return the importer of a resource, which caches valid pod specs. Only one task may use it at a time."""
        if resource not in self._importers:
            self._importers[resource] = new_importer()
        return self._importers[resource]

    def _as_held(self, importer: Importer, given: Iterable[tuple[Raw, Hashable]]) -> list[Object]:
        """Return the objects in their stored form, without objects that cannot be stored. Runs in a thread."""
        return as_held(given, self._leave_out, self._log_once, self._own, importer)

    def _leave_out(self, raw: Raw, why: str) -> None:
        kind, meta = raw["kind"], raw["metadata"]
        if len(self._left_out) < _MOST_LOGGED:
            self._left_out[kind, str(meta.get("namespace") or ""), str(meta.get("name"))] = why[:_LONGEST_TOLD]
        self._log_once(f"{kind} {meta.get('name')} is left out: {why}")

    def _log_once(self, what: str) -> None:
        what = what[:_LONGEST_TOLD]
        if what not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(what)
            log.warning("mirror", what=what)


async def mirroring(server: ApiServer, cluster: LiveCluster, own: frozenset[str] = frozenset()) -> MirrorActor:
    """Return a mirror that is ready to run.

    After this call, only the mirror changes the cluster; pods are not scheduled yet.
    """
    await cluster.store.do(lambda store: store.refuse_writes(Mirrored(server.url)))
    await cluster.queue.query(_hand_out_nothing)
    cluster.fork_with(embedded_controllers)
    rules, version = await cluster.scheduler.query(lambda driver: (driver.machine.handle.rules, _version_of(driver)))
    return MirrorActor(server, cluster.store, own, [*_built_in(), *_by_rules(rules.features)], version)


def _version_of(driver: SchedulingDriver) -> str:
    return driver.machine.config.version.patch


def _built_in() -> Iterator[list[ServedResource]]:
    for name in MIRRORED:
        kind = BY_NAME[name]
        yield [ServedResource(name, version, kind.plural) for version in kind.api_versions]


def _by_rules(features: Collection[str]) -> Iterator[list[ServedResource]]:
    """Yield the kinds that only some versions serve and that the scheduler reads."""
    for definition in scheduled_by(features):
        spec = definition.spec
        group, names = spec["group"], spec["names"]
        name = name_in_group(names["kind"], group)
        yield [ServedResource(name, f"{group}/{version['name']}", names["plural"]) for version in spec["versions"]]


def _replace(kind: str, objects: Sequence[Object], store: ClusterWriter) -> Generator[None, None, None]:
    """Store exactly these objects of the kind, and delete all others."""
    there: set[Key] = set()
    for part in in_parts(objects, _PART):
        there.update(map(key_of, part))
        yield
    gone: list[Key] = []
    for space in store.present(kind):
        for present in in_parts(space, _PART):
            gone += [key for obj in present if (key := key_of(obj)) not in there]
            yield
    yield from store.reflect(objects, gone)


def _hand_out_nothing(queue: QueueActor) -> None:
    queue.idle = True
