"""The initial state of a recording that begins on a running daemon: the first notes contain the driver and the queue.

    MADE          every out-of-tree plugin
    LAYOUT        the rows of the nodes in the table
    OBSERVE       every object, in the order of the caches
    STARTED
    DRIVER_STATE  random state, start of the next search, nominations, skipped pods
    QUEUE_STATE   every entry and its place

The state is copied when no pod is in flight or assumed (`DriverPart.of` checks this). There is then no attempt and no
binding cycle to continue. Attempts and binding cycles are suspended coroutines and could not be stored. All other state
is computed again: counts, cached evaluations, IDs. Copying each part takes a few milliseconds; the notes can be created
from the copy in any thread.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import msgpack

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.model import Config
from kschedd.queue.entry import QueuedGroup, QueuedPod, SubQueue
from kschedd.queue.operations import QueueOperations
from kschedd.queue.snapshot import (
    EntryCopies,
    EntryStates,
    GroupsSnapshot,
    HeapItems,
    InFlightSnapshot,
    QueueSnapshot,
    UnschedulableSnapshot,
)
from kschedd.recording.notes import Note, NoteKind
from kschedd.recording.plugins import made, out_of_tree
from kschedd.recording.values import pack, unpack
from kschedd.scheduling.attempt.ties import NodeTies
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.nominations.pending import PendingPods
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.journal.reading import read_object
from kschedd.store.objects.log import ADDED, WatchEvent

_EVENTS: Final = 500  # per note
_HEAPS: Final = ("active", "rejected", "failed")


@attrs.frozen(eq=False)
class DriverPart:
    cluster: SchedulerCache
    pending: PendingPods
    random: Any
    start: int
    bound: int
    version: int  # version of the store up to which all writes were observed
    config: Config
    batches: Mapping[str, Any]
    plugins: Sequence[Note]  # out-of-tree plugins

    @classmethod
    def of(cls, driver: SchedulingDriver) -> "DriverPart | None":
        """Return the state of the driver.

        Return None while a pod is being scheduled or bound, while effects are pending, or before the first observation.
        """
        machine = driver.machine
        busy = driver.attempts.running or driver.bindings.cycles or driver.popped.head is not None or driver.has_effects
        if busy or machine.cluster.assumed_pods() or not driver.observed:
            return None
        choose = machine.choose
        return cls(
            machine.cluster.fork(),
            driver.pending.fork(),
            choose.random.getstate() if isinstance(choose, NodeTies) else None,
            machine.start.index,
            driver.bindings.pods_bound,
            driver.observed,
            machine.config,
            machine.batches.saved(),
            [made(plugin) for plugin in out_of_tree(machine)],
        )

    def notes(self, objects: Sequence[Object], now_s: float) -> Iterator[Note]:
        """Yield the notes. `objects`: all objects at the version of this state."""
        yield from self.plugins
        names, free = self.cluster.table.layout
        yield NoteKind.LAYOUT, names, free
        events = [WatchEvent(ADDED, None, obj, _version(obj)) for obj in self._ordered(objects)]
        for start in range(0, len(events), _EVENTS):
            yield NoteKind.OBSERVE, now_s, events[start : start + _EVENTS]
        yield NoteKind.STARTED, self.version
        nominations = [
            [node, msgpack.packb(pod.raw)]
            for node, pods in self.pending.nominator.nodes.items()
            for pod in pods.values()
        ]
        state = {
            "random": self.random,
            "start": self.start,
            "bound": self.bound,
            "images": {name: image.size for name, image in self.cluster.table.images.items()},
            "passed_over": sorted(self.pending.passed_over),
            "nominations": nominations,
            "batches": self.batches,
        }
        yield NoteKind.DRIVER_STATE, pack(state)

    def _ordered(self, objects: Sequence[Object]) -> list[Object]:
        """Return the objects in the order of the caches, followed by the objects that the caches do not contain."""
        cluster = self.cluster
        ordered: list[Object] = list(cluster.table.nodes_by_zone)
        for by_key in cluster.objects.values():
            ordered += by_key.values()
        for row in cluster.table:
            ordered += cluster.table.pods[row]
        ordered += self.pending.pods.values()
        place = {(obj.kind, obj.key): number for number, obj in enumerate(ordered)}
        return sorted(objects, key=lambda obj: place.get((obj.kind, obj.key), len(place)))


def objects_at(store: ClusterWriter, version: int) -> list[Object]:
    """Return all objects at a version that the store's log still contains."""
    objects = {(obj.kind, obj.namespace, obj.name): obj for kind in store.kinds() for obj in store.list(kind)}
    for event in reversed(store.written_after(version)):
        key = event.new.kind, event.new.namespace, event.new.name
        if event.type == ADDED or event.old is None:
            objects.pop(key, None)
        else:
            objects[key] = event.old
    return list(objects.values())


