"""The objects that pods of every namespace use: the ServiceAccount `default`, and the ConfigMap kube-root-ca.crt.

Both objects are created with the namespace, and created again if they are deleted. The ConfigMap contains the
certificate of the API server; without TLS it contains a certificate that nothing uses, because pods mount it.

Owns nothing. Source: Kubernetes v1.37, controller/serviceaccount/serviceaccounts_controller.go,
controller/certificates/rootcacertpublisher.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from kschedd.controllers.running.controller import View
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import WatchEvent
from kschedd.store.writes import Create, Write, patch_of

ACCOUNT: Final = "default"
CONFIG_MAP: Final = "kube-root-ca.crt"
PLACEHOLDER: Final = """\
-----BEGIN CERTIFICATE-----
MIIBgTCCASagAwIBAgIBATAKBggqhkjOPQQDAjAeMRwwGgYDVQQDDBNrc2NoZWRk
LXBsYWNlaG9sZGVyMCAXDTI2MTEyOTE2MzM1NFoYDzIxMjYxMTA1MTYzMzU0WjAe
MRwwGgYDVQQDDBNrc2NoZWRkLXBsYWNlaG9sZGVyMFkwEwYHKoZIzj0CAQYIKoZI
zj0DAQcDQgAE3zPn1eY0uYdz9GpPM20dXtcRfZf6RXnRddu+uKiziDP0Ab9A4/a9
xAFpZIz3aqM3pTuZPmKZCjjwU59pTClSd6NTMFEwHQYDVR0OBBYEFM+MEavYc1Ja
NZOer4OifknSLn1CMB8GA1UdIwQYMBaAFM+MEavYc1JaNZOer4OifknSLn1CMA8G
A1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAJJbiSd1Hghynzte2zI/
tYFAtQTjkMxJEXzdwierliyYAiEA3oGnWLg93Wck+XIC8JSmP+SEp/Pv2rCrEN+t
hMVfCPs=
-----END CERTIFICATE-----
"""
"""A self-signed certificate whose key was not kept."""

_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]*-----END CERTIFICATE-----")
_ANNOTATION: Final = "kubernetes.io/description"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def certificates_in(text: str) -> str:
    """Return the certificates of a PEM file, without keys."""
    return "".join(f"{block}\n" for block in _CERTIFICATE.findall(text))


class ServiceAccounts:
    name: Final = "service-accounts"
    kinds: Final = frozenset(("Namespace", "ServiceAccount", "ConfigMap"))
    next_deadline: Final = None

    def __init__(self, certificate: str = PLACEHOLDER) -> None:
        self._data = {"ca.crt": certificate}
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    def concerns(self, event: WatchEvent) -> bool:
        new = event.new
        return new.kind == "Namespace" or new.name == (ACCOUNT if new.kind == "ServiceAccount" else CONFIG_MAP)

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        names = {event.new.namespace or event.new.name: None for event in events}
        return self.faults.each("Namespace", [("", name) for name in names], partial(self._look_at, view), now)

    def _look_at(self, view: View, _: str, namespace: str, now: float) -> list[Write]:
        found = view.find("Namespace", "", namespace)
        if found is None or found.deleting:
            return []
        writes: list[Write] = []
        if view.find("ServiceAccount", namespace, ACCOUNT) is None:
            meta = {"name": ACCOUNT, "namespace": namespace}
            writes.append(Create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}))
        config_map = view.find("ConfigMap", namespace, CONFIG_MAP)
        described = {"annotations": {_ANNOTATION: _DESCRIPTION}}
        if config_map is None:
            named = {"name": CONFIG_MAP, "namespace": namespace, **described}
            writes.append(Create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": self._data}))
        elif config_map.raw.get("data") != self._data or not config_map.annotations.get(_ANNOTATION):
            others = {name: None for name in config_map.raw.get("data") or () if name not in self._data}
            writes.append(patch_of(config_map, {"metadata": described, "data": {**others, **self._data}}))
        return writes

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes: the object exists, or the namespace is terminating."""
        return []
