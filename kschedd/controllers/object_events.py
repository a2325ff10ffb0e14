"""Event objects that controllers write about other objects, for `kubectl get events` and `describe`.

Source: Kubernetes v1.34, client-go/tools/record/event.go (makeEvent). An event about a cluster-scoped object is in the
namespace "default".
"""

from kschedd.api.objects import Object
from kschedd.api.text.times import stamp
from kschedd.store.errors import ApiError
from kschedd.store.writes import Create, Write


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


class FailedCreations:
    """Events about objects that a controller could not create.

    Equal consecutive rejections are reported once; upstream increments the count of an Event.

    Source of the reason: Kubernetes v1.34, controller/controller_utils.go (FailedCreatePodReason).
    """

    def __init__(self, component: str) -> None:
        self._component = component
        # last reported error, by kind, namespace and name of the owner
        self._reported: dict[tuple[str, str, str], str] = {}

    def events(self, owner: Object, error: ApiError, now: float, *messages: str) -> list[Write]:
        """Return the writes of one event for each message that was not reported yet."""
        key = (owner.kind, owner.namespace, owner.name)
        # without the object's name, because a generated name differs in each attempt
        gist = str(getattr(error, "why", error))
        if self._reported.get(key) == gist:
            return []
        self._reported[key] = gist
        return [object_event(owner, "FailedCreate", each, self._component, now, warning=True) for each in messages]

    def forget(self, key: tuple[str, str, str]) -> None:
        self._reported.pop(key, None)
