"""Event objects that controllers write about other objects; `kubectl get events` and `describe` show them.

Source: Kubernetes v1.34, client-go/tools/record/event.go (makeEvent). An event about a cluster-scoped object is in the
namespace "default".
"""

from kschedd.api.objects import Object
from kschedd.api.text.times import stamp
from kschedd.store.writes import Create


def object_event(
    about: Object, reason: str, message: str, component: str, now: float, *, warning: bool = False
) -> Create:
    """Return the write that creates an Event about the object."""
    at = stamp(now)
    involved = {
        "apiVersion": about.raw.get("apiVersion") or "v1",
        "kind": about.kind,
        "name": about.name,
        "uid": about.uid,
        "resourceVersion": str(about.resource_version),
    }
    if about.namespace:
        involved["namespace"] = about.namespace
    return Create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{about.name}.", "namespace": about.namespace or "default"},
            "involvedObject": involved,
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
