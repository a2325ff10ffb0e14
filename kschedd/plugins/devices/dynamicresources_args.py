"""Arguments of DynamicResources, which limit the search for devices and the wait for their readiness.

Source: Kubernetes v1.34 and v1.36, validation_pluginargs.go (ValidateDynamicResourcesArgs).
"""

import attrs

from kschedd.config.args import ArgsContext, arg, duration_s
from kschedd.config.parsing.reading import ConfigFields, seconds_of


@attrs.frozen
class DynamicResourcesArgs:
    filter_timeout_s: float = arg(10.0, name="filterTimeout", read=duration_s)
    """Limit of the search on one node; 0: no limit."""
    binding_timeout_s: float | None = arg(None, name="bindingTimeout", read=duration_s)
    """Limit of the wait for the binding conditions of devices; None: 600 s."""

    @classmethod
    def check(cls, fields: ConfigFields, context: ArgsContext) -> None:
        gates = context.gates
        given = fields.get("filterTimeout")
        if given is not None and not gates.get("DRASchedulerFilterTimeout", True):
            given.wrong("the feature gate DRASchedulerFilterTimeout is off")
        elif given is not None and isinstance(given.value, str) and given.value.startswith("-"):
            given.wrong("must not be negative", "0s (no limit) or more")
        given = fields.get("bindingTimeout")
        if given is not None and not gates.get("DRADeviceBindingConditions", False):
            given.wrong("the feature gate DRADeviceBindingConditions is off")
        elif given is not None and isinstance(given.value, str) and (seconds_of(given.value) or 0) < 1:
            given.wrong("is too short", "1s or more")
