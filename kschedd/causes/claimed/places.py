"""Causes of pending pods: the pod's volumes are usable only on nodes where the pod may not run."""

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from kschedd.api.nodes import HOSTNAME_LABEL, ZONE_LABEL
from kschedd.api.objects import Object
from kschedd.api.quantity import format_value
from kschedd.api.selecting.selectors import IN, LabelSelector, NodeSelector, SelectorError, parse_label_selector
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case
from kschedd.causes.claimed.claims import ClaimUse, asking, claims_of, of_class, provisioning_classes, storage_text
from kschedd.causes.claimed.matching import suiting
from kschedd.causes.demands.excluding import clashing, meeting
from kschedd.causes.demands.new_nodes import created_node
from kschedd.causes.demands.selecting import Demand
from kschedd.causes.findings import ADD_OBJECT, FoundCause, RemedyOption, named
from kschedd.causes.words import counted, joined, some
from kschedd.storage.claims import class_of, fully_bound, requested_bytes, volume_of
from kschedd.storage.provisioning import NO_PROVISIONER, allowed_topologies, limit
from kschedd.storage.volumes import Volume

Spec = dict[str, Any]
_BINDING: Final = "VolumeBinding"
_ZONE: Final = "VolumeZone"
_ZONES: Final = (ZONE_LABEL, "failure-domain.beta.kubernetes.io/zone")
_SHOWN: Final = 4
#: last parts of label keys by which CSI drivers identify a node; such nodes also have the hostname label
_OF_DRIVERS: Final = ("/hostname", "/node", "/nodename", "/node-name")


@attrs.frozen(eq=False)
class _Place:
    """The place of a claim's existing or future volume: `key` and `values` are the node label that defines it."""

    use: ClaimUse
    what: str  # description of the volume, such as `volume pv-1 of claim data`
    objects: Sequence[ObjectNamed]
    nodes: frozenset[str]
    key: str
    values: tuple[str, ...]
    bound: bool

    @property
    def where(self) -> str:
        if not self.key:
            return "elsewhere"
        kind = word(self.key)
        plural = len(self.values) > 1
        return f"{'on' if kind == 'node' else 'in'} {kind}{'s' * plural} {joined(sorted(self.values), 'or')}"


def word(key: str) -> str:
    """Return `node`, `zone`, `region`, or the last part of the key."""
    return "node" if key == HOSTNAME_LABEL or key.endswith(_OF_DRIVERS) else key.rpartition("/")[2]


def reached(case: Case) -> set[str]:
    """Return the nodes on which the pod's volumes are usable or can be created."""
    return set(case.nodes) - case.rejected_by(_BINDING, _ZONE)


def volume_elsewhere(case: Case) -> FoundCause | None:
    """Return the cause, or None: the pod selects no node on which its volumes are usable."""
    if not case.selected or case.selected & reached(case):
        return None
    places = _places(case)
    for place in places:
        if not place.nodes:
            return _nowhere(case, place)
    for place in places:
        if not place.nodes & case.selected:
            return _elsewhere(case, place)
    together = frozenset(case.nodes)
    for number, place in enumerate(places):
        if not place.nodes & together:
            return _apart(case, places[: number + 1])
        together &= place.nodes
    full = _no_capacity(case)
    if full is not None:
        return full
    if places and not together & case.selected:
        return _elsewhere(case, _all_of(places, together))
    return _no_volumes(case)


def _no_volumes(case: Case) -> FoundCause:
    """Return the cause: every node lacks some of the volumes, each for a different reason."""
    counts = Counter(
        reason
        for name in case.selected
        for plugin in (_BINDING, _ZONE)
        for reason in case.rejections.get(name, {}).get(plugin, ())
    )
    claims = joined([str(use) for use in claims_of(case)] or ["its claims"])
    short = any("free storage" in reason for reason in counts)
    return FoundCause(
        "StorageCapacityShort" if short else "VolumeElsewhere",
        f"no node that the pod selects can have the volumes of {claims}",
        [named(use.claim) for use in claims_of(case) if use.claim is not None],
        ["spec.volumes"],
        [f"{counted(number, 'node')}: {reason.removeprefix('node(s) ')}" for reason, number in counts.most_common()],
        certain=False,
    )


