"""Tests of decisions about many pods, against a plain search for each pod in turn, and against the nodes' limits.

The tests use no internals of attempts: they create pods in a simulated cluster and compare its decision log. The plain
search is kube-scheduler's rule for the plugin NodeResourcesFit. For the other plugins, equal pods are compared with
pods that differ in an unselected label, and therefore share no template.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import attrs
import pytest

from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.config.versions.kube_versions import V1_34
from kschedd.simulation.engine import Engine, LoggedAttempt
from tests.full_run import every, everyday

Decision = tuple[str, int, int, int | None]
"""The node ("" if none), how many nodes fit and how many were visited, and the score where there was a choice."""

_PLAIN_PLUGINS = {
    "multiPoint": {
        "enabled": [{"name": name} for name in ("PrioritySort", "NodeResourcesFit", "DefaultBinder")],
        "disabled": [{"name": "*"}],
    }
}
_KIBI, _GIBI = 1 << 10, 1 << 30


@attrs.define
class PlainNode:
    """A node's allocatable milli-CPU and bytes, and the requests of its pods."""

    name: str
    cpu: int
    memory: int
    pods: int
    taken: list[tuple[int, int]] = attrs.field(factory=list)

    def fits(self, cpu: int, memory: int) -> bool:
        return (
            len(self.taken) < self.pods
            and sum(pod[0] for pod in self.taken) + cpu <= self.cpu
            and sum(pod[1] for pod in self.taken) + memory <= self.memory
        )

    def score(self, cpu: int, memory: int) -> int:
        """Return the score of the strategy LeastAllocated: the mean of the free percentages, each rounded down."""
        free_cpu = (self.cpu - sum(pod[0] for pod in self.taken) - cpu) * 100 // self.cpu
        free_memory = (self.memory - sum(pod[1] for pod in self.taken) - memory) * 100 // self.memory
        return (free_cpu + free_memory) // 2

    def raw(self) -> dict[str, Any]:
        amounts = {"cpu": f"{self.cpu}m", "memory": str(self.memory), "pods": str(self.pods)}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": {"kubernetes.io/hostname": self.name}},
            "status": {"allocatable": amounts, "capacity": amounts},
        }


@attrs.define
class PlainSearch:
    """kube-scheduler's search, one node at a time.

    The search starts after the last visited node and ends when enough nodes fit; of the best nodes, the first by name
    is chosen.
    """

    nodes: list[PlainNode]
    percentage: int
    start: int = 0

    def decide(self, cpu: int, memory: int) -> Decision:
        wanted = max(100, len(self.nodes) * self.percentage // 100)
        feasible: list[PlainNode] = []
        visited = 0
        while visited < len(self.nodes) and len(feasible) < wanted:
            node = self.nodes[(self.start + visited) % len(self.nodes)]
            visited += 1
            if node.fits(cpu, memory):
                feasible.append(node)
        self.start = (self.start + visited) % len(self.nodes)
        if not feasible:
            return "", 0, visited, None
        best = min(feasible, key=lambda node: (-node.score(cpu, memory), node.name))
        score = best.score(cpu, memory) if len(feasible) > 1 else None
        best.taken.append((cpu, memory))
        return best.name, len(feasible), visited, score


def _config(percentage: int, plugins: dict[str, Any] | None = None) -> Any:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": percentage,
        "profiles": [{} if plugins is None else {"plugins": plugins}],
    }
    return config_from_raw(raw, catalogue=IN_TREE, version=V1_34)


def _first_by_name(rows: Any, names: Sequence[str], places: Any = None) -> int:
    return min(rows.tolist(), key=names.__getitem__)


