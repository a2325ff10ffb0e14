"""What the methods over objects answer."""

from collections.abc import Sequence
from typing import Annotated, Any

import attrs

from kschedd.answers import ABSENT, Absent
from kschedd.api.unsupported import Unsupported
from kschedd.service.table import StreamAnswer

AsItIs = Annotated[Any, "the object as it is now, as kubectl would print it"]
Warnings = Annotated[Sequence[Annotated[str, "text"]], "what there is to warn of"]
Ignored = Annotated[Sequence[Unsupported], "what is kept but not acted on yet"]


@attrs.frozen(eq=False)
class AppliedAnswer:
    kind: str
    namespace: str
    name: str
    action: Annotated[str, "`created`, `configured` or `unchanged`"]
    resource: str
    object: Annotated[Any | Absent, "with `with_objects`: the object as it is then"] = ABSENT


@attrs.frozen
class FaultAnswer:
    """A fault of a manifest; of an object that was refused with its kind, namespace and name."""

    source: str
    line: Annotated[int, "counts from 1, 0 where there is none"]
    path: str
    value: Any
    why: str
    message: str
    code: str
    kind: str | Absent = ABSENT
    namespace: str | Absent = ABSENT
    name: str | Absent = ABSENT


@attrs.frozen(eq=False)
class ApplyAnswer:
    results: Sequence[AppliedAnswer]
    errors: Sequence[FaultAnswer]
    warnings: Warnings
    unsupported: Ignored


@attrs.frozen(eq=False)
class ObjectAnswer:
    object: AsItIs


@attrs.frozen(eq=False)
class WrittenAnswer:
    object: AsItIs
    warnings: Warnings
    unsupported: Ignored


@attrs.frozen(eq=False)
class ChangeAnswer:
    object: AsItIs
    changed: Annotated[Sequence[Annotated[str, "path"]], "the fields that changed"]
    warnings: Warnings
    unsupported: Ignored


@attrs.frozen(eq=False)
class ScaleAnswer:
    object: AsItIs
    before: int
    after: int


@attrs.frozen
class DeletedObject:
    kind: str
    namespace: str
    name: str
    gone: Annotated[bool, "false while something is awaited"]


@attrs.frozen
class DeletionAnswer:
    deleted: Sequence[DeletedObject]


@attrs.frozen
class BindingAnswer:
    node: str


@attrs.frozen
class EvictionAnswer:
    gone: Annotated[bool, "false while the pod is given its grace period, or a finalizer holds it"]


@attrs.frozen
class KindAnswer:
    name: str
    plural: str
    singular: str
    short_names: Sequence[str]
    api_version: str
    namespaced: bool
    known: Annotated[bool, "false: there are only objects of it, or a definition"]
    count: Annotated[int, "how many objects there are"]


# -- lists, watches, events -------------------------------------------------------------------------------------


@attrs.frozen
class ListAnswer:
    kind: str
    items: Sequence[Annotated[Any, "object"]]
    resource_version: Annotated[int, "watch from that version on to hear of every change since"]
    epoch: str


@attrs.frozen
class WatchAnswer(StreamAnswer):
    resource_version: Annotated[int, "the version from which on it watches"]
    epoch: str


@attrs.frozen
class WatchItem:
    type: Annotated[str, "`ADDED`, `MODIFIED` or `DELETED`"]
    object: Any
    resource_version: int


@attrs.frozen(kw_only=True)
class EventAnswer:
    time: Annotated[str, "in RFC 3339, as is last_seen"]
    last_seen: str
    type: str
    reason: str
    object: Annotated[str, "as `Pod/web-1`"]
    namespace: str
    message: str
    count: int
    from_: str


@attrs.frozen(kw_only=True)
class WatchedEvent(EventAnswer):
    number: int


@attrs.frozen
class EventsAnswer:
    events: Sequence[EventAnswer]
    number: Annotated[int, "where `events.watch` goes on after those of the scheduler"]
    instance: Annotated[str, "the same"]


@attrs.frozen
class EventsWatchAnswer(StreamAnswer):
    number: Annotated[int, "the one from which on it follows"]
    instance: str
