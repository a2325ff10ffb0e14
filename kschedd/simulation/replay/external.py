"""External inputs of a recorded run: the cluster at its start, and later writes by clients, each with its time.

Writes of the cluster's own controllers, kubelets and scheduler are omitted, because they depend on the configuration. A
change is stored as the difference from the previous version, so that it can be applied to an object that differs in the
replay.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.recording.notes import Note, NoteKind
from kschedd.recording.recorder import EVENT_TYPES
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import NotFound
from kschedd.store.journal.reading import read_object
from kschedd.store.objects.log import ADDED, DELETED, EventType

_SERVERS: Final = frozenset(("resourceVersion", "generation", "managedFields", "uid", "creationTimestamp", "selfLink"))
_UNTOLD: Final = frozenset(("Event", "Lease"))  # kinds whose objects only report about other objects


@attrs.frozen(eq=False)
class ExternalChange:
    """A client's change of an object, with the time at which the scheduler received it.

    `old` is None for a new object.
    """

    at_s: float
    type: EventType
    old: Object | None
    new: Object

    def apply(self, store: ClusterWriter) -> None:
        """Do the same here. Raises ApiError if the API server rejects the change."""
        new = self.new
        key = new.kind, new.namespace, new.name
        if self.type == DELETED:
            with suppress(NotFound):  # the object may already have been deleted in this replay
                store.delete(*key, grace_period_s=0)
            return
        if self.old is None:
            raw = {field: value for field, value in new.metadata.items() if field != "resourceVersion"}
            store.create({**new.raw, "metadata": raw}, restore=True)
            return
        if new.metadata.get("deletionTimestamp") and not self.old.metadata.get("deletionTimestamp"):
            store.delete(*key, grace_period_s=new.metadata.get("deletionGracePeriodSeconds"))
            return
        if isinstance(new, Pod) and isinstance(self.old, Pod) and new.node_name and not self.old.node_name:
            store.bind(new.namespace, new.name, new.node_name)
            return
        patch = changed(self.old.raw, new.raw)
        if patch:
            store.merge_patch(*key, patch, with_status=True)


@attrs.define(eq=False)
class OutsideWorld:
    """The external inputs of a recorded run, collected while it is replayed.

    `placed` maps the key of each pod to its last node, or "".
    """

    objects: list[Object] = attrs.field(factory=list)
    changes: list[ExternalChange] = attrs.field(factory=list)
    placed: dict[str, str] = attrs.field(factory=dict)
    ended_s: float = 0.0

    @classmethod
    def of(cls, notes: Iterator[Note], start_s: float) -> "OutsideWorld":
        world = cls(ended_s=start_s)
        objects: dict[tuple[str, str, str], Object] = {}
        own: set[int] = set()
        started = False
        for note in notes:
            if note[0] == NoteKind.OWN:
                own.update(range(note[1], note[2] + 1))
            elif note[0] == NoteKind.STARTED:
                started = True
                world.objects = [obj for obj in objects.values() if obj.kind not in _UNTOLD]
            elif note[0] == NoteKind.TAKE:
                world._note_records(note[1])
            elif note[0] == NoteKind.OBSERVE:
                world.ended_s = max(world.ended_s, note[1])
                for code, kind, packed, version in note[2]:
                    new = read_object(kind, packed)
                    key = kind, new.namespace, new.name
                    kind_of_event = EVENT_TYPES[code]
                    old = None if kind_of_event == ADDED else objects.get(key)
                    if kind_of_event == DELETED:
                        objects.pop(key, None)
                    else:
                        objects[key] = new
                    if started and version not in own and kind not in _UNTOLD:
                        world.changes.append(ExternalChange(note[1], kind_of_event, old, new))
                    own.discard(version)
        return world

    def _note_records(self, records: list[list[Any]]) -> None:
        for at_s, pod, _, node, *_, of_binding in records:
            self.ended_s = max(self.ended_s, at_s)
            self.placed[pod] = "" if of_binding else node


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch (RFC 7386) from `old` to `new`, without fields that only the API server writes."""
    patch = _difference(old, new)
    meta = patch.get("metadata")
    if meta is not None:
        kept = {field: value for field, value in meta.items() if field not in _SERVERS}
        if kept:
            patch["metadata"] = kept
        else:
            del patch["metadata"]
    return patch


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := _difference(before, value):
                patch[key] = inner
        elif value != before:
            patch[key] = value
    return patch
