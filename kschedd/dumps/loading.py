"""Loads a dump into a cluster: its unchanged objects, sorted by version, and the assumptions of the load.

`read_dump` performs all steps that need no cluster: reading, conversion, removal of duplicates, checks and completion;
it may run in a thread. `take_dump` fills a cluster. Objects without a UID were never in an API server: they are
manifests, and are applied afterwards like other manifests.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.quantity import nanos, shown
from kschedd.api.schemas.kinds import group_of, lookup
from kschedd.api.text.times import seconds
from kschedd.api.unsupported import is_scheduled_by
from kschedd.dumps.applying import apply_each, in_order
from kschedd.dumps.assumptions import Assumptions, LoadErrors, counted
from kschedd.dumps.completion import KUBELET, SECRET_FIELDS, Key, completed
from kschedd.dumps.conversion import current
from kschedd.dumps.dumped_condition import REFUSED_KINDS, refusal_told, with_condition
from kschedd.dumps.dumped_release import DumpedRelease, kubelet_version
from kschedd.dumps.rebinding import claims_without_uid, to_bind
from kschedd.dumps.sources import DumpedObject, Sources, read_sources
from kschedd.store.built_in import BUILT_IN_NAMESPACES
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import ApiError
from kschedd.store.importing import Importer
from kschedd.values import as_map

Raw = dict[str, Any]

_LEFT_OUT: Final = frozenset(("Event", "Lease"))
_ROUNDS: Final = 2  # a made-up object may need an owner or a namespace, which the second round makes up
_LARGEST_AMOUNT_NANOS: Final = (1 << 60) * 10**9  # limit of each resource on one node: one exbibyte
_TEXTS: Final = ("name", "generateName", "namespace", "uid")  # fields of metadata
_TIMES: Final = ("lastTransitionTime", "lastHeartbeatTime", "lastProbeTime")


@attrs.frozen
class LoadOptions:
    """Options of a load.

    `keep_secrets`: keep the data of Secrets and ConfigMaps. `complete`: make up missing objects.

    `profiles`: the scheduler names that have a profile in the loading cluster.
    """

    keep_secrets: bool = False
    complete: bool = True
    profiles: Collection[str] = ("default-scheduler",)


@attrs.define(eq=False)
class Prepared:
    """A dump that was read and checked, ready to be loaded."""

    objects: list[Object]  # objects to store unchanged, in order
    manifests: list[DumpedObject]  # to be applied
    faults: LoadErrors
    assumptions: Assumptions
    taken_at: float | None  # the latest time in the dump, in seconds since the epoch
    release: DumpedRelease  # the release according to the dump's nodes

    @property
    def count(self) -> int:
        """The number of objects plus the number of manifests."""
        return len(self.objects) + len(self.manifests)

    @property
    def errors(self) -> list[str]:
        return self.faults.texts()


@attrs.frozen
class Taken:
    """The result of loading a dump."""

    # existing objects of the cluster that have the name of an object in the dump; they were not replaced
    in_the_way: list[Object]
    applied: int  # number of manifests
    errors: list[str]  # read errors included


def is_in_new_cluster(key: Key) -> bool:
    """Return whether every new cluster contains the object."""
    kind, _, name = key
    return kind == "Namespace" and name in BUILT_IN_NAMESPACES


def read_dump(
    paths: Iterable[str],
    options: LoadOptions = LoadOptions(),
    *,
    stdin: BinaryIO | None = None,
    is_there: Callable[[Key], bool] = is_in_new_cluster,
    now: float | None = None,
    check: Callable[[], None] = lambda: None,
) -> Prepared:
    """Return the objects in the files and folders. The parameters are those of `read_sources` and `prepare`."""
    return prepare(read_sources(paths, stdin, check), is_there, now, options)


def take_dump(store: ClusterWriter, prepared: Prepared) -> Generator[None, None, Taken]:
    """Fill a cluster step by step; no other write is allowed before the end."""
    in_the_way = yield from store.take_in(prepared.objects)
    refused = yield from apply_manifests(store, in_order(prepared.manifests), prepared.assumptions)
    return taken(prepared, in_the_way, refused)


def taken(prepared: Prepared, in_the_way: list[Object], refused: Sequence[str]) -> Taken:
    faults = prepared.faults.copy()
    for text in refused:
        faults.add(text)
    return Taken(in_the_way, len(prepared.manifests) - len(refused), faults.texts())


def prepare(
    sources: Sources, is_there: Callable[[Key], bool], now: float | None, options: LoadOptions = LoadOptions()
) -> Prepared:
    """Return the dump in the form in which it is loaded.

    `is_there` returns whether an object exists in the cluster that loads the dump. `now` is the time of that cluster;
    None: the time of the dump.
    """
    assumptions, faults = sources.assumptions, sources.faults.copy()
    chosen: dict[tuple[str, str, str, str], DumpedObject] = {}
    manifests: list[DumpedObject] = []
    refusals: dict[Key, str] = {}
    for found in sources.found:
        if found.raw.get("kind") == "Event" and (refused := refusal_told(found.raw)) is not None:
            refusals[refused[0]] = refused[1]
        raw = _usable(found, assumptions, faults, options)
        if raw is None:
            continue
        meta = raw["metadata"]
        if not meta.get("uid"):
            manifests.append(found if raw is found.raw else attrs.evolve(found, raw=raw))
            continue
        key = (raw["kind"], raw["apiVersion"].partition("/")[0], meta.get("namespace") or "", meta["name"])
        other = chosen.get(key)
        here = found if raw is found.raw else attrs.evolve(found, raw=raw)
        chosen[key] = here if other is None else _newer(other, here, assumptions)
    if claims := claims_without_uid(manifests):
        manifests = [to_bind(found, claims) for found in manifests]
        chosen = {key: to_bind(found, claims) for key, found in chosen.items()}
    taken_at = _latest(found.raw for found in chosen.values())
    for key, found in chosen.items():
        if key[0] == "Pod" or key[0] in REFUSED_KINDS:
            conditioned = with_condition(found.raw, taken_at, refusals)
            if conditioned is not found.raw:
                chosen[key] = DumpedObject(conditioned, found.place)
    in_order = sorted(chosen.values(), key=_version)
    uids: set[str] = set()
    for found in in_order:
        if (uid := found.raw["metadata"]["uid"]) in uids:
            why = "the UID of another object was replaced by a new UID; references to this object are lost"
            assumptions.note(why, f"{found.raw['kind']} {_name(found.raw)}")
        uids.add(uid)

    def on_refusal(raw: Raw, refusal: ApiError) -> None:
        faults.add(f"{places.get(id(raw), '')}: {raw['kind']} {_name(raw)} was left out: {refusal}")

    def on_warning(raw: Raw, warning: str) -> None:
        assumptions.note(f"{raw['kind']}: {warning}, dropped", _name(raw))

    places = {id(found.raw): found.place for found in in_order}
    moment = max(taken_at or 0.0, now or 0.0)
    taker = Importer(lambda: moment)
    objects = taker.take(((found.raw, found.likeness) for found in in_order), on_refusal, on_warning)
    if options.complete:
        for _ in range(_ROUNDS):
            made = list(completed(objects, is_there, assumptions, [found.raw for found in manifests]))
            if not made:
                break
            places.update(dict.fromkeys(map(id, made), "made up"))
            objects = [*taker.take(((raw, None) for raw in made), on_refusal, on_warning), *objects]
    kubelets = [kubelet_version(found.raw) for found in in_order if found.raw["kind"] == "Node"]
    _note_clusters(kubelets, assumptions)
    _note_objects(objects, options, assumptions)
    return Prepared(objects, manifests, faults, assumptions, taken_at, DumpedRelease.of(kubelets))


def _usable(found: DumpedObject, assumptions: Assumptions, faults: LoadErrors, options: LoadOptions) -> Raw | None:
    """Return the object in its current version, without dropped fields; None if the object is omitted."""
    raw = found.raw
    kind, meta = raw.get("kind"), raw.get("metadata")
    if not isinstance(kind, str) or not isinstance(raw.get("apiVersion"), str) or not isinstance(meta, dict):
        faults.add(f"{found.place}: an object needs apiVersion, kind and metadata")
        return None
    odd = _odd_field(meta)
    if odd:
        faults.add(f"{found.place}: {kind}: {odd}")
        return None
    if not meta.get("name") and (meta.get("uid") or not meta.get("generateName")):
        faults.add(f"{found.place}: {kind} without a name")
        return None
    if kind in _LEFT_OUT:
        assumptions.note(f"{kind}s are not loaded")
        return None
    moved = current(raw)
    if moved is not raw:
        assumptions.note(f"{raw['apiVersion']} {kind} loaded as {moved['apiVersion']}", _name(raw))
    if not options.keep_secrets and kind in SECRET_FIELDS and any(field in moved for field in SECRET_FIELDS[kind]):
        assumptions.note(f"the data of {kind}s was dropped (--keep-secrets keeps it)")
        moved = {field: value for field, value in moved.items() if field not in SECRET_FIELDS[kind]}
    if kind == "Node" and _is_silent(moved):
        assumptions.note("nodes without heartbeats: their kubelets are stopped", _name(raw))
        notes = {**(meta.get("annotations") or {}), KUBELET: "stopped"}
        moved = {**moved, "metadata": {**meta, "annotations": notes}}
    return moved


def _odd_field(meta: Raw) -> str:
    """Return an error for a metadata field of a wrong type that is read before validation; "" without an error."""
    for name in _TEXTS:
        if not isinstance(meta.get(name), str | None):
            return f"metadata.{name}: {shown(meta[name])}: a string is expected"
    if not isinstance(meta.get("annotations"), dict | None):
        return f"metadata.annotations: {shown(meta['annotations'])}: a map is expected"
    return ""


def _conditions(raw: Raw) -> Iterator[Raw]:
    conditions = as_map(raw.get("status")).get("conditions")
    return (one for one in (conditions if isinstance(conditions, list) else ()) if isinstance(one, dict))


def _is_silent(node: Raw) -> bool:
    """Return whether the node's Ready condition is Unknown."""
    ready = next((one for one in _conditions(node) if one.get("type") == "Ready"), None)
    return ready is not None and ready.get("status") == "Unknown"


