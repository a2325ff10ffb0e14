"""Validation of Services.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidateService).
The functions require Services that match the schema and have their defaults.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, duplicate, forbidden, invalid, required, unsupported
from kschedd.api.selecting.names import between, dns_label, dns_subdomain, port_name, qualified_name
from kschedd.api.text.ip_addresses import cidr_family, ip_address
from kschedd.registry.networking.service_addresses import (
    BAD_ADDRESS,
    EXTERNAL_NAME,
    NOT_CHANGED,
    headless,
    validate_addresses,
)
from kschedd.registry.networking.services import externally_accessible, needs_health_check_port
from kschedd.registry.pods.security import is_address
from kschedd.registry.validation_meta import validate_labels

Raw = dict[str, Any]
Faults = list[FieldError]

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_AFFINITIES: Final = ("ClientIP", "None")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_AFFINITY_S: Final = 86_400
PORT_RANGE: Final = between(1, 65535)
_BAD_RANGE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def validate_service(service: Raw, faults: Faults) -> None:
    spec, annotations = service.get("spec") or {}, (service.get("metadata") or {}).get("annotations") or {}
    kind = spec.get("type") or ""
    ports = spec.get("ports") or ()
    if _HINTS in annotations and annotations.get(_MODE, annotations[_HINTS]) != annotations[_HINTS]:
        why = f"must match annotations[{_HINTS}] when both are specified"
        faults.append(invalid(f"metadata.annotations[{_MODE}]", annotations[_MODE], why))
    if not ports and not headless(spec) and kind != EXTERNAL_NAME:
        faults.append(required("spec.ports"))
    if kind in ("LoadBalancer", "NodePort") and headless(spec):
        faults.append(invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services"))
    elif kind == EXTERNAL_NAME:
        _validate_external_name(spec, faults)
    _validate_ports(ports, faults)
    validate_labels(spec.get("selector") or {}, "spec.selector", faults)
    _validate_affinity(spec, faults)
    faults += validate_addresses(spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        faults += external_address(address, f"spec.externalIPs[{index}]")
    if not kind:
        faults.append(required("spec.type"))
    elif kind not in _TYPES:
        faults.append(unsupported("spec.type", kind, _TYPES))
    _validate_port_pairs(ports, kind, faults)
    _validate_balancer(spec, annotations, faults)
    _validate_traffic(spec, faults)


_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_MODE: Final = "service.kubernetes.io/topology-mode"
_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"


def _validate_external_name(spec: Raw, faults: Faults) -> None:
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            faults.append(forbidden(f"spec.{field}", "may not be set for ExternalName services"))
    name = (spec.get("externalName") or "").removesuffix(".")
    if name:
        faults += [invalid("spec.externalName", name, why) for why in dns_subdomain(name)]
    else:
        faults.append(required("spec.externalName"))


def _validate_ports(ports: Any, faults: Faults) -> None:
    names = set()
    for index, port in enumerate(ports):
        here = f"spec.ports[{index}]"
        name = port.get("name") or ""
        if not name and len(ports) > 1:
            faults.append(required(f"{here}.name"))
        elif name:
            faults += [invalid(f"{here}.name", name, why) for why in dns_label(name)]
            if name in names:
                faults.append(duplicate(f"{here}.name", name))
            names.add(name)
        number = port.get("port") or 0
        if not 1 <= number <= 65535:
            faults.append(invalid(f"{here}.port", number, PORT_RANGE))
        if not (protocol := port.get("protocol") or ""):
            faults.append(required(f"{here}.protocol"))
        elif protocol not in _PROTOCOLS:
            faults.append(unsupported(f"{here}.protocol", protocol, _PROTOCOLS))
        target = port.get("targetPort", 0)
        if isinstance(target, str):
            faults += [invalid(f"{here}.targetPort", target, why) for why in port_name(target)]
        elif not 1 <= target <= 65535:
            faults.append(invalid(f"{here}.targetPort", target, PORT_RANGE))
        if (application := port.get("appProtocol")) is not None:
            faults += [invalid(f"{here}.appProtocol", application, why) for why in qualified_name(application)]


def _validate_affinity(spec: Raw, faults: Faults) -> None:
    affinity = spec.get("sessionAffinity") or ""
    config = spec.get("sessionAffinityConfig")
    if not affinity:
        faults.append(required("spec.sessionAffinity"))
    elif affinity not in _AFFINITIES:
        faults.append(unsupported("spec.sessionAffinity", affinity, _AFFINITIES))
    elif affinity == "ClientIP":
        here = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        timeout = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        if timeout is not None and not 0 < timeout <= _LONGEST_AFFINITY_S:
            faults.append(invalid(here, timeout, f"must be greater than 0 and less than {_LONGEST_AFFINITY_S}"))
    elif config is not None:
        faults.append(forbidden("spec.sessionAffinityConfig", "must not be set when session affinity is None"))


def external_address(address: str, path: str) -> Faults:
    if (ip := ip_address(address)) is None:
        return [invalid(path, address, BAD_ADDRESS)]
    if ip.is_unspecified:
        return [invalid(path, address, f"may not be unspecified ({address})")]
    if ip.is_loopback:
        return [invalid(path, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)")]
    if ip.is_link_local:
        return [invalid(path, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")]
    if ip.is_multicast and (ip.version == 6 or str(ip).startswith("224.0.0.")):
        return [invalid(path, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")]
    return []


def _validate_port_pairs(ports: Any, kind: str, faults: Faults) -> None:
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                why = "may not be used when `type` is 'ClusterIP'"
                faults.append(forbidden(f"spec.ports[{index}].nodePort", why))
    seen: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        if given := port.get("nodePort"):
            if (port.get("protocol"), given) in seen:
                faults.append(duplicate(f"spec.ports[{index}].nodePort", given))
            seen.add((port.get("protocol"), given))
    pairs: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        pair = (port.get("protocol"), port.get("port"))
        if pair in pairs:
            shown = {"Name": "", "Protocol": pair[0], "AppProtocol": None, "Port": pair[1]}
            faults.append(duplicate(f"spec.ports[{index}]", {**shown, "TargetPort": 0, "NodePort": 0}))
        pairs.add(pair)


def _validate_balancer(spec: Raw, annotations: Raw, faults: Faults) -> None:
    kind = spec.get("type")
    only = "may only be used when `type` is 'LoadBalancer'"
    if ranges := spec.get("loadBalancerSourceRanges"):
        if kind != "LoadBalancer":
            faults.append(forbidden("spec.LoadBalancerSourceRanges", only))
        for index, text in enumerate(ranges):
            _validate_range(text.strip(), f"spec.LoadBalancerSourceRanges[{index}]", faults)
    elif (text := annotations.get(_RANGES)) is not None:
        here = f"metadata.annotations[{_RANGES}]"
        if kind != "LoadBalancer":
            faults.append(forbidden(here, only))
        for each in text.strip().split(",") if text.strip() else ():
            _validate_range(each.strip(), here, faults)
    if spec.get("allocateLoadBalancerNodePorts") is not None and kind != "LoadBalancer":
        faults.append(forbidden("spec.allocateLoadBalancerNodePorts", only))
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        faults.append(required("allocateLoadBalancerNodePorts"))
    if (name := spec.get("loadBalancerClass")) is not None:
        if kind != "LoadBalancer":
            faults.append(forbidden("spec.loadBalancerClass", only))
        else:
            faults += [invalid("spec.loadBalancerClass", name, why) for why in qualified_name(name)]


def _validate_range(text: str, path: str, faults: Faults) -> None:
    if not cidr_family(text):
        faults.append(invalid(path, text, _BAD_RANGE))


def validate_service_changes(old: Mapping[str, Any], new: Mapping[str, Any], faults: Faults) -> None:
    """Append errors for changes of a load balancer's immutable fields."""
    if old.get("type") == new.get("type") == "LoadBalancer":
        name = new.get("loadBalancerClass")
        if old.get("loadBalancerClass") != name:
            faults.append(invalid("spec.loadBalancerClass", name, NOT_CHANGED))
    if new.get("type") == "LoadBalancer":
        name = new.get("loadBalancerClass")
        faults += [invalid("spec.loadBalancerClass", name, why) for why in qualified_name(name or "x")]
    elif new.get("loadBalancerClass") is not None:
        why = "may only be used when `type` is 'LoadBalancer'"
        faults.append(forbidden("spec.loadBalancerClass", why))
    if needs_health_check_port(old) and needs_health_check_port(new):
        if old.get("healthCheckNodePort") != new.get("healthCheckNodePort"):
            faults.append(forbidden("spec.healthCheckNodePort", "field is immutable"))


