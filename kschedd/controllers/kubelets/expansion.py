"""The kubelet's part in the expansion of a claim: the kubelet enlarges the file system when a pod mounts the volume.

Source: Kubernetes v1.36, pkg/volume/util/operationexecutor/node_expander.go.
"""

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.object_events import object_event
from kschedd.controllers.running.controller import View
from kschedd.storage.claims import claims_used, uses, volume_of
from kschedd.storage.expansion import finished_status, waits_for_node
from kschedd.store.writes import Write, status_of

_COMPONENT = "kubelet"


def expansions_of(pod: Pod, view: View, now: float) -> list[Write]:
    """Return the writes that complete the pending expansions of the claims that the pod mounts."""
    writes: list[Write] = []
    for use in claims_used(pod):
        claim = view.find("PersistentVolumeClaim", pod.namespace, use.name)
        if claim is not None and waits_for_node(claim):
            writes += _completed(claim, pod, view, now)
    return writes


def expansion_by_running_pod(claim: Object, view: View, now: float) -> list[Write]:
    """Return the writes that complete the claim's pending expansion, if a running pod mounts its volume."""
    for some in view.present("Pod", claim.namespace):
        for pod in some:
            if isinstance(pod, Pod) and pod.phase == "Running" and uses(pod, claim):
                return _completed(claim, pod, view, now)
    return []


def _completed(claim: Object, pod: Pod, view: View, now: float) -> list[Write]:
    volume = view.find("PersistentVolume", "", volume_of(claim))
    if volume is None:
        return []
    size = (volume.spec.get("capacity") or {}).get("storage")
    message = f'MountVolume.NodeExpandVolume succeeded for volume "{volume.name}" {pod.node_name}'
    events = [object_event(each, "FileSystemResizeSuccessful", message, _COMPONENT, now) for each in (pod, claim)]
    return [status_of(claim, finished_status(claim, size)), *events]
