"""A round of provisioning: pods are planned onto existing nodes, planned nodes and further new nodes.

If a pod fits nowhere, its alternatives and preferences are dropped one after the other, within the same try.

A planned node that may use reserved instances holds all reservations that are possible for it. If other planned nodes
of the round hold all reservations that a new node might use, the pod waits for the next round: it joins no pool with a
lower weight, and no on-demand node.

Source: sigs.k8s.io/karpenter, pkg/controllers/provisioning/scheduling (scheduler.go, queue.go, existingnode.go).
"""

from collections.abc import Generator, Mapping, Sequence
from functools import cached_property
from typing import Final

import attrs

from kschedd.api.pods import Pod
from kschedd.api.resources import Resources
from kschedd.api.selecting.terms import Taint
from kschedd.pools.karpenter.instance_types import Reservation
from kschedd.pools.karpenter.launching import Launch, LaunchOffers, PodDemand, ports_taken, total_requests
from kschedd.pools.karpenter.requirements import Requirements, compatible, of_labels
from kschedd.pools.karpenter.topology import CountedNode, RoundTopology
from kschedd.pools.volumes import NO_VOLUMES, ClaimedVolumes
from kschedd.values import run_steps

_PART: Final = 10  # pods whose terms are counted between two pauses
#: taint of a node that has not registered yet
UNREGISTERED: Final = Taint("karpenter.sh/unregistered", "", "NoExecute")
#: taints that an initializing node loses by itself
EPHEMERAL_TAINTS: Final = frozenset(
    (
        *("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"),
        *("node.cloudprovider.kubernetes.io/uninitialized", UNREGISTERED.key),
    )
)


@attrs.frozen(eq=False)
class ExistingNode:
    """A node in the cluster, with its pods. `startup_taints` are ignored until the node is initialized."""

    name: str
    labels: Mapping[str, str]
    allocatable: Resources
    taints: Sequence[Taint] = ()
    startup_taints: Sequence[Taint] = ()
    initialized: bool = True
    pods: Sequence[Pod] = ()
    daemons: Sequence[Pod] = ()  # pods of DaemonSets that will also run here
    volume_limits: Mapping[str, int] = attrs.field(factory=dict)  # maximum number of volumes, by CSI driver

    @cached_property
    def requested(self) -> Resources:
        return total_requests([*self.pods, *self.daemons])

    @cached_property
    def requirements(self) -> Requirements:
        return of_labels(self.labels)

    def admits(self, demand: PodDemand, volumes: ClaimedVolumes = NO_VOLUMES) -> bool:
        there, requested = self.allocatable, self.requested
        if requested["pods"] >= there.get("pods", 0):
            return False
        for name, number in demand.pod.requests.items():
            if number and number + requested.get(name, 0) > there.get(name, 0):
                return False
        if any(number > there.get(name, 0) for name, number in requested.items() if number):
            return False
        if not demand.tolerates(self._lasting_taints()):
            return False
        if demand.requirements and not compatible(self.requirements, demand.requirements):
            return False
        if demand.volumes and not any(compatible(self.requirements, each) for each in demand.volumes):
            return False
        if self.volume_limits and volumes.exceeds(self.volume_limits, [*self.pods, demand.pod]):
            return False
        return not (demand.pod.pod_spec.host_ports and ports_taken(demand.pod, [*self.pods, *self.daemons]))

    def _lasting_taints(self) -> list[Taint]:
        if self.initialized:
            return list(self.taints)
        started = {(taint.key, taint.effect) for taint in self.startup_taints}
        return [
            taint
            for taint in self.taints
            if taint.key not in EPHEMERAL_TAINTS and (taint.key, taint.effect) not in started
        ]


@attrs.frozen(eq=False)
class ProvisioningRound:
    """The plan of a round. `placed` maps the UID of each pod on an existing node to this node.

    `left` is the rest of the limits of each pool after the launches, and `topology` counts all planned pods.
    """

    launches: Sequence[Launch]
    placed: Mapping[str, str]
    failed: Sequence[Pod]
    left: Mapping[str, Resources]
    topology: RoundTopology


