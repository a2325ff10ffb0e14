"""Address of a webhook: its URL, or an address in the endpoints of its Service.

Pods are simulated, so no process listens on their addresses. An endpoint with another address was written by somebody
who runs the webhook.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from kschedd.api.objects import Object
from kschedd.store.admission_plugins.attributes import Classes

Raw = Mapping[str, Any]
_HTTPS: Final = 443
_SERVICE_NAME: Final = "kubernetes.io/service-name"


@attrs.frozen
class WebhookAddress:
    url: str
    address: str  # "" if the Service has only simulated pods
    host: str
    path: str
    missing: str = ""  # the reason why there is no address
    cluster_ip: str = ""  # cluster IP of the Service, with its port


def address_of(client: Raw, cluster: Classes) -> WebhookAddress:
    """Return the address for a clientConfig."""
    if client.get("url"):
        url = urlsplit(str(client["url"]))
        host = url.hostname or ""
        shown = f"[{host}]" if ":" in host else host
        return WebhookAddress(str(client["url"]), f"{shown}:{url.port or _HTTPS}", host, url.path)
    service = client.get("service") or {}
    namespace, name = str(service.get("namespace") or ""), str(service.get("name") or "")
    port, path = int(service.get("port") or _HTTPS), str(service.get("path") or "/")
    host = f"{name}.{namespace}.svc"
    url_text = f"https://{host}:{port}{path}"
    found = cluster.find("Service", namespace, name)
    if found is None:
        return WebhookAddress(url_text, "", host, path, f'service "{name}" not found')
    port_of = next((each for each in found.spec.get("ports") or () if each.get("port") == port), None)
    if port_of is None:
        return WebhookAddress(url_text, "", host, path, f'no service port {port} found for service "{name}"')
    simulated = {
        each.status.get("podIP") for space in _pods(cluster, namespace) for each in space if each.status.get("podIP")
    }
    port_name = str(port_of.get("name") or "")
    for address, number in _endpoints(cluster, namespace, name, port_name):
        if address not in simulated:
            shown = f"[{address}]" if ":" in address else address
            return WebhookAddress(url_text, f"{shown}:{number}", host, path)
    own = str(found.spec.get("clusterIP") or "")
    shown = f"[{own}]" if ":" in own else own
    return WebhookAddress(url_text, "", host, path, cluster_ip=f"{shown}:{port}" if own not in ("", "None") else "")


def _pods(cluster: Classes, namespace: str) -> Iterator[list[Object]]:
    yield list(cluster.list("Pod", namespace))


def _endpoints(cluster: Classes, namespace: str, name: str, port: str) -> Iterator[tuple[str, int]]:
    """Yield the addresses and port numbers of a Service's endpoints."""
    for each in cluster.list("EndpointSlice", namespace):
        if each.labels.get(_SERVICE_NAME) == name:
            number = _number(each.raw.get("ports"), port)
            for endpoint in each.raw.get("endpoints") or ():
                if number and not endpoint.get("targetRef"):
                    yield from ((str(address), number) for address in endpoint.get("addresses") or ())
    found = cluster.find("Endpoints", namespace, name)
    for subset in (found.raw.get("subsets") or ()) if found is not None else ():
        number = _number(subset.get("ports"), port)
        for address in subset.get("addresses") or ():
            if number and not address.get("targetRef"):
                yield str(address.get("ip")), number


def _number(ports: Any, name: str) -> int:
    listed = list(ports or ())
    found = next((each for each in listed if (each.get("name") or "") == name), None)
    return int((found or {}).get("port") or 0)


def certificates_of(client: Raw) -> str:
    """Return the caBundle as PEM; "" without one."""
    bundle = client.get("caBundle")
    if not bundle:
        return ""
    try:
        return base64.b64decode(str(bundle)).decode("ascii", "replace")
    except (binascii.Error, ValueError):
        return str(bundle)
