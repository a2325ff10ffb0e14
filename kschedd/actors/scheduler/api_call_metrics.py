"""Metrics of the scheduler's writes, by purpose and result.

kube-scheduler counts writes if they are asynchronous (gate SchedulerAsyncAPICalls), and preemptions if evictions are
asynchronous (SchedulerAsyncPreemption). In kschedd both are always asynchronous, but the metrics are exposed only with
these gates. The duration of a write is the duration of the request that contains the write.

Source: Kubernetes v1.34, scheduler/framework/api_calls, scheduler/framework/preemption/preemption.go.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from kschedd.metrics import catalogue
from kschedd.metrics.instruments import Counter, Histogram, Labels, MetricFamily

SUCCESS: Final = "success"
ERROR: Final = "error"
NO_PREEMPTIONS: Final[Mapping[str, "Outcomes"]] = {}
POD_BINDING: Final = "pod_binding"
POD_STATUS_PATCH: Final = "pod_status_patch"


@attrs.frozen
class Outcomes:
    """The numbers of successful and of rejected writes."""

    succeeded: int
    failed: int


class ApiCallMetrics:
    """The metrics of the scheduler's writes."""

    def __init__(self) -> None:
        self._calls = Counter(catalogue.API_CALLS)
        self._call_s = Histogram(catalogue.API_CALL_DURATION)
        self._preemptions = Counter(catalogue.PREEMPTION_EXECUTIONS)
        self._preemption_s = Histogram(catalogue.PREEMPTION_DURATION)
        self._execution_s = Histogram(catalogue.PREEMPTION_EXECUTION)
        self._pending: dict[str, int] = {POD_BINDING: 0, POD_STATUS_PATCH: 0}

    def began(self, bindings: int, patches: int) -> None:
        """Count writes that are about to begin."""
        self._pending[POD_BINDING] += bindings
        self._pending[POD_STATUS_PATCH] += patches

    def ended(
        self,
        took_s: float,
        bindings: "Outcomes",
        patches: "Outcomes",
        preemptions: Mapping[str, "Outcomes"] = NO_PREEMPTIONS,
    ) -> None:
        """Record the results of the writes, and of the evictions by type of preemptor."""
        for kind, outcomes in ((POD_BINDING, bindings), (POD_STATUS_PATCH, patches)):
            self._pending[kind] -= outcomes.succeeded + outcomes.failed
            for result, amount in ((SUCCESS, outcomes.succeeded), (ERROR, outcomes.failed)):
                if amount:
                    self._calls.add(kind, result, amount=amount)
                    self._call_s.series(kind, result).observe_many(took_s, amount)
        for preemptor, outcomes in preemptions.items():
            for result, amount in ((SUCCESS, outcomes.succeeded), (ERROR, outcomes.failed)):
                if amount:
                    self._preemptions.add(result, amount=amount)
                    self._preemption_s.series(result).observe_many(took_s, amount)
                    self._execution_s.series(preemptor, result).observe_many(took_s, amount)

    def families(self, gates: Mapping[str, bool]) -> list[MetricFamily]:
        """Return the metrics whose feature gate is on."""
        found = [self._execution_s.family()]
        if gates.get("SchedulerAsyncPreemption", True):
            found += [self._preemptions.family(), self._preemption_s.family()]
        if gates.get("SchedulerAsyncAPICalls", True):
            pending: dict[Labels, float] = {(kind,): amount for kind, amount in self._pending.items()}
            found += [self._calls.family(), self._call_s.family()]
            found.append(MetricFamily(catalogue.PENDING_API_CALLS, pending))
        return found
