"""What is dropped and filled in as NetworkPolicies and EndpointSlices are written.

Source: Kubernetes v1.34, pkg/registry/{discovery/endpointslice,networking/networkpolicy}/strategy.go.
"""

from typing import Any

Raw = dict[str, Any]


def fill_network_policy(new: Raw, *_: Any) -> None:
    """Select all pods where none are named: unlike elsewhere, there is no pointer to the selector."""
    spec = new.get("spec") or {}
    if spec.get("podSelector") is None:
        new["spec"] = {**spec, "podSelector": {}}


def drop_topology(new: Raw, *_: Any) -> None:
    """Drop the topology of v1beta1, which v1 can only read."""
    endpoints = new.get("endpoints") or []
    if any("deprecatedTopology" in each for each in endpoints):
        kept = [{name: value for name, value in each.items() if name != "deprecatedTopology"} for each in endpoints]
        new["endpoints"] = kept
