"""Election: determines whether this scheduler leads, by a Lease that all schedulers of a cluster share.

The leader renews the Lease. A standby acquires the Lease if it has observed no renewal for the Lease's duration. A
standby measures this time by its own clock, because the machines' clocks differ. A renewal is valid from the time of
its request. A leader that cannot renew the Lease stops leading before another scheduler may acquire it:

    standby ──taken──▶ leading ──not renewed for `renew_deadline_s`, or seen with another holder──▶ standby

The election does no I/O: its inputs are the server's responses and the times, and its result is the Lease to write.

Source: Kubernetes v1.34, client-go/tools/leaderelection (tryAcquireOrRenew, release). kube-scheduler exits when it no
longer leads.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.config.model import LeaderElection

Raw = dict[str, Any]

API_VERSION: Final = "coordination.k8s.io/v1"
_LONG_AGO: Final = float("-inf")
_MOST: Final = 2**31 - 1  # maximum number of seconds or transitions in a Lease (int32)


@attrs.define(eq=False)
class Election:
    """The state of the election.

    `now` is in seconds of a monotonic clock; `at` is the current time as metav1.MicroTime.
    """

    settings: LeaderElection
    identity: str
    leads: bool = attrs.field(default=False, init=False)
    renewed_at: float = attrs.field(default=_LONG_AGO, init=False)
    # last observed Lease; empty if it does not exist
    _lease: Raw = attrs.field(factory=dict, init=False)
    _seen_at: float = attrs.field(default=_LONG_AGO, init=False)  # time of the last observed change

    @property
    def holder(self) -> str:
        """The holder in the last observed Lease, or ""."""
        holder = self._spec.get("holderIdentity")
        return holder if isinstance(holder, str) else ""

    @property
    def exists(self) -> bool:
        """Return whether the Lease exists; otherwise it must be created."""
        return bool(self._lease)

    def observe(self, lease: Raw | None, now: float) -> None:
        """Record the Lease that the server currently has."""
        if lease is None or lease.get("spec") != self._lease.get("spec"):
            self._seen_at = now
        self._lease = lease or {}

    def may_take(self, now: float) -> bool:
        return self.holder in ("", self.identity) or now >= self._seen_at + self._duration_s

    def is_valid(self, now: float) -> bool:
        """Return whether this scheduler holds the Lease, so that it need not read the Lease before renewing it."""
        return self.leads and self.holder == self.identity and now < self._seen_at + self._duration_s

    def wanted(self, at: str) -> Raw:
        """Return the Lease to write in order to lead."""
        again = self.holder == self.identity
        return self._with_spec(
            {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": int(self.settings.lease_duration_s),
                "acquireTime": (self._spec.get("acquireTime") or at) if again else at,
                "renewTime": at,
                "leaseTransitions": self._transitions + (self.exists and not again),
            }
        )

    def released(self, at: str) -> Raw:
        """Return the Lease to write in order to release the leadership."""
        return self._with_spec(
            {
                "holderIdentity": "",
                "leaseDurationSeconds": 1,
                "acquireTime": at,
                "renewTime": at,
                "leaseTransitions": self._transitions,
            }
        )

    def taken(self, lease: Raw, asked_at: float) -> None:
        """Record that the server accepted the `wanted` Lease. From then on, this scheduler leads."""
        self._lease, self._seen_at = lease, asked_at
        self.leads, self.renewed_at = True, asked_at

    def has_lost(self, now: float) -> str:
        """Return the reason why this scheduler may no longer lead, or ""."""
        if self.holder not in ("", self.identity):
            return f"{self.holder} holds the lease"
        if now >= self.renewed_at + self.settings.renew_deadline_s:
            return f"the lease could not be renewed for {self.settings.renew_deadline_s:g} s"
        return ""

    def stop(self) -> None:
        self.leads = False

    @property
    def _spec(self) -> Mapping[str, Any]:
        spec = self._lease.get("spec")
        return spec if isinstance(spec, dict) else {}

    @property
    def _duration_s(self) -> float:
        seconds = self._spec.get("leaseDurationSeconds")
        return float(max(0, min(seconds, _MOST))) if isinstance(seconds, int | float) else 0.0

    @property
    def _transitions(self) -> int:
        number = self._spec.get("leaseTransitions")
        return number if isinstance(number, int) and 0 <= number < _MOST else 0

    def _with_spec(self, spec: Raw) -> Raw:
        settings = self.settings
        meta = {"name": settings.resource_name, "namespace": settings.resource_namespace}
        known = self._lease.get("metadata")
        return {
            "apiVersion": API_VERSION,
            "kind": "Lease",
            "metadata": known if isinstance(known, dict) else meta,
            "spec": spec,
        }
