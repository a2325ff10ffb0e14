"""The runs of a sweep: the product of its dimensions, an identity for each run, and the selection of a shard.

`inputs_hash` covers everything that influences the decisions: the contents of files but not their paths; the
configuration with its parameters but not the name of the profile. `run` identifies a row of the sweep; it also covers
the names, the metrics and the version of kschedd.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.config.model import Config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.versions.kube_versions import kube_version
from kschedd.errors import KscheddError
from kschedd.framework.registry import Registry
from kschedd.studies.parameters import ParameterPathError, with_value
from kschedd.studies.spec import UNHASHED, ClusterSpec, InputFile, ProfileSpec, RunOptions, SweepSpec, WorkloadSpec

_SHARD: Final = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
#: placeholder in a configuration for the path of the file with the workload's pods
PODS_FILE: Final = "${workload.pods}"
MOST_CHECKED: Final = 1_000  # maximum number of configurations that are read before the first run


@attrs.frozen(kw_only=True)
class PlannedRun:
    """One run of a sweep, with all of its inputs. It can be pickled."""

    # the values of the columns cluster, workload, profile, version, seed, and of the parameters
    names: Mapping[str, Any]
    cluster: ClusterSpec
    workload: WorkloadSpec
    profile: ProfileSpec
    version: str
    seed: int
    options: RunOptions = attrs.field(factory=RunOptions)

    @cached_property
    def inputs_hash(self) -> str:
        options = self.options
        decides = [self.cluster, self.workload, self.profile, self.version, self.seed, options.targets, options.until_s]
        decides += [options.prices] if options.prices else []
        return digest([_content(each) for each in decides])

    @cached_property
    def run(self) -> str:
        return digest([self.inputs_hash, dict(self.names), list(self.options.metrics), installed_version("kschedd")])


def digest(value: Any) -> str:
    """Return a hash of a JSON value that does not depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _content(value: Any) -> Any:
    """Return the value for hashing: a file is replaced by its content."""
    if isinstance(value, InputFile):
        return value.sha256
    if attrs.has(type(value)):
        fields = [
            each for each in attrs.fields(type(value)) if getattr(value, each.name) or UNHASHED not in each.metadata
        ]
        return {field.name: _content(getattr(value, field.name)) for field in fields}
    if isinstance(value, list | tuple):
        return [_content(each) for each in value]
    return value


def planned_runs(spec: SweepSpec) -> Iterator[PlannedRun]:
    """Yield the runs: parameters change fastest, then versions, profiles, workloads and clusters; seeds slowest.

    An interrupted sweep therefore has about as many seeds of each configuration.
    """
    names_of = [parameter.name for parameter in spec.parameters]
    named = itertools.product(spec.clusters, spec.workloads, spec.profiles, spec.versions)
    chosen = list(itertools.product(*(parameter.values for parameter in spec.parameters)))
    unseeded: list[PlannedRun] = []
    for (cluster, workload, profile, version), combination in itertools.product(named, chosen):
        values: dict[str, Any] = dict(zip(names_of, combination, strict=True))
        run = PlannedRun(
            names={"cluster": cluster, "workload": workload, "profile": profile, "version": version, **values},
            cluster=spec.clusters[cluster],
            workload=spec.workloads[workload],
            profile=with_parameters(spec, profile, values),
            version=version,
            seed=0,
            options=spec.options,
        )
        unseeded.append(run)
    for seed, run in itertools.product(spec.seeds, unseeded):
        yield attrs.evolve(run, names={**run.names, "seed": seed}, seed=seed)


def with_parameters(spec: SweepSpec, profile: str, values: Mapping[str, Any]) -> ProfileSpec:
    """Return the profile with these values of its parameters. Raises ParameterValueError."""
    made = spec.profiles[profile]
    for parameter in spec.parameters:
        try:
            made = attrs.evolve(made, config=with_value(made.config, parameter.path, values[parameter.name]))
        except ParameterPathError as fault:
            raise ParameterValueError(
                spec.source, profile, {parameter.path: values[parameter.name]}, str(fault)
            ) from fault
    return made


@attrs.define(eq=False)
class ParameterValueError(KscheddError):
    """The configuration is invalid with these values of parameters."""

    source: str
    profile: str
    values: Mapping[str, Any]
    why: str

    def __str__(self) -> str:
        values = ", ".join(f"{path}={json.dumps(value)}" for path, value in self.values.items())
        return f"{self.source}: profile {self.profile}{', ' if values else ''}{values}: {self.why}"


def check_configurations(spec: SweepSpec) -> None:
    """Read the configurations of the first 1,000 combinations of parameters.

    Raises ParameterValueError if one of them is invalid.
    """
    products = itertools.product(spec.profiles, spec.versions, *(parameter.values for parameter in spec.parameters))
    for profile, version, *chosen in itertools.islice(products, MOST_CHECKED):
        values = dict(zip([parameter.name for parameter in spec.parameters], chosen, strict=True))
        try:
            read_config(with_parameters(spec, profile, values), version)
        except ConfigErrors as fault:
            raise ParameterValueError(spec.source, profile, values, str(fault)) from fault


def read_config(profile: ProfileSpec, version: str) -> tuple[Registry, Config]:
    """Return the plugins and the configuration of a profile. Raises ConfigErrors and PluginLoadError."""
    registry = Registry()
    registry.add_entry_points()
    for plugin in profile.plugins:
        registry.add_file(Path(plugin.path))
    catalogue = IN_TREE | registry.catalogue()
    release = kube_version(version)
    release = release.with_random_ties() if profile.ties == "random" else release
    gates = profile.feature_gates
    return registry, config_from_raw(profile.config, catalogue=catalogue, version=release, feature_gates=gates)


def with_pods_file(profile: ProfileSpec, workload: WorkloadSpec) -> ProfileSpec:
    """Return the profile; each text `PODS_FILE` in it is replaced by the path of the workload's pods."""
    path = workload.pods.path if workload.pods else ""

    def filled_in(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: filled_in(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [filled_in(each) for each in value]
        return path if value == PODS_FILE else value

    return attrs.evolve(profile, config=filled_in(profile.config))


@attrs.define(eq=False)
class ShardError(KscheddError):
    """An invalid --shard."""

    text: str

    def __str__(self) -> str:
        return f"--shard {self.text}: must be I/N with I from 1 to N, such as 1/4"


def shard_of(text: str) -> tuple[int, int]:
    """Return I and N of `I/N`. Raises ShardError."""
    match = _SHARD.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ShardError(text)
    return int(match[1]), int(match[2])
