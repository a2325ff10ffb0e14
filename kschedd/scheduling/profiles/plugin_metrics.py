"""What is counted and timed of single plugins: their calls, the scores they gave, and how often none had to be called.

Upstream times the plugins of a tenth of the attempts, drawn at random; so does `Sampling`, from the seed and with
randomness of its own, so that whether anybody counts changes no decision. Every call is counted. An attempt is drawn
once in a while (SCORES_SAMPLED) to have its scores computed plugin by plugin, which comes to the same total.

Owned by the scheduling driver. Where nobody counts (forks, simulations), a Framework has counters that nobody reads.
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
    """Which attempts have more of them noted: `plugins` for their times, `scores` for every plugin's score; `shares`
    are how many of them do, of one."""

    __slots__ = ("_draw", "_due", "plugins", "scores", "shares", "timer")

    def __init__(self, seed: int = 0, timer: Callable[[], float] = time.perf_counter) -> None:
        self.timer = timer
        self.plugins = self.scores = False
        self.shares = (PLUGINS_SAMPLED, SCORES_SAMPLED)
        self._due = False  # the next attempt that is made by itself is one of those whose scores are noted
        self._draw = Random(f"{seed}/metrics").random

    def next(self) -> None:
        """An attempt begins."""
        drawn = self._draw()
        plugins, scores = self.shares
        self.plugins = drawn < plugins
        self.scores, self._due = drawn < scores or self._due, False

    def next_several(self, attempts: int) -> None:
        """So many attempts begin whose scores cannot be noted: where some of them were to be, the next one's are."""
        plugins, scores = self.shares
        self.plugins, self.scores = self._draw() < plugins, False
        self._due = self._due or self._draw() < scores * attempts

    @property
    def due(self) -> bool:
        """Whether the next attempt has to be made by itself."""
        return self._due


class CallCounter:
    """The calls of one plugin at one extension point: `evaluations` of them, `errors`, and how long some took.

    Most calls are not timed and succeed. Where there are several for each pod, whoever makes them looks at `sampling`
    itself and adds to `evaluations`, which costs a fraction of calling `start` and `ended`.
    """

    __slots__ = ("_by_status", "_series_of", "errors", "evaluations", "sampling")

    def __init__(self, sampling: Sampling, series_of: Callable[[str], HistogramSeries]) -> None:
        self.evaluations = self.errors = 0
        self.sampling = sampling
        self._series_of = series_of
        self._by_status: dict[str, HistogramSeries] = {}

    def start(self) -> float | None:
        """When a call begins; None if it is not timed."""
        sampling = self.sampling
        return sampling.timer() if sampling.plugins else None

    def answered(self, began_s: float | None, said: object) -> None:
        """A call that began then has ended with this, which is no failure unless it is a Status that says so."""
        if began_s is None and (said is None or said is SKIP):  # as most often
            self.evaluations += said is None
            return
        status = said.code.label if isinstance(said, Status) else SUCCESS
        self.ended(began_s, status, 0 if status == _SKIP else 1)

    def ended(self, began_s: float | None, status: str = SUCCESS, evaluations: int = 1) -> None:
        """A call that began then (`start`) has ended."""
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
    """Verdicts on nodes that were looked up in the evaluation cache and found, and those that plugins gave."""

    hits: int = 0
    misses: int = 0


class PluginMetrics:
    """What is counted of one profile's plugins; `into`: where times and scores go, which all profiles share."""

    def __init__(self, profile: str = "", into: "PluginInstruments | None" = None) -> None:
        into = into or PluginInstruments()
        self.sampling = into.sampling
        self.cache = CacheUse()
        self._profile = profile
        self._into = into
        self._calls: dict[tuple[str, str], CallCounter] = {}

    def calls(self, plugin: str, point: str) -> CallCounter:
        """The same each time."""
        found = self._calls.get((plugin, point))
        if found is None:
            durations = self._into.durations
            found = CallCounter(self.sampling, lambda status: durations.series(plugin, point, status))
            self._calls[plugin, point] = found
        return found

    def chosen(self, totals: Ints, best: int, ties: int) -> None:
        """A node was chosen by these totals, of which `best` is the highest, `ties` times."""
        margin = 0 if ties > 1 else best - int(totals[totals != best].max(initial=0))
        self._into.margins.observe(margin, self._profile)

    def scored(self, plugin: str, weighted: int) -> None:
        """What a plugin gave the node that was chosen."""
        self._into.scores.observe(weighted, plugin, self._profile)

    def count(self, evaluations: dict[Labels, float], volume_errors: dict[Labels, float]) -> None:
        """Add what was counted of calls."""
        for (plugin, point), calls in self._calls.items():
            if point in _EVALUATED and calls.evaluations:
                evaluations[plugin, point, self._profile] = calls.evaluations
            if plugin == "VolumeBinding" and point in _VOLUME_STAGES and calls.errors:
                stage = (_VOLUME_STAGES[point],)
                volume_errors[stage] = volume_errors.get(stage, 0) + calls.errors


class PluginInstruments:
    """What all profiles share, and the profiles."""

    def __init__(self, sampling: Sampling | None = None) -> None:
        self.sampling = sampling or Sampling()
        self.durations = Histogram(catalogue.PLUGIN_DURATION)
        self.scores = Histogram(catalogue.SCORE)
        self.margins = Histogram(catalogue.MARGIN)
        self._profiles: dict[str, PluginMetrics] = {}

    def of(self, profile: str) -> PluginMetrics:
        """What is counted of this profile's plugins; the same each time."""
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
            MetricFamily(catalogue.PLUGIN_EVALUATIONS, evaluations),
            MetricFamily(catalogue.VOLUME_ERRORS, volume_errors),
            MetricFamily(catalogue.CACHED_EVALUATIONS, cache),
        ]
