"""The backends of a Service: addresses, ports and readiness of the pods that its selector matches.

Plain functions of a Service, its pods and their nodes. Source: Kubernetes v1.37, endpointslice/utils.go,
endpointslice/util/controller_utils.go, controller/endpoint/endpoints_controller.go, api/v1/endpoints/util.go.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.ip_addresses import ip_address, ip_family
from kschedd.controllers.workloads.pod_state import ready

AddressType = Literal["IPv4", "IPv6"]
Raw = Mapping[str, Any]
HEADLESS: Final = "service.kubernetes.io/headless"
ZONE: Final = "topology.kubernetes.io/zone"
MOST_ADDRESSES: Final = 1000  # of an Endpoints object
_PORT_FIELDS: Final = ("name", "port", "protocol", "appProtocol")


def has_own_endpoints(service: Object) -> bool:
    """Return whether the controllers write the endpoints of the Service: it selects pods."""
    return bool(service.spec.get("selector")) and service.spec.get("type") != "ExternalName"


def is_headless(service: Object) -> bool:
    return (service.spec.get("clusterIP") or "None") == "None"


def address_types(service: Object) -> list[AddressType]:
    """Return the IP families of the Service, the primary family first."""
    families: list[AddressType] = [each for each in service.spec.get("ipFamilies") or () if each in ("IPv4", "IPv6")]
    if families:
        return families
    own = service.spec.get("clusterIP") or "None"
    if own != "None":
        return ["IPv6" if ":" in own else "IPv4"]
    return ["IPv4", "IPv6"]


def is_backend(pod: Pod, *, terminating: bool) -> bool:
    """Return whether the pod belongs to the endpoints; a terminating pod only with `terminating`."""
    if pod.finished or not (pod.status.get("podIPs") or pod.status.get("podIP")):
        return False
    return terminating or not pod.deletion_timestamp


def addresses(pod: Pod, family: str) -> list[str]:
    listed = [str(each.get("ip") or "") for each in pod.status.get("podIPs") or ()]
    parsed = [address for text in listed if (address := ip_address(text)) is not None]
    return [str(address) for address in parsed if ip_family(address) == (6 if family == "IPv6" else 4)]


def facts(pod: Pod) -> tuple[Any, ...]:
    """Return the state of a pod on which endpoints depend."""
    status = pod.status
    return bool(pod.deletion_timestamp), pod.finished, ready(pod), status.get("podIPs"), status.get("podIP")


class PodParts:
    """The endpoints and addresses of pods, which all Services and all versions of their objects share.

    Without sharing, each version of the objects of each Service would contain copies for all its pods. Owns a map of
    the parts by UID of the pod; an entry ends when no Service selects the pod, and is replaced when the facts change.
    Copies of the controller share the parts, because a part depends only on the facts about its pod.
    """

    def __init__(self) -> None:
        # UID -> pod, its facts and node, and its parts by the properties of the Service and the node
        self._known: dict[str, tuple[Pod, tuple[Any, ...], dict[tuple[Any, ...], dict[str, Any] | None]]] = {}

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)

    def endpoint(self, service: Object, pod: Pod, node: Object | None, family: str) -> dict[str, Any] | None:
        """Return the pod's endpoint in an EndpointSlice of this family; None if it has no address of the family."""
        published = bool(service.spec.get("publishNotReadyAddresses"))
        zone = node.labels.get(ZONE) if isinstance(node, Node) else None
        key = ("endpoint", family, published, zone, hostname(service, pod))
        parts = self._of(pod)
        if key not in parts:
            parts[key] = _endpoint(pod, addresses(pod, family), published, zone, key[4])
        return parts[key]

    def address(self, service: Object, pod: Pod, family: str) -> dict[str, Any] | None:
        """Return the pod's address in an Endpoints object; None if it has no address of the family."""
        key = ("address", family, hostname(service, pod))
        parts = self._of(pod)
        if key not in parts:
            parts[key] = _address(pod, addresses(pod, family), key[2])
        return parts[key]

    def _of(self, pod: Pod) -> dict[tuple[Any, ...], dict[str, Any] | None]:
        known = self._known.get(pod.uid)
        if known is not None and known[0] is pod:
            return known[2]
        now = (*facts(pod), pod.node_name)
        parts = known[2] if known is not None and known[1] == now else {}
        self._known[pod.uid] = (pod, now, parts)
        return parts


def ports(service: Object, pod: Pod) -> list[dict[str, Any]]:
    """Return the ports of the Service that the pod has, with the pod's port numbers."""
    found = []
    for each in service.spec.get("ports") or ():
        number = _port_number(pod, each)
        if number is not None:
            port = {"name": each.get("name") or "", "port": number, "protocol": each.get("protocol") or "TCP"}
            if each.get("appProtocol"):
                port["appProtocol"] = each["appProtocol"]
            found.append(port)
    return found


