"""Tokens of ServiceAccounts, as `kubectl create token` asks for: signed here, and known again until they run out.

Owns: a key that lives as long as the daemon.
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
        """A JSON Web Token of this account, good until then (seconds since the epoch)."""
        head = _encoded(json.dumps({"alg": "HS256", "typ": "JWT"}, separators=(",", ":")).encode())
        claims = {"sub": f"system:serviceaccount:{namespace}:{name}", "exp": int(until)}
        signed = f"{head}.{_encoded(json.dumps(claims, separators=(',', ':')).encode())}"
        return f"{signed}.{self._signature(signed)}"

    def user_of(self, token: str) -> str | None:
        """Whose token it is; None where it is not one of ours or has run out."""
        signed, _, signature = token.rpartition(".")
        if not signed or not hmac.compare_digest(signature.encode(), self._signature(signed).encode()):
            return None
        body = signed.partition(".")[2]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return str(claims["sub"]) if claims["exp"] > self._now() else None

    def _signature(self, signed: str) -> str:
        return _encoded(hmac.new(self._key, signed.encode(), hashlib.sha256).digest())
