"""The method that runs a cycle of the descheduler."""

from typing import Any

import attrs

from kschedd.descheduler.cluster import DeschedulingCluster, Work, objects_to_read
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
from kschedd.store.errors import Conflict, MultipleBudgets, NotFound, TooManyRequests
from kschedd.values import run_steps


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
        objects, now = await self._cluster.store.do(lambda store: ([*objects_to_read(store)], store.now))

        def work() -> Work[tuple[DeschedulingCluster, int, int | None]]:
            policy = read_policy(call["policy"], call["source"])
            cluster = yield from DeschedulingCluster.of(objects, now, policy.limits)
            return cluster, (yield from run_cycle(policy, cluster)), policy.grace_period_s

        def decide(given_up: GivenUp) -> tuple[DeschedulingCluster, int, int | None]:
            return run_steps(work(), given_up.check)

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