def _all_of(places: Sequence[_Place], together: frozenset[str]) -> _Place:
    what = joined([place.what for place in places])
    return attrs.evolve(places[0], what=what, nodes=together, objects=[o for p in places for o in p.objects])


def places_told(case: Case) -> str:
    """Return text about the volumes that restrict the pod to some nodes, or ""."""
    kept = [place for place in _places(case) if len(place.nodes) < len(case.nodes)]
    return joined([f"{place.what} is {place.where}" for place in kept]) if kept else ""


# -- places -----------------------------------------------------------------------------------------------------------


def _places(case: Case) -> list[_Place]:
    found = []
    for use in claims_of(case):
        if use.claim is None:
            continue
        place = _of_volume(case, use, use.claim) if fully_bound(use.claim) else _of_class(case, use, use.claim)
        if place is not None:
            found.append(place)
    return found


def _of_volume(case: Case, use: ClaimUse, claim: Object) -> _Place | None:
    obj = case.store.find("PersistentVolume", "", volume_of(claim))
    if obj is None:
        return None
    volume = Volume.of(obj)
    zone = next((str(obj.labels[key]) for key in _ZONES if key in obj.labels), "")
    nodes = frozenset(name for name, node in case.nodes.items() if volume.usable_from(node.labels))
    key, values = _key_of(volume.affinity)
    if zone:
        values_of_label = tuple(zone.split("__"))
        labeled = {n for n, node in case.nodes.items() if any(k in node.labels for k in _ZONES)}
        inside = {n for n in labeled if any(case.nodes[n].labels.get(k) in values_of_label for k in _ZONES)}
        nodes = frozenset(nodes & (inside | (set(case.nodes) - labeled)))
        key, values = (key, values) if key else (ZONE_LABEL, values_of_label)
    objects = [named(obj), named(claim)]
    return _Place(use, f"volume {volume.name} of {use}", objects, nodes, key, values, True)


def _key_of(affinity: NodeSelector | None) -> tuple[str, tuple[str, ...]]:
    """Return the node label that the volume requires, with its values. A label that identifies a node is preferred."""
    if affinity is None or not affinity.terms:
        return "", ()
    by_key: dict[str, list[str]] = {}
    for term in affinity.terms:
        for demand in term.match_expressions:
            if demand.operator == IN:
                by_key.setdefault(demand.key, []).extend(demand.values)
    key = next((each for each in by_key if word(each) == "node"), next(iter(by_key), ""))
    return key, tuple(dict.fromkeys(by_key.get(key, ())))


def _of_class(case: Case, use: ClaimUse, claim: Object) -> _Place | None:
    """Return the place where a volume for the claim may be created, or where free volumes of its class are."""
    name = class_of(claim)
    storage_class = case.store.find("StorageClass", "", name) if name else None
    if storage_class is None:
        return None
    objects = [named(storage_class), named(claim)]
    if storage_class.raw.get("provisioner") in (None, "", NO_PROVISIONER):
        return _of_free(case, use, claim, objects)
    raw = storage_class.raw.get("allowedTopologies")
    topologies = allowed_topologies(raw)
    if topologies is None:
        return None
    nodes = frozenset(n for n, node in case.nodes.items() if any(term.matches(node.labels) for term in topologies))
    key, values = _of_terms(raw)
    return _Place(use, f"StorageClass {name} makes the volume of {use}", objects, nodes, key, values, False)


def _of_terms(raw: Any) -> tuple[str, tuple[str, ...]]:
    by_key: dict[str, list[str]] = {}
    for term in raw:
        for each in term.get("matchLabelExpressions") or ():
            by_key.setdefault(str(each.get("key")), []).extend(map(str, each.get("values") or ()))
    key = next(iter(by_key), "")
    return key, tuple(dict.fromkeys(by_key.get(key, ())))