def _version(obj: Object) -> int:
    return int(obj.metadata.get("resourceVersion") or 0)


def restore_driver(driver: SchedulingDriver, packed: bytes, version: int) -> None:
    """Restore the state of the recorded driver, with the objects that it had observed. Raises UnreadableValue."""
    state: Mapping[str, Any] = unpack(packed)
    driver.take_effects()  # the restored queue already contains these objects
    machine = driver.machine
    if isinstance(machine.choose, NodeTies) and state["random"] is not None:
        machine.choose.random.setstate(state["random"])
    machine.start.index = state["start"]
    if "batches" in state:  # recordings of earlier versions lack this field
        machine.batches.restore(state["batches"])
    driver.bindings.pods_bound, driver.observer.version, driver.observed = state["bound"], version, version
    for name, size in state["images"].items():
        image = machine.cluster.table.images.get(name)
        if image is not None:
            image.size = size  # the size reported by the first node with this image
    nominations = [(_pod(raw), node) for node, raw in state["nominations"]]
    driver.pending.goes_on(state["passed_over"], nominations)


def _pod(packed: bytes) -> Pod:
    pod = read_object("Pod", packed)
    assert isinstance(pod, Pod), "a Pod is read as one"
    return pod


# -- the queue ---------------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class QueuePart:
    queue: QueueSnapshot
    nominated: Sequence[Pod]

    @classmethod
    def of(cls, operations: QueueOperations) -> "QueuePart":
        return cls(operations.queue.snapshot(), tuple(operations.nominated))

    def note(self, current: Mapping[str, Pod]) -> Note:
        """Return the note that contains the state of the queue.

        `current`: the pending pods in the state that the driver had observed, by key.
        """
        queue, waiting = self.queue, self.queue.unschedulable
        states = queue.states
        fields = {id(entry): its for entry, its in zip(states.entries, states.fields, strict=True)}

        def referred(pod: Pod) -> list[Any]:
            seen = current.get(pod.key)
            same = seen is not None and seen.uid == pod.uid and seen.resource_version == pod.resource_version
            return [pod.key, None if same else msgpack.packb(pod.raw)]

        state = {
            "cycle": queue.scheduling_cycle,
            "entries": [_written(fields[id(entry)], referred) for entry in queue.entries.values()],
            **{name: _items(getattr(queue, name)) for name in _HEAPS},
            "groups": [
                [list(group), [list(pods) for pods in signatures.values()]]
                for group, signatures in waiting.groups.items()
            ],
            "by_age": _items(waiting.by_age),
            "unmoved": _items(waiting.unmoved_by_age),
            "gated": waiting.gated,
            "nominated": [referred(pod) for pod in self.nominated],
            "pod_groups": [
                dict(queue.groups.known),
                [_group(fields[id(group)]) for group in queue.groups.queued],
                [entry.key for entry in queue.groups.waiting],
            ],
            "evictions": {preemptor: sorted(victims) for preemptor, victims in queue.evictions.items()},
        }
        return NoteKind.QUEUE_STATE, pack(state)


_FIELDS: Final = tuple(field.name for field in attrs.fields(QueuedPod))
_KEY, _PLACE, _STATUS = (_FIELDS.index(name) for name in ("key", "place", "gating_status"))


def _written(fields: tuple[Any, ...], referred: Callable[[Pod], list[Any]]) -> list[Any]:
    pod, *rest = fields
    rest[_PLACE - 1] = rest[_PLACE - 1].value
    return [referred(pod), *rest]


def _group(fields: tuple[Any, ...]) -> list[Any]:
    """Return the fields of a PodGroup's entry, with the keys of its pods in place of their entries."""
    pod, *rest, members = fields
    rest[_PLACE - 1] = rest[_PLACE - 1].value
    return [pod.key, *rest, [member.key for member in members]]


def _items(items: HeapItems) -> list[Any]:
    return [[order, number, key] for order, number, key, _ in items]


