"""Methods for causes: the diagnosis of a workload, and the pending pods grouped by cause."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.causes.answers import DiagnosisAnswer, PendingGroup, RemedyAnswer
from kschedd.causes.diagnosis import diagnosis, node_diagnosis
from kschedd.causes.lifecycle.left import left
from kschedd.causes.pending import pending_groups
from kschedd.causes.quota import KIND as QUOTA
from kschedd.causes.quota import quota_diagnosis
from kschedd.causes.sampling import sampled
from kschedd.causes.trial import PATIENCE_S
from kschedd.clusters.virtual import MethodsOf, VirtualCluster, VirtualDaemon
from kschedd.log.log import Log
from kschedd.scheduling.records import PodPreempted
from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.process import DaemonState
from kschedd.service.errors import RpcError
from kschedd.service.objects.kinds import kind_meant
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method
from kschedd.service.workers import GivenUp
from kschedd.simulation.engine import Engine
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import Gone

T = TypeVar("T")

_PROGRAM: Final = Param(
    "program",
    "string",
    False,
    "",
    "the program in the commands: kschedd or kubectl; empty: kubectl for a mirror, else kschedd",
)


@attrs.frozen(eq=False)
class CauseMethods(Methods):
    """`methods` are the read methods that a fork answers; remedies are tried on the fork."""

    _cluster: ClusterBackend
    _daemon: DaemonState
    _methods: MethodsOf

    @method(
        "causes.explain",
        (
            Param(
                "kind",
                "string",
                doc="Pod, PodGroup, Node, ResourceQuota, Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob",
            ),
            Param("name", "string"),
            Param("namespace", "string", False, "default"),
            Param(
                "remedies",
                "boolean",
                False,
                True,
                "false: only causes, which is faster; causes that appear only after a remedy was tried are missing",
            ),
            _PROGRAM,
            Param(
                "manifests",
                "string|map|map[]",
                False,
                "",
                "manifests to apply to the fork first; the object may be one of them",
            ),
        ),
        reads=True,
        doc="The cause of a workload's problem, with evidence and remedies. Each remedy was tried with the "
        "whole workload on a fork: its commands were run, and 300 s of virtual time passed. For a pod "
        "with an owner, the owner is examined. For a node, the answer is why a drain does not end or why "
        "no pods are placed on it; for a quota, the rejected pods; for a deleted pod, the reason of its "
        "end. Nothing is changed.",
        answer=DiagnosisAnswer,
    )
    async def explain(self, call: Call) -> Any:
        kind, name = await kind_meant(self._cluster, call["kind"]), call["name"]
        namespace = call["namespace"] if kind.namespaced else ""
        manifests = call["manifests"]
        preempted = (await self._cluster.log.query(_preempted)).get(namespace, ())
        if not manifests and kind.name == "Pod":
            gone = await self._left(namespace, name, preempted)
            if gone is not None:
                return gone
        if not manifests:
            await self._cluster.store.do(lambda store: store.get(kind.name, namespace, name))
        how = {"program": self._program(call), "trying": call["remedies"]}

        def diagnosed(engine: Engine, given_up: GivenUp) -> DiagnosisAnswer:
            obj = engine.store.get(kind.name, namespace, name)
            if isinstance(obj, Node):
                return node_diagnosis(engine, obj, self._methods, check=given_up.check, **how)
            if obj.kind == QUOTA:
                return quota_diagnosis(engine, obj, self._methods, check=given_up.check, **how)
            return diagnosis(engine, obj, self._methods, preempted=preempted, check=given_up.check, **how)

        return await self._examined(call, diagnosed, manifests=manifests, forking=call["remedies"])

    async def _left(self, namespace: str, name: str, preempted: Sequence[PodPreempted]) -> DiagnosisAnswer | None:
        """Return why a pod that was attempted no longer exists; None if the pod exists or was never attempted."""
        tried = await self._cluster.log.query(lambda log: log.attempts(f"{namespace}/{name}", 1))
        if not tried:
            return None
        record = tried[0]

        def last(store: ClusterWriter) -> DiagnosisAnswer | None:
            if store.find("Pod", namespace, name) is not None:
                return None
            try:
                events = store.shown_after(record.version)
            except Gone:
                events = []
            pods = [each.new for each in events if isinstance(each.new, Pod) and each.new.uid == record.uid]
            pod = pods[-1] if pods else record.attempted
            return None if pod is None else left(store, pod, preemption, attempt)

        preemption = next((each for each in reversed(preempted) if each.uid == record.uid), None)
        attempt = 0
        if preemption is not None:
            by, node = preemption.preemptor, preemption.node
            tries = await self._cluster.log.query(lambda log: log.attempts(by.key))
            attempt = next((e.attempt for e in tries if e.uid == by.uid and e.nominated_node == node), 0)
        return await self._cluster.store.do(last)

    def _apply(self, cluster: VirtualCluster, manifests: Any, given_up: GivenUp) -> None:
        """Apply the manifests to the fork, and advance the fork's time until the fork is idle. Raises RpcError."""
        if not isinstance(manifests, str):
            manifests = [sampled(raw) for raw in ([manifests] if isinstance(manifests, Mapping) else manifests)]
        applied = VirtualDaemon(cluster, self._methods).call("objects.apply", manifests=manifests, source="-f")
        for fault in applied["errors"]:
            raise RpcError(str(fault["code"]), str(fault["message"]), fault)
        cluster.engine.run_to_rest(PATIENCE_S, given_up.check)

    @method(
        "causes.pending",
        (
            Param("namespace", "string|null", False, doc="null: all namespaces"),
            Param(
                "remedies",
                "integer",
                False,
                0,
                "number of groups, the largest first, for which a remedy is searched: for one workload of at most 200 "
                "pods",
                minimum=0,
                maximum=20,
            ),
            _PROGRAM,
        ),
        reads=True,
        doc="The pending pods, and pods that controllers cannot create, grouped by cause; the largest group first. A "
        "pod that spec.nodeName put on a node without its claims is pending. A remedy was tried on a fork, as in "
        "causes.explain.",
        answer=list[PendingGroup],
    )
    async def pending(self, call: Call) -> Any:
        namespace, most, program = call["namespace"], call["remedies"], self._program(call)
        preempted = await self._cluster.log.query(_preempted)

        def grouped(engine: Engine, given_up: GivenUp) -> list[PendingGroup]:
            def remedy_of(obj: Object) -> RemedyAnswer | None:
                found = diagnosis(
                    engine,
                    obj,
                    self._methods,
                    preempted=preempted.get(obj.namespace, ()),
                    program=program,
                    most=1,
                    check=given_up.check,
                )
                return next(iter(found.remedies), None)

            return pending_groups(engine, namespace, given_up.check, remedy_of, most, preempted)

        return await self._examined(call, grouped, forking=most > 0)

    def _program(self, call: Call) -> str:
        """Return the program of a remedy's commands: kubectl if the cluster is a mirror, which kubectl changes."""
        return call["program"] or ("kschedd" if self._daemon.mirror is None else "kubectl")

    async def _examined(
        self, call: Call, examine: Callable[[Engine, GivenUp], T], *, manifests: Any = None, forking: bool = False
    ) -> T:
        """Return the result of `examine`, which only reads the cluster.

        `manifests` are first applied to a fork. Without `forking`, `examine` receives the cluster itself.
        """
        own = self._cluster.engine
        if own is not None and not manifests:
            return await call.services.workers.run(call.client, lambda given_up: examine(own, given_up))
        stop = await self._cluster.scheduler.query(lambda owner: owner.debugger.stop)
        snapshot = await self._cluster.snapshot(reading=not (manifests or forking))
        snapshot.store.keep_jobs_running()

        def examined(given_up: GivenUp) -> T:
            cluster = VirtualCluster(resumed=snapshot)
            try:
                if manifests:
                    self._apply(cluster, manifests, given_up)
                if stop is not None:  # a fork runs when it is created; show it as stopped
                    cluster.engine.driver.debugger.stop = attrs.evolve(stop, point=None)
                return examine(cluster.engine, given_up)
            finally:
                cluster.engine.close()

        return await call.services.workers.run(call.client, examined)


def _preempted(log: Log) -> Mapping[str, Sequence[PodPreempted]]:
    """Return the preempted pods that the log contains, by namespace."""
    found: dict[str, list[PodPreempted]] = {}
    for entry in log:
        if isinstance(entry, PodPreempted):
            found.setdefault(entry.pod.partition("/")[0], []).append(entry)
    return found
