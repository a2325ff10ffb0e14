"""Evaluation of a Job's spec.podFailurePolicy for a failed pod, and of spec.successPolicy for the succeeded indexes.

Source: Kubernetes v1.34, pkg/controller/job/{pod_failure_policy,success_policy}.go.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.pods import Pod
from kschedd.controllers.jobs.indexes import IndexSet

Raw = Mapping[str, Any]


@attrs.frozen
class FailureMatch:
    """The consequence of a pod's failure for the Job."""

    counted: bool = True  # True if the failure counts towards the back-off limits
    action: str = ""  # action of the matching rule, or ""
    message: str | None = None  # reason why the whole Job fails, or None


COUNTED: Final = FailureMatch()


def match_failure(policy: Raw | None, pod: Pod) -> FailureMatch:
    """Return the consequence of the first rule of the policy that matches the failed pod."""
    for index, rule in enumerate((policy or {}).get("rules") or ()):
        action = rule.get("action") or ""
        on_exit_codes, on_conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if on_exit_codes is not None:
            container = _by_exit_code(pod.status, on_exit_codes)
            if container is None:
                continue
            code = container["state"]["terminated"].get("exitCode")
            why = (
                f"Container {container.get('name')} for pod {pod.namespace}/{pod.name} failed with exit code {code} "
                f"matching {action} rule at index {index}"
            )
        elif on_conditions is not None:
            condition = _by_condition(pod.status, on_conditions)
            if condition is None:
                continue
            why = (
                f"Pod {pod.namespace}/{pod.name} has condition {condition.get('type')} "
                f"matching {action} rule at index {index}"
            )
        else:
            continue
        if action == "FailJob":
            return FailureMatch(True, action, why)
        if action in ("Ignore", "FailIndex", "Count"):
            return FailureMatch(action != "Ignore", action)
    return COUNTED


def _by_exit_code(status: Raw, requirement: Raw) -> Raw | None:
    """Return the first container that terminated with a matching exit code other than 0."""
    values: Sequence[int] = requirement.get("values") or ()
    wanted, operator = requirement.get("containerName"), requirement.get("operator")
    for field in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(field) or ():
            terminated = (container.get("state") or {}).get("terminated")
            code = (terminated or {}).get("exitCode") or 0
            if not code or (wanted is not None and wanted != container.get("name")):
                continue
            if (operator == "In" and code in values) or (operator == "NotIn" and code not in values):
                found: Raw = container
                return found
    return None


def _by_condition(status: Raw, patterns: Sequence[Raw]) -> Raw | None:
    for condition in status.get("conditions") or ():
        for pattern in patterns:
            if condition.get("type") == pattern.get("type") and condition.get("status") == pattern.get("status"):
                found: Raw = condition
                return found
    return None


def match_success(policy: Raw | None, completions: int, succeeded: IndexSet) -> str | None:
    """Return a message about the rule that the succeeded indexes meet, or None if they meet no rule."""
    if not policy or not succeeded.intervals:
        return None
    for index, rule in enumerate(policy.get("rules") or ()):
        count = rule.get("succeededCount")
        if rule.get("succeededIndexes") is not None:
            required = IndexSet.parse(rule["succeededIndexes"], completions)
            if not required.intervals:
                continue
            common = required.common(succeeded)
            met = common == required.total or (count is not None and common >= count)
        else:
            met = count is not None and succeeded.total >= count
        if met:
            return f"Matched rules at index {index}"
    return None
