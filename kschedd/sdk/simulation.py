"""Simulations as values: the input is a specification and the output is a result; both can be compared and pickled."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from kschedd.explain.answers import DecisionAnswer
from kschedd.sdk.cluster import Cluster, Ties
from kschedd.sdk.handle import checked, seconds
from kschedd.sdk.records import Records
from kschedd.sdk.records_of_objects import NodeRecord, PendingPod, PodRecord, used_cpu, used_memory

Raw = Mapping[str, Any]


@attrs.frozen(kw_only=True)
class SimulationSpec:
    """The inputs of one simulation. Two runs of equal specifications give equal results on every machine.

    `nodes`: Node manifests. `manifests`: all other objects, as manifests or as YAML text; they are applied in order at
    the start. `until`: the virtual time to simulate; with None, the simulation runs until the cluster is idle, at most
    24 h. The other fields are the options of `Cluster`. To pickle a specification, its plugin classes must be
    picklable; paths always are.
    """

    nodes: Sequence[Raw] = ()
    manifests: Sequence[Raw | str] = ()
    version: str = ""
    config: str | Raw | None = None
    seed: int = 0
    ties: Ties = "release"
    plugins: Sequence[type[Any] | str] = ()
    plugin_args: Mapping[str, Raw] = attrs.field(factory=dict)
    plugin_weights: Mapping[str, int] = attrs.field(factory=dict)
    feature_gates: Mapping[str, bool] = attrs.field(factory=dict)
    controllers: bool = True
    until: str | float | None = None


@attrs.frozen(kw_only=True)
class SimulationResult:
    """The final state of a simulation, and its decisions.

    `elapsed_s`: the simulated time in virtual seconds. `at_rest`: False if work was left at the end. `used`: the
    requested share of the allocatable CPU and memory of all nodes, from 0 to 1.
    """

    pods: Records[PodRecord]
    nodes: Records[NodeRecord]
    pending: Records[PendingPod]
    decisions: Records[DecisionAnswer]
    elapsed_s: float
    at_rest: bool
    used: Mapping[str, float]

    def placements(self) -> dict[str, str | None]:
        """Return the node of each pod by `namespace/name`; None for a pod without a node."""
        return {pod.key: pod.node for pod in self.pods}


def simulate(spec: SimulationSpec) -> SimulationResult:
    """Run a simulation and return its result. Raises the errors of `Cluster`, and ApplyError for rejected objects."""
    checked("spec", spec, SimulationSpec)
    cluster = Cluster(
        spec.nodes,
        version=spec.version,
        config=spec.config,
        seed=spec.seed,
        ties=spec.ties,
        plugins=spec.plugins,
        plugin_args=spec.plugin_args,
        plugin_weights=spec.plugin_weights,
        feature_gates=spec.feature_gates,
        controllers=spec.controllers,
    )
    with cluster:
        if spec.manifests:
            cluster.apply(*spec.manifests)
        at_rest = True
        if spec.until is None:
            at_rest = cluster.run_until_idle("24h")
        else:
            cluster.advance(seconds(spec.until))
        nodes = cluster.nodes
        return SimulationResult(
            pods=cluster.pods,
            nodes=nodes,
            pending=cluster.pending(),
            decisions=Records(DecisionAnswer, [attrs.evolve(each, took_us=0) for each in cluster.decisions]),
            elapsed_s=cluster.elapsed,
            at_rest=at_rest,
            used={"cpu": used_cpu(nodes), "memory": used_memory(nodes)},
        )
