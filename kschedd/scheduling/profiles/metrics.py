"""Metrics of scheduling attempts and bindings: kube-scheduler's names, labels and buckets, and additional metrics.

Metrics named `kschedd_…` do not exist upstream.

Source: Kubernetes v1.34, scheduler/metrics/metrics.go.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from kschedd.metrics import catalogue
from kschedd.metrics.instruments import MOST_UNSORTED, Counter, Histogram, HistogramSeries, Labels, MetricFamily
from kschedd.scheduling.profiles.plugin_metrics import PluginInstruments, PluginMetrics, Sampling

Timer = Callable[[], float]
"""Returns the seconds of a monotonic clock."""

SCHEDULED: Final = "scheduled"
UNSCHEDULABLE: Final = "unschedulable"
WAITING_ON_PREEMPTION: Final = "waiting_on_preemption"  # result of a PodGroup's cycle
ERROR: Final = "error"
SUCCESS: Final = "Success"  # the label of a status

_MANY_ATTEMPTS: Final = 15


@attrs.frozen
class AttemptEnded:
    """The result of an attempt that found no node.

    `of_binding` is true if the attempt had found a node and the binding failed.
    """

    profile: str
    result: str  # UNSCHEDULABLE or ERROR
    took_s: float
    of_binding: bool
    preempted: bool  # True if PostFilter ran
    victims: int
    violations: int  # victims whose eviction violates a budget
    rejections: Iterable[tuple[str, str, int]]  # (plugin, reason, nodes)


class PointTimes:
    """The times of the extension points of one profile.

    Call `start` first, and `ended` after each extension point; `ended` also begins the next one. `steps` contains the
    duration in seconds of each extension point of the latest attempt and its binding.
    """

    def __init__(self, histogram: Histogram, profile: str, timer: Timer) -> None:
        self.start = timer
        self.steps: dict[str, float] = {}
        self._histogram = histogram
        self._profile = profile
        self._series: dict[Labels, HistogramSeries] = {}  # by point and status
        self._repeated: list[tuple[float, float]] = []  # Filter and Score times to add to the histograms
        self._searched: list[float] = []  # Filter times of attempts without scoring, to add to the histograms
        self._skipped: dict[tuple[str, ...], int] = {}  # number of times that these extension points were skipped

    def ended(self, point: str, began_s: float, status: str = SUCCESS) -> float:
        """Record the end of an extension point that began at `began_s`, and return the current time."""
        now_s = self.start()
        took_s = now_s - began_s
        try:
            series = self._series[point, status]
        except KeyError:
            series = self._series[point, status] = self._histogram.series(point, status, self._profile)
        series.observe(took_s)
        if point == "PreFilter":  # the first of an attempt
            self.steps = {}
        self.steps[point] = took_s
        return now_s

    def ended_each(self, point: str, began_s: Iterable[float]) -> None:
        """Record successful ends of an extension point, one for each start time in the list."""
        now_s = self.start()
        self._histogram.series(point, SUCCESS, self._profile).observe_all([now_s - each for each in began_s])

    def skipped(self, points: tuple[str, ...], times: int = 1) -> None:
        """Record, `times` times, extension points that took no time because no plugin had to be called."""
        self._skipped[points] = self._skipped.get(points, 0) + times

    def repeated(self, filter_s: float, score_s: float | None = None) -> None:
        """Record an attempt without plugin calls, with the times of its search and scoring in seconds."""
        if score_s is None:
            self.steps = {"Filter": filter_s}
            self._searched.append(filter_s)
        else:
            self.steps = {"Filter": filter_s, "Score": score_s}
            self._repeated.append((filter_s, score_s))
        if len(self._repeated) + len(self._searched) >= MOST_UNSORTED:
            self.count_skipped()

    def repeated_several(self, attempts: int, filter_s: float, score_s: float | None = None) -> None:
        """Record several attempts without plugin calls, each with these times."""
        self.repeated(filter_s, score_s)
        if score_s is None:
            self._searched += [filter_s] * (attempts - 1)
        else:
            self._repeated += [(filter_s, score_s)] * (attempts - 1)

    def count_skipped(self) -> None:
        """Add the counted skipped points to the histogram."""
        searched, self._searched = self._searched, []
        if searched:
            self._histogram.series("Filter", SUCCESS, self._profile).observe_all(searched)
            self._skipped["PreFilter",] = self._skipped.get(("PreFilter",), 0) + len(searched)
        repeated, self._repeated = self._repeated, []
        if repeated:
            for point, took_s in zip(("Filter", "Score"), zip(*repeated, strict=True), strict=True):
                self._histogram.series(point, SUCCESS, self._profile).observe_all(took_s)
            for point in ("PreFilter", "PreScore"):
                self._skipped[point,] = self._skipped.get((point,), 0) + len(repeated)
        skipped, self._skipped = self._skipped, {}
        for points, times in skipped.items():
            for point in points:
                self._histogram.series(point, SUCCESS, self._profile).observe_many(0.0, times)


class NoTimes:
    """Timers that record nothing, for use without metrics."""

    steps: Final[Mapping[str, float]] = {}

    def start(self) -> float:
        return 0.0

    def ended(self, point: str, began_s: float, status: str = SUCCESS) -> float:
        return 0.0

    def ended_each(self, point: str, began_s: Iterable[float]) -> None: ...

    def skipped(self, points: tuple[str, ...], times: int = 1) -> None: ...

    def repeated(self, filter_s: float, score_s: float | None = None) -> None: ...

    def repeated_several(self, attempts: int, filter_s: float, score_s: float | None = None) -> None: ...


NO_TIMES: Final = NoTimes()


class SchedulingMetrics:
    """The metrics of scheduling.

    `timer` times extension points; `seed` selects the sampled attempts.
    """

    def __init__(self, timer: Timer, seed: int = 0) -> None:
        self.timer = timer
        self.sampling = Sampling(seed, timer)
        self._plugins = PluginInstruments(self.sampling)
        self.attempts = Counter(catalogue.ATTEMPTS)
        self.attempt_s = Histogram(catalogue.ATTEMPT_DURATION)
        self.algorithm_s = Histogram(catalogue.ALGORITHM_DURATION)
        self.victims = Histogram(catalogue.PREEMPTION_VICTIMS)
        self.preemptions = Counter(catalogue.PREEMPTION_ATTEMPTS)
        self.budget_violations = Counter(catalogue.BUDGET_VIOLATIONS)
        self.group_attempts = Counter(catalogue.POD_GROUP_ATTEMPTS)
        self.group_attempt_s = Histogram(catalogue.POD_GROUP_ATTEMPT_DURATION)
        self.group_algorithm_s = Histogram(catalogue.POD_GROUP_ALGORITHM_DURATION)
        self.placements = Counter(catalogue.GENERATED_PLACEMENTS)
        self.placements_tried = Counter(catalogue.PLACEMENT_EVALUATIONS)
        self.placement_s = Histogram(catalogue.PLACEMENT_EVALUATION_DURATION)
        self.group_preemptions = Counter(catalogue.WORKLOAD_PREEMPTIONS)
        self.group_victims = Histogram(catalogue.WORKLOAD_VICTIMS)
        self.disruptions = Histogram(catalogue.WORKLOAD_DISRUPTIONS)
        self.sli_s = Histogram(catalogue.SLI_DURATION)
        self.pod_attempts = Histogram(catalogue.POD_ATTEMPTS)
        self.after_flush = Counter(catalogue.SCHEDULED_AFTER_FLUSH)
        self.point_s = Histogram(catalogue.EXTENSION_POINT_DURATION)
        self.permit_s = Histogram(catalogue.PERMIT_WAIT)
        self.rejections = Counter(catalogue.REJECTIONS)
        self._times: dict[str, PointTimes] = {}  # by profile
        # (profile, attempts) -> attempt_s and waited_s of bound pods, to add to the histograms
        self._bound: dict[tuple[str, int], list[tuple[float, float]]] = {}

    def times(self, profile: str) -> PointTimes:
        """Return the timers of this profile's extension points; always the same object."""
        found = self._times.get(profile)
        if found is None:
            found = self._times[profile] = PointTimes(self.point_s, profile, self.timer)
        return found

    def plugins_of(self, profile: str) -> PluginMetrics:
        """Return the metrics of this profile's plugins; always the same object."""
        return self._plugins.of(profile)

    def found_no_node(self, ended: AttemptEnded) -> None:
        self.attempts.add(ended.result, ended.profile)
        self.attempt_s.observe(ended.took_s, ended.result, ended.profile)
        if not ended.of_binding:
            self.algorithm_s.observe(ended.took_s)
        if ended.preempted:
            self.preemptions.add()
        if ended.victims:
            self.victims.observe(ended.victims)
        if ended.violations:
            self.budget_violations.add("pod", amount=ended.violations)
        for plugin, reason, nodes in ended.rejections:
            self.rejections.add(plugin, reason, amount=nodes)

    def group_ended(self, result: str, profile: str, took_s: float) -> None:
        """Record the end of a PodGroup's cycle."""
        self.group_attempts.add(result, profile)
        self.group_attempt_s.observe(took_s, result, profile)

    def tried_in_placement(self, feasible: bool, profile: str, took_s: float) -> None:
        """Record a trial of a PodGroup in one placement."""
        result = "feasible" if feasible else "infeasible"
        self.placements_tried.add(result, profile)
        self.placement_s.observe(took_s, result, profile)

    def group_preempted(self, victims: int, disruptions: int, violations: int) -> None:
        """Record the evictions for a PodGroup: the evicted pods, the evicted PodGroups, and the budget violations."""
        self.group_victims.observe(victims)
        if disruptions:
            self.disruptions.observe(disruptions, "podgroup")
        if violations:
            self.budget_violations.add("podgroup", amount=violations)

    def bound(self, profile: str, attempt_s: float, attempts: int, waited_s: float) -> None:
        """Record a bound pod.

        `attempt_s` is the time since its last attempt began, `waited_s` the time since its first attempt was due.
        """
        try:
            bound = self._bound[profile, attempts]
        except KeyError:
            if len(self._bound) >= _MANY_ATTEMPTS:
                self._count_bound()
            bound = self._bound[profile, attempts] = []
        bound.append((attempt_s, waited_s))
        if len(bound) >= MOST_UNSORTED:
            self._count_bound()

    def found_nodes(self, took_s: float, attempts: int) -> None:
        """Record attempts that found a node, each in `took_s` seconds."""
        self.algorithm_s.series().observe_all([took_s] * attempts)

    def _count_bound(self) -> None:
        uncounted, self._bound = self._bound, {}
        for (profile, attempts), bound in uncounted.items():
            attempt_s, waited_s = zip(*bound, strict=True)
            self.attempts.add(SCHEDULED, profile, amount=len(bound))
            self.attempt_s.series(SCHEDULED, profile).observe_all(attempt_s)
            self.pod_attempts.series().observe_all([attempts] * len(bound))
            label = str(attempts) if attempts < _MANY_ATTEMPTS else f"{_MANY_ATTEMPTS}+"
            self.sli_s.series(label).observe_all(waited_s)

    def families(self, sizes: Mapping[str, int], running: Mapping[str, int]) -> list[MetricFamily]:
        """Return all metrics.

        `sizes` are the sizes of the scheduler cache; `running` is the number of running attempts and bindings.
        """
        self._count_bound()
        for times in self._times.values():
            times.count_skipped()
        instruments = [each for each in vars(self).values() if isinstance(each, Counter | Histogram)]
        return [
            *(each.family() for each in instruments),
            *self._plugins.families(),
            MetricFamily(catalogue.CACHE_SIZE, {(of,): size for of, size in sizes.items()}),
            MetricFamily(catalogue.GOROUTINES, {(of,): count for of, count in running.items()}),
        ]
