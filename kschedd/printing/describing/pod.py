"""Output of `describe pod`: node or reason for pending, requests, volumes, claims and devices, and events."""

from collections.abc import Mapping
from typing import Any

from kschedd.printing.columns.ages import span
from kschedd.printing.columns.by_kind import Raw, meta, pod_status, spec, status
from kschedd.printing.columns.storage import claim_state
from kschedd.printing.columns.workloads import selector_text
from kschedd.printing.describing.describe import (
    DescribeContext,
    conditions,
    events_text,
    heading,
    line,
    owner_text,
    pairs,
    section,
    several,
    since,
)
from kschedd.printing.terminal.tables import NONE


def describe_pod(pod: Raw, related: DescribeContext) -> str:
    text = heading(pod, related)
    priority = spec(pod).get("priority") or 0
    name = spec(pod).get("priorityClassName")
    text += line("Priority", f"{priority} ({name})" if name else str(priority))
    if spec(pod).get("preemptionPolicy") == "Never":
        text += line("Preemption Policy", "Never")
    text += line("Scheduler", str(spec(pod).get("schedulerName") or "default-scheduler"))
    text += line("Node", str(spec(pod).get("nodeName") or NONE))
    if status(pod).get("nominatedNodeName"):
        text += line("Nominated Node", status(pod)["nominatedNodeName"])
    text += line("Status", pod_status(pod))
    if meta(pod).get("deletionTimestamp"):
        grace = meta(pod).get("deletionGracePeriodSeconds")
        at = since(meta(pod)["deletionTimestamp"], related)
        text += line("Terminating", at + (f", grace period {grace}s" if grace is not None else ""))
    for label, field in (("Reason", "reason"), ("Message", "message"), ("IP", "podIP")):
        if status(pod).get(field):
            text += line(label, str(status(pod)[field]))
    text += line("Created", since(meta(pod).get("creationTimestamp"), related))
    if status(pod).get("startTime"):
        text += line("Started", since(status(pod)["startTime"], related))
    if owner_text(pod):
        text += line("Controlled By", owner_text(pod))
    text += _why_pending(pod, related)
    for title, field in (("Init Containers", "initContainers"), ("Containers", "containers")):
        if spec(pod).get(field):
            text += section(title, "".join(map(container_text, spec(pod)[field])))
    text += section("Conditions", conditions(pod))
    text += section("Volumes", "".join(_volume(volume, pod, related) for volume in spec(pod).get("volumes") or ()))
    if spec(pod).get("resourceClaims"):
        text += section("Resource Claims", "".join(_claim(c, pod, related) for c in spec(pod)["resourceClaims"]))
    text += line("QoS Class", str(status(pod).get("qosClass") or NONE))
    text += several("Node-Selectors", pairs(spec(pod).get("nodeSelector"), "="))
    text += several("Tolerations", map(_toleration, spec(pod).get("tolerations") or ()))
    if spec(pod).get("topologySpreadConstraints"):
        text += several("Topology Spread", map(_spread, spec(pod)["topologySpreadConstraints"]))
    if spec(pod).get("overhead"):
        text += several("Overhead", pairs(spec(pod)["overhead"], ": "))
    return text + events_text(related.events, related)


def _why_pending(pod: Raw, related: DescribeContext) -> str:
    """Return the PodScheduled condition, scheduling gates, Permit wait and queue state; "" for a pod with a node."""
    if spec(pod).get("nodeName"):
        return ""
    text = ""
    for condition in status(pod).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            text += line("Why Pending", str(condition.get("message") or condition.get("reason") or ""))
    if gates := [gate.get("name", "") for gate in spec(pod).get("schedulingGates") or ()]:
        text += line("Gated By", ", ".join(gates))
    if related.waiting:
        plugins = related.waiting.get("plugins") or {}
        patience = ", ".join(f"{name} ({span(left)} left)" for name, left in sorted(plugins.items()))
        text += line("Waiting", f"on {related.waiting.get('node')} at Permit, for {patience}")
    if related.queue:
        text += line("Queue", queue_words(related.queue))
    return text


def queue_words(queued: Raw) -> str:
    """Return the state of a pod in the scheduling queue as one sentence."""
    place = str(queued.get("place") or "outside")
    words = ["not in it" if place == "outside" else place.replace("_", " ")]
    if queued.get("attempts"):
        attempts = queued["attempts"]
        words.append(f"{attempts} attempt{'s' if attempts != 1 else ''}")
    if isinstance(queued.get("since_s"), int | float):
        words.append(f"for {span(queued['since_s'])}")
    for label, field in (
        ("rejected by", "unschedulable_plugins"),
        ("waiting for", "pending_plugins"),
    ):
        if queued.get(field):
            words.append(f"{label} {', '.join(sorted(queued[field]))}")
    if queued.get("gated_by"):
        gates = queued["gated_by"]
        words.append(f"gated by {gates if isinstance(gates, str) else ', '.join(gates)}")
    return ", ".join(words)


