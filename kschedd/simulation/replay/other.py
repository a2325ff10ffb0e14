"""Comparison of a recorded run with another configuration, with the same external inputs at the same virtual times.

Two clusters receive the external inputs of the recorded run: one with the recorded configuration, one with the other
configuration. The two clusters are compared with each other, not with the recorded run, because a daemon in real time
attempts pods at times that virtual time does not reproduce. The answer also contains the number of pods that the first
cluster placed as in the recorded run.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from kschedd.answers import plain
from kschedd.config.changing.changes import with_version
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import load_config
from kschedd.config.model import Config
from kschedd.config.versions.feature_gates import parse_flag
from kschedd.config.versions.kube_versions import KubernetesVersion, kube_version
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.options import ControllerOptions
from kschedd.controllers.parts import without_parts
from kschedd.errors import KscheddError
from kschedd.framework.registry import Registry
from kschedd.queue.entry import QueuedPod
from kschedd.recording.configuration import config_of
from kschedd.recording.format import RecordingHeader
from kschedd.recording.reading import RecordingFile, distrusting
from kschedd.recording.wiring import controllers_of
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.trial_cluster import TrialCluster
from kschedd.simulation.comparing.comparison import ReadDecision, compare_configs
from kschedd.simulation.engine import Engine
from kschedd.simulation.replay.external import OutsideWorld
from kschedd.store.errors import ApiError
from kschedd.values import run_steps

T = TypeVar("T")


@attrs.define(eq=False)
class PluginsNeeded(KscheddError):
    """The error if the recorded run used out-of-tree plugins, because another configuration requires their code."""

    names: Sequence[str]

    def __str__(self) -> str:
        return (
            f"the recorded run had {', '.join(self.names)}: a recording has what plugins answered, which another run "
            "would call them differently; give their files with --plugin"
        )


@attrs.define(eq=False)
class OtherRun:
    """One of the two clusters. A run of the recorded inputs; `refused` contains inputs that this cluster rejected."""

    config: Config
    registry: Registry
    nodes: dict[str, str] = attrs.field(factory=dict)  # pod key -> last node of the pod
    refused: list[str] = attrs.field(factory=list)

    def run(
        self, header: RecordingHeader, options: ControllerOptions, world: OutsideWorld, read: ReadDecision[T]
    ) -> dict[str, T]:
        """Return the data from the last decision about each pod."""
        found: dict[str, T] = {}

        def note(entry: QueuedPod, result: ScheduleResult | FitError) -> None:
            found[entry.key] = read(engine.machine, entry.pod, result)

        parts = frozenset(header.without)
        engine = Engine(
            self.config,
            seed=header.seed,
            registry=self.registry,
            controllers=without_parts(
                embedded_controllers(options=options, trials=TrialCluster.in_steps, seed=header.seed), parts
            ),
            start_s=header.start_s,
            on_result=note,
        )
        engine.store.simulate_pods(options.pod_behavior)
        self.nodes, self.refused = {}, []
        run_steps(engine.store.take_in(world.objects))
        engine.run_until_idle()
        for change in world.changes:
            if change.at_s > engine.now:
                engine.advance(change.at_s)
            try:
                change.apply(engine.store)
            except ApiError as refusal:
                new = change.new
                self.refused.append(f"{change.type.lower()} {new.kind} {new.key}: {refusal}")
            engine.run_until_idle()
        engine.advance(max(world.ended_s, engine.now))
        self.nodes = {pod.key: getattr(pod, "node_name", "") for pod in engine.store.list("Pod")}
        engine.close()
        return found


def compared(
    header: RecordingHeader,
    options: ControllerOptions,
    world: OutsideWorld,
    recorded: OtherRun,
    other: OtherRun,
    name: str,
) -> dict[str, Any]:
    """Return the answer of the method `capacity.compare`, with the counts of the replay.

    `as_recorded` is the number of pods that the first cluster placed as in the recorded run. `recorded` is the number
    of pods whose names exist in both runs. `refused` contains the rejected writes.
    """

    def decide(side: OtherRun, keys: Collection[str] | None, read: ReadDecision[T]) -> dict[str, T]:
        return side.run(header, options, world, read)

    found = compare_configs(decide, (recorded, other), ("as recorded", name))
    named = {pod: node for pod, node in world.placed.items() if pod in recorded.nodes}
    same = sum(recorded.nodes[pod] == node for pod, node in named.items())
    refused = list(dict.fromkeys([*recorded.refused, *other.refused]))
    return {**plain(found), "as_recorded": same, "recorded": len(named), "refused": refused}


def compare_with(
    file: Path,
    registry: Registry,
    text: str | None,
    source: str,
    version: KubernetesVersion | None,
    feature_gates: Sequence[str] = (),
) -> dict[str, Any]:
    """Compare the recorded run with a run under another configuration (`text`) and version; None: as recorded.

    `feature_gates` are feature gates for that version, in the format of the flag.

    Raises RecordingError, ConfigErrors, PluginsNeeded.
    """
    with RecordingFile.open(file) as recording:
        header = recording.header
        missing = sorted(frozenset(header.plugins) - frozenset(registry.added))
        if missing:
            raise PluginsNeeded(missing)
        options = controllers_of(header, file)
        with distrusting(file):
            world = OutsideWorld.of(recording.notes(), header.start_s)
        broken = recording.broken
    catalogue = IN_TREE | registry.catalogue()
    as_recorded = kube_version(header.kube_version)
    recorded = config_of(header.config, catalogue, as_recorded, header.feature_gates, header.unschedulable_flush_s)
    by = as_recorded if version is None else version.with_ties_of(as_recorded)
    gates = parse_flag(feature_gates, by.gates)
    if text is None:
        other = recorded if version is None and not gates else with_version(recorded, by, catalogue, gates)
    else:
        other = load_config(text, source, catalogue=catalogue, version=by, feature_gates=gates)
    name = by.name if text is None else source
    found = compared(header, options, world, OtherRun(recorded, registry), OtherRun(other, registry), name)
    return {**found, "broken": broken}
