"""Metrics of single plugins: their calls, their scores, and the number of cached results.

Kube-scheduler times the plugins of a random tenth of the attempts. `Sampling` selects attempts with its own seeded
random generator, so metrics never change a decision. Every call is counted. For a few attempts (SCORES_SAMPLED), the
scores are computed separately for each plugin, with the same total.

Without metrics (in forks and simulations), a Framework has counters that are never read.

Source: Kubernetes v1.34, scheduler/schedule_one.go (pluginMetricsSamplePercent), framework/runtime/framework.go and
instrumented_plugins.go.
"""

import time
from collections.abc import Callable
from random import Random
from typing import Final

import attrs

from kschedd.cache.table import Ints
from kschedd.framework.status import SKIP, Status
from kschedd.metrics import catalogue
from kschedd.metrics.instruments import Histogram, HistogramSeries, Labels, MetricFamily

PLUGINS_SAMPLED: Final = 0.1
SCORES_SAMPLED: Final = 1 / 512

SUCCESS: Final = "Success"
UNSCHEDULABLE: Final = "Unschedulable"
ERROR: Final = "Error"
PRE_FILTER: Final = "PreFilter"
FILTER: Final = "Filter"
PRE_SCORE: Final = "PreScore"
SCORE: Final = "Score"
NORMALIZE: Final = "ScoreExtensionNormalize"
POST_FILTER: Final = "PostFilter"
RESERVE: Final = "Reserve"
UNRESERVE: Final = "Unreserve"
PERMIT: Final = "Permit"
PRE_BIND: Final = "PreBind"
BIND: Final = "Bind"
_SKIP: Final = "Skip"
_EVALUATED: Final = (PRE_FILTER, FILTER, PRE_SCORE, SCORE)
_VOLUME_STAGES: Final = {FILTER: "predicate", RESERVE: "assume", PRE_BIND: "bind"}


class Sampling:
    """The choice of the sampled attempts: `plugins` for plugin times, `scores` for every plugin's score.

    `shares` contains the fractions of sampled attempts.
    """

    __slots__ = ("_draw", "_due", "plugins", "scores", "shares", "timer")

    def __init__(self, seed: int = 0, timer: Callable[[], float] = time.perf_counter) -> None:
        self.timer = timer
        self.plugins = self.scores = False
        self.shares = (PLUGINS_SAMPLED, SCORES_SAMPLED)
        self._due = False  # whether the next attempt outside a run must sample its scores
        self._draw = Random(f"{seed}/metrics").random

    def next(self) -> None:
        """Begin an attempt."""
        drawn = self._draw()
        plugins, scores = self.shares
        self.plugins = drawn < plugins
        self.scores, self._due = drawn < scores or self._due, False

    def next_several(self, attempts: int) -> None:
        """Begin several attempts without sampled scores.

        A selected attempt among them is replaced by the next single attempt.
        """
        plugins, scores = self.shares
        self.plugins, self.scores = self._draw() < plugins, False
        self._due = self._due or self._draw() < scores * attempts

    @property
    def due(self) -> bool:
        """True if the next attempt must not be part of a run."""
        return self._due


class CallCounter:
    """The calls of one plugin at one extension point: `evaluations`, `errors`, and the durations of timed calls.

    Most calls are not timed and succeed. For several calls per pod, it is faster to check `sampling` and add to
    `evaluations` than to call `start` and `ended`.
    """

    __slots__ = ("_by_status", "_series_of", "errors", "evaluations", "sampling")

    def __init__(self, sampling: Sampling, series_of: Callable[[str], HistogramSeries]) -> None:
        self.evaluations = self.errors = 0
        self.sampling = sampling
        self._series_of = series_of
        self._by_status: dict[str, HistogramSeries] = {}

    def start(self) -> float | None:
        """Return the start time of a call, or None if the call is not timed."""
        sampling = self.sampling
        return sampling.timer() if sampling.plugins else None

    def answered(self, began_s: float | None, answer: object) -> None:
        """Record the end of a call with its result; only a Status can be a failure."""
        if began_s is None and (answer is None or answer is SKIP):  # the most frequent case
            self.evaluations += answer is None
            return
        status = answer.code.label if isinstance(answer, Status) else SUCCESS
        self.ended(began_s, status, 0 if status == _SKIP else 1)

    def ended(self, began_s: float | None, status: str = SUCCESS, evaluations: int = 1) -> None:
        """Record the end of a call that began at `began_s` (`start`)."""
        self.evaluations += evaluations
        if status == ERROR:
            self.errors += 1
        if began_s is not None:
            took_s = self.sampling.timer() - began_s
            try:
                series = self._by_status[status]
            except KeyError:
                series = self._by_status[status] = self._series_of(status)
            series.observe(took_s)


