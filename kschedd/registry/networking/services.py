"""Services: their defaults, and the allocated addresses and ports that an update keeps.

`kschedd.store.creating.service_addresses` allocates addresses and ports.

Source: Kubernetes v1.34, pkg/apis/core/v1/defaults.go (SetDefaults_Service), pkg/registry/core/service/{strategy.go,
storage/storage.go, storage/alloc.go} (normalizeClusterIPs, patchAllocatedValues, dropTypeDependentFields).
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.schema import type_named
from kschedd.registry.networking.service_addresses import needs_cluster_ip
from kschedd.registry.same import same_in

Raw = dict[str, Any]
Old = Mapping[str, Any]

_WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
_AFFINITY_TIMEOUT_S: Final = 10_800


def default_service(service: Raw) -> None:
    spec = dict(service.get("spec") or {})
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = dict((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {})
        client.setdefault("timeoutSeconds", _AFFINITY_TIMEOUT_S)
        spec["sessionAffinityConfig"] = {"clientIP": client}
    spec.setdefault("type", "ClusterIP")
    if spec.get("ports"):
        spec["ports"] = [_port(port) for port in spec["ports"]]
    if externally_accessible(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] in ("ClusterIP", *_WITH_NODE_PORTS):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    service["spec"] = spec
    balancer = (service.get("status") or {}).get("loadBalancer") or {}
    if spec["type"] == "LoadBalancer" and balancer.get("ingress"):
        ingress = [{"ipMode": "VIP", **each} if each.get("ip") else each for each in balancer["ingress"]]
        service["status"] = {**service["status"], "loadBalancer": {**balancer, "ingress": ingress}}


def _port(port: Raw) -> Raw:
    new = {"protocol": "TCP", **port}
    if not new.get("targetPort"):
        new["targetPort"] = new.get("port") or 0
    return new


def externally_accessible(spec: Old) -> bool:
    return spec.get("type") in _WITH_NODE_PORTS or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def has_node_ports(spec: Old) -> bool:
    return spec.get("type") in _WITH_NODE_PORTS


def wants_node_ports(spec: Old) -> bool:
    """Return whether ports without a node port get one."""
    return has_node_ports(spec) and spec.get("allocateLoadBalancerNodePorts") is not False


def needs_health_check_port(spec: Old) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def update_service(new: Raw, old: Old) -> None:
    spec, before = dict(new["spec"]), old.get("spec") or {}
    _normalize_addresses(spec, before)
    _patch_allocated(spec, before)
    _drop_type_dependent(spec, before)
    new["spec"] = spec
    status = new.get("status") or {}
    if spec.get("type") != "LoadBalancer" and status.get("loadBalancer"):
        new["status"] = {**status, "loadBalancer": {}}


def _normalize_addresses(spec: Raw, before: Old) -> None:
    """Set clusterIPs from clusterIP if a client without support for clusterIPs changed only clusterIP."""
    one, was = spec.get("clusterIP") or "", before.get("clusterIP") or ""
    if one == was:
        return
    unchanged = same_in(spec, before, "clusterIPs", type_named("ServiceSpec"))
    if not was and one and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [one]
    elif was and not one and unchanged:
        spec.pop("clusterIPs", None)
    elif was and one and (unchanged or not spec.get("clusterIPs")):
        spec["clusterIPs"] = [one]


def _patch_allocated(spec: Raw, before: Old) -> None:
    if needs_cluster_ip(before) and needs_cluster_ip(spec):
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and spec.get("clusterIP") == before.get("clusterIP") and before.get("clusterIPs"):
            spec["clusterIPs"] = before["clusterIPs"]
    if has_node_ports(before) and has_node_ports(spec):
        used = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
        known = {port.get("name") or "": port.get("nodePort") for port in before.get("ports") or ()}
        ports = []
        for port in spec.get("ports") or ():
            given = known.get(port.get("name") or "")
            missing = not port.get("nodePort") and given and given not in used
            ports.append({**port, "nodePort": given} if missing else port)
        spec["ports"] = ports
    if needs_health_check_port(before) and needs_health_check_port(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before.get("healthCheckNodePort")


def _drop_type_dependent(spec: Raw, before: Old) -> None:
    """Drop fields that only the Service's previous type uses, unless the request changes them."""

    def drop(*fields: str) -> None:
        if all(same_in(spec, before, field, type_named("ServiceSpec")) for field in fields):
            for field in fields:
                spec.pop(field, None)

    if needs_cluster_ip(before) and not needs_cluster_ip(spec):
        drop("clusterIP", "clusterIPs")
        drop("ipFamilies")
        drop("ipFamilyPolicy")
    if has_node_ports(before) and not has_node_ports(spec):
        ports, were = spec.get("ports") or [], before.get("ports") or []
        if {port.get("nodePort") for port in ports} <= {port.get("nodePort") for port in were} | {None}:
            spec["ports"] = [{name: value for name, value in port.items() if name != "nodePort"} for port in ports]
    if needs_health_check_port(before) and not needs_health_check_port(spec):
        drop("healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        drop("allocateLoadBalancerNodePorts")
        drop("loadBalancerClass")
    if externally_accessible(before) and not externally_accessible(spec):
        drop("externalTrafficPolicy")