def _of_free(case: Case, use: ClaimUse, claim: Object, objects: Sequence[ObjectNamed]) -> _Place | None:
    free = suiting(case, claim)
    nodes = frozenset(n for n, node in case.nodes.items() if any(v.usable_from(node.labels) for v in free))
    pairs = [_key_of(volume.affinity) for volume in free]
    key = next((k for k, _ in pairs if k), "")
    values = tuple(dict.fromkeys(v for k, vs in pairs if k == key for v in vs))
    names = joined(sorted(volume.name for volume in free)[:_SHOWN]) if free else "none"
    what = f"volume{'s' * (len(free) > 1)} {names}, free for {use},"
    own = [ObjectNamed("PersistentVolume", "", volume.name) for volume in free[:3]]
    return _Place(use, what, [*own, *objects], nodes, key, values, False)


# -- causes in places -------------------------------------------------------------------------------------------------


def _nowhere(case: Case, place: _Place) -> FoundCause:
    """Return the cause: no node is in the volume's zone or other place."""
    missing = word(place.key) == "node" and place.bound
    is_class = any(each.kind == "StorageClass" for each in place.objects[:1])
    there = sorted({node.labels[place.key] for node in case.nodes.values() if place.key in node.labels})
    evidence = [f"values of {place.key}: {some(there, _SHOWN)}" if there else f"no node has the label {place.key}"]
    evidence += [] if there else list(_by_other_labels(case, place))
    if is_class:
        return FoundCause(
            "ClassTopologyConflict",
            f"{place.what} {place.where} only, and no node is there",
            place.objects,
            ["allowedTopologies of the class"],
            evidence,
            _classes_instead(case, place),
        )
    gone = "which does not exist" if len(place.values) == 1 else "none of which exists"
    message = f"{place.what} is {place.where}, {gone if missing else 'and no node is there'}"
    if place.bound:
        evidence.append("its data can be had only where the volume is, or from a backup")
    return FoundCause(
        "VolumeOnMissingNode" if missing else "VolumeElsewhere",
        message,
        place.objects,
        ["spec.nodeAffinity of the volume"],
        evidence,
        _nodes_there(case, place) if place.bound else _classes_instead(case, place),
    )


def _nodes_there(case: Case, place: _Place) -> list[RemedyOption]:
    """Return the option to add a node in the volume's topology: a copy of a selected node."""
    if not place.key or word(place.key) == "node" or not case.selected:
        return []
    like = case.nodes[max(case.selected, key=lambda name: (case.holds(case.nodes[name]), name))]
    raw = copy.deepcopy(dict(like.raw))
    labels = raw["metadata"].setdefault("labels", {})
    # change all labels that define the place
    labels.update({key: place.values[0] for key in (*labels, place.key) if word(key) == word(place.key)})
    steps = [created_node(case, raw, 0)]
    text = f"add a node like {like.name} {place.where}"
    return [RemedyOption(text, ADD_OBJECT, steps=steps, target=f"node/{like.name}")]


def _by_other_labels(case: Case, place: _Place) -> Iterator[str]:
    """Yield nodes that have the volume's place in another label with the same meaning."""
    for key in case.labels:
        nodes = [name for name, node in case.nodes.items() if node.labels.get(key) in place.values]
        if nodes and word(key) == word(place.key):
            yield f"nodes with {key}={place.values[0]}: {some(nodes)}; their CSI driver has not set its own label"


def _elsewhere(case: Case, place: _Place) -> FoundCause:
    """Return the cause: the pod selects none of the nodes in the volume's place."""
    against = clashing(case, place.nodes)
    is_class = any(each.kind == "StorageClass" for each in place.objects[:1])
    required = joined([demanded(each, place.key) for each in against]) if against else "other nodes"
    verb = "" if is_class else f" {'are' if place.what.startswith('volumes') else 'is'}"
    only = " only" if is_class else ""
    wants = "the pod requires"
    options = []
    edit = meeting(case, place.nodes, against, "where the volume is")
    if edit is not None:
        options.append(edit)
    if not place.bound:
        options.extend(_classes_instead(case, place))
    return FoundCause(
        "ClassTopologyConflict" if is_class else "VolumeElsewhere",
        f"{place.what}{verb} {place.where}{only}, {wants} {required}",
        place.objects,
        [each.field for each in against],
        [f"nodes that reach it: {some(place.nodes)}", f"nodes that the pod selects: {some(case.selected)}"],
        options,
    )


