"""Tokens of ServiceAccounts, signed by the daemon.

A token that was requested with `kubectl create token` is valid until it expires. A token in a Secret of type
kubernetes.io/service-account-token is valid as long as the Secret contains the token. A token is also invalid if its
account, or the object to which it is bound, was deleted or created again.

Owns: the signing key, which is stored beside the journal.

Source: Kubernetes v1.37, pkg/serviceaccount/claims.go, pkg/serviceaccount/legacy.go.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.access.errors import AccessError
from kschedd.access.tokens import read_secret
from kschedd.access.users import User, user_of_service_account
from kschedd.api.objects import Object, Raw
from kschedd.api.text.times import seconds
from kschedd.store.cluster_api import ClusterReader

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
API_AUDIENCES: Final = (ISSUER,)
_BOUND: Final = {"serviceaccount": "ServiceAccount", "secret": "Secret", "pod": "Pod", "node": "Node"}  # kind by claim
_OLD_ISSUER: Final = "kubernetes/serviceaccount"  # of tokens in Secrets
_OLD: Final = "kubernetes.io/serviceaccount/"
_EXTRA: Final = "authentication.kubernetes.io/"
_LEEWAY_S: Final = 60.0  # a token of an object that is being deleted stays valid for this time
_KEY: Final = re.compile(r"[0-9a-f]{64}")


def signing_key(journal: Path | None) -> bytes:
    """Return the key, which is stored beside the journal; a new key if there is none. Raises AccessError."""
    key = secrets.token_bytes(32)
    if journal is None:
        return key
    file = journal.with_name("service-accounts.key")
    if file.exists():
        text = read_secret(file, "--state")
        if not _KEY.fullmatch(text):
            raise AccessError(f"{file}: is not a signing key; remove the file to invalidate all tokens", "--state")
        return bytes.fromhex(text)
    part = file.with_suffix(".part")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as out:
            out.write(key.hex())
            out.flush()
            os.fsync(out.fileno())
        part.replace(file)
    except OSError as error:
        raise AccessError(f"{file}: cannot be written: {error.strerror}", "--state") from error
    return key


@attrs.frozen
class Claims:
    """The content of a token whose signature is valid."""

    raw: Mapping[str, Any]
    stored: str = ""  # the token, if a Secret must contain the token

    @property
    def audiences(self) -> Sequence[str]:
        return tuple(self.raw["aud"])

    @property
    def user(self) -> User:
        bound = self.raw["kubernetes.io"]
        extra = [("credential-id", f"JTI={self.raw['jti']}")] if "jti" in self.raw else []
        for claim in ("node", "pod"):
            extra += [(f"{claim}-{field}", value) for field, value in bound.get(claim, {}).items()]
        named = tuple((_EXTRA + key, (value,)) for key, value in extra)
        return attrs.evolve(user_of_service_account(self.raw["sub"]), uid=bound["serviceaccount"]["uid"], extra=named)

    def is_bound(self, store: ClusterReader, now: float) -> bool:
        """Return whether the account and the object to which the token is bound both exist."""
        bound = self.raw["kubernetes.io"]
        for claim, kind in _BOUND.items():
            ref = bound.get(claim)
            if ref is None or (claim == "node" and "pod" in bound):  # the check of the pod suffices
                continue
            found = store.find(kind, "" if kind == "Node" else bound["namespace"], ref["name"])
            if found is None or found.metadata.get("uid") != ref.get("uid", found.metadata.get("uid")):
                return False
            if kind == "Secret" and self.stored and not _contains(found, self.stored):
                return False
            deleted = found.metadata.get("deletionTimestamp")
            if deleted and seconds(deleted) + _LEEWAY_S < now:
                return False
        return True


def _contains(secret: Object, token: str) -> bool:
    stored = (secret.raw.get("data") or {}).get("token", "")
    return hmac.compare_digest(stored.encode(), base64.b64encode(token.encode()))


def _claims_of_secret(raw: Mapping[str, Any], token: str) -> Claims:
    """Return the claims of a token in a Secret, in the form of the claims of other tokens."""
    claim = {key.removeprefix(_OLD): value for key, value in raw.items()}
    account = {"name": claim["service-account.name"], "uid": claim["service-account.uid"]}
    bound = {"namespace": claim["namespace"], "secret": {"name": claim["secret.name"]}, "serviceaccount": account}
    return Claims({"aud": API_AUDIENCES, "sub": claim["sub"], "kubernetes.io": bound}, token)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@attrs.define(eq=False)
class Tokens:
    _now: Callable[[], float]
    _key: bytes = attrs.field(repr=False)

    def issue(self, account: Object, lifetime_s: int, audiences: Sequence[str], bound: Mapping[str, Raw]) -> str:
        """Return a JSON Web Token for this account.

        `bound` are references (name and uid) to the objects to which the token is bound, by claim.
        """
        issued = int(self._now())
        claims = {
            "aud": list(audiences),
            "exp": issued + lifetime_s,
            "iat": issued,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {"namespace": account.namespace, **bound, "serviceaccount": reference(account)},
            "nbf": issued,
            "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
        }
        return self._signed(claims)

    def for_secret(self, account: Object, secret: str) -> str:
        """Return the token of this account in a Secret; the token does not expire."""
        claims = {
            "iss": _OLD_ISSUER,
            f"{_OLD}namespace": account.namespace,
            f"{_OLD}secret.name": secret,
            f"{_OLD}service-account.name": account.name,
            f"{_OLD}service-account.uid": account.metadata.get("uid", ""),
            "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
        }
        return self._signed(claims)

    def _signed(self, claims: Mapping[str, Any]) -> str:
        head = _encoded(json.dumps({"alg": "HS256", "typ": "JWT"}, separators=(",", ":")).encode())
        signed = f"{head}.{_encoded(json.dumps(claims, separators=(',', ':')).encode())}"
        return f"{signed}.{self._signature(signed)}"

    def claims_of(self, token: str, audiences: Collection[str] = API_AUDIENCES) -> Claims | None:
        """Return the content of a token; None if the token was not issued here, has expired or has no such audience."""
        signed, _, signature = token.rpartition(".")
        if not signed or not hmac.compare_digest(signature.encode(), self._signature(signed).encode()):
            return None
        body = signed.partition(".")[2]
        raw = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        old = raw["iss"] == _OLD_ISSUER
        claims = _claims_of_secret(raw, token) if old else Claims(raw)
        in_time = old or raw["nbf"] <= self._now() < raw["exp"]
        return claims if in_time and not set(audiences).isdisjoint(claims.audiences) else None

    def user_of(self, token: str) -> User | None:
        """Return the user of a token for this API."""
        claims = self.claims_of(token)
        return None if claims is None else claims.user

    def _signature(self, signed: str) -> str:
        return _encoded(hmac.new(self._key, signed.encode(), hashlib.sha256).digest())


def reference(obj: Object) -> Raw:
    return {"name": obj.name, "uid": obj.metadata.get("uid", "")}
