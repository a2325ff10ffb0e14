"""Arrivals: the nodes and pods of a run, from the files and flags of `simulate` and sweeps.

read_input(nodes, pods)      choose the reader of each file: a trace, a fitted generator or a SimKube trace
arrivals_of(read, ...)       add generated nodes and pods, fill the cluster, or group the pods in gangs
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from kschedd.config.model import Config
from kschedd.simulation.formats.reading import read_trace
from kschedd.simulation.formats.simkube import is_simkube, read_objects
from kschedd.simulation.simulation import Arrivals
from kschedd.simulation.workloads.fill import Fill, filled
from kschedd.simulation.workloads.fitting import GENERATORS, FittedWorkload, read_fitted
from kschedd.simulation.workloads.gangs import in_gangs
from kschedd.simulation.workloads.generated import GeneratedWorkload
from kschedd.simulation.workloads.trace import ObjectTrace, Trace

Raw = dict[str, Any]


@attrs.frozen(eq=False)
class TraceInput:
    """The content of the file of nodes and the file of pods; `pods` is empty without a file of pods."""

    nodes: tuple[Raw, ...]
    pods: Trace | FittedWorkload | ObjectTrace


def is_list(pods: Path) -> bool:
    """Return whether the file is a list of pods, which can fill a cluster or form gangs."""
    return pods.suffix not in GENERATORS and not is_simkube(pods)


def read_input(nodes: Path | None, pods: Path | None) -> TraceInput:
    """Read the file of nodes and the file of pods, or only one of them.

    Raises TraceError, and for a generator ConfigErrors.
    """
    if pods is None or is_list(pods):
        trace = read_trace(nodes, pods)
        return TraceInput(trace.nodes, trace)
    of_nodes = read_trace(nodes, None).nodes
    return TraceInput(of_nodes, read_objects(pods) if is_simkube(pods) else read_fitted(pods))


def arrivals_of(
    given: TraceInput,
    config: Config,
    seed: int,
    *,
    nodes: Sequence[Raw] = (),
    generated: GeneratedWorkload | None = None,
    fill: Fill | None = None,
    gangs: bool = False,
) -> Arrivals:
    """Return the nodes and pods of a run.

    `nodes`: further nodes. `generated` provides the pods if no file lists pods; its nodes are ignored. `fill` and
    `gangs` require a list of pods. Raises FillError and GangsError.
    """
    pods, every_node = given.pods, (*given.nodes, *nodes)
    if isinstance(pods, FittedWorkload):
        return pods.generated(every_node, seed)
    if isinstance(pods, ObjectTrace):
        return attrs.evolve(pods, nodes=every_node)
    if generated is not None and not pods.pods:
        return attrs.evolve(generated, nodes=every_node)
    trace = attrs.evolve(pods, nodes=every_node)
    if fill is not None:
        return filled(trace, fill, seed)
    return in_gangs(trace, config) if gangs else trace
