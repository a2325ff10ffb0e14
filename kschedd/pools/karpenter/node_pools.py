"""Reader of NodePools (karpenter.sh/v1). Faults name the line, the field and the allowed values.

Source: sigs.k8s.io/karpenter, pkg/apis/v1/nodepool.go and nodeclaim.go. References to node classes are not read.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.cron_schedule import ScheduleError, parse_schedule
from kschedd.api.quantity import QuantityError
from kschedd.api.resources import Resources, amounts
from kschedd.api.selecting.terms import Taint
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import ConfigFields, ConfigReader, ConfigValue, in_text_order
from kschedd.config.parsing.source import read_document
from kschedd.pools.karpenter.budgets import DisruptionBudget, DisruptionReason
from kschedd.pools.karpenter.instance_types import requirement_of
from kschedd.pools.karpenter.requirements import NodeRequirement

API_VERSION: Final = "karpenter.sh/v1"
POLICIES: Final = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
_NEVER: Final = "Never"
_EXPIRE_S: Final = 720 * 3600.0
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REASONS: Final = tuple(reason.value for reason in DisruptionReason)


@attrs.frozen(kw_only=True)
class NodePool:
    """A pool of nodes. Times are in seconds; `expire_after_s` and `consolidate_after_s`: None means never.

    `replicas` is the size of a static pool, None for other pools. `limits` may contain `nodes`.
    """

    name: str
    labels: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    requirements: Sequence[NodeRequirement] = ()
    taints: Sequence[Taint] = ()
    startup_taints: Sequence[Taint] = ()
    expire_after_s: float | None = _EXPIRE_S
    termination_grace_s: float | None = None
    policy: str = "WhenEmptyOrUnderutilized"
    consolidate_after_s: float | None = 0.0
    budgets: Sequence[DisruptionBudget] = (DisruptionBudget(),)
    limits: Resources = attrs.field(factory=dict)
    weight: int = 0
    replicas: int | None = None

    @property
    def static(self) -> bool:
        return self.replicas is not None


def read_node_pool(text: str, source: str) -> NodePool:
    """Return the NodePool in the text of a file. Raises ConfigErrors with all faults."""
    document = read_document(text, source)
    return node_pool_of(document.value, ConfigReader(source, document))


def node_pool_of(raw: Any, reader: ConfigReader | None = None, path: str = "$") -> NodePool:
    """Return the NodePool in a manifest, which is at `path` of its file. Raises ConfigErrors with all faults."""
    reader = reader or ConfigReader("NodePool")
    value = ConfigValue(raw, path, reader)
    found = _pool(value)
    if found is None and not reader.faults:
        value.wrong("metadata.name and spec are required")
    if reader.faults or found is None:
        raise ConfigErrors(in_text_order(reader.faults))
    return found


def _section(fields: ConfigFields | None, name: str, *names: str, any_other: bool = False) -> ConfigFields | None:
    value = None if fields is None else fields.mapping(name)
    return None if value is None else value.fields(*names, any_other=any_other)


def _pool(value: ConfigValue) -> NodePool | None:
    fields = value.fields("apiVersion", "kind", "metadata", "spec", "status")
    meta = _section(fields, "metadata", "name", any_other=True)
    spec = _section(fields, "spec", "template", "disruption", "limits", "weight", "replicas")
    name = None if meta is None else meta.needed_text("name")
    if spec is None or name is None:
        return None
    template = _section(spec, "template", "metadata", "spec")
    of_nodes = _section(template, "metadata", "labels", "annotations")
    claim = _section(
        template,
        "spec",
        *("requirements", "taints", "startupTaints", "nodeClassRef", "expireAfter", "terminationGracePeriod"),
    )
    disruption = _section(spec, "disruption", "consolidationPolicy", "consolidateAfter", "budgets")
    budgets = [_budget(each) for each in disruption.items("budgets")] if disruption else []
    stated = disruption is not None and disruption.get("budgets") is not None
    requirements = [requirement_of(each) for each in claim.items("requirements")] if claim else []
    return NodePool(
        name=name,
        labels=_texts(of_nodes, "labels"),
        annotations=_texts(of_nodes, "annotations"),
        requirements=[each for each in requirements if each is not None],
        taints=_taints(claim, "taints"),
        startup_taints=_taints(claim, "startupTaints"),
        expire_after_s=_duration(claim, "expireAfter", _EXPIRE_S),
        termination_grace_s=_duration(claim, "terminationGracePeriod", None),
        policy=disruption.choice("consolidationPolicy", POLICIES[1], POLICIES) if disruption else POLICIES[1],
        consolidate_after_s=_duration(disruption, "consolidateAfter", 0.0),
        budgets=budgets if stated else (DisruptionBudget(),),
        limits=_limits(spec.mapping("limits")),
        weight=spec.maybe_integer("weight", (1, 100)) or 0,
        replicas=spec.maybe_integer("replicas", (0, 2**31 - 1)),
    )


def _texts(fields: ConfigFields | None, name: str) -> dict[str, str]:
    value = None if fields is None else fields.mapping(name)
    if value is None or value.fields(any_other=True) is None:
        return {}
    return {str(key): text for key, each in value.value.items() if (text := value.at(key, each).text()) is not None}


def _duration(fields: ConfigFields | None, name: str, default: float | None) -> float | None:
    """Return a duration, or None for Never."""
    value = None if fields is None else fields.get(name)
    if value is None:
        return default
    return None if value.value == _NEVER else value.duration_s()


def _taints(fields: ConfigFields | None, name: str) -> list[Taint]:
    found = []
    for each in fields.items(name) if fields else ():
        own = each.fields("key", "value", "effect", "timeAdded")
        key = None if own is None else own.needed_text("key")
        if own is not None and key is not None:
            found.append(Taint(key, own.text("value"), own.choice("effect", "", _EFFECTS)))
    return found


def _budget(value: ConfigValue) -> DisruptionBudget:
    fields = value.fields("nodes", "reasons", "schedule", "duration")
    if fields is None:
        return DisruptionBudget()
    nodes = fields.get("nodes")
    number = nodes.text() if nodes and not isinstance(nodes.value, int) else str(nodes.value) if nodes else "10%"
    schedule = fields.text("schedule") or None
    duration = _duration(fields, "duration", None)
    if schedule is not None:
        try:
            parse_schedule(schedule)
        except ScheduleError as fault:
            value.at("schedule", schedule).wrong(fault.why)
    if (schedule is None) is not (duration is None):
        value.wrong("schedule and duration must be set together")
    reasons = [(place, text) for place, text in fields.texts("reasons")]
    for place, text in reasons:
        if text not in _REASONS:
            place.wrong("no such reason", ", ".join(_REASONS))
    stated = fields.get("reasons") is not None
    return DisruptionBudget(number or "10%", [text for _, text in reasons] if stated else None, schedule, duration)


def _limits(value: ConfigValue | None) -> Resources:
    if value is None or value.fields(any_other=True) is None:
        return {}
    try:
        return amounts(value.value)
    except QuantityError as fault:
        value.wrong(str(fault))
        return {}
