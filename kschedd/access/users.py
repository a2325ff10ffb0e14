"""Who asks: a user with groups, as Kubernetes' authentication has them, and where the request comes from.

There are no roles. Whoever is let in may do everything, but for users of the group READ_ONLY, who may read, and users
in whose name somebody else asks, who may do what their groups may.
"""

from typing import Final

import attrs

READ_ONLY: Final = "kschedd:read-only"
"""The group, of a token file or of a client certificate's O, whose users change nothing."""
READ_VERBS: Final = frozenset(("get", "list", "watch"))
"""Kubernetes' verbs that change nothing."""
AUTHENTICATED: Final = "system:authenticated"
_TRUSTED: Final = frozenset(("system:masters", "system:nodes"))


@attrs.frozen
class User:
    name: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters", AUTHENTICATED)
    impersonated: bool = False  # somebody else asks in this user's name
    uid: str = ""
    by: str = ""  # whoever asks in this user's name
    by_groups: tuple[str, ...] = ()

    @property
    def read_only(self) -> bool:
        return READ_ONLY in self.groups

    @property
    def may_do_everything(self) -> bool:
        """Whoever is let in may, unless it is read-only; one in whose name somebody asks, as a system:masters, or as a
        kubelet: no roles.

        What a kubelet may not do of this is for the admission plugin NodeRestriction to say.
        """
        return not self.read_only and (not self.impersonated or not _TRUSTED.isdisjoint(self.groups))


ANYBODY: Final = User("system:admin")


@attrs.frozen
class Caller:
    """A user at one end of a connection.

    `process` and `uid` are what the system says of a Unix socket's peer, 0 and None where it does not; `address` is
    that of a peer on the network.
    """

    user: User = ANYBODY
    process: int = 0
    uid: int | None = None
    address: str = ""

    @property
    def shown(self) -> str:
        """For logs."""
        if self.address:
            return f"{self.user.name} from {self.address}"
        return f"pid {self.process}, uid {self.uid}" if self.process else ""
