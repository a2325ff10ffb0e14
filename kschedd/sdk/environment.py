"""Gymnasium environments with kube-scheduler's filters: choose a node for each pod, or the order of the pods.

    env = KubeSchedulingEnv(nodes=[node(f"n{number}") for number in range(10)], pods=[pod("a"), pod("b")])
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(int(observation["mask"].argmax()))

An episode schedules the pods of a list, one after the other. The mask shows the nodes that pass all Filter plugins of
the profile. A step costs one scheduling attempt: no API object is written, and no controller runs.

Requires the library gymnasium: pip install "kschedd[gym]".
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypedDict, Unpack

import attrs
import numpy as np

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.cache.table import Ints
from kschedd.scheduling.attempt.outcome import ScheduleResult
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.sdk.cluster import scheduler_config
from kschedd.sdk.records import MissingLibraryError, optional_library

gymnasium: Any
_Env: Any
try:
    gymnasium = optional_library("gymnasium", "gym")
    _Env = gymnasium.Env
except MissingLibraryError:  # raised when an environment is created: `help` and `import *` need the classes
    gymnasium, _Env = None, object

Raw = Mapping[str, Any]
Floats = np.ndarray[Any, np.dtype[np.float32]]
Observation = dict[str, Any]

_PODS = "pods"


@attrs.frozen(eq=False)
class Transition:
    """One step, passed to reward functions.

    `used_before` and `used`: the requested share of each node's resources before and after the step, an array of
    (nodes, resources) in the order of `resources`. `node`: the index of the chosen node; None if the pod was not
    scheduled, because the chosen node was not feasible.
    """

    pod: Pod
    node: int | None
    resources: tuple[str, ...]
    used_before: Floats
    used: Floats


Reward = Callable[[Transition], float]


def placed(step: Transition) -> float:
    """Return 1 if the pod was scheduled and 0 otherwise."""
    return float(step.node is not None)


def packed(step: Transition) -> float:
    """Return the mean used share of the chosen node after the step, which favors full nodes; -1 without a node."""
    return -1.0 if step.node is None else float(step.used[step.node].mean())


def balanced(step: Transition) -> float:
    """Return the negative standard deviation of the used shares over the nodes; -1 if the pod was not scheduled."""
    return -1.0 if step.node is None else -float(step.used.std(axis=0).mean())


@attrs.define(eq=False)
class _Episode:
    """The state of one episode: the scheduler with its cache, and the pods that are still to be scheduled, in order."""

    machine: SchedulingMachine
    waiting: list[int]  # indexes of pods
    feasible: Ints  # rows of the feasible nodes of the current pod
    choice: str = ""  # the node that kube-scheduler would choose for the present pod
    steps: int = 0
    placed: int = 0
    skipped: int = 0  # pods that fit on no node
    leaving: dict[int, list[Pod]] = attrs.field(factory=dict)  # scheduled pods by the step before which they end


class EnvironmentOptions(TypedDict, total=False):
    """Options that both environments have.

    * `lifetimes`: the number of steps after which each pod ends; None: no pod ends.
    * `reward`: a function that is called with each `Transition`; the default is `placed`.
    * `version`, `config`: as for `Cluster`.
    * `shuffle`: permute the pods in each episode, with the seed that `reset` receives; the default is False.
    """

    lifetimes: Sequence[int] | None
    reward: Reward
    version: str
    config: str | Raw | None
    shuffle: bool


class _SchedulingEnv(_Env):  # type: ignore[misc]  # the library has no types where it is not installed
    """The code that both environments share."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        nodes: Sequence[Raw],
        pods: Sequence[Raw],
        *,
        lifetimes: Sequence[int] | None = None,
        reward: Reward = placed,
        version: str = "",
        config: str | Raw | None = None,
        shuffle: bool = False,
    ) -> None:
        optional_library("gymnasium", "gym")
        if not nodes or not pods:
            raise ValueError("nodes and pods: at least one of each is required")
        for raw, kind in [*((raw, "Node") for raw in nodes), *((raw, "Pod") for raw in pods)]:
            if raw.get("kind") != kind:
                raise ValueError(f"{kind.lower()}s: manifests of the kind {kind} are required, not {raw.get('kind')}")
        if lifetimes is not None and len(lifetimes) != len(pods):
            raise ValueError(f"lifetimes: {len(pods)} are required, one for each pod, not {len(lifetimes)}")
        self._lifetimes, self._reward, self._shuffle = lifetimes, reward, shuffle
        self._config = attrs.evolve(scheduler_config(config, version), percentage_of_nodes_to_score=100)
        self._cache = SchedulerCache()
        for raw in nodes:
            self._cache.put(parse(dict(raw)))
        self.node_names: tuple[str, ...] = tuple(raw["metadata"]["name"] for raw in nodes)
        self._place = {name: place for place, name in enumerate(self.node_names)}
        table = self._cache.table
        self._rows = np.array([table.row_of[name] for name in self.node_names], dtype=np.int64)
        self.pods: tuple[Pod, ...] = tuple(_pod(raw, number) for number, raw in enumerate(pods))
        requested = dict.fromkeys(name for one in self.pods for name in one.requests)
        others = [name for name in requested if name not in ("cpu", "memory")]
        self.resources: tuple[str, ...] = ("cpu", "memory", *others, _PODS)
        self._allocatable = np.array([self._has(int(row)) for row in self._rows])
        largest = np.maximum(self._allocatable.max(axis=0), 1.0)
        self._sizes = (self._allocatable / largest).astype(np.float32)
        amounts = [[*(float(one.requests.get(name, 0)) for name in self.resources[:-1]), 1.0] for one in self.pods]
        self._requests = np.minimum(np.array(amounts) / largest, 1.0).astype(np.float32)
        self._episode: _Episode | None = None

    def _has(self, row: int) -> list[float]:
        node = self._cache.table.nodes[row]
        assert node is not None, "each of these rows has a node"
        return [float(node.allocatable.get(name, 0)) for name in self.resources]

    # -- state --------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> _Episode:
        if self._episode is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        return self._episode

    def _begin(self, seed: int | None) -> None:
        super().reset(seed=seed)
        waiting = list(range(len(self.pods)))
        if self._shuffle:
            self.np_random.shuffle(waiting)
        self._episode = _Episode(self._machine(self._cache), waiting, self._rows[:0])

    def _machine(self, cache: SchedulerCache) -> SchedulingMachine:
        return SchedulingMachine(self._config, cluster=cache.fork())

    def fork(self) -> Self:
        """Return a copy in the same state, for look-ahead search; steps of the copy do not change the original."""
        now = self._now
        copy = self.__class__.__new__(self.__class__)
        copy.__dict__.update(self.__dict__)
        leaving = {step: pods.copy() for step, pods in now.leaving.items()}
        machine = self._machine(now.machine.cluster)
        copy._episode = attrs.evolve(now, machine=machine, waiting=now.waiting.copy(), leaving=leaving)
        return copy

    def used(self) -> Floats:
        """Return the requested share of each node's resources, as an array of shape (nodes, resources)."""
        table = self._now.machine.cluster.table
        amounts = np.zeros_like(self._allocatable)
        for place, name in enumerate(self.resources[:-1]):
            number = table.resources.get(name)
            if number is not None:
                amounts[:, place] = table.requested[number, self._rows]
        amounts[:, -1] = table.pod_count[self._rows]
        shares = np.divide(amounts, self._allocatable, out=np.zeros_like(amounts), where=self._allocatable > 0)
        found: Floats = np.minimum(shares, 1.0).astype(np.float32)
        return found

    def _attempt(self, pod: Pod) -> ScheduleResult | None:
        """Return the result of a scheduling attempt; None if no node is feasible."""
        attempt = self._now.machine.begin(pod, {}, post_filters=False)
        result = drive(attempt)
        return result if isinstance(result, ScheduleResult) else None

    def _put(self, number: int, node_name: str) -> None:
        now = self._now
        assumed = now.machine.cluster.assume(self.pods[number], node_name)
        now.placed += 1
        if self._lifetimes is not None:
            now.leaving.setdefault(now.steps + self._lifetimes[number], []).append(assumed)

    def _pass(self) -> None:
        """Count a step, and remove the pods whose lifetime has ended."""
        now = self._now
        now.steps += 1
        for pod in now.leaving.pop(now.steps, ()):
            now.machine.cluster.forget(pod)

    def _info(self) -> dict[str, Any]:
        now = self._now
        return {
            "placed": now.placed,
            "skipped": now.skipped,
            "waiting": len(now.waiting),
            "default_choice": self._place.get(now.choice, -1),
        }

    def _space(self, *shape: int) -> Any:
        return gymnasium.spaces.Box(0.0, 1.0, shape, np.float32)