def _port_number(pod: Pod, port: Raw) -> int | None:
    target = port.get("targetPort") or port.get("port")
    if not isinstance(target, str):
        return target
    spec = pod.pod_spec.raw
    sidecars = (each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always")
    for container in (*(spec.get("containers") or ()), *sidecars):
        for each in container.get("ports") or ():
            if each.get("name") == target and (each.get("protocol") or "TCP") == (port.get("protocol") or "TCP"):
                return int(each["containerPort"])
    return None


def _pod_reference(pod: Pod) -> dict[str, Any]:
    return {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}


def hostname(service: Object, pod: Pod) -> str:
    spec = pod.pod_spec.raw
    return str(spec.get("hostname") or "") if spec.get("subdomain") == service.name else ""


def _endpoint(
    pod: Pod, listed: Sequence[str], published: bool, zone: str | None, its_hostname: str
) -> dict[str, Any] | None:
    if not listed:
        return None
    serving, terminating = ready(pod), bool(pod.deletion_timestamp)
    found: dict[str, Any] = {
        "addresses": list(listed),
        "conditions": {
            "ready": published or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": _pod_reference(pod),
    }
    if pod.node_name:
        found["nodeName"] = pod.node_name
    if zone:
        found["zone"] = zone
    if its_hostname:
        found["hostname"] = its_hostname
    return found


def _address(pod: Pod, listed: Sequence[str], its_hostname: str) -> dict[str, Any] | None:
    if not listed:
        return None
    found = {"ip": listed[0], "targetRef": _pod_reference(pod)}
    if pod.node_name:
        found["nodeName"] = pod.node_name
    if its_hostname:
        found["hostname"] = its_hostname
    return found


# --- the subsets of an Endpoints object ------------------------------------------------------------------------------


def subsets(service: Object, pods: Iterable[Pod], parts: PodParts) -> list[dict[str, Any]]:
    """Return the subsets: addresses with the same ports and the same readiness on each port share a subset."""
    family = address_types(service)[0]
    published = bool(service.spec.get("publishNotReadyAddresses"))
    by_address: dict[tuple[str, str], dict[str, Any]] = {}  # IP and uid
    by_port: dict[tuple[Any, ...], dict[tuple[str, str], bool]] = {}  # port -> address -> readiness
    for pod in pods:
        address = parts.address(service, pod, family) if is_backend(pod, terminating=published) else None
        if address is None:
            continue
        key = (address["ip"], pod.uid)
        by_address[key] = address
        for port in _subset_ports(service, pod):
            by_port.setdefault(port, {})[key] = published or ready(pod)
    by_addresses: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for port, states in by_port.items():
        by_addresses.setdefault(tuple(sorted(states.items())), []).append(port)
    return [_subset(states, listed, by_address) for states, listed in sorted(by_addresses.items())]


def _subset_ports(service: Object, pod: Pod) -> Iterator[tuple[Any, ...]]:
    """Yield the pod's ports; () for a headless Service without ports."""
    if not service.spec.get("ports"):
        if is_headless(service):
            yield ()
        return
    for port in ports(service, pod):
        yield tuple(port.get(field) for field in _PORT_FIELDS)


def _subset(
    states: Iterable[tuple[tuple[str, str], bool]],
    listed: Iterable[tuple[Any, ...]],
    by_address: Mapping[tuple[str, str], dict[str, Any]],
) -> dict[str, Any]:
    here: dict[str, Any] = {}
    for key, is_ready in states:
        here.setdefault("addresses" if is_ready else "notReadyAddresses", []).append(by_address[key])
    named = [{f: value for f, value in zip(_PORT_FIELDS, port, strict=True) if value} for port in listed if port]
    return {**here, "ports": named} if named else here


def truncated(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return the subsets cut to MOST_ADDRESSES addresses; None if they have no more addresses.

    Ready addresses precede addresses that are not ready. Each subset keeps a number of addresses in proportion to its
    size.
    """
    counts = {field: sum(len(each.get(field) or ()) for each in found) for field in ("addresses", "notReadyAddresses")}
    if sum(counts.values()) <= MOST_ADDRESSES:
        return None
    cut = "addresses" if counts["addresses"] > MOST_ADDRESSES else "notReadyAddresses"
    most = MOST_ADDRESSES if cut == "addresses" else MOST_ADDRESSES - counts["addresses"]
    left, kept = most, []
    for each in found:
        share = min(left, -(-len(each.get(cut) or ()) * most // counts[cut]))
        left -= share
        gone = ("addresses", "notReadyAddresses") if cut == "addresses" else ("notReadyAddresses",)
        whole = {field: value for field, value in each.items() if field not in gone}
        kept.append({**whole, cut: each[cut][:share]} if share else whole)
    return kept
