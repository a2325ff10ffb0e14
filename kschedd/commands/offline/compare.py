"""`kschedd compare` without a daemon, for the cluster of a dump or the pods of a scenario."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from kschedd.answers import plain
from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.commands.notices import note, warn
from kschedd.config.changing.changes import with_version
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import default_config, load_config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.versions.feature_gates import parse_flag
from kschedd.config.versions.kube_versions import DEFAULT, KubernetesVersion, kube_version
from kschedd.dumps.loading import LoadOptions, read_dump, take_dump
from kschedd.errors import KscheddError
from kschedd.framework.registry import Registry
from kschedd.garbage_collection import collection_paused
from kschedd.methods import daemon_methods
from kschedd.scenarios.file import Scenario, ScenarioError, read, run
from kschedd.simulation.comparing.comparison import PodOutcome, PodOutcomes
from kschedd.simulation.comparing.upgrade import compare_versions
from kschedd.simulation.engine import LoggedAttempt
from kschedd.values import run_steps


@attrs.define(eq=False)
class EmptyDumpError(KscheddError, rpc_code="invalid"):
    why: str

    def __str__(self) -> str:
        return f"--from: {self.why}"


def answer(named: Mapping[str, Any]) -> Any:
    """Return the answer of `capacity.compare` for the cluster of a dump (`origin`) or for a `scenario`."""
    versions, configs, names = named["versions"], named["configs"], named["names"]
    if named["scenario"] is not None:
        scenario = read(Path(named["scenario"]))
        a, b = _with_gates(scenario, *map(kube_version, versions))
        return plain(compare_versions(lambda version, keys: _outcomes(scenario, version), a, b))
    registry = Registry()
    registry.add_entry_points()
    for path in named["plugins"]:
        registry.add_file(Path(path))
    catalogue = IN_TREE | registry.catalogue()
    version = kube_version(versions[0]) if versions else DEFAULT
    read_configs = [
        load_config(text, name, catalogue=catalogue, version=version) for text, name in zip(configs, names, strict=True)
    ]
    alone = len(configs) == 1 and not versions and not named["weights"]  # it is compared with the default
    usual = default_config(catalogue=catalogue, version=version)
    config = read_configs[0] if configs and not alone else usual
    profiles = {name for each in (config, *read_configs) for name in each.scheduler_names}
    with collection_paused():
        dump = read_dump(named["origin"], LoadOptions(profiles=tuple(sorted(profiles))), stdin=sys.stdin.buffer)
    if not dump.count:
        raise EmptyDumpError("; ".join(dump.errors) or "there are no objects in it")
    if not versions and dump.release.reason:
        dump.assumptions.note(dump.release.reason)
        config = with_version(config, dump.release.version, catalogue)
    goes_on = bool(named["manifests"])  # otherwise each pod is scheduled separately in the present cluster
    cluster = VirtualCluster(config, registry=registry, start_s=dump.taken_at, controlled=goes_on)
    taken = run_steps(take_dump(cluster.engine.store, dump))
    cluster.engine.driver.popped.attempts_allowed = 0  # pending pods are not scheduled before they are compared
    cluster.engine.run_until_idle()
    for text in dump.assumptions.texts():
        note(text)
    for text in taken.errors:
        warn(text)
    call = VirtualDaemon(cluster, daemon_methods).call
    if versions:
        return call("capacity.compare", versions=versions, manifests=named["manifests"])
    sides = {"configs": configs, "names": names, "weights": named["weights"]}
    found = call("capacity.compare", **sides, manifests=named["manifests"])
    if len(configs) + bool(named["weights"]) == 1:
        found["configs"][0] = "default configuration"
    return found


def _with_gates(scenario: Scenario, *versions: KubernetesVersion) -> list[KubernetesVersion]:
    """Return the versions with the scenario's feature gates; each version gets the gates that exist in it.

    Raises ScenarioError for a gate that no version has, or that cannot be changed.
    """
    known = {name: gate for version in versions for name, gate in version.gates.items()}
    states: dict[str, bool] = {}
    for step in scenario.steps:
        command, _, words = step.command.partition(" ")
        if command == "feature-gates":
            try:
                states |= parse_flag([words], known)
            except ConfigErrors as fault:
                raise ScenarioError(scenario.file, step.line, str(fault)) from fault
    return [version.with_gates(_of_version(states, version)) for version in versions]


def _of_version(states: Mapping[str, bool], version: KubernetesVersion) -> dict[str, bool]:
    gates = version.gates
    return {name: state for name, state in states.items() if name in gates and not gates[name].locked}


def _outcomes(scenario: Scenario, version: KubernetesVersion) -> PodOutcomes:
    """Return the outcome of each pod's last attempt in the scenario. Raises ScenarioError."""
    found: dict[str, PodOutcome] = {}

    def note(attempt: LoggedAttempt) -> None:
        found[attempt.pod] = PodOutcome(attempt.node, "" if attempt.node else attempt.message)

    for _ in run(scenario, note, version, only=True):
        pass
    return found
