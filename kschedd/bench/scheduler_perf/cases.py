"""The test cases of a performance-config.yaml, read strictly: every error has its line number.

As in upstream (Go's encoding/json), field names are not case-sensitive. An unsupported or invalid field makes only its
own case unusable. The errors of a case are reported when the case is to be run. A file that is not a list of cases, or
whose case names are not unique, is rejected completely.

Source: Kubernetes v1.34, test/integration/scheduler_perf/scheduler_perf.go (testCase, workload, getTestCases,
validateTestCases).

Raises: PerfConfigError.
"""

from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Final, get_args, get_origin

import attrs

from kschedd.api.text.documents import Document
from kschedd.api.text.durations import DurationError, parse_duration
from kschedd.bench.scheduler_perf.operations import (
    CHURN_CREATE,
    CHURN_RECREATE,
    STAGE_ATTEMPTED,
    STAGE_SCHEDULED,
    STEPS,
    Barrier,
    Churn,
    CreatePods,
    CreatePodSets,
    Operation,
    Parameters,
    Seconds,
)
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.source import path_of, read_document
from kschedd.errors import KscheddError

Place = tuple[str | int, ...]

THROUGHPUT: Final = "SchedulingThroughput"


@attrs.define(eq=False)
class PerfConfigError(KscheddError):
    """The error for an invalid benchmark file, or an invalid case in it."""

    faults: tuple[str, ...]  # messages such as "performance-config.yaml:12: $[0].workloadTemplate[2].opcode: ..."

    def __str__(self) -> str:
        return "\n".join(self.faults)


@attrs.frozen(kw_only=True)
class ThresholdMetricSelector:
    """The metric to which a threshold applies; with `expect_lower`, the threshold is a maximum."""

    name: str = THROUGHPUT
    labels: Mapping[str, str] = {}
    data_bucket: str = ""
    expect_lower: bool = False


@attrs.frozen(kw_only=True)
class MetricsCollectorConfig:
    """Histograms to collect, by name.

    With None, there is one figure for the whole histogram; otherwise one figure for each combination of label values.
    """

    metrics: Mapping[str, Any] = {}


@attrs.frozen(kw_only=True)
class PerfWorkload:
    """A workload of a case: the parameters that determine its size."""

    name: str = ""
    params: Mapping[str, Any] = {}
    labels: tuple[str, ...] = ()
    threshold: Any = 0
    threshold_metric_selector: ThresholdMetricSelector | None = None
    feature_gates: Mapping[str, bool] = {}

    def limit(self, topic: str) -> float:
        """Return the threshold for results that are published under this topic; 0 if there is none."""
        limits = self.threshold
        found = limits.get(topic, 0) if isinstance(limits, Mapping) else limits
        return float(found)


@attrs.frozen(kw_only=True)
class PerfCase:
    """A test case. `steps`: by line. `faults` contains the reasons why the case cannot be run."""

    name: str = ""
    feature_gates: Mapping[str, bool] = {}
    metrics_collector_config: MetricsCollectorConfig | None = None
    workload_template: tuple[Any, ...] = ()
    workloads: tuple[PerfWorkload, ...] = ()
    scheduler_config_path: str = ""
    default_pod_template_path: str = ""
    labels: tuple[str, ...] = ()
    default_threshold_metric_selector: ThresholdMetricSelector | None = None
    steps: Mapping[int, Operation] = {}
    faults: tuple[str, ...] = ()

    def selector(self, workload: PerfWorkload) -> ThresholdMetricSelector:
        return (
            workload.threshold_metric_selector
            or self.default_threshold_metric_selector
            or ThresholdMetricSelector(data_bucket="Average")
        )


