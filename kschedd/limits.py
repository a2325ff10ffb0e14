"""All limits of the daemon: the purpose of each, its default and its present value.

Everything that is kept for clients, or that grows over time, has a bound in this table. `kschedd run --limit
NAME=N` sets one; `daemon.limits` returns how much of each is in use. Pure values.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from kschedd.errors import KscheddError


@attrs.frozen
class Bound:
    """`unit`: "" for a count. `reached`: what happens then."""

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
_MOST_DIGITS: Final = 18  # of a limit; `int` refuses more than 4,300 in its own words
_DROPPED: Final = "the oldest is dropped"

BOUNDS: Final[Mapping[str, Bound]] = {
    bound.name: bound
    for bound in (
        Bound("clients", 1024, "clients of the socket", "the longest idle one goes, else the new one is refused"),
        Bound("clients-in-reserve", 16, "further clients, without streams", "a new one is refused", minimum=0),
        Bound(
            "clients-of-one-process", 256, "clients of one process", "its idle one goes, else the new one is refused"
        ),
        Bound("clients-on-tcp", 512, "clients on TCP", "an idle one of them goes, else the new one is refused"),
        Bound("requests", 64, "requests of one client that run at once", "it is not read from meanwhile"),
        Bound("streams", 64, "subscriptions of one client", "a further one is refused"),
        Bound("unread", 8 * _MIB, "what waits for one client to read it", "its requests wait", "bytes", 64 << 10),
        Bound("unread-of-all", 256 * _MIB, "the same of all clients", "the one with most is dropped", "bytes", _MIB),
        Bound(
            "unfinished-of-all",
            128 * _MIB,
            "of incomplete requests of all clients",
            "the one with most is dropped",
            "bytes",
            _MIB,
        ),
        Bound("unread-time", 30, "a client may read nothing for so long", "it is dropped", "s"),
        Bound("unauthenticated", 64, "connections by TCP that have not said who they are", "the slowest is closed"),
        Bound("unauthenticated-time", 10, "time to say so", "the connection is closed", "s"),
        Bound("http-connections", 2048, "connections over HTTP, watches too", "the longest idle one goes", minimum=16),
        Bound(
            "http-unauthenticated",
            256,
            "connections over HTTP without a token or certificate so far, where one is needed, 10 s each",
            "the oldest of the address with most is closed",
        ),
        Bound(
            "watch-history", 100_000, "changes of objects that watches can begin at", "older ones are gone", minimum=10
        ),
        Bound(
            "admitted-pods",
            8192,
            "kinds of pods, by spec and labels, whose admission is remembered, and as many without amounts",
            "those not used lately are dropped, and admitted anew",
            minimum=2,
        ),
        Bound(
            "admitted-node-affinities",
            8192,
            "node affinities of these, as each pod of a DaemonSet has one",
            "those not used lately are dropped, and admitted anew",
            minimum=2,
        ),
        Bound(
            "evaluation-cache",
            192 * _MIB,
            "verdicts and scores on nodes by kind of pod, of each profile",
            "those of the kind not tried for longest are dropped, and made anew",
            "bytes",
            _MIB,
        ),
        Bound(
            "preemption-cache",
            128 * _MIB,
            "outcomes of trial preemptions on nodes by kind of pod, of each profile",
            "those of the kind not tried for longest are dropped, and made anew",
            "bytes",
            _MIB,
        ),
        Bound(
            "pod-counters",
            1024,
            "selectors of affinity and spreading whose pods are counted by node, and sets of nodes that count",
            "they are dropped, and counted anew: of selectors the one not asked for for longest",
            minimum=8,
        ),
        Bound(
            "encoded-objects",
            64 * _MIB,
            "objects of the REST API as bytes, and these objects",
            "the oldest is dropped, and encoded anew",
            "bytes",
            _MIB,
        ),
        Bound(
            "log",
            100_000,
            "attempts, moves in the queue, bindings and preemptions that are told of",
            _DROPPED,
        ),
        Bound(
            "label-columns", 256, "keys of nodes' labels that pods ask for", "all are forgotten, and asked for again"
        ),
        Bound(
            "resource-columns",
            128,
            "resources that pods request",
            "those that no pod on a node requests are forgotten, and asked for again",
        ),
        Bound("forks", 8, "forks of the cluster", "a further one is refused", maximum=1000),
        Bound(
            "forks-of-readers", 4, "of these, forks of users who may only read", "a further one is refused", minimum=0
        ),
        Bound("forks-of-one-reader", 2, "the same of one such user", "a further one is refused"),
        Bound("breakpoints", 100, "breakpoints of the debugger", "a further one is refused", maximum=10_000),
        Bound("audited", 10_000, "writes that wait for the audit log's disk", "further ones are not logged"),
    )
}


@attrs.define(eq=False)
class UnknownLimit(KscheddError):
    """A bound that there is not, or a value that it cannot have."""

    why: str

    def __str__(self) -> str:
        return f"--limit: {self.why}"


@attrs.frozen
class DaemonLimits:
    """What the bounds are set to."""

    changed: Mapping[str, int] = attrs.field(factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.changed.get(name, BOUNDS[name].default)


def read_limits(texts: Iterable[str]) -> DaemonLimits:
    """Return the limits of texts `NAME=N`. Raises UnknownLimit."""
    changed = {}
    for text in texts:
        name, _, number = text.partition("=")
        bound = BOUNDS.get(name)
        if bound is None:
            raise UnknownLimit(f'"{name[:60]}" is no limit; there are {", ".join(BOUNDS)}')
        digits = number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS
        if not digits or not bound.minimum <= (value := int(number)) <= bound.maximum:
            why = f"a whole number from {bound.minimum} to {bound.maximum} is allowed"
            raise UnknownLimit(f"{name}={number[:60]}: {why}")
        changed[name] = value
    return DaemonLimits(changed)