def _newer(one: DumpedObject, other: DumpedObject, assumptions: Assumptions) -> DumpedObject:
    """Return the newer of two objects with the same name, by resourceVersion."""
    if one.raw["metadata"].get("uid") != other.raw["metadata"].get("uid"):
        assumptions.note("two objects with the same name and different uids, the later one is loaded", _name(one.raw))
        if one.raw["kind"] == "Namespace" and _name(one.raw) == "kube-system":
            assumptions.note("objects of two clusters: of two objects with the same name, one is loaded")
    elif one.raw != other.raw:
        assumptions.note("two versions of one object, the later one is loaded", _name(one.raw))
    else:
        assumptions.note("the same object twice", _name(one.raw))
    return other if _version(other) >= _version(one) else one


def _version(found: DumpedObject) -> int:
    text = found.raw["metadata"].get("resourceVersion")
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 20 else 1 << 63


def _note_objects(objects: Iterable[Object], options: LoadOptions, assumptions: Assumptions) -> None:
    """Note the objects that behave differently here than in their own cluster."""
    seen: set[int] = set()  # ids of checked specs; many pods share a spec
    for obj in objects:
        if isinstance(obj, Pod):
            if not obj.node_name and obj.scheduler_name not in options.profiles:
                text = (
                    f'pending pods of scheduler "{obj.scheduler_name}", which no profile has: they are not scheduled '
                )
                assumptions.note(f"{text}(--scheduler {obj.scheduler_name}=PROFILE)", obj.key)
            if id(obj.pod_spec) not in seen:
                seen.add(id(obj.pod_spec))
                spec = obj.pod_spec.raw
                for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                    requests = (container.get("resources") or {}).get("requests") or {}
                    _note_amounts("requests", obj, requests, assumptions)
        elif isinstance(obj, Node):
            _note_amounts("allocatable", obj, obj.status.get("allocatable") or {}, assumptions)
        elif not lookup(obj.kind).known and not is_scheduled_by(obj.raw):
            group = group_of(str(obj.raw["apiVersion"]))
            assumptions.note(f"{obj.kind}.{group} is a kind without any effect here: kept unchanged")