class KubeSchedulingEnv(_SchedulingEnv):
    """An environment in which the agent chooses the node of each pod. `nodes`, `pods`: manifests.

    Observation: `used` and `size`, arrays of (nodes, resources): the requested share of each node's resources, and the
    node's resources relative to the largest node; `pod`, an array of (resources,): the pod's requests relative to the
    largest node, at most 1; `mask`, an array of (nodes,): 1 for each feasible node. Action: the index of a node in
    `node_names`.

    A pod that fits on no node is skipped and causes no step. If the chosen node is not feasible, the pod gets no node.
    The episode ends when no pod is left. `info` contains `placed`, `skipped`, `waiting`, and `default_choice`, the
    index of the node that kube-scheduler would choose (-1 at the end of the episode).
    """

    def __init__(self, nodes: Sequence[Raw], pods: Sequence[Raw], **options: Unpack[EnvironmentOptions]) -> None:
        super().__init__(nodes, pods, **options)
        many, kinds = len(self.node_names), len(self.resources)
        self.action_space = gymnasium.spaces.Discrete(many)
        self.observation_space = gymnasium.spaces.Dict(
            {
                "used": self._space(many, kinds),
                "size": self._space(many, kinds),
                "pod": self._space(kinds),
                "mask": gymnasium.spaces.MultiBinary(many),
            }
        )

    def reset(self, *, seed: int | None = None, options: Raw | None = None) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode, as gymnasium.Env.reset does."""
        self._begin(seed)
        self._look()
        return self._observation(self.used()), self._info()

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Schedule the present pod to a node, as an action of gymnasium.Env.step."""
        now = self._now
        if not now.waiting:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset()")
        number, before = now.waiting.pop(0), self.used()
        fits = bool((now.feasible == self._rows[action]).any())
        if fits:
            self._put(number, self.node_names[action])
        used = self.used() if fits else before
        transition = Transition(self.pods[number], int(action) if fits else None, self.resources, before, used)
        reward = self._reward(transition)
        self._pass()
        self._look()
        return self._observation(self.used()), reward, not now.waiting, False, self._info()

    def _look(self) -> None:
        """Find the feasible nodes of the present pod, and skip pods that fit on no node."""
        now = self._now
        while now.waiting:
            found = self._attempt(self.pods[now.waiting[0]])
            if found is not None:
                now.feasible, now.choice = found.feasible, found.node_name
                return
            now.waiting.pop(0)
            now.skipped += 1
        now.feasible, now.choice = self._rows[:0], ""

    def _observation(self, used: Floats) -> Observation:
        now = self._now
        pod = self._requests[now.waiting[0]].copy() if now.waiting else np.zeros(len(self.resources), np.float32)
        mask = np.isin(self._rows, now.feasible).astype(np.int8)
        return {"used": used, "size": self._sizes.copy(), "pod": pod, "mask": mask}


