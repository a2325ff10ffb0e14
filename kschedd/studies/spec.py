"""The specification of a sweep: clusters, workloads, profiles, versions, seeds, parameters, metrics and limits.

    clusters:    {gpu: {nodes: node_list.csv}, small: {generate: 100, shape: "cpu=32,memory=128Gi"}}
    workloads:   {default: {pods: pod_list.csv, fill: alibabacloud.com/gpu-milli=130%}, many: {generate: 1000}}
    profiles:    {default: {}, packing: {config: profiles/bin-packing.yaml}}
    versions:    ["1.37"]
    seeds:       42-51
    parameters:  {args.NodeResourcesFit.scoringStrategy.type: [LeastAllocated, MostAllocated]}
    metrics:     [placed, cpu_used_end]
    limits:      {time: 10m, memory: 4Gi}

docs/RESEARCH.md describes every field. Paths are relative to the specification. The content of each file is hashed
once, and the hash is part of the identity of a run. The reader reports all errors of a specification, each with its
line, path and the allowed values.
"""

import glob
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast, get_args

import attrs

from kschedd.api.quantity import QuantityError, parse
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import ConfigFields, ConfigReader, ConfigValue, in_text_order
from kschedd.config.parsing.source import read_document
from kschedd.config.versions.kube_versions import DEFAULT, UnknownVersionError, kube_version
from kschedd.errors import KscheddError
from kschedd.input_files import manifest_files
from kschedd.simulation.arrivals import is_list
from kschedd.simulation.results.measures import BY_RESOURCE, FIXED
from kschedd.simulation.results.prices import Prices, prices_of
from kschedd.simulation.workloads.fill import Fill, FillError
from kschedd.simulation.workloads.generated import (
    NODE_SHAPE,
    POD_SHAPES,
    GeneratedPods,
    GeneratedWorkloadError,
    generated_nodes,
)
from kschedd.studies.parameters import EMPTY_CONFIG, ParameterPathError, steps_of

Raw = Mapping[str, Any]
T = TypeVar("T")
Ties = Literal["release", "random", "name"]

FIELDS: Final = (
    *("clusters", "workloads", "profiles", "versions", "seeds", "parameters", "targets", "until", "metrics"),
    *("limits", "trust_plugins", "prices"),
)
#: metadata of a field that the hash of a run's inputs contains only if it has a value
UNHASHED: Final = "unhashed"
_MOST: Final = 100_000_000
_MOST_SEEDS: Final = 1_000_000
_RANGE: Final = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_COLUMN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-\[\]]*")


@attrs.frozen
class InputFile:
    """A file and the hash of its content."""

    path: str
    sha256: str


@attrs.frozen(kw_only=True)
class ClusterSpec:
    """The nodes: from a trace, from a generator, from manifests or from a dump; or launched from node pools.

    `offering`: name of a resource; nodes without this resource are omitted.
    """

    nodes: InputFile | None = None
    offering: str = ""
    generate: int = 0
    shape: str = NODE_SHAPE
    files: tuple[InputFile, ...] = ()
    dump: tuple[InputFile, ...] = ()
    pools: tuple[InputFile, ...] = attrs.field(default=(), metadata={UNHASHED: True})


@attrs.frozen(kw_only=True)
class WorkloadSpec:
    """The pods: from a trace (with or without --fill), from a generator, or from manifests."""

    pods: InputFile | None = None
    fill: str = ""
    gangs: bool = False
    generate: int = 0
    arrival_rate: float = 10.0
    lifetime_s: float = 600.0
    shapes: tuple[str, ...] = POD_SHAPES
    files: tuple[InputFile, ...] = ()


@attrs.frozen(kw_only=True)
class ProfileSpec:
    """A scheduler configuration, files with plugins, and the choice among equally good nodes."""

    config: Raw = EMPTY_CONFIG
    plugins: tuple[InputFile, ...] = ()
    feature_gates: Mapping[str, bool] = attrs.field(factory=dict)
    ties: Ties = "release"