_IP_MODES: Final = ("Proxy", "VIP")


def validate_balancer_status(service: Mapping[str, Any], faults: Faults) -> None:
    """Append the errors in the load balancer status of a Service."""
    stated = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    if stated and (service.get("spec") or {}).get("type") != "LoadBalancer":
        why = "may only be used when `spec.type` is 'LoadBalancer'"
        faults.append(forbidden("status.loadBalancer.ingress", why))
        return
    for index, ingress in enumerate(stated):
        here = f"status.loadBalancer.ingress[{index}]"
        address, mode, host = ingress.get("ip") or "", ingress.get("ipMode"), ingress.get("hostname") or ""
        if address and not is_address(address):
            faults.append(invalid(f"{here}.ip", address, BAD_ADDRESS))
        if mode is None:
            if address:
                faults.append(required(f"{here}.ipMode", "must be specified when `ip` is set"))
        elif not address:
            faults.append(forbidden(f"{here}.ipMode", "may not be specified when `ip` is not set"))
        elif mode not in _IP_MODES:
            faults.append(unsupported(f"{here}.ipMode", mode, _IP_MODES))
        if host:
            faults += [invalid(f"{here}.hostname", host, why) for why in dns_subdomain(host)]
            if is_address(host):
                faults.append(invalid(f"{here}.hostname", host, "must be a DNS name, not an IP address"))


def _validate_traffic(spec: Raw, faults: Faults) -> None:
    kind = spec.get("type")
    policy = spec.get("externalTrafficPolicy") or ""
    if not externally_accessible(spec):
        if policy:
            why = "may only be set for externally-accessible services"
            faults.append(invalid("spec.externalTrafficPolicy", policy, why))
    elif not policy:
        faults.append(required("spec.externalTrafficPolicy"))
    elif policy not in ("Cluster", "Local"):
        faults.append(unsupported("spec.externalTrafficPolicy", policy, ("Cluster", "Local")))
    port = spec.get("healthCheckNodePort") or 0
    if not needs_health_check_port(spec):
        if port:
            why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            faults.append(invalid("spec.healthCheckNodePort", port, why))
    elif port and not 1 <= port <= 65535:
        faults.append(invalid("spec.healthCheckNodePort", port, PORT_RANGE))
    internal = spec.get("internalTrafficPolicy")
    if internal is None:
        if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
            faults.append(required("spec.internalTrafficPolicy"))
    elif internal not in ("Cluster", "Local"):
        faults.append(unsupported("spec.internalTrafficPolicy", internal, ("Cluster", "Local")))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        faults.append(unsupported("spec.trafficDistribution", distribution, _DISTRIBUTIONS))
