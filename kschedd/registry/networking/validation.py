"""Validation of Ingresses, IngressClasses and NetworkPolicies.

Source: Kubernetes v1.34, pkg/apis/networking/validation/validation.go.
The functions require objects that match the schema and have their defaults, and append errors to `faults`.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, forbidden, invalid, required, unsupported
from kschedd.api.selecting.names import (
    between,
    dns1035_label,
    dns_label,
    dns_subdomain,
    does_not_match,
    path_segment,
    port_name,
    wildcard_subdomain,
)
from kschedd.api.text.ip_addresses import cidr_family, ip_address
from kschedd.registry.validation_selectors import validate_label_selector

Raw = dict[str, Any]
Faults = list[FieldError]

_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
_PATH_TYPES: Final = ("Exact", "ImplementationSpecific", "Prefix")
_NOT_IN_PATHS: Final = ("//", "/./", "/../", "%2f", "%2F")
_NOT_AT_THE_END: Final = ("/..", "/.")
_SCOPES: Final = ("Cluster", "Namespace")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_POLICY_TYPES: Final = ("Ingress", "Egress")
_PORT_RANGE: Final = between(1, 65535)
_BAD_RANGE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_NOT_AN_ADDRESS: Final = "must be a DNS name, not an IP address"
_LONGEST_CONTROLLER: Final = 250  # bytes
_HTTP_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


# -- Ingresses --------------------------------------------------------------------------------------------------------


def validate_new_ingress(ingress: Raw, faults: Faults) -> None:
    """Append the errors of a new Ingress."""
    validate_ingress(ingress, faults)
    annotations = (ingress.get("metadata") or {}).get("annotations") or {}
    name = (ingress.get("spec") or {}).get("ingressClassName")
    if name is not None and annotations.get(_CLASS_ANNOTATION, name) != name:
        why = "must match `ingressClassName` when both are specified"
        faults.append(invalid(f"annotations.{_CLASS_ANNOTATION}", annotations[_CLASS_ANNOTATION], why))


def validate_ingress(ingress: Raw, faults: Faults) -> None:
    """Append the errors of a new or changed Ingress."""
    spec = ingress.get("spec") or {}
    rules, backend = spec.get("rules") or (), spec.get("defaultBackend")
    if not rules and backend is None:
        why = "either `defaultBackend` or `rules` must be specified"
        faults.append(invalid("spec", spec.get("rules"), why))
    if backend is not None:
        _validate_backend(backend, "spec.defaultBackend", faults)
    for index, rule in enumerate(rules):
        here, host = f"spec.rules[{index}]", rule.get("host") or ""
        if host:
            if ip_address(host) is not None:
                faults.append(invalid(f"{here}.host", host, _NOT_AN_ADDRESS))
            _validate_host(host, f"{here}.host", faults)
        if (http := rule.get("http")) is not None:
            _validate_paths(http, f"{here}.http.paths", faults)
    for index, tls in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(tls.get("hosts") or ()):
            _validate_host(host, f"spec.tls[{index}].hosts[{number}]", faults)
        if secret := tls.get("secretName"):
            faults += [invalid(f"spec.tls[{index}].secretName", secret, why) for why in dns_subdomain(secret)]
    name = spec.get("ingressClassName")
    if name is not None:
        faults += [invalid("spec.ingressClassName", name, why) for why in dns_subdomain(name)]


def _validate_host(host: str, path: str, faults: Faults) -> None:
    check = wildcard_subdomain if "*" in host else dns_subdomain
    faults += [invalid(path, host, why) for why in check(host)]


def _validate_paths(http: Raw, path: str, faults: Faults) -> None:
    paths = http.get("paths") or ()
    if not paths:
        faults.append(required(path))
    for index, each in enumerate(paths):
        here = f"{path}[{index}]"
        kind, text = each.get("pathType"), each.get("path") or ""
        if kind is None:
            faults.append(required(f"{here}.pathType", "pathType must be specified"))
            continue
        if kind not in _PATH_TYPES:
            faults.append(unsupported(f"{here}.pathType", kind, _PATH_TYPES))
        elif not text.startswith("/") and (text or kind != "ImplementationSpecific"):
            faults.append(invalid(f"{here}.path", text, "must be an absolute path"))
        if kind in ("Exact", "Prefix"):
            wrong = [f"must not contain '{part}'" for part in _NOT_IN_PATHS if part in text]
            wrong += [f"cannot end with '{part}'" for part in _NOT_AT_THE_END if text.endswith(part)]
            faults += [invalid(f"{here}.path", text, why) for why in wrong]
        _validate_backend(each.get("backend") or {}, f"{here}.backend", faults)


def _validate_backend(backend: Raw, path: str, faults: Faults) -> None:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        faults.append(invalid(path, "", "cannot set both resource and service backends"))
    elif resource is not None:
        _validate_reference(resource, f"{path}.resource", faults)
    elif service is not None:
        _validate_service_backend(service, path, faults)
    else:
        faults.append(invalid(path, "", "resource or service backend is required"))


def _validate_service_backend(service: Raw, path: str, faults: Faults) -> None:
    name, port = service.get("name") or "", service.get("port") or {}
    if not name:
        faults.append(required(f"{path}.service.name"))
    else:
        faults += [invalid(f"{path}.service.name", name, why) for why in dns1035_label(name)]
    called, number = port.get("name") or "", port.get("number") or 0
    if called and number:
        faults.append(invalid(path, "", "cannot set both port name & port number"))
    elif called:
        faults += [invalid(f"{path}.service.port.name", called, why) for why in port_name(called)]
    elif not number:
        faults.append(required(path, "port name or number is required"))
    elif not 1 <= number <= 65535:
        faults.append(invalid(f"{path}.service.port.number", number, _PORT_RANGE))


def _validate_reference(reference: Raw, path: str, faults: Faults) -> None:
    group = reference.get("apiGroup")
    if group is not None:
        faults += [invalid(f"{path}.apiGroup", group, why) for why in dns_subdomain(group)]
    for field in ("kind", "name"):
        text = reference.get(field) or ""
        if not text:
            faults.append(required(f"{path}.{field}"))
        faults += [invalid(f"{path}.{field}", text, why) for why in path_segment(text)]


def validate_ingress_status(ingress: Mapping[str, Any], faults: Faults) -> None:
    """Append the errors in the status of an Ingress."""
    balancer = (ingress.get("status") or {}).get("loadBalancer") or {}
    for index, each in enumerate(balancer.get("ingress") or ()):
        here = f"status.loadBalancer.ingress[{index}]"
        address, host = each.get("ip") or "", each.get("hostname") or ""
        if address and ip_address(address) is None:
            why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            faults.append(invalid(f"{here}.ip", address, why))
        if host:
            faults += [invalid(f"{here}.hostname", host, why) for why in dns_subdomain(host)]
            if ip_address(host) is not None:
                faults.append(invalid(f"{here}.hostname", host, _NOT_AN_ADDRESS))


def validate_ingress_class(item: Raw, faults: Faults) -> None:
    """Append the errors of an IngressClass."""
    spec = item.get("spec") or {}
    controller = spec.get("controller") or ""
    if not controller:
        faults.append(required("spec.controller"))
    else:
        if len(controller.encode()) > _LONGEST_CONTROLLER:
            why = f"Too long: may not be more than {_LONGEST_CONTROLLER} bytes"
            faults.append(FieldError("spec.controller", None, why))
        _validate_prefixed_path(controller, "spec.controller", faults)
    parameters = spec.get("parameters")
    if parameters is None:
        return
    here = "spec.parameters"
    _validate_reference(parameters, here, faults)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        faults.append(required(f"{here}.scope"))
    elif scope not in _SCOPES:
        faults.append(unsupported(f"{here}.scope", scope, _SCOPES))
    elif scope == "Cluster" and namespace is not None:
        faults.append(forbidden(f"{here}.namespace", "`parameters.scope` is set to 'Cluster'"))
    elif scope == "Namespace" and namespace is None:
        faults.append(required(f"{here}.namespace", "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Namespace":
        faults += [invalid(f"{here}.namespace", namespace, why) for why in dns_label(namespace)]


def _validate_prefixed_path(text: str, path: str, faults: Faults) -> None:
    host, _, rest = text.partition("/")
    if not host or not rest:
        faults.append(invalid(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")'))
        return
    faults += [invalid(path, host, why) for why in dns_subdomain(host)]
    if not re.fullmatch(_HTTP_PATH, rest, re.ASCII):
        faults.append(invalid(path, rest, does_not_match("Invalid path", _HTTP_PATH)))


# -- NetworkPolicies --------------------------------------------------------------------------------------------------


def validate_network_policy(policy: Raw, faults: Faults) -> None:
    """Append the errors of a NetworkPolicy."""
    spec = policy.get("spec") or {}
    validate_label_selector(spec.get("podSelector"), "spec.podSelector", faults)
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            here = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                _validate_policy_port(port, f"{here}.ports[{number}]", faults)
            for number, peer in enumerate(rule.get(peers) or ()):
                _validate_peer(peer, f"{here}.{peers}[{number}]", faults)
    types = spec.get("policyTypes") or ()
    if len(types) > len(_POLICY_TYPES):
        faults.append(invalid("spec.policyTypes", types, "may not specify more than two policyTypes"))
        return
    for index, kind in enumerate(types):
        if kind not in _POLICY_TYPES:
            faults.append(unsupported(f"spec.policyTypes[{index}]", kind, _POLICY_TYPES))


def _validate_policy_port(port: Raw, path: str, faults: Faults) -> None:
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in _PROTOCOLS:
        faults.append(unsupported(f"{path}.protocol", protocol, _PROTOCOLS))
    if isinstance(number, int):
        if not 1 <= number <= 65535:
            faults.append(invalid(f"{path}.port", number, _PORT_RANGE))
        if end is not None:
            if end < number:
                faults.append(invalid(f"{path}.endPort", number, "must be greater than or equal to `port`"))
            if not 1 <= end <= 65535:
                faults.append(invalid(f"{path}.endPort", end, _PORT_RANGE))
        return
    if end is not None:
        why = "not specified" if number is None else "non-numeric"
        faults.append(invalid(f"{path}.endPort", end, f"may not be specified when `port` is {why}"))
    if number is not None:
        faults += [invalid(f"{path}.port", number, why) for why in port_name(number)]


def _validate_peer(peer: Raw, path: str, faults: Faults) -> None:
    selectors = [field for field in ("podSelector", "namespaceSelector") if peer.get(field) is not None]
    for field in selectors:
        validate_label_selector(peer[field], f"{path}.{field}", faults)
    block = peer.get("ipBlock")
    if block is not None:
        _validate_block(block, f"{path}.ipBlock", faults)
        if selectors:
            faults.append(forbidden(path, "may not specify both ipBlock and another peer"))
    elif not selectors:
        faults.append(required(path, "must specify a peer"))


def _validate_block(block: Raw, path: str, faults: Faults) -> None:
    text = block.get("cidr") or ""
    if not text:
        faults.append(required(f"{path}.cidr"))
        return
    whole = _network(text)
    if whole is None:
        faults.append(invalid(f"{path}.cidr", text, _BAD_RANGE))
        return
    for index, part in enumerate(block.get("except") or ()):
        network = _network(part)
        if network is None:
            faults.append(invalid(f"{path}.except[{index}]", part, _BAD_RANGE))
        elif network.network_address not in whole or whole.prefixlen >= network.prefixlen:
            faults.append(invalid(f"{path}.except[{index}]", part, "must be a strict subset of `cidr`"))


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    if not cidr_family(text):
        return None
    start, _, bits = text.partition("/")
    address = ip_address(start)
    return ipaddress.ip_network(f"{address}/{int(bits)}", strict=False)


def fill_network_policy(new: Raw, *_: Any) -> None:
    """Set a missing pod selector to an empty one, which selects all pods; the Go field is not a pointer."""
    spec = new.get("spec") or {}
    if spec.get("podSelector") is None:
        new["spec"] = {**spec, "podSelector": {}}


def drop_topology(new: Raw, *_: Any) -> None:
    """Drop the topology field of v1beta1, which is read-only in v1."""
    endpoints = new.get("endpoints") or []
    if any("deprecatedTopology" in each for each in endpoints):
        kept = [{name: value for name, value in each.items() if name != "deprecatedTopology"} for each in endpoints]
        new["endpoints"] = kept
