"""The GpuShare plugin: cards, policies, and the experiment that compares them."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from kschedd import sweep
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import load_config
from kschedd.framework.registry import Registry
from kschedd.simulation.engine import Engine
from kschedd.testing.rules import RULES, Rule, check
from tests.examples.plugin_files import FOLDER, module

ROOT = Path(__file__).parents[2]
PLUGIN = FOLDER / "gpu_share.py"
EXPERIMENT = ROOT / "examples" / "sweeps" / "fgd.yaml"


gpu = module("gpu_share.py")
TYPICAL = [
    {"cpuMilli": 1000, "cards": 1, "cardMilli": 500, "share": 3},
    {"cpuMilli": 4000, "cards": 2, "cardMilli": 1000, "share": 1},
    {"cpuMilli": 1000, "cards": 0, "cardMilli": 0, "share": 1},
]


def _free(*nodes: tuple[int, list[int]]) -> Any:
    """(millicores left, what each card has left) for each node."""
    cards = np.array([left + [0] * (8 - len(left)) for _, left in nodes], dtype=np.int64)
    cpu = np.array([cpu for cpu, _ in nodes], dtype=np.int64)
    there = np.array([len(left) for _, left in nodes], dtype=np.int64)
    return gpu.Free(cpu, cards, there, np.zeros(len(nodes), dtype=np.int64))


def _checked(cls: type[Any]) -> type[Any]:
    """Return the plugin with a check that the rows it knows have the values that follow from their pods."""

    class Checked(cls):  # type: ignore[misc]
        computed = 0  # number of rows

        def _free(self, table: Any, rows: Any) -> Any:
            before = Checked.computed
            known = super()._free(table, rows)
            after, expected = Checked.computed, self._computed(table, rows)
            Checked.computed = after
            assert after - before <= len(rows)
            for field in ("cpu", "cards", "there", "kinds"):
                np.testing.assert_array_equal(getattr(known, field), getattr(expected, field))
            return known

        def _computed(self, table: Any, rows: Any, besides: str = "") -> Any:
            Checked.computed += len(rows)
            return super()._computed(table, rows, besides)

    return Checked


class GpuCluster:
    """A cluster in virtual time whose profile is GpuShare's alone."""

    def __init__(self, policy: str, seed: int = 0) -> None:
        registry = Registry()
        registry.add_file(PLUGIN)
        self.plugin = registry.added["GpuShare"] = _checked(registry.added["GpuShare"])
        args = {"policy": policy, **({"typicalPods": TYPICAL} if policy == "FGD" else {})}
        ours, nothing = [{"name": "GpuShare", "weight": 1000}], {"disabled": [{"name": "*"}]}
        plugins = {"multiPoint": {"enabled": ours}, "score": {**nothing, "enabled": ours}}
        profile = {"plugins": plugins, "pluginConfig": [{"name": "GpuShare", "args": args}]}
        api = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        text = json.dumps({**api, "percentageOfNodesToScore": 100, "profiles": [profile]})
        config = load_config(text, "test", catalogue={**IN_TREE, **registry.catalogue()})
        self.engine = Engine(config, registry=registry, seed=seed)

    def node(self, name: str, cards: int, cpu: str = "64") -> None:
        has = {"cpu": cpu, "memory": "64Gi", "pods": "110", gpu.GPU_MILLI: str(1000 * cards)}
        raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": has}}
        self.engine.store.apply(raw)

    def pod(self, name: str, milli: int, cpu: str = "1") -> None:
        asks = {"cpu": cpu, gpu.GPU_MILLI: str(milli)}
        resources = {"requests": asks, "limits": {gpu.GPU_MILLI: str(milli)}}
        spec = {
            "containers": [{"name": "c", "image": "i", "resources": resources}],
            "terminationGracePeriodSeconds": 0,
        }
        self.engine.store.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        self.engine.run_until_idle()

    def where(self, name: str) -> tuple[str, str]:
        """Its node and its cards."""
        pod: Any = self.engine.store.find("Pod", "default", name)
        return pod.node_name, pod.annotations.get(gpu.CARDS, "")

    def why(self, name: str) -> str:
        pod: Any = self.engine.store.find("Pod", "default", name)
        return str(pod.status["conditions"][0]["message"])


@pytest.mark.parametrize("policy", gpu.POLICIES)
def test_only_the_sum_would_do_and_the_pod_waits(policy: str) -> None:
    cluster = GpuCluster(policy)
    cluster.node("n", 2)
    cluster.pod("a", 600)
    cluster.pod("b", 600)
    cluster.pod("c", 600)
    assert {cluster.where("a")[1], cluster.where("b")[1]} == {"0", "1"}
    assert cluster.where("c") == ("", "")
    assert "1 Insufficient GPU cards with enough left" in cluster.why("c")


