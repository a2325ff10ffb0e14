"""Fill a cluster: the pods of a trace arrive in random order and never end, up to a total request of one resource.

Each pod of the trace arrives once; then pods are drawn from the trace in random order. The result shows
how many pods a policy places before no further pod fits. The times in the trace are ignored.
"""

from collections.abc import Iterator
from random import Random
from typing import Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.errors import KscheddError
from kschedd.simulation.workloads.trace import Trace, TracePod

BETWEEN_S: Final = 0.001  # seconds between two pods, far less than any backoff
_MOST: Final = 100.0  # multiple of the capacity


@attrs.define(eq=False)
class FillError(KscheddError):
    why: str


@attrs.frozen
class Fill:
    """`share`: a share of the allocatable amount of `resource` on all nodes; 1.3 is 130 %."""

    resource: str
    share: float

    @classmethod
    def parse(cls, text: str) -> "Fill":
        """From `RESOURCE=PERCENT`. Raises FillError."""
        resource, _, percent = text.rpartition("=")
        try:
            share = float(percent.removesuffix("%")) / 100
        except ValueError:
            share = 0.0
        if not resource or not 0 < share <= _MOST:
            raise FillError(
                f"--fill {text}: must be RESOURCE=PERCENT, as alibabacloud.com/gpu-milli=130%, up to {_MOST * 100:g}%"
            )
        return cls(resource, share)


def filled(trace: Trace, fill: Fill, seed: int) -> Trace:
    """Return the trace with pods in random order, chosen with the seed, without deletions.

    Raises FillError if no node has the resource, or no pod requests it.
    """
    there = sum(Node.from_raw(raw).allocatable.get(fill.resource, 0) for raw in trace.nodes)
    if not there:
        raise FillError(f"--fill: no node of the trace has {fill.resource}")
    requested = list(_requests(trace, fill.resource))
    if not any(requested):
        raise FillError(f"--fill: no pod of the trace requests {fill.resource}")
    random = Random(seed)
    chosen: list[int] = []
    left = there * fill.share
    for number in _drawn(len(trace.pods), random):
        if left <= 0:
            break
        chosen.append(number)
        left -= requested[number]
    random.shuffle(chosen)
    times: dict[int, int] = {}
    pods = []
    for place, number in enumerate(chosen):
        times[number] = times.get(number, 0) + 1
        pods.append(_copy(trace.pods[number], times[number], place * BETWEEN_S))
    return attrs.evolve(trace, pods=tuple(pods))


def _requests(trace: Trace, resource: str) -> Iterator[int]:
    """Return each pod's request for the resource; pods that share a spec have the same request."""
    by_spec: dict[int, int] = {}
    for pod in trace.pods:
        number = id(pod.raw["spec"])
        if number not in by_spec:
            by_spec[number] = Pod.from_raw(pod.raw).requests.get(resource, 0)
        yield by_spec[number]


def _drawn(count: int, random: Random) -> Iterator[int]:
    """Yield each pod once, then random pods without end."""
    once = list(range(count))
    random.shuffle(once)
    yield from once
    while True:
        yield random.randrange(count)


def _copy(pod: TracePod, time: int, created_s: float) -> TracePod:
    key, raw = pod.key, pod.raw
    if time > 1:
        meta = {**raw["metadata"], "name": f"{raw['metadata']['name']}-{time}"}
        key, raw = f"{key}-{time}", {**raw, "metadata": meta}
    return TracePod(key, raw, created_s, None, pod.scheduled_s, pod.phase)
