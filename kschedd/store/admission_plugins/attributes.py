"""Arguments of admission plugins: the request, and the objects of the store that plugins may read."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, Protocol

import attrs

from kschedd.access.users import User
from kschedd.api.objects import Object
from kschedd.values import fast_frozen

Raw = Mapping[str, Any]
Operation = Literal["CREATE", "UPDATE", "DELETE"]


class Classes(Protocol):
    """The objects of the store that plugins may read."""

    def find(self, kind: str, namespace: str, name: str) -> Object | None: ...
    def list(self, kind: str, namespace: str | None = None) -> Sequence[Object]: ...

    def present_in(self, kind: str, namespace: str) -> bool:
        """Return False if there are no objects of this kind in the namespace."""


@attrs.frozen
class UserInfo:
    """The user who makes a request. `judged` is true if RBAC objects decide about the user's requests."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    judged: bool = False

    @property
    def user(self) -> User:
        """The user as authorization sees it."""
        return User(self.name, self.groups, uid=self.uid, extra=self.extra, judged=self.judged)


@attrs.frozen(eq=False)
class SubresourceOf:
    """The API version and the kind of a subresource such as Scale, and the object that has the subresource."""

    api_version: str
    kind: str
    present: Raw


@fast_frozen
class Attributes:
    """A request. The object's name is used only in messages, because pods with an equal spec share one cached result.

    Only `authorize` receives `user`; None means the cluster itself.
    """

    operation: Operation
    kind: str
    namespace: str
    name: str
    subresource: str = ""
    user: UserInfo | None = None
    generated: bool = False  # the name was generated

    @property
    def creates(self) -> bool:
        return self.operation == "CREATE"


Admit = Callable[[Attributes, Raw, Classes], Raw]
"""Returns the object after the plugin's changes. Runs before validation. Raises ApiError."""

Validate = Callable[[Attributes, Raw, Raw | None, Classes], Sequence[str] | None]
"""Raises ApiError if the plugin rejects the (new, old) object, else returns its warnings. Runs after validation."""

Authorize = Callable[[Attributes, Raw | None, Raw | None, Classes], None]
"""Raises ApiError if the user may not write the (new, old) object. Runs before validation, for every request."""

Scope = Callable[[str, Classes], Hashable]
"""Returns the part of a namespace that the plugin's result depends on, in a form that can be serialized; None or empty
if the result does not depend on the namespace.
"""


def annotation_of(namespace: str, key: str, classes: Classes) -> str | None:
    found = classes.find("Namespace", "", namespace)
    annotations = {} if found is None else found.metadata.get("annotations") or {}
    text = annotations.get(key)
    return text if isinstance(text, str) else None