def container_text(container: Raw) -> str:
    text = f"  {container.get('name', '')}:\n" + line("Image", str(container.get("image") or NONE), "    ", 15)
    ports = [
        f"{port.get('containerPort', '')}/{port.get('protocol') or 'TCP'}"
        + (f" (host port {port['hostPort']})" if port.get("hostPort") else "")
        for port in container.get("ports") or ()
    ]
    if ports:
        text += line("Ports", ", ".join(ports), "    ", 15)
    if container.get("restartPolicy") == "Always":
        text += line("Restart", "Always (sidecar)", "    ", 15)
    resources = container.get("resources") or {}
    for label in ("requests", "limits"):
        if resources.get(label):
            text += line(label.capitalize(), ", ".join(pairs(resources[label], " ")), "    ", 15)
    if resources.get("claims"):
        claims = ", ".join(str(claim.get("name", "")) for claim in resources["claims"])
        text += line("Devices Of", claims, "    ", 15)
    return text


def _volume(volume: Raw, pod: Raw, related: DescribeContext) -> str:
    kind = next((key for key in volume if key != "name"), "emptyDir")
    source = volume.get(kind) or {}
    name = str(volume.get("name", ""))
    if kind == "persistentVolumeClaim":
        return f"  {name}: claim {_bound(str(source.get('claimName', '')), related.claims)}\n"
    if kind == "ephemeral":
        claim = f"{meta(pod).get('name', '')}-{name}"  # upstream's name for it
        return f"  {name}: ephemeral claim {_bound(claim, related.claims)}\n"
    detail = ", ".join(f"{key} {value}" for key, value in source.items() if not isinstance(value, Mapping | list))
    return f"  {name}: {kind}{' (' + detail + ')' if detail else ''}\n"


def _bound(name: str, claims: Mapping[str, Raw | None]) -> str:
    claim = claims.get(name)
    if claim is None:
        return f"{name} (no such claim)" if name in claims else name
    phase = str(status(claim).get("phase") or "Pending")
    volume = spec(claim).get("volumeName")
    storage_class = spec(claim).get("storageClassName")
    words = [phase] + ([f"volume {volume}"] if volume else []) + ([f"class {storage_class}"] if storage_class else [])
    return f"{name} ({', '.join(words)})"


def _claim(claim: Raw, pod: Raw, related: DescribeContext) -> str:
    name = str(claim.get("name", ""))
    made = {
        s.get("name"): s.get("resourceClaimName") for s in status(pod).get("resourceClaimStatuses") or ()
    }  # claims created from templates have generated names
    object_name = claim.get("resourceClaimName") or made.get(name)
    if not object_name:
        return f"  {name}: from template {claim.get('resourceClaimTemplateName', '')}, not made yet\n"
    found = related.resource_claims.get(str(object_name))
    if found is None:
        gone = " (no such claim)" if object_name in related.resource_claims else ""
        return f"  {name}: claim {object_name}{gone}\n"
    text = f"  {name}: claim {object_name} ({claim_state(found)})\n"
    devices = (status(found).get("allocation") or {}).get("devices") or {}
    for result in devices.get("results") or ():
        device = f"{result.get('driver', '')}/{result.get('pool', '')}/{result.get('device', '')}"
        text += f"    device {device} for request {result.get('request', '')}\n"
    return text


def _toleration(toleration: Raw) -> str:
    text = str(toleration.get("key") or "")
    if toleration.get("value"):
        text += f"={toleration['value']}"
    if toleration.get("effect"):
        text += f":{toleration['effect']}"
    if toleration.get("operator") == "Exists" or not toleration.get("value"):
        text += " op=Exists" if toleration.get("operator") == "Exists" else ""
    if toleration.get("tolerationSeconds") is not None:
        text += f" for {toleration['tolerationSeconds']}s"
    return text.strip()


def _spread(constraint: Any) -> str:
    selector = selector_text(constraint.get("labelSelector"))
    return (
        f"{constraint.get('topologyKey', '')}:{constraint.get('whenUnsatisfiable', '')} "
        f"when max skew {constraint.get('maxSkew', '')} is exceeded for selector {selector}"
    )
