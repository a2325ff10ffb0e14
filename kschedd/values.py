"""Values that are made for every pod, several times over: attrs classes that nobody changes once they are made.

`attrs.frozen` says the same and also refuses assignments while the program runs; for that every field is set through
`object.__setattr__`, which makes such an object four times as expensive to make (a Pod: 1.3 us instead of 0.3). A pod
on its way through the daemon is some twenty of them. So for these the type checker alone refuses.
"""

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from attrs import frozen as value
else:

    def value(cls: type | None = None, *, eq: bool = True) -> Any:
        """As `attrs.frozen`; but for the type checker, assignments are not refused."""
        return attrs.define(cls, eq=eq, unsafe_hash=eq)


__all__ = ["value"]
