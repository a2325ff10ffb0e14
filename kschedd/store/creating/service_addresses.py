"""Cluster IPs and node ports of Services, allocated when a Service is created or changed.

The lowest free value is allocated, so that repeated runs get the same values. The first part of each range is reserved
for Services that specify their value, such as the cluster's DNS. Services that do not specify a value get a value of
the first part only if all other values of the range are in use. Source: Kubernetes v1.34,
pkg/registry/core/service/storage/alloc.go, ipallocator, portallocator (calculateRangeOffset); kube-apiserver's
--service-node-port-range.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.schemas.fields import invalid
from kschedd.registry.networking.service_addresses import headless, needs_cluster_ip
from kschedd.registry.networking.services import has_node_ports, needs_health_check_port, wants_node_ports
from kschedd.store.errors import Invalid, RangeFull

Raw = dict[str, Any]
Old = Mapping[str, Any]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

SERVICE_RANGE: Final = "10.0.0.0/16"  # kube-apiserver uses the first 256 addresses by default
NODE_PORTS: Final = range(30_000, 32_768)
_LEAST_RESERVED: Final = 16


@lru_cache
def networks_of(ranges: str) -> Mapping[str, Network]:
    """Return the networks of cluster IPs by IP family, the default family first; `ranges` are separated by commas.

    Raises ValueError if the text is not a list of at most two networks of different families.
    """
    networks: dict[str, Network] = {}
    for text in ranges.split(","):
        network = ipaddress.ip_network(text)
        family = f"IPv{network.version}"
        if family in networks:
            raise ValueError(f"more than one range of {family} addresses")
        networks[family] = network
    return networks


def allocate(
    service: Raw, before: Old | None, others: Iterable[Object], networks: Mapping[str, Network], dry_run: bool
) -> Raw:
    """Return the Service with all missing addresses and ports allocated.

    `before` is the spec of an updated Service, and `others` are all other Services. Raises Invalid for a value that is
    in use or outside the range. In a dry run, kube-apiserver does not check the ports that the Service specifies.
    """
    spec = dict(service["spec"])
    name = service["metadata"].get("name") or ""
    specs = [other.spec for other in others]
    if needs_cluster_ip(spec) and not headless(spec):
        _allocate_addresses(name, spec, before or {}, specs, networks, dry_run)
    if has_node_ports(spec):
        _allocate_ports(name, spec, specs, dry_run)
    if needs_health_check_port(spec) and not spec.get("healthCheckNodePort"):
        used = {*_used_ports(specs), *_used_ports([spec])}
        spec["healthCheckNodePort"] = _free_port(used)
    return {**service, "spec": spec}


def _allocate_addresses(
    name: str, spec: Raw, before: Old, specs: list[Old], networks: Mapping[str, Network], dry_run: bool
) -> None:
    """Allocate one address for each IP family. Addresses that the Service had before are not checked again."""
    used = {address for other in specs for address in other.get("clusterIPs") or ()}
    families = spec["ipFamilies"]
    addresses = list(spec.get("clusterIPs") or ())
    addresses += [""] * (len(families) - len(addresses))
    kept = before.get("clusterIPs") or ()
    for index, (family, given) in enumerate(zip(families, addresses, strict=True)):
        if given and given in kept:
            continue
        network = networks[family]
        if not given:
            addresses[index] = str(network[0]) if dry_run else _free_address(used, network)
            continue
        why = ""
        if given in used:
            why = "provided IP is already allocated"
        elif ipaddress.ip_address(given) not in network:
            why = f"provided IP is not in the valid range. The range of valid IPs is {network}"
        if why:
            why = f"failed to allocate IP {given}: {why}"
            raise Invalid("Service", name, (invalid("spec.clusterIPs", addresses, why),))
    spec["clusterIP"], spec["clusterIPs"] = addresses[0], addresses


def _free_address(used: Iterable[str], network: Network) -> str:
    usable = range(2, network.num_addresses - 1)  # without the addresses of the network, the API server and broadcasts
    numbers = {_number(address) for address in used}  # cached, because creating an address object is slow
    version, first = network.version, int(network.network_address)
    for offset in _dynamic_first(usable, _reserved(network.num_addresses, 16, 256)):
        if (version, first + offset) not in numbers:
            return str(network[offset])
    raise RangeFull("serviceIP")


@lru_cache(maxsize=1 << 16)
def _number(address: str) -> tuple[int, int]:
    """Return the IP version and the address as a number, or (0, 0) for text that is not an address, such as "None"."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return 0, 0
    return parsed.version, int(parsed)


def _reserved(size: int, step: int, most: int) -> int:
    """Return the number of values at the start of the range that are reserved for Services that specify their value."""
    return 0 if size <= _LEAST_RESERVED else min(max(size // step, _LEAST_RESERVED), most)


def _dynamic_first(numbers: range, reserved: int) -> Iterator[int]:
    return chain(numbers[reserved:], numbers[:reserved])


def _used_ports(specs: Iterable[Mapping[str, Any]]) -> set[int]:
    used = {port["nodePort"] for spec in specs for port in spec.get("ports") or () if port.get("nodePort")}
    return used | {spec["healthCheckNodePort"] for spec in specs if spec.get("healthCheckNodePort")}


def _free_port(used: set[int]) -> int:
    for port in _dynamic_first(NODE_PORTS, _reserved(len(NODE_PORTS), 32, 128)):
        if port not in used:
            return port
    raise RangeFull("nodePort")


def _allocate_ports(name: str, spec: Raw, specs: list[Mapping[str, Any]], dry_run: bool) -> None:
    """Allocate node ports; ports that differ only in their protocol share one node port."""
    used = _used_ports(specs)
    stated = [port for port in spec.get("ports") or () if port.get("nodePort")]
    by_number: dict[int, int] = {port.get("port") or 0: port["nodePort"] for port in stated}
    mine = {*by_number.values()}
    ports: list[Raw] = []
    for index, port in enumerate(spec.get("ports") or ()):
        given = port.get("nodePort")
        here = f"spec.ports[{index}].nodePort"
        if given:
            if given in used and not dry_run:
                raise Invalid("Service", name, (invalid(here, given, "provided port is already allocated"),))
            if given not in NODE_PORTS and not dry_run:
                ends = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
                why = f"provided port is not in the valid range. The range of valid ports is {ends}"
                raise Invalid("Service", name, (invalid(here, given, why),))
        elif wants_node_ports(spec):
            given = by_number.get(port.get("port") or 0)
            taken = {each.get("protocol") for each in ports if each.get("nodePort") == given}
            if given is None or port.get("protocol") in taken:
                given = _free_port(used | mine)
            mine.add(given)
            by_number.setdefault(port.get("port") or 0, given)
        ports.append({**port, "nodePort": given} if given else port)
    spec["ports"] = ports