@pytest.mark.parametrize("policy", gpu.POLICIES)
def test_a_card_that_becomes_free_is_given_out_again(policy: str) -> None:
    cluster = GpuCluster(policy)
    cluster.node("n", 1)
    cluster.pod("a", 1000)
    cluster.pod("b", 1000)
    assert cluster.where("b") == ("", "")
    cluster.engine.store.delete("Pod", "default", "a", grace_period_s=0)
    cluster.engine.advance(cluster.engine.now + 30)
    assert cluster.where("b") == ("n", "0")


def test_whole_cards_are_named_in_the_annotation() -> None:
    cluster = GpuCluster("BestFit")
    cluster.node("n", 4)
    cluster.pod("a", 500)
    cluster.pod("b", 3000)
    assert cluster.where("a") == ("n", "0")
    assert cluster.where("b") == ("n", "1,2,3")


def test_more_than_a_card_that_is_no_multiple_is_refused_in_words() -> None:
    cluster = GpuCluster("BestFit")
    cluster.node("n", 4)
    cluster.pod("a", 1500)
    assert "1500: more than one card must be whole cards, a multiple of 1000" in cluster.why("a")


def test_pods_placed_by_others_take_the_tightest_cards() -> None:
    cluster = GpuCluster("BestFit")
    cluster.node("n", 2)
    asks = {gpu.GPU_MILLI: "400"}
    container = {"name": "c", "image": "i", "resources": {"requests": asks, "limits": asks}}
    for name in ("x", "y"):
        spec = {"nodeName": "n", "containers": [container]}
        cluster.engine.store.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    cluster.pod("a", 1000)
    assert cluster.where("a") == ("n", "1")  # x and y share card 0


def test_fragmentation_is_what_its_definition_says() -> None:
    typical = gpu._typical(TYPICAL)
    of = gpu.Fragmentation(typical).of
    random.seed(1)
    for _ in range(200):
        cpu, left = random.randrange(5000), [random.choice((0, 200, 500, 700, 1000)) for _ in range(8)]
        expected = 0.0
        for demand, share in typical.items():
            fits = demand.cards and cpu >= demand.cpu and sum(one >= demand.milli for one in left) >= demand.cards
            expected += share / 5 * sum(one for one in left if not fits or one < demand.milli)
        assert of(np.array([cpu]), np.array([left]))[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("policy", "demand", "better", "worse"),
    [
        pytest.param("BestFit", (1000, 1, 500), (2000, [500]), (64000, [1000] * 8), id="best-fit-takes-what-is-small"),
        pytest.param("DotProduct", (1000, 1, 500), (2000, [500]), (64000, [1000] * 8), id="dot-product-too"),
        pytest.param("GpuPacking", (1, 1, 500), (9, [500, 1000]), (9, [1000, 1000]), id="packing-shares-first"),
        pytest.param("GpuPacking", (1, 1, 1000), (9, [500, 1000]), (9, [1000, 1000]), id="packing-nodes-in-use"),
        pytest.param("GpuPacking", (1, 1, 500), (9, [500]), (9, [900]), id="packing-tighter-cards"),
        pytest.param("FGD", (1000, 1, 500), (9000, [500, 1000, 1000]), (9000, [1000, 1000]), id="fgd-keeps-pairs"),
    ],
)
def test_what_a_policy_prefers(
    policy: str, demand: tuple[int, int, int], better: tuple[int, list[int]], worse: tuple[int, list[int]]
) -> None:
    free, requests = _free(better, worse), gpu.Demand(*demand)
    if policy == "FGD":
        scores = gpu.Fragmentation(gpu._typical(TYPICAL)).scores(free, requests).max(axis=1)
    else:
        scores = gpu._BY_STATE[policy](free, requests)
    assert scores[0] > scores[1]


def test_random_takes_any_feasible_node_and_repeats_with_the_seed() -> None:
    def nodes(seed: int) -> list[str]:
        cluster = GpuCluster("Random", seed)
        for number in range(8):
            cluster.node(f"n{number}", 8)
        for number in range(30):
            cluster.pod(f"p{number}", 200)
        return [cluster.where(f"p{number}")[0] for number in range(30)]

    assert len(set(nodes(1))) > 5
    assert nodes(1) == nodes(1) != nodes(2)