@attrs.define(eq=False)
class _Round:
    offers: LaunchOffers
    existing: list[ExistingNode]
    topology: RoundTopology
    preferences: bool
    left: dict[str, Resources]
    reserved: dict[Reservation, int] | None  # number of instances that no planned node holds; None: no rules apply
    launches: list[Launch] = attrs.field(factory=list, init=False)
    placed: dict[str, str] = attrs.field(factory=dict, init=False)
    held: list[frozenset[Reservation]] = attrs.field(factory=list, init=False)  # reservations of each launch

    def place(self, pod: Pod) -> bool:
        for demand in self.offers.demands(pod, preferences=self.preferences):
            if self._on_existing(demand) or self._on_planned(demand):
                return True
            launched = self._on_new(demand)
            if launched is not False:
                return launched is True
        return False

    def _on_existing(self, demand: PodDemand) -> bool:
        for place, node in enumerate(self.existing):
            if not node.admits(demand, self.offers.volumes):
                continue
            own = node.requirements
            narrowed = self.topology.narrowed(demand.pod, demand.terms, demand.strict, own)
            if narrowed is not None:
                self.existing[place] = attrs.evolve(node, pods=[*node.pods, demand.pod])
                self.placed[demand.pod.uid] = node.name
                self.topology.record(demand.pod, narrowed, node.taints)
                return True
        return False

    def _on_planned(self, demand: PodDemand) -> bool:
        """Join the planned node with the fewest pods that admits the pod; upstream orders equal nodes randomly."""
        for place in sorted(range(len(self.launches)), key=lambda place: len(self.launches[place].pods)):
            grown = self.offers.added(self.launches[place], demand, self.topology)
            if grown is not None and self._holds(grown, self.held[place]):
                self._hold(place, grown)
                self.launches[place] = grown
                self.topology.record(demand.pod, grown.requirements, grown.pool.taints)
                return True
        return False

    def _on_new(self, demand: PodDemand) -> bool | None:
        """Plan a new node for the pod; return None if the pod has to wait for a reservation."""
        offers = attrs.evolve(self.offers, left=self.left)
        hostname = f"planned-{len(self.launches)}"
        for pool in offers.pools_in_order():
            opened = offers.opened(pool, hostname)
            launch = None if opened is None else offers.added(opened, demand, self.topology)
            if launch is not None:
                if not self._holds(launch, frozenset()):
                    return None
                self.launches.append(launch)
                self.held.append(frozenset())
                self._hold(len(self.held) - 1, launch)
                self.topology.register(hostname)
                self.topology.record(demand.pod, launch.requirements, pool.taints)
                self._subtract(launch)
                return True
        return False

    def _free(self, launch: Launch, held: frozenset[Reservation]) -> frozenset[Reservation]:
        """Return the reservations that the launch can hold; it holds `held` already."""
        left = self.reserved or {}
        return frozenset(each for each in launch.possible_reservations() if each in held or left.get(each, 0) > 0)

    def _holds(self, launch: Launch, held: frozenset[Reservation]) -> bool:
        """Return whether the launch can hold a reservation, or needs none."""
        if self.reserved is None or self._free(launch, held):
            return True
        return not held and not launch.possible_reservations()

    def _hold(self, place: int, launch: Launch) -> None:
        if self.reserved is not None:
            before, self.held[place] = self.held[place], self._free(launch, self.held[place])
            for each in before - self.held[place]:
                self.reserved[each] += 1
            for each in self.held[place] - before:
                self.reserved[each] -= 1

    def planned(self) -> list[Launch]:
        """Return the launches, each with the reservations that it holds."""
        if self.reserved is None:
            return self.launches
        return [launch.reserved(held) for launch, held in zip(self.launches, self.held, strict=True)]

    def _subtract(self, launch: Launch) -> None:
        """Subtract the largest type of the launch from the limits of its pool."""
        left = self.left.get(launch.pool.name)
        if left is not None:
            most = {name: max(each.capacity.get(name, 0) for each in launch.types) for name in left if name != "nodes"}
            self.left[launch.pool.name] = {
                name: number - (1 if name == "nodes" else most[name]) for name, number in left.items()
            }


def plan_round(
    pods: Sequence[Pod],
    existing: Sequence[ExistingNode],
    offers: LaunchOffers,
    *,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    preferences: bool = True,
    reserving: bool = False,
) -> ProvisioningRound:
    """Return the plan for the pods.

    `namespaces` are the labels of each namespace. Without `preferences`, preferred terms are ignored. With `reserving`,
    the rules for reserved instances apply.
    """
    return run_steps(
        planning(pods, existing, offers, namespaces=namespaces, preferences=preferences, reserving=reserving)
    )


def planning(
    pods: Sequence[Pod],
    existing: Sequence[ExistingNode],
    offers: LaunchOffers,
    *,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    preferences: bool = True,
    reserving: bool = False,
) -> Generator[None, None, ProvisioningRound]:
    """Return the plan of `plan_round`, with pauses, the last ones after each pod."""
    nodes = sorted(existing, key=lambda node: (not node.initialized, node.name))
    yield
    counted = [CountedNode(node.labels, node.taints, node.pods) for node in nodes]
    yield
    topology = RoundTopology(counted, namespaces or {}, offers.domains())
    limits = {name: dict(left) for name, left in offers.left.items()}
    round_ = _Round(offers, nodes, topology, preferences, limits, offers.reservations() if reserving else None)
    ignored = [pod for pod in pods if offers.volumes.why_left_out(pod)]
    left = sorted((pod for pod in pods if pod not in ignored), key=_queue_key)
    yield
    for number, pod in enumerate(left):
        if not number % _PART:
            yield
        topology.prepare(pod, next(offers.demands(pod, preferences=preferences)).terms)
    # A pod that fails is tried again after the others, because they may satisfy its pod affinity.
    while left:
        failed = []
        for pod in left:
            if not round_.place(pod):
                failed.append(pod)
            yield
        if len(failed) == len(left):
            break
        left = failed
    return ProvisioningRound(round_.planned(), round_.placed, [*left, *ignored], round_.left, topology)


def _queue_key(pod: Pod) -> tuple[int, int, str, str]:
    requests = pod.requests
    created = str(pod.metadata.get("creationTimestamp") or "")
    return -requests.get("cpu", 0), -requests.get("memory", 0), created, pod.uid