@attrs.frozen
class Parameter:
    """A path into the configuration, with the values to try. `name` is its column."""

    name: str
    path: str
    values: tuple[Any, ...]


@attrs.frozen(kw_only=True)
class RunOptions:
    """Fields of a specification that apply to each of its runs."""

    targets: tuple[str, ...] = ()
    until_s: float | None = None
    metrics: tuple[str, ...] = ()
    time_limit_s: float | None = None
    memory_limit: int | None = None
    trust_plugins: bool = False
    prices: Prices | None = None


@attrs.frozen(kw_only=True)
class SweepSpec:
    """A parsed specification of a sweep. All mappings are in the order of the text."""

    source: str
    clusters: Mapping[str, ClusterSpec]
    workloads: Mapping[str, WorkloadSpec]
    profiles: Mapping[str, ProfileSpec]
    versions: tuple[str, ...]
    seeds: tuple[int, ...]
    parameters: tuple[Parameter, ...] = ()
    options: RunOptions = attrs.field(factory=RunOptions)


def read_spec(
    given: str | Path | Raw,
    *,
    source: ConfigReader | None = None,
    folder: Path | None = None,
    data: Path | None = None,
) -> SweepSpec:
    """Read a specification from a file or a mapping. Raises ConfigErrors.

    Paths in a mapping are relative to the working directory.

    `source` and `folder`: the origin of the mapping. `data`: the folder with the files of clusters and workloads.
    """
    reading, value, beside = opened(given)
    reading, folder = source or reading, folder or beside
    root = ConfigValue(value, "$", reading)
    fields = root.fields(*FIELDS)
    spec = None if fields is None else _SpecReader(folder, folder if data is None else data).spec(fields)
    if reading.faults or spec is None:
        raise ConfigErrors(in_text_order(reading.faults))
    return spec


def opened(given: str | Path | Raw) -> tuple[ConfigReader, Any, Path]:
    """Return a reader of the specification, its value, and the folder to which paths are relative."""
    if isinstance(given, Mapping):
        return ConfigReader("spec"), given, Path()
    path = Path(given)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise SpecFileError(f"{path}: cannot be read: {getattr(fault, 'strerror', None) or fault}") from fault
    document = read_document(text, str(path))
    return ConfigReader(str(path), document), document.value, path.parent


class SpecFileError(KscheddError):
    """A specification's file cannot be read."""


