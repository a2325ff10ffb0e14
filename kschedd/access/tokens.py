"""Static tokens: users by token, read from kube-apiserver's token file: lines `TOKEN,USER,UID,"GROUP1,GROUP2"`.

Only digests of the tokens are stored. A token is compared with every stored digest in constant time, so that the
duration reveals nothing. A file that other users may read or write is rejected. Raises: AccessError.
"""

import csv
import hashlib
import hmac
import io
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

import attrs

from kschedd.access.errors import AccessError
from kschedd.access.users import AUTHENTICATED, User

_MOST_BYTES: Final = 1 << 20


@attrs.frozen(eq=False)
class StaticTokens:
    """Users by the SHA-256 digest of their tokens."""

    _users: Mapping[bytes, User] = attrs.field(factory=dict, repr=False)

    @classmethod
    def of(cls, users: Mapping[str, User]) -> Self:
        """Return the tokens of these users; the tokens are given in the form in which clients send them."""
        return cls({_digest(token): user for token, user in users.items()})

    def __len__(self) -> int:
        return len(self._users)

    @property
    def users(self) -> tuple[User, ...]:
        return tuple(self._users.values())

    def user_of(self, token: str) -> User | None:
        digest, found = _digest(token), None
        for known, user in self._users.items():  # compare with all tokens, so that the duration is constant
            if hmac.compare_digest(known, digest):
                found = user
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def read_tokens(file: Path, flag: str = "--http") -> StaticTokens:
    """Return the tokens of a file. Raises AccessError with the line number."""
    found: dict[str, User] = {}
    reader = csv.reader(io.StringIO(read_secret(file, flag), newline=""))
    try:
        for row in reader:
            if not row or row[0].startswith("#"):
                continue
            where = f"{file}:{reader.line_num}"
            token, name = row[0].strip(), row[1].strip() if len(row) > 1 else ""
            if len(row) < 3 or not token or not name:
                raise AccessError(f"{where}: a line must be TOKEN,USER,UID[,GROUPS]", flag)
            if not is_token(token):
                raise AccessError(f"{where}: a token must be printable ASCII without spaces", flag)
            if token in found:
                raise AccessError(f"{where}: duplicate token", flag)
            groups = [group.strip() for group in (row[3] if len(row) > 3 else "").split(",")]
            found[token] = User(name, (*filter(None, groups), AUTHENTICATED), uid=row[2].strip())
    except csv.Error as wrong:
        raise AccessError(f"{file}:{reader.line_num}: cannot be read: {wrong}", flag) from wrong
    if not found:
        raise AccessError(f"{file}: contains no token", flag)
    return StaticTokens.of(found)


def is_token(text: str) -> bool:
    return text.isascii() and text.isprintable() and bool(text) and " " not in text


def read_secret(file: Path, flag: str) -> str:
    """Return the text of a file that no other user can read; it must belong to this user or to root.

    Raises AccessError.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO must not block
        with open(descriptor, "rb") as opened:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise AccessError(f"{file}: is not a regular file", flag)
            if found.st_mode & 0o077:
                mode = f"{stat.S_IMODE(found.st_mode):04o}"
                raise AccessError(f"{file}: must not be accessible to other users (mode {mode}); run chmod 0600", flag)
            if found.st_uid not in (0, os.geteuid()):
                raise AccessError(f"{file}: must belong to you or root, not to user {found.st_uid}", flag)
            data = opened.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise AccessError(f"{file}: is larger than {_MOST_BYTES} bytes", flag)
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        why = getattr(wrong, "strerror", None) or wrong
        raise AccessError(f"{file}: cannot be read: {why}", flag) from wrong