class KubeQueueEnv(_SchedulingEnv):
    """An environment in which the agent chooses the next pod to schedule among the first `window` waiting pods.

    `nodes`, `pods`: manifests.

    Observation: `used` and `size`: the same as for `KubeSchedulingEnv`; `pods`, an array of (window, resources): the
    requests of the waiting pods; `mask`, an array of (window,): 1 for each waiting pod. Action: an index into the
    window.

    If a pod fits on no node when it is attempted, the pod leaves the queue, and its reward is the reward of a
    `Transition` without a node.
    """

    def __init__(
        self, nodes: Sequence[Raw], pods: Sequence[Raw], *, window: int = 16, **options: Unpack[EnvironmentOptions]
    ) -> None:
        super().__init__(nodes, pods, **options)
        self.window = window
        many, kinds = len(self.node_names), len(self.resources)
        self.action_space = gymnasium.spaces.Discrete(window)
        self.observation_space = gymnasium.spaces.Dict(
            {
                "used": self._space(many, kinds),
                "size": self._space(many, kinds),
                "pods": self._space(window, kinds),
                "mask": gymnasium.spaces.MultiBinary(window),
            }
        )

    def reset(self, *, seed: int | None = None, options: Raw | None = None) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode, as gymnasium.Env.reset does."""
        self._begin(seed)
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Let kube-scheduler schedule a pod, as an action of gymnasium.Env.step.

        If the index has no pod, the first pod is chosen.
        """
        now = self._now
        if not now.waiting:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset()")
        number = now.waiting.pop(int(action) if action < len(now.waiting) else 0)
        before, found = self.used(), self._attempt(self.pods[number])
        if found is None:
            now.skipped += 1
        else:
            self._put(number, found.node_name)
        place = None if found is None else self._place[found.node_name]
        reward = self._reward(Transition(self.pods[number], place, self.resources, before, self.used()))
        self._pass()
        return self._observation(), reward, not now.waiting, False, self._info()

    def _observation(self) -> Observation:
        first = self._now.waiting[: self.window]
        pods = np.zeros((self.window, len(self.resources)), np.float32)
        pods[: len(first)] = self._requests[first]
        mask = np.zeros(self.window, np.int8)
        mask[: len(first)] = 1
        return {"used": self.used(), "size": self._sizes.copy(), "pods": pods, "mask": mask}


def _pod(raw: Raw, number: int) -> Pod:
    """Return the pod with a UID of its own, as the API server would assign it."""
    meta = {"namespace": "default", **raw["metadata"], "uid": f"pod-{number}"}
    return Pod.from_raw({**raw, "metadata": meta})
