"""The steps of a test case: one class for each opcode, with the fields that the file may contain.

A field `x_param` names a parameter of the workload (`$initNodes`); `resolved` sets the field `x` to the value of this
parameter. Units: durations are seconds.

Source: Kubernetes v1.34, test/integration/scheduler_perf/{operations,create,update,dra}.go; from later releases:
templateParams, steadyState, signatureBatchSize.

Raises: ParameterError.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, NewType, TypeVar

import attrs

from kschedd.api.text.durations import DurationError, parse_duration
from kschedd.errors import KscheddError

Seconds = NewType("Seconds", float)
"""A field that the file states as a duration: `2s`, `1m30s`."""

OperationClass = TypeVar("OperationClass", bound="Operation")


@attrs.define(eq=False)
class ParameterError(KscheddError):
    """The error for a parameter that the workload lacks, or that has a wrong type."""

    parameter: str
    why: str

    def __str__(self) -> str:
        return f"parameter {self.parameter}: {self.why}"


@attrs.frozen(kw_only=True)
class Operation:
    opcode: ClassVar[str] = ""
    collects: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()
    """Required fields."""


@attrs.frozen(kw_only=True)
class NodeAllocatableStrategy:
    """The allocatable resources of each node, and the drivers in its CSINode."""

    node_allocatable: Mapping[str, str] = {}
    csi_node_allocatable: Mapping[str, Any] = {}
    migrated_plugins: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class LabelNodePrepareStrategy:
    """A label whose values are assigned to the nodes in turn."""

    label_key: str = ""
    label_values: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class UniqueNodeLabelStrategy:
    """A label with a different value on each node."""

    label_key: str = ""


@attrs.frozen(kw_only=True)
class CreateNodes(Operation):
    opcode = "createNodes"
    count: int = 0
    count_param: str = ""
    node_template_path: str = ""
    node_allocatable_strategy: NodeAllocatableStrategy | None = None
    label_node_prepare_strategy: LabelNodePrepareStrategy | None = None
    unique_node_label_strategy: UniqueNodeLabelStrategy | None = None
    template_params: Mapping[str, Any] = {}


@attrs.frozen(kw_only=True)
class CreateNamespaces(Operation):
    opcode = "createNamespaces"
    prefix: str = ""
    count: int = 0
    count_param: str = ""
    namespace_template_path: str = ""


@attrs.frozen(kw_only=True)
class CreatePods(Operation):
    """Creation of pods. With `steady_state`, each bound pod is replaced by a new pod, for `duration` seconds."""

    opcode = "createPods"
    count: int = 0
    count_param: str = ""
    count_multiplier_param: str = ""
    steady_state: bool = False
    steady_state_param: str = ""
    duration: Seconds = Seconds(0.0)
    duration_param: str = ""
    collect_metrics: bool = False
    namespace: str = ""
    pod_template_path: str = ""
    skip_wait_to_completion: bool = False
    persistent_volume_template_path: str = ""
    persistent_volume_claim_template_path: str = ""
    template_params: Mapping[str, Any] = {}
    signature_batch_size: int = 0
    signature_batch_size_param: str = ""


@attrs.frozen(kw_only=True)
class CreatePodSets(Operation):
    opcode = "createPodSets"
    needs = ("create_pods_op",)
    count: int = 0
    count_param: str = ""
    namespace_prefix: str = ""
    create_pods_op: CreatePods = CreatePods()


@attrs.frozen(kw_only=True)
class CreateAny(Operation):
    opcode = "createAny"
    needs = ("template_path",)
    namespace: str = ""
    template_path: str = ""
    count: int = 1
    count_param: str = ""
    template_params: Mapping[str, Any] = {}


@attrs.frozen(kw_only=True)
class CreateResourceClaims(Operation):
    opcode = "createResourceClaims"
    needs = ("template_path", "namespace")
    namespace: str = ""
    template_path: str = ""
    count: int = 0
    count_param: str = ""


@attrs.frozen(kw_only=True)
class UpdateAny(Operation):
    opcode = "updateAny"
    needs = ("template_path",)
    namespace: str = ""
    template_path: str = ""
    count: int = 1
    count_param: str = ""
    update_per_second: int = 0
    subresources: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class DeletePods(Operation):
    opcode = "deletePods"
    needs = ("namespace",)
    namespace: str = ""
    label_selector: Mapping[str, str] = {}
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0


@attrs.frozen(kw_only=True)
class CreateResourceDriver(Operation):
    """A ResourceSlice with `max_claims_per_node` devices for each node whose name matches the pattern."""

    opcode = "createResourceDriver"
    needs = ("driver_name", "nodes")
    driver_name: str = ""
    max_claims_per_node: int = 0
    max_claims_per_node_param: str = ""
    nodes: str = ""


@attrs.frozen(kw_only=True)
class AllocResourceClaims(Operation):
    opcode = "allocResourceClaims"
    namespace: str = ""


CHURN_CREATE: Final = "create"
CHURN_RECREATE: Final = "recreate"


@attrs.frozen(kw_only=True)
class Churn(Operation):
    opcode = "churn"
    needs = ("mode", "template_paths")
    mode: str = ""
    number: int = 0  # 0: unlimited
    interval_milliseconds: int = 0  # 0: 500
    namespace: str = ""
    template_paths: tuple[str, ...] = ()


STAGE_SCHEDULED: Final = "Scheduled"
STAGE_ATTEMPTED: Final = "Attempted"


@attrs.frozen(kw_only=True)
class Barrier(Operation):
    opcode = "barrier"
    namespaces: tuple[str, ...] = ()
    label_selector: Mapping[str, str] = {}
    stage_requirement: str = STAGE_SCHEDULED


@attrs.frozen(kw_only=True)
class Sleep(Operation):
    opcode = "sleep"
    duration: Seconds = Seconds(0.0)
    duration_param: str = ""


@attrs.frozen(kw_only=True)
class StartCollectingMetrics(Operation):
    opcode = "startCollectingMetrics"
    needs = ("namespaces",)
    name: str = ""
    namespaces: tuple[str, ...] = ()
    label_selector: Mapping[str, str] = {}


@attrs.frozen(kw_only=True)
class StopCollectingMetrics(Operation):
    opcode = "stopCollectingMetrics"
    collects = True


STEPS: Final[Mapping[str, type[Operation]]] = {
    step.opcode: step
    for step in (
        CreateNodes,
        CreateNamespaces,
        CreatePods,
        CreatePodSets,
        CreateAny,
        UpdateAny,
        DeletePods,
        CreateResourceDriver,
        CreateResourceClaims,
        AllocResourceClaims,
        Churn,
        Barrier,
        Sleep,
        StartCollectingMetrics,
        StopCollectingMetrics,
    )
}


class Parameters:
    """The parameters of a workload; unused parameters are reported as errors."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._used: set[str] = set()

    def get(self, name: str) -> Any:
        self._used.add(name)
        if name not in self._values:
            raise ParameterError(name, "the workload does not define it")
        return self._values[name]

    @property
    def unused(self) -> list[str]:
        return [name for name in self._values if name not in self._used]


