"""PendingPods: every pod without a node as the watch said last, and which of them are nominated to one.

The queue has the pods that wait; this is what the driver must know of them without asking it: the pod as it is now when
its attempt begins or has failed, and the nominations, which every attempt reads.

A nomination follows the pod's own status, but runs ahead of it where preemption has chosen a node: an update of a pod
in flight changes nothing until its attempt is over, and one by those who do not know of the nomination leaves it.
Whether a new pod's own nomination counts is for the queue to say: it does from when the pod is in the active queue.

Owns the nominator. Source: Kubernetes v1.34, scheduler/eventhandlers.go, backend/queue/scheduling_queue.go (Update).
"""

from collections.abc import Sequence

from kschedd.api.pods import Pod
from kschedd.queue.entry import QueuedPod
from kschedd.queue.event_handlers import same_version
from kschedd.scheduling.nominator import Nominator


class PendingPods:
    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}  # by key
        self.nominator = Nominator(self.pods.get)
        self._in_flight: set[str] = set()  # uids: being tried, or waiting at Permit
        self._passed_over: set[str] = set()  # uids that no attempt was made for: in no queue

    def current(self, entry: QueuedPod) -> Pod | None:
        """The pod of a popped entry as it is now; None if it is gone, has a node, or its name is another's."""
        pod = self.pods.get(entry.key)
        return pod if pod is not None and pod.uid == entry.pod.uid else None

    # -- what the watch says --------------------------------------------------------------------------------------

    def gone(self, pod: Pod) -> None:
        """The pod is deleted, has finished, or has a node."""
        self.pods.pop(pod.key, None)
        self.nominator.remove(pod)
        self._passed_over.discard(pod.uid)

    def put(self, pod: Pod) -> None:
        self.pods[pod.key] = pod

    def updated(self, old: Pod, new: Pod) -> None:
        """A pod that this scheduler is responsible for has changed, and is not assumed on a node."""
        if new.uid in self._in_flight or old.finished or old.node_name or same_version(old, new):
            return  # an attempt goes on with the pod as it was popped
        if new.uid in self._passed_over:
            self._passed_over.discard(new.uid)  # the queue takes it in as a new one
            self.nominator.remove(new)
        else:
            self.nominator.update(old, new)

    # -- what becomes of it ---------------------------------------------------------------------------------------

    def active_with_nomination(self, pods: Sequence[Pod]) -> None:
        """The queue says: these got into the active queue with a nomination of their own."""
        for pod in pods:
            current = self.pods.get(pod.key)
            if current is not None and current.uid == pod.uid:
                self.nominator.add(current)

    def begin(self, uid: str) -> None:
        self._in_flight.add(uid)

    def pass_over(self, entry: QueuedPod) -> None:
        """No attempt is made for this pod: it is in no queue, even if it is not gone."""
        if self.current(entry) is not None:
            self._passed_over.add(entry.uid)
        self.release(entry.uid)

    def release(self, uid: str) -> None:
        """No longer in flight, and not back in the queue either."""
        self._in_flight.discard(uid)
        self.nominator.left_queue(uid)

    def failed(self, pod: Pod, nominated_node: str | None) -> None:
        """Back to the queue. `nominated_node`: None leaves its nomination to the pod's own status, "" clears it."""
        self._in_flight.discard(pod.uid)
        self.nominator.add(pod, nominated_node)
