"""Changes made to the configuration at run time, kept so that the latest can be undone.

Owns the configurations that were in use before each change. Undoing a change restores the configuration before it, so
changes are undone in reverse order.
"""

from collections import deque
from typing import Annotated, Any, Final

import attrs

from kschedd.config.changing.values import values
from kschedd.config.model import Config
from kschedd.errors import KscheddError

CHANGES_KEPT: Final = 100


@attrs.frozen
class ChangedValue:
    path: str
    before: Annotated[Any, "null where there is no value"]
    after: Annotated[Any, "null where there is no value"]


@attrs.frozen(eq=False)
class ConfigChange:
    number: int
    at_s: float
    what: str
    before: Config
    after: Config

    @property
    def values(self) -> list[ChangedValue]:
        old = {one.path: one.value for one in values(self.before)}
        new = {one.path: one.value for one in values(self.after)}
        return [
            ChangedValue(path, old.get(path), new.get(path))
            for path in (*old, *(path for path in new if path not in old))
            if old.get(path) != new.get(path)
        ]


@attrs.define(eq=False)
class NothingToUndo(KscheddError, rpc_code="conflict"):
    """No configuration change left to undo."""

    def __str__(self) -> str:
        return "the configuration is as at the start: there is no change to undo"


@attrs.define(eq=False)
class ConfigChanges:
    made: deque[ConfigChange] = attrs.field(factory=lambda: deque(maxlen=CHANGES_KEPT))
    count: int = 0

    @property
    def latest(self) -> ConfigChange:
        """The latest change. Raises NothingToUndo."""
        if not self.made:
            raise NothingToUndo()
        return self.made[-1]
