"""All limits of the daemon: the purpose of each limit, its default and its present value.

This table contains a bound for everything that is stored for clients or that grows over time. `kschedd run --limit
NAME=N` sets a limit; `daemon.limits` returns the present usage of each limit. Pure values.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from kschedd.errors import KscheddError


@attrs.frozen
class Bound:
    """`unit`: "" for a count. `reached`: what happens when the limit is reached."""

    name: str
    default: int
    what: str
    reached: str
    unit: str = ""
    minimum: int = 1
    maximum: int = 1 << 34


_MIB: Final = 1 << 20
MAX_REQUEST_BYTES: Final = 3 * _MIB
"""The default maximum size of a request body, that of kube-apiserver (MaxRequestBodyBytes)."""
_MOST_DIGITS: Final = 18  # maximum number of digits of a limit; `int` raises a different error for more than 4,300
_DROPPED: Final = "the oldest is dropped"

BOUNDS: Final[Mapping[str, Bound]] = {
    bound.name: bound
    for bound in (
        Bound("clients", 1024, "clients of the socket", "the longest idle one is closed, else the new one is refused"),
        Bound("clients-in-reserve", 16, "further clients, without streams", "a new one is refused", minimum=0),
        Bound(
            "clients-of-one-process",
            256,
            "clients of one process",
            "an idle one is closed, else the new one is refused",
        ),
        Bound("clients-on-tcp", 512, "clients on TCP", "an idle one is closed, else the new one is refused"),
        Bound("requests", 64, "concurrent requests of one client", "no more is read from it meanwhile"),
        Bound("streams", 64, "subscriptions of one client", "a further one is refused"),
        Bound("unread", 8 * _MIB, "data that one client has not read yet", "its requests wait", "bytes", 64 << 10),
        Bound(
            "unread-of-all",
            256 * _MIB,
            "data that clients have not read yet, in total",
            "the client with most is dropped",
            "bytes",
            _MIB,
        ),
        Bound(
            "unfinished-of-all",
            128 * _MIB,
            "incomplete requests of all clients",
            "the client with most is dropped",
            "bytes",
            _MIB,
        ),
        Bound("unread-time", 30, "time for which a client may read nothing", "it is dropped", "s"),
        Bound("unauthenticated", 64, "TCP connections that are not authenticated yet", "the slowest is closed"),
        Bound("unauthenticated-time", 10, "time to authenticate", "the connection is closed", "s"),
        Bound(
            "http-connections",
            2048,
            "connections over HTTP, watches included",
            "the longest idle one is closed",
            minimum=16,
        ),
        Bound(
            "http-unauthenticated",
            256,
            "HTTP connections that are not authenticated yet, for at most 10 s each",
            "the oldest one of the address with most is closed",
        ),
        Bound("watch-history", 100_000, "changes of objects kept for watches", "older ones are dropped", minimum=10),
        Bound(
            "watch-history-bytes",
            256 * _MIB,
            "estimated memory of these changes",
            "older ones are dropped",
            "bytes",
            _MIB,
        ),
        Bound(
            "admitted-pods",
            8192,
            "pod templates (spec and labels) whose admission is cached; as many again without amounts",
            "the least recently used are dropped",
            minimum=2,
        ),
        Bound(
            "admitted-node-affinities",
            8192,
            "node affinities of pods whose admission is cached; each pod of a DaemonSet has its own",
            "the least recently used are dropped",
            minimum=2,
        ),
        Bound(
            "evaluation-cache",
            192 * _MIB,
            "cached verdicts and scores of nodes by pod class, for each profile",
            "those of the least recently used pod class are dropped",
            "bytes",
            _MIB,
        ),
        Bound(
            "preemption-cache",
            128 * _MIB,
            "cached outcomes of trial preemptions by node and pod class, for each profile",
            "those of the least recently used pod class are dropped",
            "bytes",
            _MIB,
        ),
        Bound(
            "pod-counters",
            1024,
            "selectors (of affinity and topology spread) whose pods are counted by node, and sets of counted nodes",
            "the least recently used selector, or all sets, are dropped",
            minimum=8,
        ),
        Bound(
            "encoded-objects",
            64 * _MIB,
            "encoded objects of the REST API",
            "the oldest is dropped",
            "bytes",
            _MIB,
        ),
        Bound(
            "log",
            100_000,
            "entries of the log: attempts, queue moves, bindings and preemptions",
            _DROPPED,
        ),
        Bound("label-columns", 256, "node label keys that pods select by", "all are dropped"),
        Bound(
            "resource-columns",
            128,
            "resources that pods request",
            "those that no pod on a node requests are dropped",
        ),
        Bound("forks", 8, "forks of the cluster", "a further one is refused", maximum=1000),
        Bound(
            "forks-of-readers", 4, "of these, forks of users who may only read", "a further one is refused", minimum=0
        ),
        Bound("forks-of-one-reader", 2, "forks of one such user", "a further one is refused"),
        Bound("breakpoints", 100, "breakpoints of the debugger", "a further one is refused", maximum=10_000),
        Bound("audited", 10_000, "writes that wait for the audit log's disk", "further ones are not logged"),
    )
}


@attrs.define(eq=False)
class UnknownLimit(KscheddError):
    """An unknown limit, or a value out of its range."""

    why: str

    def __str__(self) -> str:
        return f"--limit: {self.why}"


@attrs.frozen
class DaemonLimits:
    """The values of the limits; limits that are not in `changed` have their defaults."""

    changed: Mapping[str, int] = attrs.field(factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.changed.get(name, BOUNDS[name].default)


def read_limits(texts: Iterable[str]) -> DaemonLimits:
    """Return the limits in texts of the form `NAME=N`. Raises UnknownLimit."""
    changed = {}
    for text in texts:
        name, _, number = text.partition("=")
        bound = BOUNDS.get(name)
        if bound is None:
            raise UnknownLimit(f'"{name[:60]}" is no limit; allowed: {", ".join(BOUNDS)}')
        digits = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
        if not digits or not bound.minimum <= (value := int(number)) <= bound.maximum:
            why = f"a whole number from {bound.minimum} to {bound.maximum} is allowed"
            raise UnknownLimit(f"{name}={number[:60]}: {why}")
        changed[name] = value
    return DaemonLimits(changed)
