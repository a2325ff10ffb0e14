"""Leases that parts of this program renew; their renewTime is computed when they are read.

Thousands of simulated kubelets each renew a Lease every ten seconds, and the Leases are rarely read. A Lease with the
annotation `kschedd.io/renewed-every-seconds` therefore represents all renewals since its stored renewTime; readers get
the latest renewal. While a client watches Leases, each renewal is written with a resourceVersion and an event: the
store writes all due renewals when the watch begins, and the heartbeat controller writes later renewals. While no client
watches Leases, renewals are not written.

The journal does not contain renewals. It reserves their versions instead, so that a restarted daemon continues after
them. If versions are reserved, the restarted daemon renews each Lease once: a client that resumes a watch receives each
Lease in its present state.
"""

from collections.abc import Sequence
from typing import Final, overload

from kschedd.api.objects import Object
from kschedd.api.text.numbers import whole_number
from kschedd.api.text.times import SECOND, micro_stamp, micros

LEASE: Final = "Lease"
RENEWED_EVERY: Final = "kschedd.io/renewed-every-seconds"


def interval_s(lease: Object) -> int | None:
    """Return the seconds between two renewals; None if this program does not renew the Lease."""
    text = (lease.metadata.get("annotations") or {}).get(RENEWED_EVERY)
    return (whole_number(text) or None) if isinstance(text, str) else None


def next_renewal(lease: Object) -> float | None:
    """Return the time in seconds of the next renewal after the stored renewal; None if kschedd does not renew it."""
    every, since = interval_s(lease), lease.spec.get("renewTime")
    return None if every is None or not since else micros(since) / SECOND + every


def renewed(lease: Object, now: float) -> Object:
    """Return the Lease in its state at `now` (seconds since the epoch)."""
    every = interval_s(lease)
    since = lease.spec.get("renewTime") if every is not None else None
    if every is None or not since:
        return lease
    began = micros(since)
    times = (round(now * SECOND) - began) // (every * SECOND)
    if times <= 0:
        return lease
    return _renewed_at(lease, began + times * every * SECOND)


def renewed_at(lease: Object, now: float) -> Object:
    """Return the Lease with its renewal at `now` (seconds since the epoch)."""
    return _renewed_at(lease, round(now * SECOND))


def _renewed_at(lease: Object, at: int) -> Object:
    """Return the Lease with this renewTime, given in microseconds since the epoch."""
    raw = {**lease.raw, "spec": {**lease.spec, "renewTime": micro_stamp(at)}}
    return Object(LEASE, lease.name, lease.namespace, lease.uid, lease.resource_version, lease.labels, raw)


class Renewed(Sequence[Object]):
    """Leases in their state at `now`, each computed when it is read."""

    def __init__(self, leases: Sequence[Object], now: float) -> None:
        self._leases = leases
        self._now = now

    def __len__(self) -> int:
        return len(self._leases)

    @overload
    def __getitem__(self, place: int) -> Object: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Object]: ...
    def __getitem__(self, place: int | slice) -> Object | Sequence[Object]:
        found = self._leases[place]
        return renewed(found, self._now) if isinstance(found, Object) else Renewed(found, self._now)
