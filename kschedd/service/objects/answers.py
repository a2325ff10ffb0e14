"""Answers of the methods on objects."""

from collections.abc import Sequence
from typing import Annotated, Any

import attrs

from kschedd.answers import ABSENT, Absent
from kschedd.api.unsupported import Unsupported
from kschedd.service.table import StreamAnswer

AsItIs = Annotated[Any, "the current object in kubectl's form"]
Warnings = Annotated[Sequence[Annotated[str, "text"]], "warnings"]
Ignored = Annotated[Sequence[Unsupported], "fields that are stored but have no effect yet"]


@attrs.frozen(eq=False)
class AppliedAnswer:
    kind: str
    namespace: str
    name: str
    action: Annotated[str, "`created`, `configured` or `unchanged`"]
    resource: str
    object: Annotated[Any | Absent, "with `with_objects`: the resulting object"] = ABSENT


@attrs.frozen
class FaultAnswer:
    """An error in a manifest; for a rejected object it contains the object's kind, namespace and name."""

    source: str
    line: Annotated[int, "counts from 1; 0 if there is none"]
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
    gone: Annotated[bool, "false while the deletion is pending"]


@attrs.frozen
class DeletionAnswer:
    deleted: Sequence[DeletedObject]


@attrs.frozen
class BindingAnswer:
    node: str


@attrs.frozen
class EvictionAnswer:
    gone: Annotated[bool, "false during the grace period, or while a finalizer is present"]


@attrs.frozen
class KindAnswer:
    name: str
    plural: str
    singular: str
    short_names: Sequence[str]
    api_version: str
    namespaced: bool
    known: Annotated[bool, "false: only objects or a definition of it exist"]
    count: Annotated[int, "number of objects"]


# -- lists, watches, events -------------------------------------------------------------------------------------


@attrs.frozen
class ListAnswer:
    kind: str
    items: Sequence[Annotated[Any, "object"]]
    resource_version: Annotated[int, "watch from this version on to get every later change"]
    epoch: str


@attrs.frozen
class WatchAnswer(StreamAnswer):
    resource_version: Annotated[int, "the version from which the watch begins"]
    epoch: str


@attrs.frozen
class WatchItem:
    type: Annotated[str, "`ADDED`, `MODIFIED` or `DELETED`"]
    object: Any
    resource_version: int


@attrs.frozen(kw_only=True)
class EventAnswer:
    time: Annotated[str, "in RFC 3339, like last_seen"]
    last_seen: str
    type: str
    reason: str
    object: Annotated[str, "in the form `Pod/web-1`"]
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
    number: Annotated[int, "number from which `events.watch` continues after these events"]
    instance: Annotated[str, "the instance to which the number belongs"]


@attrs.frozen
class EventsWatchAnswer(StreamAnswer):
    number: Annotated[int, "the number from which it follows"]
    instance: str
