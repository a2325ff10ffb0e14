"""Election: whether this scheduler leads, by a Lease that all schedulers of a cluster know.

Who leads renews the Lease. Who does not takes it once it has seen no renewal for as long as the Lease says: by its own
clock since it saw the last change, since clocks of machines differ. A renewal counts from when it was asked for, and
whoever could not renew stops to lead before others may take the Lease:

    standby ──taken──▶ leading ──not renewed for `renew_deadline_s`, or seen with another holder──▶ standby

Pure: what the server answers and the times go in; the Lease to be written comes out.
Source: Kubernetes v1.34, client-go/tools/leaderelection (tryAcquireOrRenew, release). Upstream's scheduler exits where
it no longer leads.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.config.model import LeaderElection

Raw = dict[str, Any]

API_VERSION: Final = "coordination.k8s.io/v1"
_LONG_AGO: Final = float("-inf")
_MOST: Final = 2**31 - 1  # seconds or transitions: an int32 in any Lease that an API server has


@attrs.define(eq=False)
class Election:
    """`now`: seconds of a clock that never goes back; `at`: the present as metav1.MicroTime."""

    settings: LeaderElection
    identity: str
    leads: bool = attrs.field(default=False, init=False)
    renewed_at: float = attrs.field(default=_LONG_AGO, init=False)
    _lease: Raw = attrs.field(factory=dict, init=False)  # as the server had it last; empty: there is none
    _seen_at: float = attrs.field(default=_LONG_AGO, init=False)  # when it was seen to have changed

    @property
    def holder(self) -> str:
        """Who leads, as far as was seen; "" for nobody."""
        holder = self._spec.get("holderIdentity")
        return holder if isinstance(holder, str) else ""

    @property
    def exists(self) -> bool:
        """Whether there is a Lease to be updated; otherwise it is to be created."""
        return bool(self._lease)

    def observe(self, lease: Raw | None, now: float) -> None:
        """The Lease that the server has now."""
        if lease is None or lease.get("spec") != self._lease.get("spec"):
            self._seen_at = now
        self._lease = lease or {}

    def may_take(self, now: float) -> bool:
        return self.holder in ("", self.identity) or now >= self._seen_at + self._duration_s

    def is_valid(self, now: float) -> bool:
        """Whether the Lease is this scheduler's, so that it can be renewed without a look at it."""
        return self.leads and self.holder == self.identity and now < self._seen_at + self._duration_s

    def wanted(self, at: str) -> Raw:
        """The Lease by which this scheduler leads."""
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
        """The Lease by which this scheduler lets others lead."""
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
        """The server has taken what was `wanted` at that time: this scheduler leads."""
        self._lease, self._seen_at = lease, asked_at
        self.leads, self.renewed_at = True, asked_at

    def has_lost(self, now: float) -> str:
        """Why it may no longer lead; "" while it may."""
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
