"""Users, with name and groups as in Kubernetes' authentication, and the callers that represent them.

By default, every authenticated client has full access, with two exceptions: users of the group READ_ONLY may only read,
and Roles and bindings authorize impersonated users. With `--authorization-mode RBAC`, they authorize all users.
"""

from typing import Final

import attrs

READ_ONLY: Final = "kschedd:read-only"
"""Group, in a token file or a client certificate's O, of users that may not change anything."""
READ_VERBS: Final = frozenset(("get", "list", "watch"))
"""Kubernetes verbs that change nothing."""
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
MASTERS: Final = "system:masters"
NODES: Final = "system:nodes"
SERVICE_ACCOUNT: Final = "system:serviceaccount:"
ANONYMOUS: Final = "system:anonymous"


@attrs.frozen
class User:
    """A user. `judged` is true if RBAC objects decide about the user's requests."""

    name: str = "system:admin"
    groups: tuple[str, ...] = (MASTERS, AUTHENTICATED)
    impersonated: bool = False  # true if another user makes the request in this user's name
    uid: str = ""
    by: str = ""  # the user who impersonates this user
    by_groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    judged: bool = False

    @property
    def read_only(self) -> bool:
        return READ_ONLY in self.groups

    def under_rbac(self) -> "User":
        """Return the user, whose requests RBAC objects judge unless the user is in system:masters or system:nodes.

        The admission plugin NodeRestriction restricts kubelets.
        """
        return self if MASTERS in self.groups or NODES in self.groups else attrs.evolve(self, judged=True)


ANYBODY: Final = User("system:admin")


def groups_of_service_account(name: str) -> tuple[str, ...]:
    """Return the groups of a ServiceAccount's user `system:serviceaccount:NAMESPACE:NAME`; () for other users."""
    namespace, colon, account = name.removeprefix(SERVICE_ACCOUNT).partition(":")
    if not name.startswith(SERVICE_ACCOUNT) or not colon or not namespace or not account or ":" in account:
        return ()
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


def all_groups(name: str, groups: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the groups of an impersonated user: these groups, or those of its ServiceAccount, and the implied ones."""
    groups = groups or groups_of_service_account(name)
    if name == ANONYMOUS:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    return groups if {AUTHENTICATED, UNAUTHENTICATED}.intersection(groups) else (*groups, AUTHENTICATED)


def user_of_service_account(name: str) -> User:
    """Return the user of a ServiceAccount; `name` is `system:serviceaccount:NAMESPACE:NAME`."""
    return User(name, (*groups_of_service_account(name), AUTHENTICATED))


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
