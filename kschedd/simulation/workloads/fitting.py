"""A generator fitted to a trace, and the file that `kschedd workload fit` writes for it.

    kind: kschedd-generator
    pods: 8152
    arrivals: {rate_s: 0.00063, shape: 0.41}        # Weibull intervals; shape 1 is a Poisson process
    lifetimes: {mean_s: 52000, sigma: 2.1}          # lognormal; sigma 0 is exponential
    shapes: ["cpu=4,memory=8Gi,weight=120"]         # requests and priorities with their numbers of pods

The Weibull shape is chosen so that the intervals have the trace's coefficient of variation. Sigma is the standard
deviation of the logarithm of the lifetimes of pods that ended. Generated pods are independent: jobs of several pods,
daily cycles and required node labels are not reproduced.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import exp, gamma, log
from pathlib import Path
from statistics import fmean, pstdev
from typing import Final

import attrs
import yaml

from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import ConfigReader, ConfigValue, in_text_order
from kschedd.config.parsing.source import read_document
from kschedd.errors import KscheddError
from kschedd.simulation.workloads.generated import GeneratedPods, GeneratedWorkload, GeneratedWorkloadError
from kschedd.simulation.workloads.trace import Raw, Trace

KIND: Final = "kschedd-generator"
#: suffixes of files that contain a generator; files with pods have other suffixes
GENERATORS: Final = (".yaml", ".yml")
_MOST_SHAPES: Final = 500
_LEAST_SHAPE, _MOST_SHAPE = 0.1, 10.0
_MOST_SIGMA: Final = 10.0
_PRIORITY: Final = "priority-"


@attrs.frozen(kw_only=True)
class FittedWorkload:
    """A generator whose parameters were fitted to a trace."""

    pods: int
    rate_s: float
    arrival_shape: float
    lifetime_s: float
    lifetime_sigma: float
    shapes: tuple[str, ...]

    def generated(self, nodes: Sequence[Raw], seed: int) -> GeneratedWorkload:
        """Return the workload for this seed. Raises GeneratedWorkloadError."""
        shapes = [GeneratedPods.parse("shapes", text, number) for number, text in enumerate(self.shapes, start=1)]
        return GeneratedWorkload(
            nodes, self.pods, self.rate_s, self.lifetime_s, shapes, seed, self.arrival_shape, self.lifetime_sigma
        )

    def text(self) -> str:
        """Return the content of the file that describes this generator."""
        made = {
            "kind": KIND,
            "pods": self.pods,
            "arrivals": {"rate_s": self.rate_s, "shape": self.arrival_shape},
            "lifetimes": {"mean_s": self.lifetime_s, "sigma": self.lifetime_sigma},
            "shapes": list(self.shapes),
        }
        return yaml.safe_dump(made, sort_keys=False)


def fit(trace: Trace) -> FittedWorkload:
    """Fit a generator to the pods of a trace. Raises KscheddError if the trace has too few pods."""
    times = sorted(pod.created_s for pod in trace.pods)
    intervals = [later - earlier for earlier, later in pairwise(times)]
    lifetimes = [pod.deleted_s - pod.created_s for pod in trace.pods if pod.deleted_s is not None]
    lifetimes = [each for each in lifetimes if each > 0]
    if len(times) < 2 or not times[-1] > times[0] or not lifetimes:
        raise KscheddError("a fit requires pods that arrive at two times or more, and one that ends")
    logs = [log(each) for each in lifetimes]
    sigma = min(round(pstdev(logs), 4), _MOST_SIGMA)
    mean = exp(fmean(logs) + sigma**2 / 2) if sigma else fmean(lifetimes)
    counts = Counter(_shape(pod.raw["spec"]) for pod in trace.pods)
    return FittedWorkload(
        pods=len(times),
        rate_s=float(f"{len(intervals) / sum(intervals):.6g}"),
        arrival_shape=_weibull(pstdev(intervals) / fmean(intervals)),
        lifetime_s=float(f"{mean:.6g}"),
        lifetime_sigma=sigma,
        shapes=tuple(f"{text},weight={count}" for text, count in counts.most_common(_MOST_SHAPES)),
    )


def _weibull(variation: float) -> float:
    """Return, by bisection, the Weibull shape whose intervals have this coefficient of variation."""
    low, high = _LEAST_SHAPE, _MOST_SHAPE
    for _ in range(60):
        shape = (low + high) / 2
        if gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2 - 1 > variation**2:
            low = shape
        else:
            high = shape
    return round((low + high) / 2, 4)


def _shape(spec: Raw) -> str:
    asks: dict[str, str] = spec["containers"][0].get("resources", {}).get("requests", {})
    parts = [f"{name}={amount}" for name, amount in asks.items()]
    if (name := spec.get("priorityClassName", "")).startswith(_PRIORITY):
        parts.append(f"priority={name.removeprefix(_PRIORITY)}")
    return ",".join(parts or ["cpu=0"])


def read_fitted(path: Path) -> FittedWorkload:
    """Read a file. Raises ConfigErrors and KscheddError."""
    try:
        document = read_document(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as fault:
        raise KscheddError(f"{path}: cannot be read: {getattr(fault, 'strerror', None) or fault}") from fault
    reading = ConfigReader(str(path), document)
    fields = ConfigValue(document.value, "$", reading).fields("kind", "pods", "arrivals", "lifetimes", "shapes")
    made = None
    if fields is not None:
        kind = fields.get("kind")
        if kind is None or kind.value != KIND:
            (kind or fields.place).wrong(f"no generator: kind must be {KIND}")
        arrivals = _numbers(fields.get("arrivals"), rate_s=(1e-9, 1e6), shape=(_LEAST_SHAPE, _MOST_SHAPE))
        lifetimes = _numbers(fields.get("lifetimes"), mean_s=(1e-9, 1e12), sigma=(0, _MOST_SIGMA))
        shapes = []
        for number, (place, text) in enumerate(fields.texts("shapes"), start=1):
            try:
                GeneratedPods.parse("", text, number)
            except GeneratedWorkloadError as fault:
                place.wrong(fault.why)
            shapes.append(text)
        if not shapes:
            fields.place.wrong("shapes: at least one is required")
        made = FittedWorkload(
            pods=fields.integer("pods", 0, (0, 100_000_000)),
            rate_s=arrivals["rate_s"],
            arrival_shape=arrivals["shape"],
            lifetime_s=lifetimes["mean_s"],
            lifetime_sigma=lifetimes["sigma"],
            shapes=tuple(shapes),
        )
    if reading.faults or made is None:
        raise ConfigErrors(in_text_order(reading.faults))
    return made


def _numbers(place: ConfigValue | None, **ranges: tuple[float, float]) -> dict[str, float]:
    """Return the numbers of a mapping; 1 for missing or invalid numbers, with a fault recorded for the latter."""
    fields = None if place is None else place.fields(*ranges)
    found = dict.fromkeys(ranges, 1.0)
    for name, (least, most) in ranges.items() if fields is not None else ():
        found[name] = fields.number(name, 1.0) if fields is not None else 1.0
        if not least <= found[name] <= most and fields is not None:
            (fields.get(name) or fields.place).wrong("out of range", f"{least:g} to {most:g}")
    return found