@pytest.mark.parametrize("policy", gpu.POLICIES)
def test_only_rows_whose_pods_or_node_changed_are_computed_again(policy: str) -> None:
    cluster = GpuCluster(policy)
    for number in range(6):
        cluster.node(f"n{number}", 4)
    sizes = random.Random(1)
    for number in range(40):
        cluster.pod(f"p{number}", sizes.choice((200, 500, 1000, 2000)))
        if number % 3 == 2:
            cluster.engine.store.delete("Pod", "default", f"p{number - 2}", grace_period_s=0)
    cluster.node("n3", 8)
    cluster.pod("last", 8000)
    assert cluster.where("last")[0] in ("", "n3")
    assert (
        0 < cluster.plugin.computed <= 6 + 3 * 40
    )  # all rows once; then two for each placement, one for each deletion


def test_cards_that_a_node_gains_are_used() -> None:
    cluster = GpuCluster("BestFit")
    cluster.node("n", 2)
    for name in "abc":
        cluster.pod(name, 600)
    assert [cluster.where(name)[1] for name in "abc"] == ["0", "1", ""]
    gained = {"status": {"capacity": {gpu.GPU_MILLI: "4000"}, "allocatable": {gpu.GPU_MILLI: "4000"}}}
    cluster.engine.store.merge_patch("Node", "", "n", gained, subresource="status")
    cluster.engine.advance(cluster.engine.now + 30)
    assert cluster.where("c") == ("n", "2")


def test_popularity_keeps_the_most_frequent_requests() -> None:
    typical = gpu._typical(TYPICAL)
    assert [demand.milli for demand in gpu._most_frequent(typical, 60)] == [500]
    assert [demand.milli for demand in gpu._most_frequent(typical, 61)] == [500, 1000]
    assert gpu._most_frequent(typical, 100) == typical


def test_clustering_keeps_alike_pods_together() -> None:
    cluster = GpuCluster("GpuClustering")
    cluster.node("n1", 4)
    cluster.pod("share", 300)
    cluster.node("n2", 4)
    cluster.pod("whole", 1000)
    assert cluster.where("whole")[0] == "n2"  # an idle node before one with others
    cluster.pod("share-2", 300)
    cluster.pod("whole-2", 1000)
    assert cluster.where("share-2")[0] == "n1"
    assert cluster.where("whole-2")[0] == "n2"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param({"policy": "Best"}, "policy: 'Best': must be one of Random, ", id="policy"),
        pytest.param({"popularity": "95"}, "popularity: '95': must be more than 0", id="popularity"),
        pytest.param({"policy": "FGD"}, "typicalPods: required by policy FGD", id="fgd-without"),
        pytest.param({"policy": "FGD", "typicalPods": "no.csv"}, "typicalPods: no.csv: must be a CSV", id="no-file"),
        pytest.param({"policy": "FGD", "typicalPods": 3}, "typicalPods: must be a list", id="no-list"),
        pytest.param({"policy": "FGD", "typicalPods": [{}]}, r"typicalPods\[0\]: cpuMilli, cards", id="incomplete"),
        pytest.param(
            {"policy": "FGD", "typicalPods": [{**TYPICAL[0], "cardMilli": 1001}]}, "at most 1000", id="too-much"
        ),
    ],
)
def test_arguments_are_refused_in_words(args: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gpu.GpuShare.from_args(gpu.RawArgs(args), None)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_it_keeps_the_rules_of_plugins(rule: Rule) -> None:
    check(rule, gpu.GpuShare)


def test_the_experiment_compares_six_policies_on_the_lists_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x_node_list_all_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,16384,2,T4\nn2,8000,16384,2,T4\nn3,8000,16384,0,\n"
    )
    columns = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    )
    rows = f"{columns}\na,100,64,1,500,,LS,Running,0,,0\nb,100,64,2,1000,,LS,Running,0,,0\n"
    for name in ("default", "cpu050", "cpu037"):  # the last one is not of the paper
        (tmp_path / f"x_pod_list_{name}.csv").write_text(rows)
    spec = {**yaml.safe_load(EXPERIMENT.read_text()), "seeds": [42]}
    spec["profiles"]["GpuShare"]["plugins"] = [str(PLUGIN)]
    found = sweep(spec, data=tmp_path, engine="threading", jobs=1)
    assert [(row["workload"], row["policy"], row["status"], row["error"]) for row in found] == [
        (f"lists/x_pod_list_{name}", policy, "ok", "") for name in ("default", "cpu050") for policy in gpu.POLICIES
    ]
    assert all(0.5 <= row["gpu_milli_used_end"] <= 1 for row in found)
