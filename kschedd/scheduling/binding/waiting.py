"""WaitingPods: pods that wait at Permit, reserved on their node but not yet bound.

A pod proceeds once every plugin that returned Wait has allowed it. A rejection by one plugin, or the first timeout,
fails the pod's binding.

The object reads no clock: the caller checks timeouts (`deadline`, `expire`), and reads the result from `decided`.

Source: Kubernetes v1.34, scheduler/framework/runtime/waiting_pods_map.go; v1.36 (preempt).
Units: seconds of the caller's clock.
"""

import attrs

from kschedd.api.pods import Pod
from kschedd.framework.status import Status, error, unschedulable

MOST_WAIT_S = 15 * 60.0


@attrs.define(eq=False)
class WaitingPod:
    pod: Pod
    node_name: str
    pending: dict[str, float]  # plugin -> time in seconds at which its wait ends
    waits: dict[str, float]  # plugin -> its timeout
    rejection: Status | None = None

    @property
    def decided(self) -> bool:
        return self.rejection is not None or not self.pending

    @property
    def deadline(self) -> float:
        """The earliest timeout among the plugins for which the pod waits."""
        return min(self.pending.values())

    def copy(self) -> "WaitingPod":
        return WaitingPod(self.pod, self.node_name, self.pending.copy(), self.waits.copy(), self.rejection)

    def allow(self, plugin: str) -> None:
        self.pending.pop(plugin, None)

    def reject(self, plugin: str, reason: str) -> None:
        if not self.decided:
            self.rejection = unschedulable(reason).by(plugin)

    def preempt(self, plugin: str, reason: str) -> None:
        """Reject the pod with an error, so that it backs off instead of waiting for an event."""
        if not self.decided:
            self.rejection = error(f"waiting on permit for pod: {reason}").by(plugin)

    def expire(self, now: float) -> None:
        """Reject the pod if a plugin's timeout has passed."""
        for plugin, deadline in sorted(self.pending.items(), key=lambda item: item[1]):
            if deadline <= now:
                wait = duration(self.waits[plugin])
                self.reject(plugin, f"rejected due to timeout after waiting {wait} at plugin {plugin}")
                return


def duration(seconds: float) -> str:
    """Format a time span as Go does: `1m30s`, `500ms`."""
    if seconds == 0:
        return "0s"
    if seconds < 1:
        return f"{_plain(seconds * 1000)}ms"
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    text = f"{int(hours)}h" if hours else ""
    if text or minutes:
        text += f"{int(minutes)}m"
    return f"{text}{_plain(left)}s"


def _plain(number: float) -> str:
    return f"{round(number, 9):.9f}".rstrip("0").rstrip(".")


@attrs.define(eq=False)
class WaitingPods:
    """All waiting pods, by uid."""

    pods: dict[str, WaitingPod] = attrs.field(factory=dict)

    def allow(self, uid: str, plugin: str) -> bool:
        """Record that one plugin allows the pod; return False if no such pod waits."""
        waiting = self.pods.get(uid)
        if waiting is None:
            return False
        waiting.allow(plugin)
        return True

    def decided(self, uid: str) -> bool:
        """Return whether this pod was allowed or rejected and its binding has not continued yet."""
        waiting = self.pods.get(uid)
        return waiting is not None and waiting.decided

    def preempt(self, uid: str, plugin: str, reason: str) -> bool:
        waiting = self.pods.get(uid)
        if waiting is None:
            return False
        waiting.preempt(plugin, reason)
        return True

    def reject(self, uid: str, plugin: str, reason: str) -> bool:
        waiting = self.pods.get(uid)
        if waiting is None:
            return False
        waiting.reject(plugin, reason)
        return True
