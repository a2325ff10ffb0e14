"""Restart back-off of containers: no delay before the first restart, then increasing delays.

Source: Kubernetes v1.34, pkg/kubelet/kuberuntime/kuberuntime_manager.go (doBackOff),
client-go/util/flowcontrol/backoff.go.
Units: seconds.
"""

from typing import Final

import attrs

INITIAL_BACKOFF_S: Final = 10.0
MAX_BACKOFF_S: Final = 300.0
_FORGOTTEN_AFTER_S: Final = 2 * MAX_BACKOFF_S


@attrs.frozen
class RestartBackoff:
    """The back-off of one container: its current length, and the time at which it was last increased."""

    wait_s: float = 0.0  # 0: not restarted yet
    restarted_at: float = 0.0

    def _forgotten(self, finished_at: float) -> bool:
        return not self.wait_s or finished_at - self.restarted_at > _FORGOTTEN_AFTER_S

    def restart_at(self, finished_at: float) -> float:
        """Return the time at which a container that ended at `finished_at` may be restarted."""
        return finished_at if self._forgotten(finished_at) else finished_at + self.wait_s

    def after_restart(self, finished_at: float, now: float) -> "RestartBackoff":
        """Return the back-off after a restart at `now` of the container that ended at `finished_at`."""
        if self._forgotten(finished_at):
            return RestartBackoff(INITIAL_BACKOFF_S, now)
        return RestartBackoff(min(self.wait_s * 2, MAX_BACKOFF_S), now)

    @staticmethod
    def presumed(restarts: int, restarted_at: float) -> "RestartBackoff":
        """Return the back-off for a known number of restarts, assuming that it was never reset."""
        if not restarts:
            return RestartBackoff()
        return RestartBackoff(min(INITIAL_BACKOFF_S * 2 ** min(restarts - 1, 10), MAX_BACKOFF_S), restarted_at)
