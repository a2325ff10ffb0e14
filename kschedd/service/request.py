"""Requests that write objects, and their responses: values that HTTP, the socket, forks and scenarios share.

A codec makes a `Request` of what a client sends and encodes the `Response`. Everything between the two is
`kschedd.service.operations.serving`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.decoding import FieldValidation
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.creating.updates import Subresource
from kschedd.store.deletion import Propagation
from kschedd.store.patching import PatchType

Verb = Literal["create", "update", "patch", "apply", "delete"]
Action = Literal["", "created", "configured", "unchanged"]


@attrs.frozen
class WriteOptions:
    """CreateOptions, UpdateOptions and PatchOptions. `manager` owns the written fields ("": nobody does)."""

    dry_run: bool = False
    manager: str = ""
    validation: FieldValidation = "Strict"
    force: bool = False  # of an apply: take over fields of other managers
    by_field: bool = False  # report values of a wrong type by field, not as the decoder's one message
    server_side: bool = True  # of an apply: by who manages which field, not as kubectl did


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
    """One write. `kind` is the name under which the store keeps the objects ("": that of the object in `body`).

    `body` is an object (create, update), a `PatchBody`, a configuration (apply), a Binding, an Eviction or a Scale;
    `duplicates` are the paths of its fields that were sent twice.
    """

    verb: Verb
    kind: str = ""
    namespace: str = ""
    name: str = ""
    subresource: Subresource | Literal["binding", "eviction"] = ""
    body: Any = None
    options: WriteOptions = WriteOptions()
    deletion: DeleteOptions = DeleteOptions()
    user: UserInfo | None = None
    api_version: str = ""  # that the client asks for; "": the one in the body
    duplicates: Sequence[str] = ()


@attrs.frozen(eq=False)
class Response:
    """What came of a request: the object as it is now and as it was before, and what the client is to be warned of."""

    object: Object
    before: Object | None = None
    action: Action = ""
    gone: bool = False  # of a deletion: nothing is left to finish
    warnings: tuple[str, ...] = ()

    def adopted(self, here: Callable[[Object], Object]) -> "Response":
        """Return the response with the object that `here` maps its object to."""
        return attrs.evolve(self, object=here(self.object))
