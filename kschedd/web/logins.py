"""Logins of browsers: one-time codes, and the sessions for which browsers exchange them.

`kschedd web` requests a code over the socket, in the name of its own user, and prints a link that contains the code.
The browser that opens the link gets a session of this user. A code is valid once, for `CODE_S`. A session ends with the
daemon, or when it has not been used for `SESSION_S`.

Owns: codes and sessions, at most `MOST` of each; the oldest are dropped first.
"""

import secrets
from collections.abc import Callable
from time import monotonic
from typing import Final

import attrs

from kschedd.access.users import User

CODE_S: Final = 120.0
SESSION_S: Final = 12 * 3600.0
MOST: Final = 64


@attrs.define
class _Login:
    user: User
    valid_until_s: float


@attrs.define(eq=False)
class Logins:
    """`now` returns seconds of a clock that never goes back."""

    now: Callable[[], float] = monotonic
    _codes: dict[str, _Login] = attrs.field(factory=dict, init=False)
    _sessions: dict[str, _Login] = attrs.field(factory=dict, init=False)

    def code_for(self, user: User) -> str:
        """Return a new one-time code for this user."""
        return self._add(self._codes, user, CODE_S)

    def exchange(self, code: str) -> str | None:
        """Return the id of a new session for the user of the code; None if the code is unknown, used or too old."""
        login = self._codes.pop(code, None)
        if login is None or login.valid_until_s < self.now():
            return None
        return self._add(self._sessions, login.user, SESSION_S)

    def user_of(self, session: str) -> User | None:
        """Return the user of a session, and extend the session; None if there is no such session."""
        login = self._sessions.get(session)
        if login is None or login.valid_until_s < self.now():
            self._sessions.pop(session, None)
            return None
        login.valid_until_s = self.now() + SESSION_S
        return login.user

    def _add(self, logins: dict[str, _Login], user: User, valid_s: float) -> str:
        while len(logins) >= MOST:
            del logins[next(iter(logins))]
        key = secrets.token_urlsafe(32)
        logins[key] = _Login(user, self.now() + valid_s)
        return key