@attrs.define
class _SpecReader:
    _folder: Path
    _data: Path
    _hashes: dict[Path, InputFile] = attrs.field(factory=dict)

    def spec(self, fields: ConfigFields) -> SweepSpec:
        limits = self._limits(fields.get("limits"))
        return SweepSpec(
            source=fields.place.reading.source,
            clusters=self._named(fields, "clusters", self._cluster),
            workloads=self._workloads(fields),
            profiles=self._named(fields, "profiles", self._profile, {"default": ProfileSpec()}),
            versions=self._versions(fields),
            seeds=read_seeds(fields.get("seeds")),
            parameters=self._parameters(fields.get("parameters")),
            options=RunOptions(
                targets=tuple(text for place, text in fields.texts("targets") if _shaped(place, text)),
                until_s=_positive_duration(fields.get("until")),
                metrics=tuple(text for place, text in fields.texts("metrics") if measured(place, text)),
                trust_plugins=fields.boolean("trust_plugins", False),
                time_limit_s=limits[0],
                memory_limit=limits[1],
                prices=self._prices(fields.get("prices")),
            ),
        )

    def _prices(self, place: ConfigValue | None) -> Prices | None:
        """Return the prices in a mapping or in a file."""
        if place is None:
            return None
        if not isinstance(place.value, str):
            return prices_of(place)
        path = self._folder / place.value
        try:
            document = read_document(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as fault:
            place.wrong(f"cannot be read: {getattr(fault, 'strerror', None) or fault}")
            return None
        return prices_of(attrs.evolve(place, value=document.value))

    def _named(self, fields: ConfigFields, name: str, read: Any, default: Any = None) -> dict[str, Any]:
        found = fields.get(name)
        if found is None:
            if default is None:
                fields.missing(name)
            return default or {}
        if not isinstance(found.value, Mapping) or not found.value:
            found.wrong("must be a mapping of names, with at least one")
            return {}
        return {str(key): read(found.at(key, {} if value is None else value)) for key, value in found.value.items()}

    def _cluster(self, place: ConfigValue) -> ClusterSpec:
        fields = place.fields("nodes", "offering", "generate", "shape", "files", "from", "pools")
        if fields is None:
            return ClusterSpec()
        if not any(fields.get(name) for name in ("nodes", "generate", "files", "from", "pools")):
            allowed = "nodes: FILE.csv, generate: N, files: [PATH], from: [DUMP], pools: [FILE]"
            place.wrong("nodes are required", allowed)
        shape, given = fields.text("shape", NODE_SHAPE), fields.get("shape")
        try:
            generated_nodes(1, shape)
        except GeneratedWorkloadError as fault:
            (given or place).wrong(fault.why)
        return ClusterSpec(
            nodes=self._file(fields.get("nodes")),
            offering=fields.text("offering"),
            generate=fields.integer("generate", 0, (0, _MOST)),
            shape=shape,
            files=self._files(fields.get("files")),
            dump=self._files(fields.get("from")),
            pools=self._files(fields.get("pools")),
        )

    def _workloads(self, fields: ConfigFields) -> dict[str, WorkloadSpec]:
        """Return the workloads; if a workload names several files of pods, each file becomes a workload NAME/FILE."""
        found: dict[str, WorkloadSpec] = {}
        for name, (made, files) in self._named(fields, "workloads", self._workload).items():
            several = {f"{name}/{Path(file.path).stem}": file for file in files} if len(files) > 1 else {}
            found |= {each: attrs.evolve(made, pods=file) for each, file in several.items()} or {name: made}
        return found

    def _workload(self, place: ConfigValue) -> tuple[WorkloadSpec, tuple[InputFile, ...]]:
        fields = place.fields("pods", "fill", "gangs", "generate", "arrival_rate", "lifetime", "shapes", "files")
        if fields is None:
            return WorkloadSpec(), ()
        if not any(fields.get(name) for name in ("pods", "generate", "files")):
            place.wrong("pods are required", "pods: FILE.csv, generate: N, files: [PATH]")
        if fields.get("pods") and fields.get("generate"):
            place.wrong("pods and generate exclude each other")
        gangs = fields.get("gangs")
        files = [Path(file.path) for file in self._tables(fields.get("pods"))]
        listed = list(filter(is_list, files))
        if gangs is not None and gangs.value and (fields.get("fill") or not listed):
            gangs.wrong("requires pods: FILE with a list of pods, and excludes fill")
        fill = fields.get("fill")
        if fill is not None and (text := fill.text()) is not None:
            try:
                Fill.parse(text)
            except FillError as fault:
                fill.wrong(fault.why.partition(": ")[2])
            if fields.get("pods") is None:
                fill.wrong("requires pods: FILE.csv")
            elif not listed:
                fill.wrong("requires a list of pods, not a generator or a SimKube trace")
        rate, given = fields.number("arrival_rate", 10.0), fields.get("arrival_rate")
        if given is not None and not 1e-9 <= rate <= 1e6:
            given.wrong("out of range", "1e-9 to 1,000,000 pods per second")
        shapes = tuple(text for item, text in fields.texts("shapes") if _shaped(item, text))
        pods = self._tables(fields.get("pods"))
        made = WorkloadSpec(
            pods=pods[0] if pods else None,
            fill=fields.text("fill"),
            gangs=fields.boolean("gangs", False),
            generate=fields.integer("generate", 0, (0, _MOST)),
            arrival_rate=rate,
            lifetime_s=fields.duration_s("lifetime", 600.0),
            shapes=shapes or POD_SHAPES,
            files=self._files(fields.get("files")),
        )
        return made, pods

    def _profile(self, place: ConfigValue) -> ProfileSpec:
        fields = place.fields("config", "plugins", "feature_gates", "ties")
        if fields is None:
            return ProfileSpec()
        gates = self._named(fields, "feature_gates", ConfigValue.boolean, {})
        given, config = fields.get("config"), EMPTY_CONFIG
        if given is not None:
            config = self._config(given)
        return ProfileSpec(
            config=config,
            plugins=self._files(fields.get("plugins"), self._folder),
            feature_gates={name: state for name, state in gates.items() if state is not None},
            ties=cast(Ties, fields.choice("ties", "release", get_args(Ties))),
        )

    def _config(self, place: ConfigValue) -> Raw:
        """Return the configuration in a mapping or in a file."""
        if isinstance(place.value, Mapping):
            return {**EMPTY_CONFIG, **place.value}
        text = place.text()
        if text is None:
            return EMPTY_CONFIG
        try:
            value = read_document((self._folder / text).read_text(encoding="utf-8"), text).value
        except (OSError, UnicodeDecodeError) as fault:
            place.wrong(f"cannot be read: {getattr(fault, 'strerror', None) or fault}")
            return EMPTY_CONFIG
        if not isinstance(value, Mapping):
            place.wrong("the file is no KubeSchedulerConfiguration")
            return EMPTY_CONFIG
        return value

    # -- files --------------------------------------------------------------------------------------------------

    def _file(self, place: ConfigValue | None) -> InputFile | None:
        if place is None or (text := place.text()) is None:
            return None
        paths = self._matching(text)
        if len(paths) != 1:
            place.wrong(f"{len(paths)} files in {self._data} match", "a file, or a pattern that one file matches")
            return None
        return self._hashed(place, paths)[0]

    def _tables(self, place: ConfigValue | None) -> tuple[InputFile, ...]:
        """Return the files for a name, a pattern, or a list of names and patterns, without repetitions."""
        found: dict[InputFile, None] = {}
        for each, text in () if place is None else _texts(place):
            found |= dict.fromkeys(self._hashed(each, self._matching(text)))
        if place is not None and not found:
            place.wrong(f"no file in {self._data} matches")
        return tuple(found)

    def _matching(self, text: str) -> list[Path]:
        """Return the file, or the files that match a pattern such as `*.csv`."""
        path = self._data / text
        if path.exists() or not set(text) & set("*?["):
            return [path]
        return [Path(each) for each in sorted(glob.glob(str(path)))]

    def _files(self, place: ConfigValue | None, folder: Path | None = None) -> tuple[InputFile, ...]:
        found: list[InputFile] = []
        for each, text in () if place is None else _texts(place):
            found += self._hashed(each, manifest_files((folder or self._data) / text))
        return tuple(found)

    def _hashed(self, place: ConfigValue, paths: Sequence[Path]) -> list[InputFile]:
        for path in paths:
            if path not in self._hashes:
                try:
                    digest = hashlib.sha256(path.read_bytes()).hexdigest()
                except OSError as fault:
                    place.wrong(f"{path} cannot be read: {fault.strerror}")
                    digest = ""
                self._hashes[path] = InputFile(str(path.resolve()), digest)
        return [self._hashes[path] for path in paths]

    # -- other fields -------------------------------------------------------------------------------------------

    def _versions(self, fields: ConfigFields) -> tuple[str, ...]:
        found = []
        for place in fields.items("versions"):
            try:
                found.append(kube_version(place.value if isinstance(place.value, str) else str(place.value)).name)
            except UnknownVersionError as fault:
                place.wrong(str(fault))
        given = fields.get("versions")
        if given is not None and not given.value:
            given.wrong("at least one value is required")
        return tuple(dict.fromkeys(found)) or (DEFAULT.name,)

    def _parameters(self, place: ConfigValue | None) -> tuple[Parameter, ...]:
        if place is None:
            return ()
        if not isinstance(place.value, Mapping):
            place.wrong("must be a mapping of paths to lists of values")
            return ()
        found = []
        for key, value in place.value.items():
            at, path = place.at(key, value), str(key)
            if isinstance(value, Mapping):
                fields = at.fields("path", "values")
                assert fields is not None, "it is a mapping"
                path, values = fields.needed_text("path") or "", fields.items("values")
            else:
                values = at.items()
            if not values:
                at.wrong("at least one value is required")
            if not _COLUMN.fullmatch(str(key)) or str(key) in COLUMNS_OF_RUNS:
                at.wrong("no name for a column")
            try:
                steps_of(path)
            except ParameterPathError as fault:
                at.wrong(str(fault))
            distinct = {json.dumps(each.value, sort_keys=True, default=str): each.value for each in values}
            found.append(Parameter(str(key), path, tuple(distinct.values())))
        return tuple(found)

    def _limits(self, place: ConfigValue | None) -> tuple[float | None, int | None]:
        fields = None if place is None else place.fields("time", "memory")
        if fields is None:
            return None, None
        time, memory = fields.get("time"), fields.get("memory")
        size = None
        if memory is not None and (text := memory.text()) is not None:
            try:
                size = int(parse(text))
            except QuantityError as fault:
                memory.wrong(str(fault), "for example 512Mi, 4Gi")
        if memory is not None and size is not None and size <= 0:
            memory.wrong("must be more than 0", "for example 512Mi, 4Gi")
        return _positive_duration(time), size


#: the columns of every row; a parameter must not have one of these names
COLUMNS_OF_RUNS: Final = (
    *("run", "row_hash", "status", "error", "cluster", "workload", "profile", "version", "seed", "inputs_hash"),
    *("decisions_hash", "kschedd", "kubernetes", "wall_s", "cpu_s", "memory_mib", "host"),
)


def _positive_duration(place: ConfigValue | None) -> float | None:
    seconds = None if place is None else place.duration_s()
    if place is not None and seconds is not None and seconds <= 0:
        place.wrong("must be more than 0", "for example 90s, 10m")
    return seconds


def _texts(place: ConfigValue) -> Iterator[tuple[ConfigValue, str]]:
    """Yield the texts in a list, or a single text."""
    for each in [place] if isinstance(place.value, str) else place.items():
        if (text := each.text()) is not None:
            yield each, text


def _shaped(place: ConfigValue, text: str) -> bool:
    try:
        GeneratedPods.parse("", text, 1)
    except GeneratedWorkloadError as fault:
        place.wrong(fault.why, "for example cpu=500m,memory=1Gi,weight=3")
        return False
    return True


def measured(place: ConfigValue, text: str) -> bool:
    """Return whether the metric exists; record an error if it does not."""
    if text in FIXED or any(text.endswith(end) and text != end for end in BY_RESOURCE):
        return True
    place.wrong("no such metric", ", ".join([*FIXED, *(f"RESOURCE{end}" for end in BY_RESOURCE)]))
    return False


def read_seeds(place: ConfigValue | None) -> tuple[int, ...]:
    """Return the seeds in a field; record an error if there are none."""
    if place is None:
        return (0,)
    allowed = "a number of seeds (10 is 0 to 9), a range (42-51) or a list"
    if isinstance(place.value, str):
        match = _RANGE.fullmatch(place.value)
        if match is None or not 0 <= int(match[2]) - int(match[1]) < _MOST_SEEDS:
            place.wrong("not seeds", allowed)
            return (0,)
        return tuple(range(int(match[1]), int(match[2]) + 1))
    if isinstance(place.value, list | tuple):
        seeds = [item.integer((0, 2**31 - 1)) for item in place.items()]
        if not seeds:
            place.wrong("not seeds", allowed)
        return tuple(dict.fromkeys(seed for seed in seeds if seed is not None))
    count = place.integer((1, _MOST_SEEDS))
    return tuple(range(count or 1))
