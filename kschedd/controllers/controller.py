"""What a controller is: a rule that looks at what changed and says what should be written.

A controller is plain and synchronous. It may remember what it has to look at again and when; the cluster it reads
through a `View`, and it learns of what came of its writes as of everything else, by the events.

What it does with each object it does through its `faults`: one object that cannot be handled must not keep the others
from being.
"""

from collections.abc import Sequence
from typing import Protocol

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.log import WatchEvent
from kschedd.store.writes import Write


class View(Protocol):
    """What a controller may look at. `kschedd.store.store.Store` is one."""

    def find(self, kind: str, namespace: str, name: str) -> Object | None: ...
    def list(self, kind: str, namespace: str | None = None) -> Sequence[Object]: ...
    def owned_by(self, uid: str) -> Sequence[Object]: ...
    def pods_on(self, node_name: str) -> Sequence[Pod]: ...
    def in_namespace(self, namespace: str) -> Sequence[Object]: ...


class Controller(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def faults(self) -> FaultLedger[list[Write]]:
        """The objects it could not handle. Its `retry` is called when the time for it has come."""

    @property
    def kinds(self) -> frozenset[str] | None:
        """The kinds whose events it wants; None for all."""

    @property
    def wake_at(self) -> float | None:
        """When (seconds) it wants to be called again though nothing happened; None for never."""

    def react(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        """What to write now, after these events (there may be none: then a time it asked for has come)."""

    def refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """What to write instead, after one of its writes was refused."""
