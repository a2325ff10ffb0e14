"""Secrets of type kubernetes.io/service-account-token: each receives a token of its ServiceAccount.

A Secret also receives the certificate of the API server and the name of the namespace. A Secret is deleted if its
account does not exist.

Owns nothing. Source: Kubernetes v1.37, controller/serviceaccount/tokens_controller.go.
"""

import base64
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from kschedd.api.objects import Object
from kschedd.controllers.running.controller import View
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import WatchEvent
from kschedd.store.writes import Delete, Write, patch_of

_TYPE: Final = "kubernetes.io/service-account-token"
_NAME: Final = "kubernetes.io/service-account.name"
_UID: Final = "kubernetes.io/service-account.uid"


class AccountTokens:
    """`sign` returns a token for an account and the name of the Secret that contains the token."""

    name: Final = "service-account-tokens"
    kinds: Final = frozenset(("Secret", "ServiceAccount"))
    next_deadline: Final = None

    def __init__(self, certificate: str, sign: Callable[[Object, str], str]) -> None:
        self._certificate = _encoded(certificate)
        self._sign = sign
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    def concerns(self, event: WatchEvent) -> bool:
        return event.new.kind == "ServiceAccount" or event.new.raw.get("type") == _TYPE

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        found: dict[tuple[str, str], None] = {}
        for event in events:
            new = event.new
            if new.kind == "Secret":
                found[new.namespace, new.name] = None
                continue
            for secret in view.list("Secret", new.namespace):
                if secret.annotations.get(_NAME) == new.name:
                    found[secret.namespace, secret.name] = None
        return self.faults.each("Secret", list(found), partial(self._look_at, view), now)

    def _look_at(self, view: View, namespace: str, name: str, now: float) -> list[Write]:
        secret = view.find("Secret", namespace, name)
        if secret is None or secret.deleting or secret.raw.get("type") != _TYPE:
            return []
        account = view.find("ServiceAccount", namespace, secret.annotations.get(_NAME, ""))
        if account is None or secret.annotations.get(_UID) not in (None, "", account.uid):
            return [Delete("Secret", namespace, name, secret.uid)]
        data = secret.raw.get("data") or {}
        wanted = {} if data.get("ca.crt") == self._certificate else {"ca.crt": self._certificate}
        if not data.get("namespace"):
            wanted["namespace"] = _encoded(namespace)
        if not data.get("token"):
            wanted["token"] = _encoded(self._sign(account, name))
        if not wanted:
            return []
        annotations = {_NAME: account.name, _UID: account.uid}
        return [patch_of(secret, {"metadata": {"annotations": annotations}, "data": wanted})]

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes: the Secret was changed or deleted, or the namespace is terminating."""
        return []


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
