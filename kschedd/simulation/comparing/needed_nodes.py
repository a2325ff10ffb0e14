"""The cheapest additional nodes with which a set of pods fits.

Each set of nodes is tried on a fork with all its controllers (so that DaemonSets place their pods): the nodes are
added, time advances until no work is pending, and the pending pods are counted. So every filter of the profiles counts.

For one shape of nodes, the smallest number is found by bisection. For several shapes, necessary conditions come first:
the nodes must have the requested resources, and enough places for the pods of each class. Sets that meet these
conditions are tried by ascending price (`covering.py`), so the first set on which all pods fit is the cheapest. If the
number of trials is not enough, the number of nodes of one shape after the other is reduced, each by bisection. The
answer contains a lower bound of the price. Shapes that differ only in labels, such as the zone, are one column of the
conditions; a set is tried with all nodes of one kind, and with an equal number of each.

Of two shapes that differ in no label that matters, the larger one is preferred if it is not more expensive.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from kschedd.api.node_fit import node_matches
from kschedd.api.nodes import HOSTNAME_LABEL, Node
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod
from kschedd.api.resources import Resources
from kschedd.config.in_tree import IN_TREE
from kschedd.plugins.nodeaffinity_args import NodeAffinityArgs
from kschedd.plugins.topology.podtopologyspread_args import PodTopologySpreadArgs
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot
from kschedd.simulation.comparing.covering import CoveringProblem, CoverSearch
from kschedd.simulation.engine import Engine

MOST_NODES: Final = 4_096
_REST_S: Final = 3_600.0
_TRIALS: Final = (4, 60)  # least and largest number of sets that are tried by price
_PODS_TRIED: Final = 20_000  # pods of all these trials together
_MOST_REDUCED: Final = 8  # shapes whose numbers are reduced by bisection
_STARTS: Final = 3  # covers of each origin to which nodes are added until all pods fit
_TRIALS_OF_START: Final = 8
_REPAIRS: Final = 8
_TINY: Final = 1e-9
_REQUIRED: Final = "DoNotSchedule"


@attrs.frozen(eq=False)
class NodeShape:
    """A kind of node that can be added.

    `usage` are amounts of limits (`nodes_needed`) that a node uses.
    """

    name: str
    raw: Raw
    price: float
    usage: Mapping[str, float] = attrs.field(factory=dict)

    def nodes(self, count: int) -> Iterator[Raw]:
        meta = self.raw.get("metadata") or {}
        for number in range(count):
            name = f"{self.name}-needed-{number}"
            labels = {**(meta.get("labels") or {}), HOSTNAME_LABEL: name}
            yield {**self.raw, "metadata": {**meta, "name": name, "labels": labels}}


@attrs.frozen
class NodesNeeded:
    """The required number of nodes of each shape.

    `bound`: no set of nodes is cheaper than this. `unplaced` are pods that do not fit with any number of nodes that was
    tried, with the reason.
    """

    counts: Mapping[str, int]
    price: float
    trials: int
    bound: float
    unplaced: Sequence[tuple[str, str]] = ()

    @property
    def exact(self) -> bool:
        return self.price <= self.bound + _TINY


def pending(engine: Engine, wanted: set[str]) -> list[tuple[str, str]]:
    """Return the pending pods that have one of these uids, or an owner with one of them, each with the reason."""
    found = []
    for pod in engine.driver.pending.pods.values():
        if _is_wanted(pod, wanted):
            conditions = pod.status.get("conditions") or ()
            why = next((str(each.get("message")) for each in conditions if each.get("type") == "PodScheduled"), "")
            found.append((pod.key, why or "not tried yet"))
    return sorted(found)


def _is_wanted(pod: Pod, wanted: set[str]) -> bool:
    owners = {owner.get("uid") for owner in pod.metadata.get("ownerReferences") or ()}
    return not wanted or pod.uid in wanted or bool(owners & wanted)


def nodes_needed(
    base: Engine,
    wanted: set[str],
    shapes: Sequence[NodeShape],
    most: int,
    check: Callable[[], None],
    limits: Mapping[str, float] | None = None,
) -> NodesNeeded:
    """Return the cheapest additional nodes that the pods need; `base` is idle and contains the pods.

    If `wanted` is empty, all pods of `base` must fit. `most` is the largest number of nodes of a shape, and `limits`
    contains the limits that several shapes share.
    """
    search = _Search(base, wanted, shapes, check)
    if not (left := search.unplaced([0] * len(shapes))):
        return NodesNeeded({shape.name: 0 for shape in shapes}, 0.0, search.trials, 0.0)
    if not shapes:
        return NodesNeeded({}, 0.0, search.trials, 0.0, left)
    limited = limits or {}
    demands = _Demands.of(base, wanted)
    useful = demands.useful(shapes)
    problem = demands.problem([shapes[place] for place in useful], limited, most)
    impossible = demands.impossible(problem)
    if not useful or impossible:
        named = [(key, why) for key, why in left if key in impossible]
        return NodesNeeded({}, 0.0, search.trials, 0.0, named or left)
    best = search.only(useful).cheapest(demands, limited, most)
    if best.counts is None:
        return NodesNeeded({}, 0.0, search.trials, 0.0, best.unplaced)
    found = dict.fromkeys((shape.name for shape in shapes), 0)
    found |= {shapes[place].name: count for place, count in zip(useful, best.counts, strict=True)}
    price = sum(count * shape.price for count, shape in zip(found.values(), shapes, strict=True))
    return NodesNeeded(found, price, search.trials, price if len(shapes) == 1 else min(price, best.bound))


@attrs.frozen
class _Cheapest:
    """The numbers of nodes (None: no numbers are enough), a bound of the price, and the pods that do not fit."""

    counts: Sequence[int] | None
    bound: float
    unplaced: Sequence[tuple[str, str]] = ()


# -- trials ---------------------------------------------------------------------------------------------------------


class _Search:
    """Trials of numbers of nodes of some shapes, each on a fork of the cluster."""

    def __init__(self, base: Engine, wanted: set[str], shapes: Sequence[NodeShape], check: Callable[[], None]) -> None:
        self._base, self._wanted, self._check = base, wanted, check
        self.shapes = shapes
        self._known: dict[tuple[tuple[str, int], ...], list[tuple[str, str]]] = {}

    def only(self, places: Sequence[int]) -> "_Search":
        """Return a search with some of the shapes, which shares the trials."""
        made = _Search(self._base, self._wanted, [self.shapes[place] for place in places], self._check)
        made._known = self._known
        return made

    @property
    def trials(self) -> int:
        return len(self._known)

    def unplaced(self, counts: Sequence[int]) -> list[tuple[str, str]]:
        """Return the wanted pods that are pending with these numbers of nodes, each with the reason."""
        key = tuple((shape.name, count) for shape, count in zip(self.shapes, counts, strict=True) if count)
        known = self._known.get(key)
        if known is None:
            self._check()
            known = self._known[key] = self._tried(self._base.snapshot(), counts)
        return known

    def _tried(self, snapshot: ClusterSnapshot, counts: Sequence[int]) -> list[tuple[str, str]]:
        engine = Engine(resumed=snapshot)
        try:
            for shape, count in zip(self.shapes, counts, strict=True):
                for raw in shape.nodes(count):
                    engine.store.create(raw)
            engine.run_to_rest(_REST_S)
            return pending(engine, self._wanted)
        finally:
            engine.close()

    def cheapest(self, demands: "_Demands", limits: Mapping[str, float], most: int) -> "_Cheapest":
        """Return the cheapest numbers of nodes that are found."""
        problem = demands.problem(self.shapes, limits, most)
        columns, merged = _merged(problem)
        covers = CoverSearch(merged)
        if len(self.shapes) == 1:
            return self._reduced(problem, most, covers.bound)
        bound, complete = covers.bound, True  # False if a cover was not tried in all its forms
        tries = min(max(_PODS_TRIED // max(demands.count, 1), _TRIALS[0]), _TRIALS[1])
        for tried, cover in enumerate(covers):
            bound = covers.bound if complete else bound
            if tried >= tries:
                break
            if (found := self._placed(cover, columns, problem)) is not None:
                return _Cheapest(found, bound)
            complete = complete and not _has_forms(cover, columns)
        else:
            bound = covers.bound if complete else bound
        if covers.exhausted and complete:
            return _Cheapest(None, bound, self.unplaced([0] * len(self.shapes)))
        pairs = zip(covers.good()[:_STARTS], covers.of_one_kind()[:_STARTS], strict=False)
        starts = dict.fromkeys(cover for pair in pairs for cover in pair)
        forms = [(cover, form) for cover in starts for form in (0, None) if form == 0 or _has_forms(cover, columns)]
        few = forms[: max(tries // _TRIALS_OF_START, 2)]
        repaired = [self._repaired(_form(cover, columns, form), demands, problem) for cover, form in few]
        enough = [counts for counts in repaired if counts is not None]
        if not enough:
            return self._reduced(problem, most, bound)
        return _Cheapest(min(enough, key=lambda counts: float(problem.prices @ counts)), bound)

    def _repaired(self, counts: list[int], demands: "_Demands", problem: CoveringProblem) -> list[int] | None:
        """Add nodes for the pods that do not fit on these nodes, then omit the nodes that are not needed."""
        for number in range(_REPAIRS):
            left = self.unplaced(counts)
            if not left:
                break
            rest = demands.of_pods({key for key, _ in left}).problem(self.shapes, {}, MOST_NODES)
            own_columns, merged = _merged(rest)
            more = CoverSearch(merged).good()
            if not more:
                return None
            counts = [own + added for own, added in zip(counts, _form(more[0], own_columns, number), strict=True)]
            if not problem.allowed(np.array([counts], dtype=np.float64))[0]:
                return None
        else:
            return None
        return self._all_lowered(counts)

    def _placed(
        self, cover: Sequence[int], columns: Sequence[Sequence[int]], problem: CoveringProblem
    ) -> list[int] | None:
        """Return the numbers of nodes of a form of the cover on which all pods fit, or None."""
        for form in (0, None) if _has_forms(cover, columns) else (0,):
            counts = _form(cover, columns, form)
            if problem.allowed(np.array([counts], dtype=np.float64))[0] and not self.unplaced(counts):
                return counts
        return None

    def _reduced(self, problem: CoveringProblem, most: int, bound: float) -> "_Cheapest":
        """Double the numbers of some shapes until all pods fit, then reduce the number of one after the other."""
        few = self._few(problem)
        counts = [0] * len(self.shapes)
        left = before = self.unplaced(counts)
        while left:
            larger = list(counts)
            for place in few:
                for wished in (min(max(2 * counts[place], 1), most), counts[place] + 1):
                    grown = [*larger[:place], wished, *larger[place + 1 :]]
                    if problem.allowed(np.array([grown], dtype=np.float64))[0]:
                        larger = grown
                        break
            if larger == counts or (len(left) == len(before) and max(counts) > len(before)):
                return _Cheapest(None, bound, left)
            counts = larger
            left = self.unplaced(counts)
        return _Cheapest(self._all_lowered(counts), bound)

    def _few(self, problem: CoveringProblem) -> list[int]:
        """Return the shapes that supply each demand at the lowest price; the first ones of each demand come first."""
        ranked = []
        for supplied in problem.supply:
            offering = [place for place in range(len(self.shapes)) if supplied[place] > 0]
            ranked.append(sorted(offering, key=lambda place: problem.prices[place] / supplied[place]))
        rounds = range(max(map(len, ranked), default=0))
        found = dict.fromkeys(each[number] for number in rounds for each in ranked if number < len(each))
        return list(found)[:_MOST_REDUCED]

    def _all_lowered(self, counts: list[int]) -> list[int]:
        for place in sorted(range(len(counts)), key=lambda place: -self.shapes[place].price):
            if counts[place]:
                counts = self._lowered(counts, place)
        return counts

    def _lowered(self, counts: list[int], place: int) -> list[int]:
        """Return `counts` with the smallest sufficient number of nodes of the shape at `place`.

        With the given `counts`, all pods must fit.
        """
        low, high = 0, counts[place]
        while low < high:
            middle = (low + high) // 2
            if self.unplaced([*counts[:place], middle, *counts[place + 1 :]]):
                low = middle + 1
            else:
                high = middle
        return [*counts[:place], high, *counts[place + 1 :]]


def _merged(problem: CoveringProblem) -> tuple[list[list[int]], CoveringProblem]:
    """Return the sets of shapes with equal prices, supply and limits, and the problem with a column for each set."""
    shared = problem.usage[: -len(problem.prices)]
    columns: dict[Any, list[int]] = {}
    for place, price in enumerate(problem.prices.tolist()):
        key = price, problem.supply[:, place].tobytes(), shared[:, place].tobytes()
        columns.setdefault(key, []).append(place)
    firsts = [places[0] for places in columns.values()]
    usage = np.concatenate((shared[:, firsts], np.eye(len(firsts))))
    most = [problem.limits[len(shared) :][places].sum() for places in columns.values()]
    merged = CoveringProblem(
        problem.prices[firsts],
        problem.supply[:, firsts],
        problem.demand,
        usage,
        np.array([*problem.limits[: len(shared)], *most]),
    )
    return list(columns.values()), merged


def _form(cover: Sequence[int], columns: Sequence[Sequence[int]], form: int | None) -> list[int]:
    """Return the numbers of nodes of a cover: with all nodes of one kind of each column (`form`), or (None) of each."""
    counts = [0] * sum(map(len, columns))
    for count, places in zip(cover, columns, strict=True):
        for number in range(count):
            counts[places[(number if form is None else form) % len(places)]] += 1
    return counts


def _has_forms(cover: Sequence[int], columns: Sequence[Sequence[int]]) -> bool:
    """Return whether the numbers of nodes determine no single set of nodes."""
    return any(count and len(places) > 1 for count, places in zip(cover, columns, strict=True))


# -- necessary conditions -------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class _Class:
    """Pods with equal specs, labels and namespaces."""

    pods: Sequence[Pod]

    @property
    def pod(self) -> Pod:
        return self.pods[0]

    @property
    def count(self) -> int:
        return len(self.pods)

    def matches(self, node: Node) -> bool:
        """Return whether the labels and taints of a node admit the pods."""
        spec = self.pod.pod_spec
        return node_matches(spec, node) and all(
            taint.effect == "PreferNoSchedule" or any(each.tolerates(taint) for each in spec.tolerations)
            for taint in node.taints
        )

    def places(self, free: Mapping[str, int]) -> int:
        """Return how many of the pods fit at most into these amounts of one node."""
        spec = self.pod.pod_spec
        found = free.get("pods", 0)
        for name, number in self.pod.requests.items():
            if number > 0:
                found = min(found, free.get(name, 0) // number)
        return min(found, 1) if spec.host_ports or self._is_alone else found

    @property
    def _is_alone(self) -> bool:
        """Return whether two of the pods never share a node."""
        pod = self.pod
        return any(
            term.topology_key == HOSTNAME_LABEL
            and pod.namespace in term.namespaces
            and term.selector.matches(pod.labels)
            for term in pod.signature.required_anti_affinity
        )


@attrs.frozen(eq=False)
class _Demands:
    """What the wanted pods request, and what the present nodes may supply at most."""

    classes: Sequence[_Class]
    nodes: Sequence[tuple[Node, Resources]]  # with the free amounts
    keys: frozenset[str] | None  # labels of nodes that matter for the pods; None: all

    @property
    def count(self) -> int:
        return sum(each.count for each in self.classes)

    @classmethod
    def of(cls, base: Engine, wanted: set[str]) -> "_Demands":
        """Count the wanted pods and the amounts that other pods leave free.

        Pods with a lower priority may be preempted, so their amounts count as free.
        """
        pods = [pod for pod in base.store.list("Pod") if isinstance(pod, Pod) and not pod.finished]
        waiting = {pod.uid for pod in base.driver.pending.pods.values()}
        own = [pod for pod in pods if (_is_wanted(pod, wanted) if wanted else pod.uid in waiting)]
        uids = {pod.uid for pod in own}
        counted: dict[Any, list[Pod]] = {}
        for pod in own:
            if pod.owner is None or pod.owner.kind != "DaemonSet":
                counted.setdefault(pod.signature.id, []).append(pod)
        highest = max((pod.priority for pod in own), default=0)
        used: dict[str, Resources] = {}
        for pod in pods:
            if pod.node_name and pod.uid not in uids and pod.priority >= highest:
                taken = used.setdefault(pod.node_name, {"pods": 0})
                taken["pods"] += 1
                for name, number in pod.requests.items():
                    taken[name] = taken.get(name, 0) + number
        nodes = []
        for node in base.store.list("Node"):
            if isinstance(node, Node):
                taken = used.get(node.name, {})
                nodes.append((node, {name: there - taken.get(name, 0) for name, there in node.allocatable.items()}))
        classes = [_Class(each) for each in counted.values()]
        return cls(classes, nodes, _keys_that_matter([*own, *pods], base))

    def of_pods(self, keys: Collection[str]) -> "_Demands":
        """Return the demands of some of the pods, which fit on no present node."""
        kept = [[pod for pod in each.pods if pod.key in keys] for each in self.classes]
        return attrs.evolve(self, classes=[_Class(pods) for pods in kept if pods], nodes=())

    def useful(self, shapes: Sequence[NodeShape]) -> list[int]:
        """Return the shapes on which a pod fits, without those that another shape replaces."""
        nodes = [_node_of(shape) for shape in shapes]
        fitting = [
            place
            for place, node in enumerate(nodes)
            if not self.classes
            or any(each.matches(node) and each.places(node.allocatable) > 0 for each in self.classes)
        ]
        groups: dict[Any, list[int]] = {}
        for place in fitting:
            labels = nodes[place].labels
            mattering = labels.items() if self.keys is None else [(key, labels.get(key)) for key in sorted(self.keys)]
            own = frozenset((key, text) for key, text in mattering if key != HOSTNAME_LABEL)
            groups.setdefault((own, frozenset(nodes[place].taints)), []).append(place)
        kept: list[int] = []
        for places in groups.values():
            chosen: list[int] = []
            for place in sorted(places, key=lambda place: (shapes[place].price, place)):
                if not any(_replaces(shapes, nodes, other, place) for other in chosen):
                    chosen.append(place)
            kept += chosen
        return sorted(kept)

    def impossible(self, problem: CoveringProblem) -> set[str]:
        """Return the keys of the pods that fit neither on present nodes nor on a shape; the classes come first."""
        rows = zip(self.classes, problem.demand, problem.supply, strict=False)
        return {pod.key for each, demand, supply in rows if demand > 0 and not supply.any() for pod in each.pods}

    def problem(self, shapes: Sequence[NodeShape], limits: Mapping[str, float], most: int) -> CoveringProblem:
        """Return the necessary conditions as a covering problem."""
        nodes = [_node_of(shape) for shape in shapes]
        supply: list[list[float]] = []  # first the places for each class, then resources
        demand: list[float] = []
        by_shapes: dict[tuple[bool, ...], list[_Class]] = {}
        for each in self.classes:
            fits = [each.places(node.allocatable) if each.matches(node) else 0 for node in nodes]
            supply.append(list(map(float, fits)))
            demand.append(each.count - sum(each.places(free) for node, free in self.nodes if each.matches(node)))
            by_shapes.setdefault(tuple(count > 0 for count in fits), []).append(each)
        for fitting in by_shapes:
            # classes that fit only on these shapes, or on some of them
            own = [each for key, some in by_shapes.items() if _within(key, fitting) for each in some]
            free: Resources = {}
            for node, amounts in self.nodes:
                if any(each.matches(node) and each.places(amounts) > 0 for each in own):
                    for name, number in amounts.items():
                        free[name] = free.get(name, 0) + max(number, 0)
            for name in sorted({name for each in own for name, number in each.pod.requests.items() if number > 0}):
                requested = sum(each.count * each.pod.requests.get(name, 0) for each in own)
                unit = max((node.allocatable.get(name, 0) for node in nodes), default=0) or 1
                supply.append(
                    [
                        node.allocatable.get(name, 0) / unit if fits else 0.0
                        for node, fits in zip(nodes, fitting, strict=True)
                    ]
                )
                demand.append((requested - free.get(name, 0)) / unit)
        names = sorted({name for shape in shapes for name in shape.usage if name in limits})
        usage = [[shape.usage.get(name, 0.0) for shape in shapes] for name in names]
        usage += np.eye(len(shapes)).tolist()
        return CoveringProblem(
            np.array([shape.price for shape in shapes]),
            np.array(supply, dtype=np.float64).reshape(len(demand), len(shapes)),
            np.array(demand, dtype=np.float64),
            np.array(usage, dtype=np.float64),
            np.array([*(limits[name] for name in names), *[float(most)] * len(shapes)]),
        )


def _within(key: Sequence[bool], other: Sequence[bool]) -> bool:
    return all(there or not own for own, there in zip(key, other, strict=True))


def _node_of(shape: NodeShape) -> Node:
    return Node.from_raw(next(shape.nodes(1)))


def _replaces(shapes: Sequence[NodeShape], nodes: Sequence[Node], one: int, other: int) -> bool:
    """Return whether each node of the shape `other` can be replaced by a node of `one` at no higher price."""
    usage = shapes[other].usage
    if any(number > usage.get(name, 0.0) for name, number in shapes[one].usage.items()):
        return False
    mine, its = nodes[one].allocatable, nodes[other].allocatable
    return shapes[one].price <= shapes[other].price and all(mine.get(name, 0) >= its[name] for name in its)


def _keys_that_matter(pods: Sequence[Pod], base: Engine) -> frozenset[str] | None:
    """Return the labels of nodes that filters may read for these pods and for DaemonSets; None: perhaps any label."""
    config = base.machine.config
    if config.extenders or any(name not in IN_TREE for profile in config.profiles for name in profile.names()):
        return None
    found: set[str] = set()
    for profile in config.profiles:
        spread, affinity = profile.args("PodTopologySpread"), profile.args("NodeAffinity")
        if isinstance(spread, PodTopologySpreadArgs):
            found |= {each.topology_key for each in spread.constraints if each.when_unsatisfiable == _REQUIRED}
        if isinstance(affinity, NodeAffinityArgs):
            found |= _keys_in(affinity.added_affinity)
    for signature in {pod.signature.id: pod.signature for pod in pods}.values():
        spec = signature.spec
        if any("persistentVolumeClaim" in each or "ephemeral" in each for each in spec.raw.get("volumes") or ()):
            return None
        found |= spec.node_selector.keys()
        found |= _keys_in(spec.raw.get("affinity"))
        found |= {each.topology_key for each in signature.spread_constraints if each.when_unsatisfiable == _REQUIRED}
    for each in base.store.list("DaemonSet"):
        own = each.spec["template"].get("spec") or {}
        found |= {*(own.get("nodeSelector") or {}), *_keys_in(own.get("affinity"))}
    return frozenset(found)


def _keys_in(value: Any) -> set[str]:
    """Return all values of `key` and `topologyKey` in an affinity."""
    if isinstance(value, Mapping):
        named = {value[name] for name in ("key", "topologyKey") if isinstance(value.get(name), str)}
        return named.union(*(_keys_in(each) for each in value.values()))
    return (
        set[str]().union(*map(_keys_in, value)) if isinstance(value, Sequence) and not isinstance(value, str) else set()
    )


def uids_of(engine: Engine, results: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the UIDs of applied objects and of the objects that they own."""
    found: set[str] = set()
    for result in results:
        obj = engine.store.find(result["kind"], result.get("namespace") or "", result["name"])
        left = [] if obj is None else [obj]
        while left:
            one = left.pop()
            if one.uid not in found:  # objects may own each other
                found.add(one.uid)
                left += engine.store.owned_by(one.uid)
    return found