def _note_amounts(what: str, obj: Object, amounts: Mapping[str, Any], assumptions: Assumptions) -> None:
    if any(nanos(amount) > _LARGEST_AMOUNT_NANOS for amount in amounts.values()):
        assumptions.note(
            f"very large quantities in the {what} of {obj.kind}s, counted as kube-scheduler counts", obj.key
        )


def _note_clusters(kubelets: Iterable[str], assumptions: Assumptions) -> None:
    """Note if the nodes have versions that indicate two clusters."""
    versions = {".".join(text.split(".")[:2]) for text in kubelets}
    if len(versions - {""}) > 1:
        assumptions.note(f"nodes of several versions: {', '.join(sorted(versions - {''}))}")


def _latest(raws: Iterable[Raw]) -> float | None:
    """Return the latest time that occurs in the dump."""
    latest = ""
    for raw in raws:
        latest = _later(latest, raw["metadata"].get("creationTimestamp"))
        for one in _conditions(raw):
            for name in _TIMES:
                if name in one:
                    latest = _later(latest, one[name])
    try:
        return seconds(latest) if latest else None
    except ValueError:
        return None


def _later(latest: str, time: Any) -> str:
    """Return the later of two times in the form of the API, which sort like text."""
    return time if isinstance(time, str) and time > latest and time.endswith("Z") else latest


def _name(raw: Raw) -> str:
    meta = raw["metadata"]
    name = str(meta.get("name") or meta.get("generateName"))
    return f"{meta['namespace']}/{name}" if meta.get("namespace") else name


def apply_manifests(
    store: ClusterWriter, manifests: Iterable[DumpedObject], assumptions: Assumptions
) -> Generator[None, None, list[str]]:
    """Apply manifests that were never in an API server, step by step; return the errors."""
    refused: list[str] = []
    for outcome in apply_each(store, manifests):
        yield
        found = outcome.manifest
        if outcome.refusal is not None:
            refused.append(f"{found.place}: {outcome.refusal}")
        for warning in outcome.warnings:
            assumptions.note(f"{found.raw['kind']}: {warning}, dropped", _name(found.raw))
    return refused


def kind_counts(objects: Iterable[Object]) -> str:
    """Return the number of objects of each kind, such as `Node 3, Pod 12`."""
    return counted(obj.kind for obj in objects)
