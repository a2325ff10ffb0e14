"""Requests on objects, and responses, as values that HTTP, the socket, forks and scenarios share.

A codec creates a `Request` from a client's message and encodes the response. `kschedd.service.operations` executes the
requests: `reading` and `watching` execute get, list and watch; `serving` executes writes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.decoding import FieldValidation
from kschedd.api.schemas.kinds import Kind
from kschedd.api.selecting.selector_text import FieldSelector
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.creating.updates import Subresource
from kschedd.store.deletion import Propagation
from kschedd.store.patches.patching import PatchType

Verb = Literal["get", "list", "watch", "create", "update", "patch", "apply", "delete"]
Action = Literal["", "created", "configured", "unchanged"]


EXACT: Final = "Exact"
NOT_OLDER: Final = "NotOlderThan"


@attrs.frozen
class Continue:
    """The position at which a list continues: after this namespace and name, in this version.

    A negative version means the latest version.
    """

    version: int
    after: tuple[str, str]


@attrs.frozen(eq=False)
class ReadOptions:
    """The ListOptions. `fields` selects by fields of the kind's stored version."""

    labels: LabelSelector | None = None
    fields: FieldSelector | None = None
    version: int | None = None  # None: not given
    match: str = ""  # EXACT or NOT_OLDER
    limit: int = 0
    cont: Continue | None = None
    timeout_s: int | None = None
    bookmarks: bool = False
    initial_events: bool | None = None
    patient: bool = False  # for a watch: wait for a version that does not exist yet
    without: Collection[str] = ()  # for a watch: names of kinds to omit
    computed: Sequence[Object] = ()  # objects that are not stored; a stored object of this name replaces them
    # kind that defines the field labels allowed in `fields`; None: they are not checked
    selected_in: Kind | None = None

    @property
    def selects(self) -> bool:
        labels = self.labels is not None and not self.labels.empty
        return labels or (self.fields is not None and bool(self.fields.requirements))

    @property
    def exact(self) -> bool:
        """True if the list must have exactly this `version`; the client requires it, or the list is paginated."""
        if self.match:
            return self.match == EXACT
        return bool(self.version and self.limit)


@attrs.frozen
class WriteOptions:
    """The options of create, update and patch requests. `manager` is the field manager of the write ("": none)."""

    dry_run: bool = False
    manager: str = ""
    validation: FieldValidation = "Strict"
    force: bool = False  # for an apply: overwrite other managers' fields
    # report each value of a wrong type with its field, instead of the decoder's single message
    by_field: bool = False
    server_side: bool = True  # for an apply: true for a server-side apply, false for a client-side apply


@attrs.frozen
class DeleteOptions:
    grace_period_s: int | None = None
    propagation: Propagation = ""
    orphan: bool | None = None
    uid: str | None = None
    resource_version: int | str | None = None
    dry_run: bool = False


@attrs.frozen(eq=False)
class PatchBody:
    type: PatchType
    value: Any


@attrs.frozen(eq=False)
class Request:
    """A request. `kind` is the kind's name in the store.

    If `kind` is "", the kind of the object in `body` is used; in a watch, "" means all kinds. The namespace "" of a
    list or a watch means all namespaces. `body` is an object (create, update), a `PatchBody`, a configuration (apply),
    a Binding, an Eviction or a Scale. `duplicates` are the paths of fields that occur twice in the body.
    """

    verb: Verb
    kind: str = ""
    namespace: str = ""
    name: str = ""
    subresource: Subresource | Literal["binding", "eviction"] = ""
    body: Any = None
    options: WriteOptions = WriteOptions()
    deletion: DeleteOptions = DeleteOptions()
    reading: ReadOptions = ReadOptions()
    user: UserInfo | None = None
    api_version: str = ""  # the version that the client requests; "": the version in the body
    duplicates: Sequence[str] = ()
    authorized: bool = False  # the user's permission for the request has been checked


@attrs.frozen(eq=False)
class Response:
    """The response to a write: the object after and before it, warnings, and annotations of the audit event."""

    object: Object
    before: Object | None = None
    action: Action = ""
    gone: bool = False  # for a deletion: True if the object was removed immediately
    warnings: tuple[str, ...] = ()
    audit_annotations: Mapping[str, str] = attrs.field(factory=dict)
    jobs_finish: bool = False  # for a Job or CronJob: True if the pods of Jobs end by themselves in this cluster

    def adopted(self, here: Callable[[Object], Object]) -> "Response":
        """Return the response, with `here(object)` in place of its object."""
        return attrs.evolve(self, object=here(self.object))