def restore_queue(operations: QueueOperations, packed: bytes, current: Mapping[str, Pod]) -> None:
    """Restore the state of the recorded queue. Raises UnreadableValue."""
    state: Mapping[str, Any] = unpack(packed)

    def found(reference: Sequence[Any]) -> Pod:
        key, raw = reference
        return current[key] if raw is None else _pod(raw)

    entries: dict[str, QueuedPod] = {}
    for reference, *rest in state["entries"]:
        rest[_PLACE - 1] = SubQueue(rest[_PLACE - 1])
        entry = QueuedPod(found(reference), *rest)
        entries[entry.key] = entry

    # recordings of earlier versions lack this field
    known, of_groups, waiting_keys = state.get("pod_groups") or ({}, [], [])
    queued = []
    for first, *rest, members in of_groups:
        rest[_PLACE - 1] = SubQueue(rest[_PLACE - 1])
        queued.append(QueuedGroup(*[entries[first].pod, *rest, [entries[key] for key in members]]))
    pods, entries = entries, {**entries, **{group.key: group for group in queued}}

    def heap(name: str) -> HeapItems:
        return [(order, number, key, entries[key]) for order, number, key in state[name]]

    groups: dict[Any, dict[Any, dict[str, QueuedPod]]] = {}
    spots: dict[str, Any] = {}
    for group, signatures in state["groups"]:
        by_signature = groups.setdefault(tuple(group), {})
        for keys in signatures:
            signature = entries[keys[0]].pod.signature
            by_signature[signature] = {key: entries[key] for key in keys}
            spots.update(dict.fromkeys(keys, (tuple(group), signature)))
    states = EntryStates.of(entries.values())
    in_groups = GroupsSnapshot(known, queued, (), [pods[key] for key in waiting_keys])
    waiting = UnschedulableSnapshot(groups, spots, heap("by_age"), heap("unmoved"), state["gated"])
    active, rejected, failed = map(heap, _HEAPS)
    snapshot = QueueSnapshot(
        states, state["cycle"], pods, active, rejected, failed, waiting, InFlightSnapshot([], [], 0), in_groups
    )
    operations.queue.evictions.restore(state.get("evictions") or {})  # recordings of earlier versions lack this field
    operations.queue.restore(snapshot, EntryCopies(states))
    operations.nominated.extend(found(reference) for reference in state["nominated"])


# -- redaction -------------------------------------------------------------------------------------------------

Text = Callable[[str], str]
"""A function that returns the replacement of a name or another text."""
Packed = Callable[[bytes], bytes]
"""A function that returns the redacted form of a packed object."""


def objects_in(note: Note) -> list[bytes]:
    """Return the packed objects in a note DRIVER_STATE or QUEUE_STATE."""
    state: Mapping[str, Any] = unpack(note[1])
    if note[0] == NoteKind.DRIVER_STATE:
        return [raw for _, raw in state["nominations"]]
    return [raw for _, raw in (*(entry[0] for entry in state["entries"]), *state["nominated"]) if raw is not None]


def driver_renamed(packed: bytes, text: Text, renamed: Packed) -> bytes:
    state = dict(unpack(packed))
    state["images"] = {text(name): size for name, size in state["images"].items()}
    state["nominations"] = [[text(node), renamed(raw)] for node, raw in state["nominations"]]
    return pack(state)


def queue_renamed(packed: bytes, text: Text, renamed: Packed, value: Callable[[Any], Any]) -> bytes:
    """Return the redacted state of a queue. `value` redacts the status that a plugin returned for a pod."""
    state = dict(unpack(packed))

    def reference(one: Sequence[Any]) -> list[Any]:
        key, raw = one
        return [text(key), None if raw is None else renamed(raw)]

    def entry(one: Sequence[Any]) -> list[Any]:
        fields = list(one)
        fields[0], fields[_KEY], fields[_STATUS] = reference(one[0]), text(one[_KEY]), value(one[_STATUS])
        return fields

    state["entries"] = [entry(one) for one in state["entries"]]
    state["nominated"] = [reference(one) for one in state["nominated"]]
    for name in (*_HEAPS, "by_age", "unmoved"):
        state[name] = [[order, number, _key_renamed(key, text)] for order, number, key in state[name]]
    if "pod_groups" in state:
        known, queued, waiting = state["pod_groups"]
        state["pod_groups"] = [
            {text(key): priority for key, priority in known.items()},
            [_group_renamed(group, text, value) for group in queued],
            [text(key) for key in waiting],
        ]
    state["groups"] = [
        [[text(group[0]), *group[1:]], [[text(key) for key in keys] for keys in signatures]]
        for group, signatures in state["groups"]
    ]
    return pack(state)


def _key_renamed(key: str, text: Text) -> str:
    """Return the redacted key of a pod, or of the entry of a PodGroup."""
    kind, _, rest = key.partition("/")
    return f"{kind}/{text(rest)}" if "/" in rest else text(key)


def _group_renamed(fields: Sequence[Any], text: Text, value: Callable[[Any], Any]) -> list[Any]:
    first, *rest, group, priority, members = fields
    rest[_KEY - 1], rest[_STATUS - 1] = f"podgroup/{text(group)}", value(rest[_STATUS - 1])
    return [text(first), *rest, text(group), priority, [text(key) for key in members]]
