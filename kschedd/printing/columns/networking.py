"""Cells of the tables of networking and access: Ingresses, endpoints, network policies, roles, certificates.

Source: Kubernetes v1.34, pkg/printers/internalversion/printers.go; kube-aggregator, registry/apiservice/etcd/etcd.go.
"""

from collections.abc import Mapping

from kschedd.printing.columns.ages import span
from kschedd.printing.columns.by_kind import Cell, Cells, Raw, RowContext, field, joined, spec, status
from kschedd.printing.columns.workloads import selector_text
from kschedd.printing.terminal.tables import NONE


def _ingress_hosts(ingress: Raw, around: RowContext) -> str:
    hosts = [str(rule["host"]) for rule in spec(ingress).get("rules") or () if rule.get("host")]
    return joined(hosts, 3, "*")


def _ingress_address(ingress: Raw, around: RowContext) -> str:
    points = (status(ingress).get("loadBalancer") or {}).get("ingress") or ()
    return joined((point.get("ip") or point.get("hostname") or "" for point in points), absent="")


def _api_server(raw: Raw, around: RowContext) -> str:
    served = spec(raw).get("service")
    return f"{served.get('namespace') or ''}/{served.get('name') or ''}" if served else "Local"


def _availability(raw: Raw, around: RowContext) -> str:
    found = next((each for each in status(raw).get("conditions") or () if each.get("type") == "Available"), None)
    if found is None:
        return "Unknown"
    available = str(found.get("status"))
    return available if available == "True" or not found.get("reason") else f"{available} ({found['reason']})"


def _subjects(kind: str) -> Cell:
    def cell(binding: Raw, around: RowContext) -> str:
        named = []
        for subject in binding.get("subjects") or ():
            if subject.get("kind") == kind:
                space = f"{subject.get('namespace')}/" if kind == "ServiceAccount" else ""
                named.append(f"{space}{subject.get('name', '')}")
        return ", ".join(named)

    return cell


def _role(binding: Raw, around: RowContext) -> str:
    role = binding.get("roleRef") or {}
    return f"{role.get('kind', '')}/{role.get('name', '')}"


def _endpoints(raw: Raw, around: RowContext) -> str:
    found = []
    for subset in raw.get("subsets") or ():
        addresses = [str(each.get("ip")) for each in subset.get("addresses") or ()]
        if not subset.get("ports"):  # a headless Service may have no ports
            found += addresses
        for port in subset.get("ports") or ():
            found += [f"[{ip}]:{port.get('port')}" if ":" in ip else f"{ip}:{port.get('port')}" for ip in addresses]
    return joined(found, 3, absent="" if raw.get("subsets") else NONE)


def _slice_ports(raw: Raw, around: RowContext) -> str:
    return joined((each.get("port", "*") for each in raw.get("ports") or ()), absent="<unset>")


def _slice_endpoints(raw: Raw, around: RowContext) -> str:
    found = (address for each in raw.get("endpoints") or () for address in each.get("addresses") or ())
    return joined(found, 3, "<unset>")


def _csr_duration(request: Raw, around: RowContext) -> str:
    seconds = spec(request).get("expirationSeconds")
    return NONE if seconds is None else span(seconds)


def _csr_condition(request: Raw, around: RowContext) -> str:
    held = {condition.get("type") for condition in status(request).get("conditions") or ()}
    word = "Denied" if "Denied" in held else "Approved" if "Approved" in held else "Pending"
    failed = ",Failed" if "Failed" in held else ""
    return word + failed + (",Issued" if status(request).get("certificate") else "")


_ROLES: Cells = {
    "Role": _role,
    "Users": _subjects("User"),
    "Groups": _subjects("Group"),
    "ServiceAccounts": _subjects("ServiceAccount"),
}
NETWORKING: Mapping[str, Cells] = {
    "Ingress": {
        "Class": lambda raw, around: spec(raw).get("ingressClassName") or NONE,
        "Hosts": _ingress_hosts,
        "Address": _ingress_address,
        "Ports": lambda raw, around: "80, 443" if spec(raw).get("tls") else "80",
    },
    "APIService": {"Service": _api_server, "Available": _availability},
    "IngressClass": {
        "Controller": lambda raw, around: spec(raw).get("controller", ""),
        "Parameters": lambda raw, around: NONE if not spec(raw).get("parameters") else "<set>",
    },
    "NetworkPolicy": {"Pod-Selector": lambda raw, around: selector_text(spec(raw).get("podSelector"))},
    "Endpoints": {"Endpoints": _endpoints},
    "EndpointSlice": {
        "AddressType": lambda raw, around: raw.get("addressType", ""),
        "Ports": _slice_ports,
        "Endpoints": _slice_endpoints,
    },
    "RoleBinding": _ROLES,
    "ClusterRoleBinding": _ROLES,
    "ServiceAccount": {"Secrets": lambda raw, around: len(raw.get("secrets") or ())},
    "CertificateSigningRequest": {
        "SignerName": field(spec, "signerName", NONE),
        "Requestor": field(spec, "username"),
        "RequestedDuration": _csr_duration,
        "Condition": _csr_condition,
    },
}