@attrs.define(eq=False)
class CacheUse:
    """The numbers of verdicts found in the evaluation cache and of verdicts computed by plugins."""

    hits: int = 0
    misses: int = 0


class PluginMetrics:
    """The metrics of one profile's plugins."""

    def __init__(self, profile: str = "", into: "PluginInstruments | None" = None) -> None:
        into = into or PluginInstruments()
        self.sampling = into.sampling
        self.cache = CacheUse()
        self._profile = profile
        self._into = into
        self._calls: dict[tuple[str, str], CallCounter] = {}

    def calls(self, plugin: str, point: str) -> CallCounter:
        """Return the counter of a plugin at an extension point; always the same object."""
        found = self._calls.get((plugin, point))
        if found is None:
            durations = self._into.durations
            found = CallCounter(self.sampling, lambda status: durations.series(plugin, point, status))
            self._calls[plugin, point] = found
        return found

    def chosen(self, totals: Ints, best: int, ties: int) -> None:
        """Record the selection of a node by these totals; `ties` nodes have the highest total `best`."""
        margin = 0 if ties > 1 else best - int(totals[totals != best].max(initial=0))
        self._into.margins.observe(margin, self._profile)

    def scored(self, plugin: str, weighted: int) -> None:
        """Record a plugin's weighted score of the selected node."""
        self._into.scores.observe(weighted, plugin, self._profile)

    def searched_victims(self, preemptor: str, status: str, took_s: float) -> None:
        """Record a search for pods to evict for a `pod` or a `podgroup`."""
        self._into.victim_searches.observe(took_s, preemptor, status)

    def count(self, evaluations: dict[Labels, float], volume_errors: dict[Labels, float]) -> None:
        """Add the counts of calls."""
        for (plugin, point), calls in self._calls.items():
            if point in _EVALUATED and calls.evaluations:
                evaluations[plugin, point, self._profile] = calls.evaluations
            if plugin == "VolumeBinding" and point in _VOLUME_STAGES and calls.errors:
                stage = (_VOLUME_STAGES[point],)
                volume_errors[stage] = volume_errors.get(stage, 0) + calls.errors


class PluginInstruments:
    """The instruments that all profiles share, and the separate instruments of each profile."""

    def __init__(self, sampling: Sampling | None = None) -> None:
        self.sampling = sampling or Sampling()
        self.durations = Histogram(catalogue.PLUGIN_DURATION)
        self.scores = Histogram(catalogue.SCORE)
        self.margins = Histogram(catalogue.MARGIN)
        self.victim_searches = Histogram(catalogue.PREEMPTION_EVALUATION)
        self._profiles: dict[str, PluginMetrics] = {}

    def of(self, profile: str) -> PluginMetrics:
        """Return the metrics of this profile's plugins; always the same object."""
        found = self._profiles.get(profile)
        if found is None:
            found = self._profiles[profile] = PluginMetrics(profile, self)
        return found

    def families(self) -> list[MetricFamily]:
        evaluations: dict[Labels, float] = {}
        volume_errors: dict[Labels, float] = {}
        cache: dict[Labels, float] = {}
        for name, profile in self._profiles.items():
            profile.count(evaluations, volume_errors)
            cache[name, "hit"], cache[name, "miss"] = profile.cache.hits, profile.cache.misses
        return [
            self.durations.family(),
            self.scores.family(),
            self.margins.family(),
            self.victim_searches.family(),
            MetricFamily(catalogue.PLUGIN_EVALUATIONS, evaluations),
            MetricFamily(catalogue.VOLUME_ERRORS, volume_errors),
            MetricFamily(catalogue.CACHED_EVALUATIONS, cache),
        ]
