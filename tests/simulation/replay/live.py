"""Recorded runs of the daemon's actors: clusters with many changes, and plugins with unpredictable results."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import trio

from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.api.pods import Pod
from kschedd.config.loading.load import default_config
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import V1_34, KubernetesVersion
from kschedd.controllers.embedded import embedded_controllers
from kschedd.daemon import cluster_actors
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.registry import Registry
from kschedd.framework.status import Code, Status, unschedulable
from kschedd.log.log import Log
from kschedd.recording.wiring import RecordOptions
from kschedd.scheduling.records import AttemptRecord
from kschedd.simulation.engine import EPOCH, LoggedAttempt
from kschedd.simulation.results.decisions import line
from kschedd.startup.state import StateOptions
from kschedd.store.store import Store
from tests.actors.clusters import deployment, node, pod, until, with_plugins

SPEED = 20.0  # of the cluster's time, for short backoffs and waits at Permit


class Moody:
    """A plugin that rejects, scores, waits and fails at random, without a seed."""

    name: ClassVar = "Moody"

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._mood = random.Random()

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> "Moody":
        return cls(handle)

    def pre_filter(self, state: CycleState, pod: Pod, cluster: Any) -> Status | None:
        return unschedulable("in no mood") if self._mood.random() < 0.05 else None

    def filter(self, state: CycleState, pod: Pod, info: NodeInfo) -> Status | None:
        return unschedulable("not this one") if self._mood.random() < 0.3 else None

    def score(self, state: CycleState, pod: Pod, info: NodeInfo) -> int:
        return self._mood.randrange(100)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float] | None:
        return (Status(Code.WAIT), 2.0) if self._mood.random() < 0.3 else None

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        for waiting, _ in self._handle.waiting_pods():
            if self._mood.random() < 0.5:
                self._handle.allow(waiting.uid, self.name)


class Fickle(Moody):
    """Takes part everywhere."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return None

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        if self._mood.random() < 0.05:
            raise ValueError("reserve is broken")
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        return None

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        return unschedulable("not after all") if self._mood.random() < 0.1 else None


def moody(version: KubernetesVersion = V1_34) -> tuple[Config, Registry]:
    config, registry = with_plugins(Fickle, version=version)
    # Pods that it rejects are retried soon, since no event wakes them.
    return attrs.evolve(config, unschedulable_flush_s=1), registry


def priority_class(name: str, value: int) -> dict[str, Any]:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}


def decision_log(records: Sequence[AttemptRecord], start_s: float) -> str:
    return "".join(line(LoggedAttempt.of(record, start_s)) for record in records if not record.of_binding)


async def busy_run(
    file: Path,
    seed: int,
    config: Config | None = None,
    registry: Registry | None = None,
    pods: int = 40,
    late: bool = False,
    journal: Path | None = None,
) -> str:
    """Run nodes that come and go, preempting pods, a Deployment, and a pod that fits nowhere; return the decisions.

    `late`: record the second half only, and return its decisions.
    """
    since = 0.0
    chance = random.Random(seed)
    async with cluster_actors(
        config or default_config(version=V1_34),
        registry=registry,
        controllers=embedded_controllers(),
        seed=seed,
        clock=Clock.started(EPOCH, SPEED),
        state=StateOptions(journal=journal),
        record=None if late else RecordOptions(file),
    ) as cluster:
        for number in range(6):
            zone = {"topology.kubernetes.io/zone": f"z{number % 2}"}
            await cluster.store.create(node(f"n{number}", cpu="2", labels=zone))
        for name, value in (("low", 0), ("mid", 10), ("high", 100)):
            await cluster.store.create(priority_class(name, value))
        await cluster.store.create(deployment("web", 4))
        for number in range(pods):
            cpu = f"{chance.choice((100, 200, 300))}m"
            await cluster.store.create(pod(f"p{number}", cpu=cpu, priorityClassName=chance.choice(("low", "mid"))))
            if chance.random() < 0.2:
                await trio.lowlevel.checkpoint()
            if late and number == pods // 2:
                await cluster.store.delete("Node", "", f"n{chance.randrange(4)}")
                since = (await cluster.start_recording(file, 90)).since_s
        await cluster.store.create(pod("large", cpu="1900m", priorityClassName="high"))
        await cluster.store.delete("Node", "", "n5")
        await cluster.store.create(pod("later", cpu="3", priorityClassName="high"))
        await _has_node(cluster, "large")
        await cluster.store.create(node("n9", cpu="8"))
        await _has_node(cluster, "later")
        await cluster.store.delete("Pod", "default", "later", grace_period_s=0)
        records = await cluster.log.query(Log.attempts)
        if late:
            await cluster.end_recording()
        return decision_log([one for one in records if one.at_s >= since], since or cluster.started_s)
    raise AssertionError("the run has a log")


async def _has_node(cluster: LiveCluster, name: str) -> None:
    def given(store: Store) -> bool:
        found = store.find("Pod", "default", name)
        return isinstance(found, Pod) and bool(found.node_name)

    await until(cluster, given)