def resolved(step: OperationClass, parameters: Parameters) -> OperationClass:
    """Return the step with the values of the parameters that it names. Raises ParameterError."""
    changes: dict[str, Any] = {}
    for field in attrs.fields(type(step)):
        name, given = field.name, getattr(step, field.name)
        if name == "count_multiplier_param":
            if given:
                count = changes.get("count", getattr(step, "count", 0))
                changes["count"] = count * _typed(int, given, parameters)
        elif name.endswith("_param") and given:
            target = name.removesuffix("_param")
            changes[target] = _typed(attrs.fields_dict(type(step))[target].type, given, parameters)
        elif name == "template_params":
            changes[name] = {key: _template_value(value, parameters) for key, value in given.items()}
    return attrs.evolve(step, **changes)


def unrolled(steps: Mapping[int, Operation], parameters: Parameters) -> list[tuple[int, Operation]]:
    """Return the steps to execute with their line numbers; parameters are resolved.

    Each createPodSets is replaced by its createPods operations.
    """
    done: list[tuple[int, Operation]] = []
    for line, step in steps.items():
        step = resolved(step, parameters)
        if isinstance(step, CreatePodSets):
            pods = resolved(step.create_pods_op, parameters)
            names = (f"{step.namespace_prefix}-{number}" for number in range(step.count))
            done += ((line, attrs.evolve(pods, namespace=name)) for name in names)
        else:
            done.append((line, step))
    return done


def _template_value(value: Any, parameters: Parameters) -> Any:
    return parameters.get(value[1:]) if isinstance(value, str) and value.startswith("$") else value


def _typed(wanted: Any, reference: str, parameters: Parameters) -> Any:
    name = reference.removeprefix("$")
    value = parameters.get(name)
    if wanted is Seconds:
        if not isinstance(value, str):
            raise ParameterError(name, f"{value!r} is no duration, such as 2s")
        try:
            return parse_duration(value)
        except DurationError as wrong:
            raise ParameterError(name, str(wrong)) from None
    if wanted is bool:
        if not isinstance(value, bool):
            raise ParameterError(name, f"{value!r} is neither true nor false")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterError(name, f"{value!r} is no number")
    if value < 0:
        raise ParameterError(name, f"{value!r}: at least 0")
    return int(value)
