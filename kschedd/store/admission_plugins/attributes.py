"""What an admission plugin is told of a request besides the object, and the part of the store that it may read."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, Protocol

import attrs

from kschedd.api.objects import Object
from kschedd.values import fast_frozen

Raw = Mapping[str, Any]
Operation = Literal["CREATE", "UPDATE", "DELETE"]


class Classes(Protocol):
    """The part of the store that plugins read."""

    def find(self, kind: str, namespace: str, name: str) -> Object | None: ...
    def list(self, kind: str, namespace: str | None = None) -> Sequence[Object]: ...

    def present_in(self, kind: str, namespace: str) -> bool:
        """False where there is nothing to list."""


@attrs.frozen
class UserInfo:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()


@fast_frozen
class Attributes:
    """A request. The object's name is for messages only: equal pods share what a plugin makes of one.

    `user` is given to `authorize` only; None is the cluster itself.
    """

    operation: Operation
    kind: str
    namespace: str
    name: str
    subresource: str = ""
    user: UserInfo | None = None

    @property
    def creates(self) -> bool:
        return self.operation == "CREATE"


Admit = Callable[[Attributes, Raw, Classes], Raw]
"""The object as the plugin leaves it; before validation. Raises ApiError."""

Validate = Callable[[Attributes, Raw, Raw | None, Classes], Sequence[str] | None]
"""Refuses the (new, old) object, or does not; after validation. What to warn of, if anything. Raises ApiError."""

Authorize = Callable[[Attributes, Raw | None, Raw | None, Classes], None]
"""Refuses what this user may not do to the (new, old) object; before validation, each time. Raises ApiError."""

Scope = Callable[[str, Classes], Hashable]
"""What of a namespace the plugin's result depends on: a value that packs; None or empty where there is nothing."""


def annotation_of(namespace: str, key: str, classes: Classes) -> str | None:
    found = classes.find("Namespace", "", namespace)
    annotations = {} if found is None else found.metadata.get("annotations") or {}
    text = annotations.get(key)
    return text if isinstance(text, str) else None
