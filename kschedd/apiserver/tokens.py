"""Tokens of ServiceAccounts, requested with `kubectl create token`: signed by the daemon, and valid until they expire.

Owns: a key that exists as long as the daemon runs.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable

import attrs


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@attrs.define(eq=False)
class Tokens:
    _now: Callable[[], float]
    _key: bytes = attrs.field(factory=lambda: secrets.token_bytes(32), repr=False)

    def issue(self, namespace: str, name: str, until: float) -> str:
        """Return a JSON Web Token for this account, valid until `until` (seconds since the epoch)."""
        head = _encoded(json.dumps({"alg": "HS256", "typ": "JWT"}, separators=(",", ":")).encode())
        claims = {"sub": f"system:serviceaccount:{namespace}:{name}", "exp": int(until)}
        signed = f"{head}.{_encoded(json.dumps(claims, separators=(',', ':')).encode())}"
        return f"{signed}.{self._signature(signed)}"

    def user_of(self, token: str) -> str | None:
        """Return the owner of a token; None if the token was not issued by this daemon or has expired."""
        signed, _, signature = token.rpartition(".")
        if not signed or not hmac.compare_digest(signature.encode(), self._signature(signed).encode()):
            return None
        body = signed.partition(".")[2]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return str(claims["sub"]) if claims["exp"] > self._now() else None

    def _signature(self, signed: str) -> str:
        return _encoded(hmac.new(self._key, signed.encode(), hashlib.sha256).digest())
