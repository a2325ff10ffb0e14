"""Random small clusters for property tests, with so few nodes, labels and namespaces that pods share them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.dry_run import DryRunColumns

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
KEYS = (HOST, ZONE, RACK)
NAMESPACES = ("red", "green", "blue")
APPS = ("web", "web", "web", "db")

_labels = st.fixed_dictionaries({}, optional={"app": st.sampled_from(APPS), "tier": st.sampled_from(("front", "back"))})
_expressions = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        st.sampled_from(("app", "tier")),
        st.sampled_from(("In", "NotIn")),
        st.lists(st.sampled_from((*APPS, "front", "back")), min_size=1, max_size=2),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        st.sampled_from(("app", "tier")),
        st.sampled_from(("Exists", "DoesNotExist")),
    ),
)
selectors = st.one_of(
    *[st.builds(lambda app: {"matchLabels": {"app": app}}, st.sampled_from(APPS))] * 3,
    st.sampled_from((None, {})),
    st.builds(lambda expressions: {"matchExpressions": expressions}, st.lists(_expressions, min_size=1, max_size=2)),
)
_namespace_selectors = st.one_of(
    st.just({}),
    st.builds(lambda team: {"matchLabels": {"team": team}}, st.sampled_from(("one", "two"))),
    st.just({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["one"]}]}),
)
terms = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(KEYS), "labelSelector": selectors},
    optional={
        "namespaces": st.lists(st.sampled_from(NAMESPACES), max_size=2, unique=True),
        "namespaceSelector": _namespace_selectors,
    },
)
_weighted = st.builds(
    lambda weight, term: {"weight": weight, "podAffinityTerm": term}, st.sampled_from((1, 7, 100)), terms
)
_one_affinity = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.lists(terms, max_size=2),
        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(_weighted, max_size=2),
    },
)
pod_affinities = st.fixed_dictionaries({}, optional={"podAffinity": _one_affinity, "podAntiAffinity": _one_affinity})
_tolerations = st.lists(
    st.sampled_from(({"operator": "Exists"}, {"key": "busy", "operator": "Exists", "effect": "NoSchedule"})), max_size=1
)


def node(name: str, labels: Mapping[str, str], taints: list[dict[str, str]] | None = None) -> Node:
    spec = {"taints": taints} if taints else {}
    made = parse({"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec})
    assert isinstance(made, Node)
    return made


def pod(
    name: str,
    namespace: str = "red",
    labels: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
    *,
    on: str = "",
    terminating: bool = False,
    **metadata: Any,
) -> Pod:
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}", **metadata}
    meta["labels"] = labels or {}
    if terminating:
        meta["deletionTimestamp"] = "2025-01-01T00:00:00Z"
    wanted: dict[str, Any] = {"containers": [{"name": "c"}], **(spec or {})}
    if on:
        wanted["nodeName"] = on
    made = parse({"kind": "Pod", "metadata": meta, "spec": wanted})
    assert isinstance(made, Pod)
    return made


def namespace(name: str, labels: Mapping[str, str]) -> Object:
    return parse({"kind": "Namespace", "metadata": {"name": name, "labels": labels}})


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    values = {HOST: (name,), ZONE: ("east", "west", ""), RACK: ("r1", "r2", "r3"), "disk": ("ssd", "hdd")}
    labels = {
        key: draw(st.sampled_from(some))
        for key, some in values.items()
        if draw(st.sampled_from((True,) * 7 + (False,)))
    }
    effects = draw(st.lists(st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute")), max_size=1))
    return node(name, labels, [{"key": "busy", "effect": effect} for effect in effects])


@st.composite
def pods(draw: st.DrawFn, name: str, on: str = "") -> Pod:
    spec: dict[str, Any] = {}
    affinity = draw(pod_affinities) if draw(st.booleans()) else {}
    if affinity:
        spec["affinity"] = affinity
    if draw(st.booleans()):
        spec["tolerations"] = draw(_tolerations)
    if draw(st.booleans()):
        spec["nodeSelector"] = draw(st.sampled_from(({}, {}, {"disk": "ssd"}, {ZONE: "east"})))
    return pod(
        name,
        draw(st.sampled_from(("red",) * 9 + NAMESPACES)),
        draw(_labels),
        spec,
        on=on,
        terminating=bool(on) and draw(st.integers(0, 5)) == 0,
    )


@attrs.frozen
class ScenarioCluster:
    """A cluster and the lists from which it was made, for rules written as loops."""

    nodes: list[Node]
    pods: list[Pod]  # each on one of the nodes
    namespaces: dict[str, Mapping[str, str]]
    cluster: SchedulerCache

    def on(self, node: Node) -> list[Pod]:
        return [pod for pod in self.pods if pod.node_name == node.name]

    @property
    def fullest(self) -> Node:
        """The node with the most pods."""
        return max(self.nodes, key=lambda node: len(self.on(node)))

    def changed_rows(
        self, columns: DryRunColumns, joining: Pod, random: Any, change: Callable[[int, Pod, Node, int], None]
    ) -> Iterator[list[int]]:
        """Remove some pods from each row of a dry run, and then add pods to it; yield the codes of all rows each time.

        `change` makes the same changes to the plain rule: row, pod, node, and 1 or -1.
        """
        leaving = [
            (row, other) for row, where in enumerate(self.nodes) for other in self.on(where) if random.random() < 0.7
        ]
        coming = [(row, joining) for row in range(len(self.nodes)) for _ in range(random.randint(0, 2))]
        for moved, amount in ((leaving, -1), (coming, 1)):
            of = [other for _, other in moved]
            columns.follow(np.array([row for row, _ in moved], dtype=np.int64), np.arange(len(of)), of, amount)
            for row, other in moved:
                change(row, other, self.nodes[row], amount)
            yield columns.codes(np.arange(len(self.nodes))[::-1]).tolist()[::-1]


@st.composite
def worlds(draw: st.DrawFn) -> ScenarioCluster:
    made = [draw(nodes(f"node-{number}")) for number in range(draw(st.sampled_from((3, 4, 5, 6, 1, 2))))]
    there = [
        draw(pods(f"pod-{number}", draw(st.sampled_from(made)).name))
        for number in range(draw(st.sampled_from((12, 8, 10, 5, 14, 3, 0))))
    ]
    named: dict[str, Mapping[str, str]] = {
        name: {"team": team} if team else {}
        for name in NAMESPACES
        if (team := draw(st.sampled_from((None, "", "one", "two")))) is not None
    }
    cluster = SchedulerCache()
    cluster.load(namespace(name, labels) for name, labels in named.items())
    cluster.load(made)
    cluster.load(there)
    return ScenarioCluster(made, there, named, cluster)
