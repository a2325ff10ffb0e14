"""The method that runs a cycle of the descheduler."""

from collections.abc import Iterator
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.descheduler.cluster import DeschedulingCluster
from kschedd.descheduler.cycle import run_cycle
from kschedd.descheduler.policy import read_policy
from kschedd.service.cluster import ClusterBackend
from kschedd.service.execution import Executor
from kschedd.service.objects.parameters import DRY_RUN
from kschedd.service.params import Param
from kschedd.service.request import DeleteOptions, Request
from kschedd.service.scheduling.answers import DescheduledAnswer, DeschedulingAnswer, RefusedAnswer
from kschedd.service.table import Call, Methods, method
from kschedd.service.workers import GivenUp
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.errors import Conflict, MultipleBudgets, NotFound, TooManyRequests

_READ: Final = ("Node", "Pod", "Namespace", "PodDisruptionBudget", "PriorityClass", "PersistentVolumeClaim")


@attrs.frozen(eq=False)
class DeschedulingMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "descheduler.run",
        (
            Param("policy", "string", doc="a DeschedulerPolicy (descheduler/v1alpha2) as YAML or JSON"),
            Param("source", "string", False, "policy", "name of the policy's file, for error messages"),
            DRY_RUN,
        ),
        doc="Runs one cycle of the descheduler: selects pods by the policy, and evicts them. Strategies that run later "
        "in the same cycle ignore evicted pods.",
        answer=DeschedulingAnswer,
    )
    async def run(self, call: Call) -> Any:
        objects, now = await self._cluster.store.do(lambda store: ([*_read(store)], store.now))

        def decide(given_up: GivenUp) -> tuple[DeschedulingCluster, int, int | None]:
            policy = read_policy(call["policy"], call["source"])
            cluster = DeschedulingCluster.of(objects, now, policy.limits, given_up.check)
            return cluster, run_cycle(policy, cluster), policy.grace_period_s

        cluster, nodes, grace_period_s = await call.services.workers.run(call.client, decide)
        refused = [
            RefusedAnswer(each.pod.namespace, each.pod.name, each.pod.node_name, each.strategy, each.profile, each.why)
            for each in cluster.refused
        ]
        evicted: list[DescheduledAnswer] = []
        executor = Executor.of(self._cluster, call)
        for each in cluster.evicted:
            pod = each.pod
            named = (pod.namespace, pod.name, pod.node_name, each.strategy, each.profile)
            options = DeleteOptions(grace_period_s, uid=pod.uid, resource_version=None, dry_run=call["dry_run"])
            try:
                await executor.serve(Request("create", "Pod", pod.namespace, pod.name, "eviction", deletion=options))
            except (NotFound, Conflict, TooManyRequests, MultipleBudgets) as refusal:  # changed since the selection
                refused.append(RefusedAnswer(*named, str(refusal)))
            else:
                evicted.append(DescheduledAnswer(*named))
        return DeschedulingAnswer(nodes, evicted, refused)


def _read(store: ClusterReader) -> Iterator[Object]:
    for kind in _READ:
        for space in store.present(kind):
            yield from space
