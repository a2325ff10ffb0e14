"""Settings of a simulated autoscaler, with the defaults of Karpenter and Cluster Autoscaler.

    autoscaler:
      name: cluster-autoscaler      # or karpenter
      expander: [least-waste]       # Cluster Autoscaler: a chain; see EXPANDERS
      bootTime: 60s                 # from the launch of a node until the node is ready
      launchFailures: 0.05          # share of the launches that fail
      scaleDown: true               # false: nodes are never removed
      interruptions:                # the cloud provider takes nodes back
      - {at: 2h, count: 3, pool: a, zone: b, capacityType: spot, warning: 2m}

The time `at` counts from the start of the autoscaler. `count` is a number of nodes, or a share of the matching nodes
such as 50%; the nodes are chosen at random. Without `capacityType`, spot nodes are interrupted; nodes without label
count as spot only if `pool` names their pool.

Source: the files that `../shared/pools/MODEL.md` names. `bootTime` and `launchFailures` are properties of the simulated
cloud provider. Units: seconds.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from kschedd.config.parsing.reading import ConfigFields, ConfigValue
from kschedd.pools.karpenter.requirements import CAPACITY_TYPE, ZONE

KARPENTER: Final = "karpenter"
CLUSTER_AUTOSCALER: Final = "cluster-autoscaler"
AUTOSCALERS: Final = (KARPENTER, CLUSTER_AUTOSCALER)
EXPANDERS: Final = ("least-waste", "most-pods", "least-nodes", "price", "priority", "random")
_SHARE: Final = (0.0, 1.0)
_SPOT: Final = "spot"
_PERCENT: Final = 100


@attrs.frozen(kw_only=True)
class Interruption:
    """Nodes that the cloud provider takes back, `at_s` after the start.

    `share` is the share of the matching nodes, and `count` a number of nodes if `share` is 0. After `warning_s`, the
    nodes and the pods that are left on them are deleted. Empty values match all nodes.
    """

    at_s: float
    count: int = 1
    share: float = 0.0
    pool: str = ""
    zone: str = ""
    capacity_type: str = ""
    warning_s: float = 120.0

    def matches(self, labels: Mapping[str, str], pool: str) -> bool:
        """Return whether a node of this pool, with these labels, may be interrupted."""
        if not pool or (self.pool and pool != self.pool) or (self.zone and labels.get(ZONE) != self.zone):
            return False
        stated = labels.get(CAPACITY_TYPE, "")
        return stated == (self.capacity_type or _SPOT) or bool(self.pool and not stated and not self.capacity_type)

    def number_of(self, matching: int) -> int:
        """Return how many of the matching nodes are interrupted."""
        return math.ceil(matching * self.share) if self.share else min(self.count, matching)


@attrs.frozen(kw_only=True)
class AutoscalerSettings:
    """Settings; `name` is "" if the pools determine the autoscaler."""

    name: str = ""
    boot_s: float = 60.0
    launch_failures: float = 0.0
    scale_down: bool = True
    interruptions: Sequence[Interruption] = ()  # by time
    # of Karpenter
    batch_idle_s: float = 1.0
    batch_max_s: float = 10.0
    disruption_poll_s: float = 10.0
    validation_s: float = 15.0
    spot_to_spot: bool = False
    preferences: bool = True
    strict_min_values: bool = True
    # of Cluster Autoscaler
    expander: Sequence[str] = ("least-waste",)
    scan_s: float = 10.0
    utilization: float = 0.5
    unneeded_s: float = 600.0
    unready_s: float = 1200.0
    delay_after_add_s: float = 600.0
    balance_similar: bool = False
    max_nodes: int = 0  # 0: no limit


def settings_of(place: ConfigValue) -> AutoscalerSettings:
    """Return the settings; invalid values are recorded as faults."""
    fields = place.fields(
        *("name", "bootTime", "launchFailures", "scaleDown", "batchIdle", "batchMax", "spotToSpotConsolidation"),
        *("preferencePolicy", "minValuesPolicy", "expander", "scanInterval", "utilizationThreshold", "unneededTime"),
        *("unreadyTime", "delayAfterAdd", "balanceSimilarNodeGroups", "maxNodes", "interruptions"),
    )
    default = AutoscalerSettings()
    if fields is None:
        return default
    expanders = fields.texts("expander")
    for value, text in expanders:
        if text not in EXPANDERS:
            value.wrong("no such expander", ", ".join(EXPANDERS))
    for name in ("launchFailures", "utilizationThreshold"):
        value_of = fields.get(name)
        number = None if value_of is None else value_of.number()
        if value_of is not None and number is not None and not _SHARE[0] <= number <= _SHARE[1]:
            value_of.wrong("out of range", "0 to 1")
    return AutoscalerSettings(
        name=fields.choice("name", "", AUTOSCALERS),
        boot_s=fields.duration_s("bootTime", default.boot_s),
        launch_failures=fields.number("launchFailures", default.launch_failures),
        scale_down=fields.boolean("scaleDown", default.scale_down),
        interruptions=sorted(map(_interruption, fields.items("interruptions")), key=lambda each: each.at_s),
        batch_idle_s=fields.duration_s("batchIdle", default.batch_idle_s),
        batch_max_s=fields.duration_s("batchMax", default.batch_max_s),
        spot_to_spot=fields.boolean("spotToSpotConsolidation", default.spot_to_spot),
        preferences=fields.choice("preferencePolicy", "Respect", ("Respect", "Ignore")) == "Respect",
        strict_min_values=fields.choice("minValuesPolicy", "Strict", ("Strict", "BestEffort")) == "Strict",
        expander=[text for _, text in expanders] or default.expander,
        scan_s=fields.duration_s("scanInterval", default.scan_s),
        utilization=fields.number("utilizationThreshold", default.utilization),
        unneeded_s=fields.duration_s("unneededTime", default.unneeded_s),
        unready_s=fields.duration_s("unreadyTime", default.unready_s),
        delay_after_add_s=fields.duration_s("delayAfterAdd", default.delay_after_add_s),
        balance_similar=fields.boolean("balanceSimilarNodeGroups", default.balance_similar),
        max_nodes=fields.integer("maxNodes", default.max_nodes, (0, 2**31 - 1)),
    )


def _interruption(place: ConfigValue) -> Interruption:
    """Return an interruption; invalid values are recorded as faults."""
    fields = place.fields("at", "count", "pool", "zone", "capacityType", "warning")
    if fields is None:
        return Interruption(at_s=0.0)
    if fields.get("at") is None:
        fields.missing("at", "required, such as 2h")
    count, share = _count(fields)
    return Interruption(
        at_s=fields.duration_s("at", 0.0),
        count=count,
        share=share,
        pool=fields.text("pool") or "",
        zone=fields.text("zone") or "",
        capacity_type=fields.text("capacityType") or "",
        warning_s=fields.duration_s("warning", 120.0),
    )


def _count(fields: ConfigFields) -> tuple[int, float]:
    """Return the number of nodes, and the share of them (0: the number counts)."""
    value = fields.get("count")
    if value is None:
        return 1, 0.0
    text = str(value.value)
    if text.endswith("%") and text[:-1].isascii() and text[:-1].isdigit() and 1 <= int(text[:-1]) <= _PERCENT:
        return 0, int(text[:-1]) / _PERCENT
    if not isinstance(value.value, int) or isinstance(value.value, bool) or value.value < 1:
        value.wrong("must be a number of nodes or a share of them", "1 or more, 1% to 100%")
        return 1, 0.0
    return value.value, 0.0