def _pod(name: str, cpu: int, memory: int, **more: Any) -> dict[str, Any]:
    requests = {field: amount for field, amount in (("cpu", f"{cpu}m"), ("memory", str(memory))) if amount[0] != "0"}
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    meta = {"name": name, "namespace": "default", "labels": more.pop("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], **more},
    }


@attrs.define
class Cluster:
    """A simulated cluster, and its scheduler's decisions."""

    engine: Engine
    decided: list[LoggedAttempt] = attrs.field(factory=list)

    @classmethod
    def of(cls, nodes: Sequence[dict[str, Any]], config: Any) -> "Cluster":
        decided: list[LoggedAttempt] = []
        cluster = cls(Engine(config, choose=_first_by_name, on_decision=decided.append), decided)
        for raw in nodes:
            cluster.engine.store.create(raw)
        cluster.engine.run_until_idle()
        return cluster

    def place(self, raws: Sequence[dict[str, Any]]) -> list[Decision]:
        """Create the pods at once; return the decisions in order."""
        before = len(self.decided)
        for raw in raws:
            self.engine.store.create(raw)
        self.engine.run_until_idle()
        made = self.decided[before:]
        assert [one.pod for one in made] == [f"default/{raw['metadata']['name']}" for raw in raws]
        return [(one.node, one.feasible, one.visited, one.score) for one in made]

    def pods_by_node(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for pod in self.engine.store.list("Pod"):
            name = pod.spec.get("nodeName")
            if name:
                found[name] = found.get(name, 0) + 1
        return found


_TEMPLATES = {
    "one": [(500, _GIBI)],
    "two-in-turn": [(500, _GIBI), (250, 3 * _GIBI)],
    "many-sizes": [(100 * number, number * _GIBI) for number in (1, 2, 3, 4)],
}


@pytest.mark.parametrize(
    "at_once", everyday([1, 7, 400], lambda many: many == 7), ids=["one-by-one", "some-at-once", "all-at-once"]
)
@pytest.mark.parametrize("templates", everyday(_TEMPLATES, lambda name: name == "two-in-turn"))
@pytest.mark.parametrize(("nodes", "pods"), [(700, 400), (130, 400), (20, 150)], ids=["windows", "rounds", "full"])
def test_pods_of_few_templates_go_where_a_plain_search_has_each_go(
    nodes: int, pods: int, templates: str, at_once: int
) -> None:
    random = Random(nodes)
    plain = [
        PlainNode(f"n{number:03}", 1000 * random.choice((2, 4, 4, 8)), _GIBI * random.choice((8, 16)), 9)
        for number in range(nodes)
    ]
    cluster = Cluster.of([node.raw() for node in plain], _config(15, _PLAIN_PLUGINS))
    search, sizes = PlainSearch(plain, 15), _TEMPLATES[templates]
    for first in range(0, pods, at_once):
        numbers = range(first, min(first + at_once, pods))
        expected = [search.decide(*sizes[number % len(sizes)]) for number in numbers]
        made = cluster.place([_pod(f"p{number}", *sizes[number % len(sizes)]) for number in numbers])
        assert made == expected


@pytest.mark.parametrize("ahead", every(3, [0, 1, 60, 104, 105, 106, 300]))
@pytest.mark.parametrize("change", ["node-full", "pod-gone"])
def test_what_changes_ahead_of_the_next_search_is_seen(change: str, ahead: int) -> None:
    """After each pod, change the node at this distance from the start of the next search."""
    plain = [PlainNode(f"n{number:03}", 4000, 8 * _GIBI, 9) for number in range(700)]
    if change == "pod-gone":
        for node in plain[1::2]:
            node.taken.append((3600, _GIBI))
    cluster = Cluster.of([node.raw() for node in plain], _config(15, _PLAIN_PLUGINS))
    store = cluster.engine.store
    for node in plain:
        for cpu, memory in node.taken:
            store.create(_pod(f"on-{node.name}", cpu, memory, nodeName=node.name), restore=True)
    cluster.engine.run_until_idle()
    search = PlainSearch(plain, 15)
    for number in range(60):
        expected = search.decide(500, _GIBI)
        assert cluster.place([_pod(f"p{number}", 500, _GIBI)]) == [expected], number
        node = plain[(search.start + ahead) % len(plain)]
        if change == "node-full":
            node.cpu = 4000 if node.cpu == 400 else 400
            store.patch_status("Node", "", node.name, {"allocatable": {"cpu": f"{node.cpu}m"}})
        elif (3600, _GIBI) in node.taken:
            node.taken.remove((3600, _GIBI))
            store.delete("Pod", "default", f"on-{node.name}", grace_period_s=0)
        cluster.engine.run_until_idle()


_SHAPES: dict[str, list[dict[str, Any]]] = {
    "plain": [{}],
    "tolerating": [{"tolerations": [{"operator": "Exists"}]}, {}],
    "selecting": [{"nodeSelector": {"disk": "ssd"}}, {}],
    "spread": [
        {
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }
            ]
        }
    ],
    "apart": [
        {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
                    ]
                }
            }
        }
    ],
}


def _labeled(node: PlainNode, number: int) -> dict[str, Any]:
    raw = node.raw()
    raw["metadata"]["labels"] |= {"zone": "ab"[number % 2], "disk": ("ssd", "hdd", "ssd")[number % 3]}
    hard, soft = {"key": "k", "effect": "NoSchedule"}, {"key": "s", "effect": "PreferNoSchedule"}
    taints = [taint for taint, every in ((hard, 7), (soft, 3)) if number % every == 0]
    return {**raw, "spec": {"taints": taints}}


@pytest.mark.parametrize("shape", list(_SHAPES))
def test_pods_of_one_template_go_where_pods_go_that_have_no_template_in_common(shape: str) -> None:
    """Create the first half of the pods one by one, and the second half at once, with and without a common template."""
    nodes = [_labeled(PlainNode(f"n{number:03}", 4000, 8 * _GIBI, 6), number) for number in range(700)]
    made = []
    for alike in (True, False):
        cluster = Cluster.of(nodes, _config(15))
        raws = [
            _pod(
                f"p{number}",
                500,
                _GIBI,
                labels={"app": "web"} if alike else {"app": "web", "number": str(number)},
                **_SHAPES[shape][number % len(_SHAPES[shape])],
            )
            for number in range(80)
        ]
        made.append([*(one for raw in raws[:40] for one in cluster.place([raw])), *cluster.place(raws[40:])])
    assert made[0] == made[1]
    assert all(node for node, *_ in made[0])


@pytest.mark.parametrize("at_once", [1, 500], ids=["one-by-one", "all-at-once"])
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([(100, 100 * _KIBI), (200, 200 * _KIBI), (300, 300 * _KIBI)], id="sums-of-many-small-ones"),
        pytest.param([(0, 0)], id="without-requests"),
        pytest.param([(100, 200 << 20), (0, 0)], id="with-the-amounts-that-those-without-requests-score-with"),
    ],
)
def test_no_node_goes_over_its_number_of_pods(sizes: list[tuple[int, int]], at_once: int) -> None:
    """Nodes with equal sums of requests have different numbers of pods, and no other limit is reached."""
    random, limit = Random(7), 5
    nodes = [PlainNode(f"n{number:02}", 64_000, 256 * _GIBI, limit).raw() for number in range(60)]
    cluster = Cluster.of(nodes, _config(0))
    raws = [_pod(f"p{number}", *random.choice(sizes)) for number in range(60 * limit + 20)]
    made = [one for first in range(0, len(raws), at_once) for one in cluster.place(raws[first : first + at_once])]
    assert cluster.pods_by_node() == {f"n{number:02}": limit for number in range(60)}
    assert [node == "" for node, *_ in made] == [False] * 60 * limit + [True] * 20