def read_cases(text: str, source: str) -> list[PerfCase]:
    """Return the cases in file order. Raises PerfConfigError."""
    try:
        document = read_document(text, source)
    except ConfigErrors as wrong:
        raise PerfConfigError(tuple(str(wrong).splitlines())) from None
    if not isinstance(document.value, list) or not document.value:
        raise PerfConfigError((f"{source}:1: $: a list of test cases is expected",))
    cases = [_Reader(source, document).case(raw, (number,)) for number, raw in enumerate(document.value)]
    names = [case.name for case in cases]
    twice = [
        f"{source}:{document.line_of((number,))}: $[{number}].name: {name!r} is another case's name as well"
        for number, name in enumerate(names)
        if name in names[:number]
    ]
    if twice:
        raise PerfConfigError(tuple(twice))
    return cases


def read_file(path: Path) -> list[PerfCase]:
    """Return the cases of a file. Raises PerfConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        why = wrong.strerror if isinstance(wrong, OSError) else "it is not UTF-8"
        raise PerfConfigError((f"{path}: cannot be read: {why}",)) from None
    return read_cases(text, str(path))


_INTERNAL: Final = frozenset(("steps", "faults"))


class _Reader:
    """A reader of one case, which collects the errors in it."""

    def __init__(self, source: str, document: Document) -> None:
        self._source = source
        self._document = document
        self._faults: list[str] = []

    def case(self, raw: object, at: Place) -> PerfCase:
        case: PerfCase = self._object(PerfCase, raw, at)
        steps: dict[int, Operation] = {}
        for number, each in enumerate(case.workload_template):
            place = (*at, "workloadTemplate", number)
            step = self._step(each, place)
            if step is not None:
                steps[self._document.line_of(place)] = step
        self._check(case, steps, at)
        return attrs.evolve(case, steps=steps, faults=tuple(self._faults))

    def _wrong(self, at: Place, why: str) -> None:
        self._faults.append(f"{self._source}:{self._document.line_of(at)}: {path_of(at)}: {why}")

    def _check(self, case: PerfCase, steps: Mapping[int, Operation], at: Place) -> None:
        if not case.name:
            self._wrong(at, "the case has no name")
        if not case.workloads:
            self._wrong(at, "no workloads defined")
        if not case.workload_template:
            self._wrong(at, "no operations defined")
        elif not self._faults and not any(_collects(step) for step in steps.values()):
            self._wrong(at, "no operation in the workload template collects metrics")
        names = [workload.name for workload in case.workloads]
        for number, workload in enumerate(case.workloads):
            if workload.name in names[:number]:
                self._wrong((*at, "workloads", number), f"{workload.name!r} is another workload's name as well")
            limits = workload.threshold
            values = limits.values() if isinstance(limits, Mapping) else [limits]
            if any(isinstance(value, bool) or not isinstance(value, int | float) or value < 0 for value in values):
                self._wrong((*at, "workloads", number, "threshold"), f"{limits!r}: a number, 0 or more, is expected")

    def _step(self, raw: object, at: Place) -> Operation | None:
        if not isinstance(raw, Mapping):
            self._wrong(at, "an operation is a mapping with an opcode")
            return None
        opcode = next((value for key, value in raw.items() if key.lower() == "opcode"), None)
        cls = STEPS.get(opcode) if isinstance(opcode, str) else None
        if cls is None:
            self._wrong((*at, "opcode"), f"{opcode!r} is not supported; there are: {', '.join(STEPS)}")
            return None
        before = len(self._faults)
        step: Operation = self._object(cls, {key: value for key, value in raw.items() if key.lower() != "opcode"}, at)
        if len(self._faults) == before:
            self._check_step(step, at)
        return step if len(self._faults) == before else None

    def _check_step(self, step: Operation, at: Place) -> None:
        for name in step.needs:
            if not getattr(step, name) and name != "create_pods_op":
                self._wrong(at, f"{step.opcode}: {_camel(name)} must be set")
        match step:
            case Churn() if step.mode not in (CHURN_CREATE, CHURN_RECREATE):
                self._wrong((*at, "mode"), f"{step.mode!r}: {CHURN_CREATE} or {CHURN_RECREATE}")
            case Churn() if step.mode == CHURN_RECREATE and step.number < 1:
                self._wrong((*at, "number"), f"at least 1 where the mode is {CHURN_RECREATE}")
            case Barrier() if step.stage_requirement not in (STAGE_SCHEDULED, STAGE_ATTEMPTED):
                self._wrong((*at, "stageRequirement"), f"{step.stage_requirement!r}: Scheduled or Attempted")
            case CreatePodSets():
                self._check_step(step.create_pods_op, (*at, "createPodsOp"))
            case CreatePods():
                if step.skip_wait_to_completion and (step.collect_metrics or step.steady_state):
                    why = "collectMetrics" if step.collect_metrics else "steadyState"
                    self._wrong(at, f"{why} and skipWaitToCompletion cannot be true at the same time")
                paths = (step.persistent_volume_template_path, step.persistent_volume_claim_template_path)
                if any(paths) and not all(paths):
                    self._wrong(at, "the templates of volume and claim go together")

    def _object(self, cls: Any, raw: object, at: Place) -> Any:
        if not isinstance(raw, Mapping):
            self._wrong(at, f"{raw!r}: a mapping is expected")
            return cls()
        known = {_camel(each.name).lower(): each for each in attrs.fields(cls) if each.name not in _INTERNAL}
        values = {}
        for key, value in raw.items():
            field = known.get(key.lower())
            if field is None:
                self._wrong(
                    (*at, key), f"this field is not supported; there are: {', '.join(map(_camel_of, known.values()))}"
                )
            elif value is not None:
                values[field.name] = self._value(field.type, field.name, value, (*at, key))
        return cls(**values)

    def _value(self, wanted: Any, name: str, value: Any, at: Place) -> Any:
        origin, arguments = get_origin(wanted), get_args(wanted)
        if isinstance(wanted, UnionType):
            return self._value(arguments[0], name, value, at)
        if attrs.has(wanted):
            if wanted is CreatePods and isinstance(value, Mapping):
                value = {key: each for key, each in value.items() if key.lower() != "opcode"}
            return self._object(wanted, value, at)
        if origin is tuple:
            if not isinstance(value, list):
                self._wrong(at, f"{value!r}: a list is expected")
                return ()
            return tuple(self._value(arguments[0], name, each, (*at, i)) for i, each in enumerate(value))
        if origin is Mapping or (isinstance(origin, type) and issubclass(origin, Mapping)):
            if not isinstance(value, Mapping):
                self._wrong(at, f"{value!r}: a mapping is expected")
                return {}
            return {key: self._value(arguments[1], name, each, (*at, key)) for key, each in value.items()}
        return self._scalar(wanted, name, value, at)

    def _scalar(self, wanted: Any, name: str, value: Any, at: Place) -> Any:
        if wanted is Any:
            return value
        if wanted is Seconds:
            try:
                return parse_duration(value if isinstance(value, str) else "")
            except DurationError as wrong:
                self._wrong(at, f"{value!r}: {wrong}")
                return Seconds(0.0)
        if type(value) is not wanted:
            self._wrong(at, f"{value!r}: {_WORDS[wanted]} is expected")
            return wanted()
        if wanted is int and value < 0:
            self._wrong(at, f"{value}: at least 0")
        if name.endswith("_param") and not value.startswith("$"):
            self._wrong(at, f"{value!r}: a parameter is written with $ before its name")
        return value


_WORDS: Final = {int: "a whole number", bool: "true or false", str: "text"}


def _collects(step: Operation) -> bool:
    if isinstance(step, CreatePodSets):
        step = step.create_pods_op
    return step.collects or (isinstance(step, CreatePods) and step.collect_metrics)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _camel_of(field: Any) -> str:
    return _camel(field.name)


def parameters(workload: PerfWorkload) -> Parameters:
    return Parameters(workload.params)


def enabled(label_filter: str, labels: tuple[str, ...]) -> bool:
    """Return whether the filter (`performance,-short`) accepts a workload with these labels."""
    for word in filter(None, (word.strip() for word in label_filter.split(","))):
        if word.startswith("-"):
            if word[1:] in labels:
                return False
        elif word.removeprefix("+") not in labels:
            return False
    return True