def demanded(demand: Demand, key: str) -> str:
    """Return text for the requirement: `zone b`, or the whole expression if its key does not define a place."""
    if demand.operator == IN and (demand.key == key or word(demand.key) in ("zone", "node", "region")):
        return f"{word(demand.key)} {joined(list(demand.values), 'or')}"
    return f"`{demand}`"


def _classes_instead(case: Case, place: _Place) -> list[RemedyOption]:
    """Return the options to use another StorageClass that creates volumes where the pod may run."""
    assert place.use.claim is not None, "a claim that is to have a volume is there"
    own = class_of(place.use.claim)
    names = []
    for each in provisioning_classes(case.store):
        topologies = allowed_topologies(each.raw.get("allowedTopologies"))
        if each.name != own and (topologies is None or _allows(case, topologies)):
            names.append(each.name)
    return list(of_class(case, place.use, names[:2]))


def _allows(case: Case, topologies: Sequence[LabelSelector]) -> bool:
    return any(term.matches(case.nodes[name].labels) for term in topologies for name in case.selected)


def _apart(case: Case, places: Sequence[_Place]) -> FoundCause:
    parts = [f"{place.what} is {place.where}" for place in places]
    return FoundCause(
        "VolumeElsewhere",
        f"no node reaches all volumes of the pod: {joined(parts)}",
        [each for place in places for each in place.objects],
        ["spec.volumes"],
        [f"{place.what}: {some(place.nodes)}" for place in places],
    )


# -- capacity of a driver ---------------------------------------------------------------------------------------------


def _no_capacity(case: Case) -> FoundCause | None:
    """Return the cause: a CSI driver reports too little storage capacity where the pod may run."""
    for use in claims_of(case):
        claim = use.claim
        if claim is None or fully_bound(claim):
            continue
        storage_class = case.store.find("StorageClass", "", class_of(claim))
        if storage_class is None:
            continue
        driver = str(storage_class.raw.get("provisioner") or "")
        told_of = case.store.find("CSIDriver", "", driver)
        if told_of is None or not told_of.spec.get("storageCapacity"):
            continue
        requested = requested_bytes(claim) or 0
        there = [
            c for c in case.store.list("CSIStorageCapacity") if c.raw.get("storageClassName") == storage_class.name
        ]
        near = [(limit(each) or 0, each) for each in there if _is_near(case, each)]
        most = max((number for number, _ in near), default=0)
        if most >= requested:
            continue
        options = list(
            of_class(case, use, [c.name for c in provisioning_classes(case.store) if c.name != storage_class.name][:2])
        )
        if most >= requested // 4 and most:
            size = format_value(most, "BinarySI")
            options.insert(0, asking(case, use, f"let {use.written} request {size}", _of_size(size)))
        has = (
            f"at most {format_value(most, 'BinarySI')} is free where the pod may go"
            if near
            else "it reports none there"
        )
        return FoundCause(
            "StorageCapacityShort",
            f"{use} requests {storage_text(claim.spec)} of class {storage_class.name}, and of the storage of driver "
            f"{driver} {has}",
            [named(claim), named(storage_class), *(named(each) for _, each in near[:2])],
            ["spec.resources.requests.storage of the claim"],
            [f"{c.name}: {format_value(limit(c) or 0, 'BinarySI')}" for c in there[:_SHOWN]],
            options,
        )
    return None


def _is_near(case: Case, capacity: Object) -> bool:
    topology = capacity.raw.get("nodeTopology")
    if topology is None:
        return False
    try:
        selector = parse_label_selector(topology)
    except SelectorError:
        return False
    return any(selector.matches(case.nodes[name].labels) for name in case.selected)


def _of_size(size: str) -> Any:
    def change(spec: Spec) -> None:
        spec["resources"]["requests"]["storage"] = size

    return change
