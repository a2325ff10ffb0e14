"""Methods for node pools: which nodes an autoscaler would launch for the pending pods, and which it would remove.

The decisions are made on a copy of the cluster, with the filters of the scheduler's profiles where Cluster Autoscaler
uses them.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.clusters.answers import (
    ExpectedAnswer,
    LaunchAnswer,
    LaunchedAnswer,
    PodLaunchAnswer,
    RefusedLaunchAnswer,
    RemovalAnswer,
    ScaleDownAnswer,
)
from kschedd.clusters.virtual import VirtualCluster
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.scaling.launches import StartingNode
from kschedd.controllers.scaling.node_pools import NodePools
from kschedd.pools.cluster import (
    READ_KINDS,
    NodeLaunch,
    PooledCluster,
    PoolRefusal,
    ScaleDown,
    ScaleUp,
    is_unschedulable,
    total_price,
)
from kschedd.pools.decisions import autoscaler, karpenter
from kschedd.pools.reading import PoolFile, Pools, read_pools
from kschedd.pools.settings import AUTOSCALERS, EXPANDERS, KARPENTER
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot
from kschedd.scheduling.trial_cluster import TrialCluster
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.execution import Executor
from kschedd.service.objects.parameters import DRY_RUN
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method
from kschedd.service.workers import GivenUp
from kschedd.simulation.engine import Engine
from kschedd.store.cluster_api import ClusterWriter

T = TypeVar("T")

POOLS: Final = Param("pools", "map[]", doc="files with node pools, each `{name, text}` (docs/POOLS.md)")
AUTOSCALER: Final = Param(
    "autoscaler", "string", False, "", f"{' or '.join(AUTOSCALERS)}; empty: the autoscaler that the files determine"
)
EXPANDER: Final = Param(
    "expander", "string[]", False, [], f"Cluster Autoscaler's chain of expanders: {', '.join(EXPANDERS)}"
)
_SEED: Final = Param("seed", "integer", False, 0, "seed of choices that an autoscaler makes at random")


@attrs.frozen(eq=False)
class PoolMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "pools.launch",
        (POOLS, AUTOSCALER, EXPANDER, _SEED, DRY_RUN),
        doc="Decides which nodes an autoscaler launches for the pending pods, and creates these nodes. The nodes are "
        "ready at once; the scheduler then places the pods.",
        answer=LaunchAnswer,
    )
    async def launch(self, call: Call) -> Any:
        pools = pools_of(call)
        snapshot = await self._cluster.snapshot()

        def decide(given_up: GivenUp) -> ScaleUp:
            return _on_copy(snapshot, lambda engine: _launches(engine, pools, random.Random(call["seed"])))

        plan = await call.services.workers.run(call.client, decide)
        if not call["dry_run"] and plan.launches:

            def create(store: ClusterWriter, given_up: GivenUp) -> list[Object]:
                return [store.create(launch.raw) for launch in plan.launches]

            await Executor.of(self._cluster, call).aside(create)
        return _launch_answer(pools.autoscaler, plan)

    @method(
        "pools.explain",
        (
            Param("pod", "string", doc="namespace/name of a pending pod"),
            attrs.evolve(POOLS, required=False, default=[], doc=f"{POOLS.doc}; empty: those of the daemon"),
            AUTOSCALER,
            EXPANDER,
            _SEED,
        ),
        reads=True,
        doc="Decides whether an autoscaler launches a node for a pending pod; if not, names the rule of each pool that "
        "prevents it. Without files, the pools are those of `run --pools`. Nothing is changed.",
        returns="null if there are no node pools",
        answer=PodLaunchAnswer | None,
    )
    async def explain(self, call: Call) -> Any:
        key = call["pod"]
        own = await self._cluster.ask_controllers(lambda controllers, _: _state_of(controllers, key))
        if call["pools"]:
            pools = pools_of(call)
        elif own is None:
            return None
        else:
            pools = own.pools
            if own.starting is not None:
                launch, ready_s = own.starting.launch, own.starting.ready_at
                return PodLaunchAnswer(key, pools.autoscaler, _launched(launch), stamp(ready_s), "", [])
        snapshot = await self._cluster.snapshot()

        def decide(given_up: GivenUp) -> PodLaunchAnswer:
            return _on_copy(snapshot, lambda engine: _about_pod(engine, pools, key, random.Random(call["seed"])))

        return await call.services.workers.run(call.client, decide)

    @method(
        "pools.remove",
        (
            POOLS,
            AUTOSCALER,
            EXPANDER,
            Param("nodes", "string[]", False, [], "only these nodes; empty: the nodes that the autoscaler chooses"),
            Param("scan", "boolean", False, False, "also return a verdict about each node"),
        ),
        reads=True,
        doc="Decides which nodes an autoscaler removes next, by consolidation (Karpenter) or scale-down (Cluster "
        "Autoscaler), and which node replaces them. Waiting times (the validation of 15 s, the unneeded time) count as "
        "passed. Nothing is changed.",
        answer=ScaleDownAnswer,
    )
    async def remove(self, call: Call) -> Any:
        pools, names = pools_of(call), call["nodes"] or None
        snapshot = await self._cluster.snapshot()

        def decide(given_up: GivenUp) -> ScaleDown:
            def decided(engine: Engine) -> ScaleDown:
                cluster = pooled_cluster(engine)
                for name in names or ():
                    engine.store.get("Node", "", name)
                if pools.autoscaler == KARPENTER:
                    return karpenter.plan_removal(cluster, pools, names, scan=call["scan"], check=given_up.check)
                trials = TrialCluster(engine.machine)
                return autoscaler.plan_removal(cluster, pools, trials, names, scan=call["scan"], check=given_up.check)

            return _on_copy(snapshot, decided)

        return _removal_answer(pools.autoscaler, await call.services.workers.run(call.client, decide))


@attrs.frozen(eq=False)
class _DaemonPools:
    """The pools of a daemon, and the node that is being launched for a pod."""

    pools: Pools
    starting: StartingNode | None


def _state_of(controllers: Iterable[Controller], key: str) -> _DaemonPools | None:
    found = NodePools.among(controllers)
    return None if found is None else _DaemonPools(found.pools, found.starting_for(key))


def _about_pod(engine: Engine, pools: Pools, key: str, rng: random.Random) -> PodLaunchAnswer:
    """Return the decision about a pod. Raises NotFound."""
    namespace, _, name = key.partition("/")
    pod = engine.store.get("Pod", namespace, name)
    assert isinstance(pod, Pod), "a pod is expected"
    refused: Sequence[PoolRefusal] = []
    existing, launch = "", None
    if not is_unschedulable(pod):
        refused = [PoolRefusal("", "not unschedulable", _why_ignored(pod))]
    else:
        plan = _launches(engine, pools, rng)
        launch = next((each for each in plan.launches if any(one.key == key for one in each.pods)), None)
        existing = next((node for one, node in plan.existing if one.key == key), "")
        refused = next((reasons for one, reasons in plan.refused if one.key == key), [])
    return PodLaunchAnswer(
        key, pools.autoscaler, None if launch is None else _launched(launch), None, existing, refused
    )


def _why_ignored(pod: Pod) -> str:
    """Return why autoscalers ignore a pod."""
    if pod.node_name:
        return f"the pod has the node {pod.node_name}"
    if nominated := pod.status.get("nominatedNodeName"):
        return f"the pod waits for a preemption on node {nominated}"
    if pod.owner is not None and pod.owner.kind == "DaemonSet":
        return "autoscalers ignore pods of DaemonSets"
    return "autoscalers consider only pods for which the scheduler found no node (reason Unschedulable)"


def _removal_answer(name: str, found: ScaleDown) -> ScaleDownAnswer:
    removal = found.removal
    replaced = None if removal is None else removal.replacement
    return ScaleDownAnswer(
        name,
        None
        if removal is None
        else RemovalAnswer(
            removal.reason,
            removal.nodes,
            None if replaced is None else _launched(replaced),
            None if replaced is None else replaced.raw,
            removal.saved,
        ),
        found.verdicts,
    )


def _launched(each: NodeLaunch) -> LaunchedAnswer:
    pods = [pod.key for pod in each.pods]
    return LaunchedAnswer(each.name, each.pool, each.type, each.zone, each.capacity_type, each.price, pods)


def pools_of(call: Call) -> Pools:
    """Return the pools in the parameters of a call, with the settings that the call states. Raises ConfigErrors."""
    pools = read_pools(pool_files(call["pools"]))
    name, expander = call["autoscaler"], call["expander"]
    if name and name not in AUTOSCALERS:
        raise RpcError("invalid", f'autoscaler: "{name}" is not one of {", ".join(AUTOSCALERS)}')
    for each in expander:
        if each not in EXPANDERS:
            raise RpcError("invalid", f'expander: "{each}" is not one of {", ".join(EXPANDERS)}')
    settings = attrs.evolve(
        pools.settings, name=name or pools.settings.name, expander=expander or pools.settings.expander
    )
    pools = attrs.evolve(pools, settings=settings)
    if pools.autoscaler != KARPENTER and pools.node_pools:
        raise RpcError("invalid", "NodePools are pools of Karpenter; Cluster Autoscaler needs node groups")
    return pools


def pool_files(given: Sequence[Mapping[str, Any]]) -> list[PoolFile]:
    """Return the files in the parameter `pools`."""
    files = []
    for number, each in enumerate(given):
        if not isinstance(each.get("text"), str):
            raise RpcError("invalid", f"pools[{number}].text: text is required")
        files.append(PoolFile(str(each.get("name") or f"pools[{number}]"), each["text"]))
    return files


def _on_copy(snapshot: ClusterSnapshot, decide: Callable[[Engine], T]) -> T:
    cluster = VirtualCluster(resumed=snapshot)
    try:
        cluster.engine.run_until_idle()
        return decide(cluster.engine)
    finally:
        cluster.engine.close()


def pooled_cluster(engine: Engine) -> PooledCluster:
    """Return the parts of the cluster that autoscalers read."""
    found: list[Object] = []
    for kind in sorted(READ_KINDS):
        for space in engine.store.present(kind):
            found += space
    return PooledCluster.of(found, engine.now)


def _launches(engine: Engine, pools: Pools, rng: random.Random) -> ScaleUp:
    cluster = pooled_cluster(engine)
    if pools.autoscaler == KARPENTER:
        return karpenter.plan_launches(cluster, pools, rng.choice)
    return autoscaler.plan_launches(cluster, pools, TrialCluster(engine.machine), rng)


def _launch_answer(name: str, plan: ScaleUp) -> LaunchAnswer:
    prices = [launch.price for launch in plan.launches]
    return LaunchAnswer(
        name,
        [_launched(each) for each in plan.launches],
        [ExpectedAnswer(pod.key, node) for pod, node in plan.existing],
        [RefusedLaunchAnswer(pod.key, reasons) for pod, reasons in plan.refused],
        total_price(prices),
    )
