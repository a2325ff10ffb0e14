"""Event objects about claims, which `kubectl describe` shows."""

from kschedd.api.objects import Object
from kschedd.store.times import stamp
from kschedd.store.writes import Create


def claim_event(
    claim: Object, reason: str, message: str, component: str, now: float, *, warning: bool = False
) -> Create:
    """The write that creates an Event object about the claim."""
    at = stamp(now)
    return Create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{claim.name}.", "namespace": claim.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": claim.kind,
                "namespace": claim.namespace,
                "name": claim.name,
                "uid": claim.uid,
                "resourceVersion": str(claim.resource_version),
            },
            "reason": reason,
            "message": message,
            "type": "Warning" if warning else "Normal",
            "source": {"component": component},
            "reportingComponent": component,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
    )
