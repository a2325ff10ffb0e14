"""A snapshot of the scheduling queue, from which a separate queue can be restored.

The snapshot shares pods and events, which never change, and copies the containers. Entries change, so the snapshot
stores a copy of their fields. `EntryCopies` creates one copy of each entry, for the queue and for the driver, which
stores the entries in flight. A restored queue pops, requeues and flushes exactly the same pods as the original.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import attrs

from kschedd.queue.entry import QueuedGroup, QueuedPod

_fields = attrgetter(*(field.name for field in attrs.fields(QueuedPod)))
_group_fields = attrgetter(*(field.name for field in attrs.fields(QueuedGroup)))

HeapItems = list[tuple[Any, int, str, QueuedPod]]
Groups = Mapping[Any, Mapping[Any, Mapping[str, QueuedPod]]]


@attrs.frozen(eq=False)
class EntryStates:
    """The values of the fields of some queue entries at one time."""

    entries: list[QueuedPod]
    fields: list[tuple[Any, ...]]

    @classmethod
    def of(cls, entries: Iterable[QueuedPod]) -> "EntryStates":
        held = list(entries)
        return cls(held, [fields_of(entry) for entry in held])


def fields_of(entry: QueuedPod) -> tuple[Any, ...]:
    """Return the fields of an entry. The last field of a PodGroup's entry is the list of its pods' entries."""
    if isinstance(entry, QueuedGroup):
        *others, members = _group_fields(entry)
        return *others, list(members)
    fields: tuple[Any, ...] = _fields(entry)
    return fields


class EntryCopies:
    """The copies of a fork's entries: one copy for each original entry."""

    def __init__(self, *states: EntryStates) -> None:
        """Create copies from these states; if an entry is in several states, the last state is used."""
        self._states = {id(e): f for known in states for e, f in zip(known.entries, known.fields, strict=True)}
        self._held = states  # keeps the entries in memory, so that their ids stay valid
        self._copies: dict[int, QueuedPod] = {}

    def of(self, entry: QueuedPod) -> QueuedPod:
        copied = self._copies.get(id(entry))
        if copied is None:
            fields = self._states[id(entry)]
            if isinstance(entry, QueuedGroup):
                fields = *fields[:-1], [self.of(member) for member in fields[-1]]
            copied = self._copies[id(entry)] = type(entry)(*fields)
        return copied

    def of_group(self, group: QueuedGroup) -> QueuedGroup:
        copied = self.of(group)
        assert isinstance(copied, QueuedGroup), "a group's copy is one"
        return copied

    def heap(self, items: HeapItems) -> HeapItems:
        return [(order, number, key, self.of(entry)) for order, number, key, entry in items]

    def groups(self, groups: Groups) -> dict[Any, dict[Any, dict[str, QueuedPod]]]:
        return {
            group: {
                signature: {key: self.of(entry) for key, entry in pods.items()}
                for signature, pods in signatures.items()
            }
            for group, signatures in groups.items()
        }


@attrs.frozen(eq=False)
class UnschedulableSnapshot:
    groups: Groups
    spots: Mapping[str, Any]
    by_age: HeapItems
    unmoved_by_age: HeapItems
    gated: int


@attrs.frozen(eq=False)
class InFlightSnapshot:
    pods: list[tuple[str, int, QueuedPod]]  # uid, number of the first event after the pod's pop, entry
    events: list[Any]
    first: int


@attrs.frozen(eq=False)
class GroupsSnapshot:
    """The state of PodGroups: priorities, entries in sub-queues and in cycles, and waiting pods."""

    known: Mapping[str, int] = attrs.field(factory=dict)
    queued: Sequence[QueuedGroup] = ()
    in_cycle: Sequence[QueuedGroup] = ()
    waiting: Sequence[QueuedPod] = ()


@attrs.frozen(eq=False)
class QueueSnapshot:
    """The content of a queue. `states` contains the fields of all entries in the snapshot."""

    states: EntryStates
    scheduling_cycle: int
    entries: Mapping[str, QueuedPod]
    active: HeapItems
    rejected: HeapItems
    failed: HeapItems
    unschedulable: UnschedulableSnapshot
    in_flight: InFlightSnapshot
    groups: GroupsSnapshot = attrs.field(factory=GroupsSnapshot)
    evictions: Mapping[str, frozenset[str]] = attrs.field(factory=dict)  # preemptor -> its remaining victims, by uid
