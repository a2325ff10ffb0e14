"""Tuning: Optuna chooses values of parameters and a sweep measures them; the best are compared with the given profile.

A specification of a sweep with one profile and these additional fields:

    search:      {weights.NodeResourcesFit: {low: 1, high: 10}, args.NodeResourcesFit.scoringStrategy.type:
                  {choices: [LeastAllocated, MostAllocated]}}
    objectives:  {gpu_milli_used_end: maximize, unusable_nodes: minimize}
    trials:      40
    held_out:    100-109        seeds of the comparison, which no trial has seen

An objective is the mean of a metric over all runs of a trial. Trials are chosen in rounds of `ROUND`, whatever the
number of workers, so that the same specification results in the same study. With one objective, a trial is pruned if
the first third of its seeds is worse than the median of earlier trials. The study is stored in `study.log`, next to its
rows. After a restart, finished trials are reused, and interrupted trials are repeated first.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from typing import Any, Final

import attrs

from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import ConfigFields, ConfigReader, ConfigValue
from kschedd.errors import KscheddError
from kschedd.sdk.records import optional_library
from kschedd.simulation.results.tables import made_folder
from kschedd.studies.engines import EngineOptions, Row, perform_all
from kschedd.studies.parameters import ParameterPathError, steps_of
from kschedd.studies.plan import (
    MOST_CHECKED,
    ParameterValueError,
    PlannedRun,
    check_configurations,
    digest,
    planned_runs,
    read_config,
    with_parameters,
)
from kschedd.studies.rows import RowsFile, read_rows
from kschedd.studies.run import OK, perform
from kschedd.studies.spec import Parameter, SweepSpec, measured, opened, read_seeds, read_spec

ROUND: Final = 4  # trials
_FIELDS: Final = ("search", "objectives", "trials", "held_out")
_RESEARCH: Final = "research"
_CONFIDENCE: Final = 0.95


class TuningError(KscheddError):
    """A study that cannot continue: all runs of the given profile failed, or the folder has a study of other inputs."""


@attrs.frozen
class SearchedParameter:
    """A path with its possible values: a range of integers or real numbers, or choices."""

    path: str
    choices: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0
    whole: bool = True

    @property
    def ends(self) -> tuple[Any, ...]:
        """The choices, or the ends of the range."""
        if self.choices:
            return self.choices
        return (int(self.low), int(self.high)) if self.whole else (self.low, self.high)

    def suggested(self, trial: Any) -> Any:
        if self.choices:
            return self.choices[trial.suggest_categorical(self.path, list(range(len(self.choices))))]
        if self.whole:
            return trial.suggest_int(self.path, int(self.low), int(self.high))
        return trial.suggest_float(self.path, self.low, self.high)


@attrs.frozen(kw_only=True)
class TuningSpec:
    """A specification after it was read; `sweep` contains neither parameters nor the fields of tuning."""

    sweep: SweepSpec
    search: tuple[SearchedParameter, ...]
    objectives: Mapping[str, bool]  # for each metric: whether it is maximized
    trials: int
    held_out: tuple[int, ...]


@attrs.frozen(kw_only=True)
class Compared:
    """The metric of the best configuration minus that of the given one, over held-out seeds, with the 95 % interval."""

    metric: str
    given: float
    best: float
    difference: float
    low: float
    high: float


@attrs.frozen(kw_only=True)
class BestTrial:
    """A trial that no other trial dominates: its values, the means of its objectives, and its configuration."""

    number: int
    parameters: Mapping[str, Any]
    objectives: Mapping[str, float]
    config: Mapping[str, Any]
    compared: Sequence[Compared] = ()


def read_tuning_spec(given: str | Path | Mapping[str, Any], data: Path | None = None) -> TuningSpec:
    """Read a specification. Raises ConfigErrors and SpecFileError."""
    reading, value, folder = opened(given)
    root = ConfigValue(value, "$", reading)
    fields = root.fields(any_other=True)
    if fields is None:
        raise ConfigErrors(tuple(reading.faults))
    search = tuple(_searched(fields))
    objectives = dict(_objectives(fields))
    held_out = read_seeds(fields.get("held_out")) if fields.get("held_out") else tuple(range(1000, 1010))
    trials = fields.integer("trials", 20, (1, 100_000))
    if "parameters" in fields.place.value:
        root.at("parameters", None).wrong("no field of tuning; use search")
    _raise(reading)
    rest = {name: each for name, each in fields.place.value.items() if name not in _FIELDS}
    sweep = read_spec(rest, source=reading, folder=folder, data=data)
    for name in ("profiles", "versions"):
        if len(getattr(sweep, name)) > 1:
            root.at(name, None).wrong("tuning has one")
    if seen := sorted({*sweep.seeds}.intersection(held_out)):
        root.at("held_out", seen).wrong("these are seeds of the trials", "other seeds, for example 1000-1009")
    _raise(reading)
    kept = attrs.evolve(
        sweep,
        options=attrs.evolve(sweep.options, metrics=()),
        parameters=tuple(Parameter(each.path, each.path, ()) for each in search),
    )
    return TuningSpec(sweep=kept, search=search, objectives=objectives, trials=trials, held_out=held_out)


def _raise(reading: ConfigReader) -> None:
    if reading.faults:
        raise ConfigErrors(tuple(reading.faults))


def _searched(fields: ConfigFields) -> Iterator[SearchedParameter]:
    place = fields.get("search")
    if place is None or not isinstance(place.value, Mapping) or not place.value:
        fields.missing("search", "a mapping of paths to {low, high} or {choices} is required")
        return
    for path, value in place.value.items():
        at = place.at(str(path), value)
        try:
            steps_of(str(path))
        except ParameterPathError as fault:
            at.wrong(str(fault))
        each = at.fields("choices", "low", "high")
        if each is None:
            continue
        choices = tuple(item.value for item in each.items("choices"))
        low, high = each.number("low", 0), each.number("high", 0)
        if not choices and not low < high:
            at.wrong("no values", "{low: 1, high: 10} or {choices: [A, B]}")
        whole = all(isinstance(value.get(name), int) for name in ("low", "high"))
        yield SearchedParameter(str(path), choices, low, high, whole)


def _objectives(fields: ConfigFields) -> Iterator[tuple[str, bool]]:
    place = fields.get("objectives")
    if place is None or not isinstance(place.value, Mapping) or not place.value:
        fields.missing("objectives", "a mapping of metrics to minimize or maximize is required")
        return
    for metric, value in place.value.items():
        at = place.at(str(metric), value)
        direction = at.choice(("minimize", "maximize"))
        if measured(attrs.evolve(at, value=str(metric)), str(metric)) and direction:
            yield str(metric), direction == "maximize"


def _check_values(spec: TuningSpec) -> None:
    """Raise ParameterValueError if a value is invalid in each of the first 1,000 combinations with other values."""
    sweep = attrs.evolve(spec.sweep, parameters=tuple([Parameter(one.path, one.path, one.ends) for one in spec.search]))
    [profile], [version] = sweep.profiles, sweep.versions
    valid, faults = set[tuple[int, int]](), dict[tuple[int, int], ParameterValueError]()
    for ends in itertools.islice(itertools.product(*(enumerate(one.ends) for one in spec.search)), MOST_CHECKED):
        places = {(number, place) for number, (place, _) in enumerate(ends)}
        values = {one.path: value for one, (_, value) in zip(spec.search, ends, strict=True)}
        try:
            read_config(with_parameters(sweep, profile, values), version)
            valid |= places
        except ParameterValueError as fault:
            faults.update(dict.fromkeys(places, fault))
        except ConfigErrors as fault:
            faults.update(dict.fromkeys(places, ParameterValueError(sweep.source, profile, values, str(fault))))
    for place in sorted(faults.keys() - valid):
        raise faults[place]


class Tuning:
    """A study in a folder. `progress` is called with the number of finished trials and the rows of each new trial."""

    def __init__(
        self, spec: TuningSpec, out: Path, options: EngineOptions, progress: Callable[[int], None] = lambda done: None
    ) -> None:
        self._optuna = optional_library("optuna", _RESEARCH)
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        self._spec, self._options, self._progress = spec, options.checked(), progress
        self._out = made_folder(out)
        check_configurations(attrs.evolve(spec.sweep, parameters=()))
        _check_values(spec)

    def run(self) -> list[BestTrial]:
        """Perform the remaining trials; return those that no other trial dominates, compared with the given profile."""
        with RowsFile.opened(self._out) as file:
            self._file = file
            self._rows: dict[str, Row] = {str(row["run"]): dict(row) for row in read_rows(self._out)}
            study = self._study()
            states = self._optuna.trial.TrialState
            while (left := self._spec.trials - len(study.get_trials(states=(states.COMPLETE, states.PRUNED)))) > 0:
                self._round(study, min(left, ROUND))
                self._progress(self._spec.trials - left + min(left, ROUND))
            given = self._held_out({})
            return [attrs.evolve(best, compared=self._compared(given, best)) for best in self._best(study)]

    @property
    def failed(self) -> list[Row]:
        """The rows of failed runs, after `run`."""
        return [row for row in self._rows.values() if row["status"] != OK]

    def _study(self) -> Any:
        optuna = self._optuna
        journal = optuna.storages.journal
        storage = optuna.storages.JournalStorage(journal.JournalFileBackend(str(self._out / "study.log")))
        directions = ["maximize" if up else "minimize" for up in self._spec.objectives.values()]
        try:
            study = optuna.create_study(study_name="kschedd", storage=storage, directions=directions)
            study.set_user_attr("inputs", self._inputs_hash)
        except optuna.exceptions.DuplicatedStudyError:
            study = optuna.load_study(study_name="kschedd", storage=storage)
            if study.user_attrs.get("inputs") != self._inputs_hash:
                raise TuningError(
                    f"{self._out}: has a study with other inputs, values or objectives; give another folder with --out"
                ) from None
        study.sampler = optuna.samplers.TPESampler(seed=self._spec.sweep.seeds[0] + len(study.trials))
        study.pruner = optuna.pruners.MedianPruner(n_startup_trials=ROUND)
        for trial in study.get_trials(states=(optuna.trial.TrialState.RUNNING,)):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            study.enqueue_trial(trial.params)
        return study

    @property
    def _inputs_hash(self) -> str:
        """A hash of all that must be the same when the study is resumed."""
        spec = self._spec
        searched = [[one.path, list(one.choices), one.low, one.high, one.whole] for one in spec.search]
        runs = [run.run for run in self._runs({}, spec.sweep.seeds)]
        return digest([searched, list(spec.objectives.items()), runs])

    def _round(self, study: Any, count: int) -> None:
        """Choose and measure some trials; with one objective, worse trials run only a third of the seeds."""
        trials = [study.ask() for _ in range(count)]
        chosen = [{each.path: each.suggested(trial) for each in self._spec.search} for trial in trials]
        seeds = self._spec.sweep.seeds
        first = seeds[: max(1, len(seeds) // 3)] if len(self._spec.objectives) == 1 else seeds
        found = self._measured(chosen, first)
        if first != seeds:
            pruned = self._optuna.trial.TrialState.PRUNED
            rest = []
            for trial, values, objectives in zip(trials, chosen, found, strict=True):
                if objectives is not None:
                    trial.report(objectives[0], step=len(first))
                    if trial.should_prune():
                        study.tell(trial, state=pruned)
                        continue
                rest.append((trial, values))
            trials, chosen = [trial for trial, _ in rest], [values for _, values in rest]
            found = self._measured(chosen, seeds)
        for trial, objectives in zip(trials, found, strict=True):
            if objectives is None:  # a configuration whose run failed is worse than any other
                study.tell(trial, [-math.inf if up else math.inf for up in self._spec.objectives.values()])
            else:
                study.tell(trial, objectives)

    def _runs(self, values: Mapping[str, Any], seeds: Sequence[int]) -> list[PlannedRun]:
        parameters = tuple(Parameter(path, path, (value,)) for path, value in values.items())
        return list(planned_runs(attrs.evolve(self._spec.sweep, parameters=parameters, seeds=tuple(seeds))))

    def _performed(self, runs: Sequence[PlannedRun]) -> list[Row]:
        left = {run.run: run for run in runs if run.run not in self._rows}
        for row in perform_all(self._options, list(left.values()), perform):
            self._file.append(row)
            self._rows[str(row["run"])] = row
        return [self._rows[run.run] for run in runs]

    def _measured(self, chosen: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> list[list[float] | None]:
        """Return the objectives for each choice of values; None if one of its runs failed or lacks a metric."""
        runs = [self._runs(values, seeds) for values in chosen]
        self._performed([run for each in runs for run in each])
        return [self._means([self._rows[run.run] for run in each]) for each in runs]

    def _means(self, rows: Sequence[Row]) -> list[float] | None:
        if any(row["status"] != OK or row.get(metric) is None for row in rows for metric in self._spec.objectives):
            return None
        return [fmean(row[metric] for row in rows) for metric in self._spec.objectives]

    # -- results ------------------------------------------------------------------------------------------------

    def _best(self, study: Any) -> list[BestTrial]:
        found = []
        seen: list[Any] = []
        for trial in study.best_trials:
            if trial.values in seen or not all(map(math.isfinite, trial.values)):
                continue  # of several equal trials, the first one is sufficient
            seen.append(trial.values)
            values = {
                each.path: each.choices[trial.params[each.path]] if each.choices else trial.params[each.path]
                for each in self._spec.search
            }
            [run, *_] = self._runs(values, self._spec.sweep.seeds[:1])
            objectives = dict(zip(self._spec.objectives, trial.values, strict=True))
            found.append(
                BestTrial(number=trial.number, parameters=values, objectives=objectives, config=run.profile.config)
            )
        return found

    def _held_out(self, values: Mapping[str, Any]) -> list[Row]:
        return self._performed(self._runs(values, self._spec.held_out))

    def _compared(self, given: Sequence[Row], best: BestTrial) -> list[Compared]:
        rows = self._held_out(best.parameters)
        found = []
        for metric in self._spec.objectives:
            pairs = [
                (float(a[metric]), float(b[metric]))
                for a, b in zip(given, rows, strict=True)
                if a.get(metric) is not None and b.get(metric) is not None
            ]
            if not pairs:
                raise TuningError(f"{metric}: no run with a held-out seed has it")
            low, high = interval([b - a for a, b in pairs])
            means = fmean(a for a, _ in pairs), fmean(b for _, b in pairs)
            found.append(
                Compared(
                    metric=metric, given=means[0], best=means[1], difference=means[1] - means[0], low=low, high=high
                )
            )
        return found


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean, by Student's t; it is infinite for a single value."""
    if len(values) < 2:
        return -math.inf, math.inf
    half = student_t(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def student_t(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t distribution (Abramowitz and Stegun, 26.7.5; exact for 1 and 2)."""
    if freedom < 3:
        return (12.7062, 4.3027)[freedom - 1]
    z = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(z + sum(term / freedom**power for power, term in enumerate(terms, start=1)))
