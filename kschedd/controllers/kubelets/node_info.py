"""The system information and the addresses that a kubelet reports when it registers its node.

The machine is simulated: its identifiers are computed from the node's UID, and its addresses are the first free
addresses of 172.16.0.0/12 and fd00:172:16::/108 after a position that is computed from the UID. Source: Kubernetes
v1.37, pkg/kubelet/nodestatus/setters.go, api/core/v1/types.go (NodeSystemInfo), pkg/util/node/node.go
(GetNodeHostIPs).
"""

from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from kschedd.api.nodes import Node
from kschedd.controllers.kubelets.node_labels import ARCH, OS

_HOSTS: Final = 1 << 20  # addresses of each network
_FIRST: Final = {"IPv4": IPv4Address("172.16.0.0"), "IPv6": IPv6Address("fd00:172:16::")}
_KUBELET_PORT: Final = 10250


def internal_ips(node: Node) -> Sequence[str]:
    """Return the node's first InternalIP of each IP family, in the order of the node's addresses."""
    listed = node.status.get("addresses") or ()
    found = [address for each in listed if each.get("type") == "InternalIP" and (address := each.get("address"))]
    if len(found) < 2:
        return found
    return [found[0], *[address for address in found if (":" in address) != (":" in found[0])][:1]]


def reported(node: Node, version: str, families: Iterable[str], taken: Collection[str]) -> dict[str, Any]:
    """Return the status fields that complete those in the node's manifest.

    `version` is the kubelet's, and `families` are the IP families of the cluster. Addresses in `taken` are in use.
    """
    found: dict[str, Any] = {}
    if not node.status.get("addresses"):
        found["addresses"] = [
            *({"type": "InternalIP", "address": _free_address(node.uid, each, taken)} for each in families),
            {"type": "Hostname", "address": node.name},
        ]
    stated = {field: text for field, text in (node.status.get("nodeInfo") or {}).items() if text}
    found["nodeInfo"] = {**_system_info(node, version), **stated}
    if not ((node.status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port"):
        found["daemonEndpoints"] = {"kubeletEndpoint": {"Port": _KUBELET_PORT}}
    return found


def _free_address(uid: str, family: str, taken: Collection[str]) -> str:
    start = int.from_bytes(blake2b(uid.encode(), digest_size=8).digest())
    for step in range(_HOSTS):
        host = (start + step) % _HOSTS
        address = str(_FIRST[family] + host)
        if host & 255 not in (0, 255) and address not in taken:
            return address
    raise AssertionError("a cluster is expected to have fewer nodes than the network has addresses")


def _system_info(node: Node, version: str) -> dict[str, str]:
    def identifier(of: str) -> str:
        text = blake2b(f"{of} {node.uid}".encode(), digest_size=16).hexdigest()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    return {
        "machineID": identifier("machine").replace("-", ""),
        "systemUUID": identifier("system"),
        "bootID": identifier("boot"),
        "kernelVersion": "6.12.0-kschedd",
        "osImage": "Simulated Linux (kschedd)",
        "containerRuntimeVersion": "containerd://2.1.0",
        "kubeletVersion": f"v{version}",
        "kubeProxyVersion": "",
        "operatingSystem": node.labels.get(OS) or "linux",
        "architecture": node.labels.get(ARCH) or "amd64",
    }
