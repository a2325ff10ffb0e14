"""Settings of a simulated autoscaler, with the defaults of Karpenter and Cluster Autoscaler.

    autoscaler:
      name: cluster-autoscaler      # or karpenter
      expander: [least-waste]       # Cluster Autoscaler: a chain; see EXPANDERS
      bootTime: 60s                 # from the launch of a node until the node is ready
      launchFailures: 0.05          # share of the launches that fail
      scaleDown: true               # false: nodes are never removed

Source: the files that `../shared/pools/MODEL.md` names. `bootTime` and `launchFailures` are properties of the simulated
cloud provider. Units: seconds.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from kschedd.config.parsing.reading import ConfigValue

KARPENTER: Final = "karpenter"
CLUSTER_AUTOSCALER: Final = "cluster-autoscaler"
AUTOSCALERS: Final = (KARPENTER, CLUSTER_AUTOSCALER)
EXPANDERS: Final = ("least-waste", "most-pods", "least-nodes", "price", "priority", "random")
_SHARE: Final = (0.0, 1.0)


@attrs.frozen(kw_only=True)
class AutoscalerSettings:
    """Settings; `name` is "" if the pools determine the autoscaler."""

    name: str = ""
    boot_s: float = 60.0
    launch_failures: float = 0.0
    scale_down: bool = True
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
        *("unreadyTime", "delayAfterAdd", "balanceSimilarNodeGroups", "maxNodes"),
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
