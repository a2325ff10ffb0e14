"""Users, with name and groups as in Kubernetes' authentication, and the callers that represent them.

There is no RBAC. Every authenticated client has full access, with two exceptions: users of the group READ_ONLY may only
read, and impersonated users may do what their groups allow.
"""

from typing import Final

import attrs

READ_ONLY: Final = "kschedd:read-only"
"""Group, in a token file or a client certificate's O, of users that may not change anything."""
READ_VERBS: Final = frozenset(("get", "list", "watch"))
"""Kubernetes verbs that change nothing."""
AUTHENTICATED: Final = "system:authenticated"
_TRUSTED: Final = frozenset(("system:masters", "system:nodes"))


@attrs.frozen
class User:
    name: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters", AUTHENTICATED)
    impersonated: bool = False  # true if another user makes the request in this user's name
    uid: str = ""
    by: str = ""  # the user who impersonates this user
    by_groups: tuple[str, ...] = ()

    @property
    def read_only(self) -> bool:
        return READ_ONLY in self.groups

    @property
    def may_do_everything(self) -> bool:
        """True unless the user is read-only, or is impersonated and in neither system:masters nor system:nodes.

        The admission plugin NodeRestriction restricts kubelets further.
        """
        return not self.read_only and (not self.impersonated or not _TRUSTED.isdisjoint(self.groups))


ANYBODY: Final = User("system:admin")


@attrs.frozen
class Caller:
    """A user at the other end of a connection.

    `process` and `uid` are those of a Unix socket's peer, as the system reports them (0 and None if it does not);
    `address` is that of a network peer.
    """

    user: User = ANYBODY
    process: int = 0
    uid: int | None = None
    address: str = ""

    @property
    def shown(self) -> str:
        """Text for logs."""
        if self.address:
            return f"{self.user.name} from {self.address}"
        return f"pid {self.process}, uid {self.uid}" if self.process else ""
