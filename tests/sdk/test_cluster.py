"""Tests of Cluster, a whole cluster in process without an event loop."""

import asyncio
import bdb
import gc
import io
import pdb
import pickle
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio

import kschedd
from kschedd import (
    ApplyError,
    Cluster,
    CommandFailedError,
    Explanation,
    KscheddError,
    Records,
    RpcError,
    SimulationSpec,
    daemonset,
    deployment,
    job,
    node,
    pod,
    simulate,
    statefulset,
)
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.versions.kube_versions import UnknownVersionError
from kschedd.plugin import CycleState, NodeInfo, Pod
from kschedd.sdk.handle import MovedPod
from kschedd.sdk.records import MissingLibraryError

EXAMPLES = Path(__file__).parents[2] / "examples"


def placed(cluster: Cluster) -> int:
    return sum(node is not None for node in cluster.placements().values())


def test_pods_are_placed_when_apply_returns() -> None:
    cluster = Cluster(nodes=2)
    done = cluster.apply(pod("a"), pod("b", namespace="kube-system", cpu="9"))
    assert [(each.kind, each.name, each.action) for each in done] == [
        ("Pod", "a", "created"),
        ("Pod", "b", "created"),
    ]
    assert cluster.placements() == {"a": "node-1", "kube-system/b": None}
    (waiting,) = cluster.pending()
    assert (waiting.key, waiting.place, waiting.attempts) == ("kube-system/b", "unschedulable", 1)
    assert waiting.plugins == ("NodeResourcesFit",)
    assert waiting.message == cluster.message("kube-system/b") != ""
    assert cluster.message("a") == ""


def test_manifests_are_texts_files_maps_and_sequences(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n")
    cluster = Cluster()
    cluster.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", tmp_path, [[pod("c")], pod("d")])
    assert {each["metadata"]["name"] for each in cluster.list("ConfigMap", "default")} == {"a", "b"}
    assert set(cluster.placements()) == {"c", "d"}


def test_refused_objects_are_reported_with_their_place_and_the_others_applied(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: 3}\n")
    cluster = Cluster(nodes=1)
    with pytest.raises(ApplyError) as refused:
        cluster.apply(file, pod("Wrong"), pod("good"))
    assert [fault.path for fault in refused.value.faults] == ["spec.containers", "metadata.name"]
    assert refused.value.faults[0].source == str(file)
    assert cluster.placements() == {"good": "node-1"}


def test_errors_have_fields() -> None:
    cluster = Cluster(nodes=1)
    with pytest.raises(RpcError) as missing:
        cluster.get("Pod", "nobody")
    assert missing.value.code == "not_found"
    with pytest.raises(UnknownVersionError):
        Cluster(version="1.2")
    with pytest.raises(ConfigErrors):
        Cluster(config="profiles: 3")


def test_time_passes_only_by_request() -> None:
    cluster = Cluster(nodes=1)
    cluster.apply(deployment("web", 3, cpu="1"))
    cluster.run_until_idle()
    assert placed(cluster) == 3
    before = cluster.time
    cluster.advance("1m30s")
    cluster.advance(5)
    assert cluster.time == before + 95
    cluster.delete("Deployment", "web")
    assert cluster.run_until(lambda now: not now.pods, limit="2m")
    assert not cluster.run_until(lambda now: bool(now.pods), limit="2m")


def test_a_fork_goes_its_own_way() -> None:
    cluster = Cluster(nodes=3)
    cluster.apply(deployment("web", 3, cpu="1"))
    with cluster.fork() as fork:
        fork.delete("Node", "node-1")
        fork.run_until_idle()
        moved = cluster.compare(fork)
        assert {each.node for each in moved} <= {"node-1", None}
        assert len(fork.nodes) == 2
    assert len(cluster.nodes) == 3
    assert all(isinstance(each, MovedPod) for each in moved)


def test_a_state_is_returned_to_any_number_of_times() -> None:
    cluster = Cluster(nodes=1)
    cluster.apply(pod("a"))
    saved = cluster.snapshot()
    for name in ("b", "c"):
        cluster.apply(pod(name))
        assert set(cluster.placements()) == {"a", name}
        cluster.restore(saved)
    assert set(cluster.placements()) == {"a"}


def test_a_plan_shows_what_a_change_would_do_and_changes_nothing() -> None:
    cluster = Cluster(nodes=2)
    cluster.apply(deployment("web", 2, cpu="3"))
    found = cluster.plan(lambda fork: fork.scale("Deployment", "web", 3))
    assert [(each.change, each.namespace) for each in found.pods] == [("pending", "default")]
    assert len(cluster.pods) == 2


def test_explain_names_the_cause_and_a_tried_remedy() -> None:
    cluster = Cluster(nodes=[node("n1", labels={"disk": "ssd"}), node("n2")])
    cluster.apply(deployment("web", 2, spec={"nodeSelector": {"disk": "sdd"}}))
    found = cluster.explain("deployment/web")
    assert found.cause.code == "NodeLabelMisspelled"
    assert found.remedies[0].verified
    assert not cluster.explain("default/deployment/web", remedies=False).remedies
    (group,) = cluster.causes()
    assert (group.code, group.count) == ("NodeLabelMisspelled", 2)


def test_explain_takes_records() -> None:
    cluster = Cluster(nodes=1)
    cluster.apply(pod("big", cpu="99"), {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}})
    cluster.apply(pod("big", cpu="98", namespace="a"))
    for record in (*cluster.pods, *cluster.pending()):
        found = cluster.explain(record, remedies=False)
        assert (found.workload.namespace, found.workload.name) == (record.namespace, "big")
        (blamed,) = found.cause.objects
        assert cluster.explain(blamed).workload.kind == "Node"


def test_capacity_and_nodes_needed() -> None:
    cluster = Cluster(nodes=[node("n1", cpu="4")])
    (fits,) = cluster.capacity(pod("x", cpu="1"))
    assert fits.fits == 4
    needed = cluster.nodes_needed([node("big", cpu="8")], [pod(f"p{number}", cpu="4") for number in range(5)])
    assert [each.count for each in needed.nodes] == [2]


def test_two_versions_decide_by_their_own_rules() -> None:
    tainted = node("n1", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    old, new = Cluster([tainted], version="1.34.1"), Cluster([tainted])
    for cluster in (old, new):
        cluster.apply(pod("a"))
    assert "untolerated taint {k: v}" in old.message("a")
    assert "untolerated taint(s)" in new.message("a")


class PrefersLast:
    """A plugin that gives the highest score to the node whose name sorts last."""

    name: ClassVar = "PrefersLast"

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return ord(node.name[-1]) % 100


def test_a_plugin_class_needs_no_file() -> None:
    nodes = [node("a"), node("b"), node("c")]
    cluster = Cluster(nodes, plugins=[PrefersLast], plugin_weights={"PrefersLast": 100})
    cluster.apply(pod("p"))
    assert cluster.placements() == {"p": "c"}


def test_a_fault_of_a_plugin_names_its_line() -> None:
    class Broken:
        name: ClassVar = "Broken"

        def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
            return 1 // 0

    cluster = Cluster(nodes=2, plugins=[Broken])
    cluster.apply(pod("p"))
    assert "Broken" in cluster.message("p")
    assert "test_cluster.py" in cluster.message("p")


def test_a_dump_becomes_a_cluster(tmp_path: Path) -> None:
    first = Cluster(nodes=2)
    first.apply(deployment("web", 2))
    dump = tmp_path / "dump.yaml"
    dump.write_text(first.run("get nodes,deployments,replicasets,pods -A -o yaml"))
    second = Cluster.from_dump(dump)
    assert second.placements() == first.placements()
    second.apply(pod("more"))
    assert second.placements()["more"] is not None


def test_verbs_of_the_command_line_run() -> None:
    cluster = Cluster(nodes=1)
    cluster.run("apply -f -", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    assert cluster.run("get configmap a -o name") == "configmap/a\n"
    with pytest.raises(CommandFailedError, match="no-such-verb") as unknown:
        cluster.run("no-such-verb")
    assert (unknown.value.command, unknown.value.status) == ("no-such-verb", 2)
    assert unknown.value.output.startswith("error: ")
    with pytest.raises(CommandFailedError, match="not found"):
        cluster.run("get pod nobody")


def test_an_exit_status_that_is_an_answer_is_no_failure() -> None:
    cluster = Cluster(nodes=1)
    changes = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    assert "+  name: a" in cluster.run("diff -f -", changes)
    cluster.apply(deployment("web", 1, cpu="3"))
    assert "Insufficient cpu" in cluster.run("plan scale deployment web --replicas 2")


def test_the_commands_of_a_remedy_can_be_run() -> None:
    cluster = Cluster(nodes=1)
    cluster.apply(deployment("web", 2, cpu="3"))
    found = cluster.explain("deployment/web")
    (added,) = [remedy for remedy in found.remedies if "<<'EOF'" in remedy.commands[0]]
    for command in added.commands:
        cluster.run(command)
    cluster.run_until_idle()
    assert not cluster.pending()


# -- commands and configurations on forks -----------------------------------------------------------------------


def test_a_plan_takes_commands() -> None:
    cluster = Cluster(nodes=2)
    cluster.apply(deployment("web", 2))
    drained = cluster.plan("drain node-1 --ignore-daemonsets")
    assert [(change.change, change.node, change.to) for change in drained.pods] == [("moved", "node-1", "node-2")]
    two = cluster.plan(["scale deployment web --replicas 3", "cordon node-2"])
    assert [change.change for change in two.pods] == ["placed"]
    assert [change.name for change in two.nodes] == ["node-2"]
    with pytest.raises(CommandFailedError, match='nodes "nope" not found'):
        cluster.plan("cordon nope")
    assert len(cluster.pods) == 2


PACKING = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def test_a_configuration_is_compared_with_the_present_one(tmp_path: Path) -> None:
    cluster = Cluster(nodes=3, seed=2)
    cluster.apply(pod("first", cpu="1"))
    taken = cluster.placements()["first"]
    found = cluster.compare(config=PACKING, manifests=[pod("a", cpu="1"), pod("b", cpu="1")])
    assert found.pods == 2
    assert {each.pod: each.b for each in found.different} == {"default/a": taken, "default/b": taken}
    assert {each.plugin for each in found.different} == {"NodeResourcesFit"}
    (tmp_path / "packing.yaml").write_text(PACKING)
    again = cluster.compare(config=tmp_path / "packing.yaml", manifests=[pod("a", cpu="1"), pod("b", cpu="1")])
    assert again == found
    assert set(cluster.placements()) == {"first"}
    with pytest.raises(TypeError, match="another cluster or `config`"):
        cluster.compare()  # type: ignore[call-overload]


# -- builders ---------------------------------------------------------------------------------------------------


def test_workloads_are_made_in_one_line() -> None:
    cluster = Cluster(nodes=2)
    cluster.apply(
        deployment("web", 2, cpu="500m", labels={"tier": "front"}, spec={"priority": 0}),
        statefulset("db", 2, memory="1Gi"),
        daemonset("agent", namespace="kube-system"),
        job("batch", 3, parallelism=2, run_seconds=10),
    )
    owners = [each.owner.partition("/")[0] for each in cluster.pods if each.owner]
    assert {kind: owners.count(kind) for kind in owners} == {
        "DaemonSet": 2,
        "Job": 2,
        "ReplicaSet": 2,
        "StatefulSet": 2,
    }
    assert {each.cpu for each in cluster.pods if each.name.startswith("web")} == {0.5}
    assert {each.workload for each in cluster.pods} == {
        "DaemonSet/agent",
        "Job/batch",
        "Deployment/web",
        "StatefulSet/db",
    }
    assert len(cluster.list("Pod", selector="app=web,tier=front")) == 2
    cluster.run_until_idle()
    (status,) = [each["status"] for each in cluster.list("Job")]
    assert status["succeeded"] == 3
    assert cluster.elapsed >= 20


# -- plugins under a debugger -----------------------------------------------------------------------------------


def test_a_breakpoint_in_a_plugin_stops_in_the_callers_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[tuple[threading.Thread, str]] = []

    class Stops:
        name = "Stops"

        def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
            breakpoint()
            return 0

        def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
            breakpoint()

        def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
            breakpoint()

        def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
            breakpoint()

    def hook() -> None:
        frame = sys._getframe(1)
        stopped.append((threading.current_thread(), frame.f_code.co_name))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    cluster = Cluster(nodes=2, plugins=[Stops])
    cluster.apply(pod("a"))
    with cluster.fork() as fork:
        fork.apply(pod("b"))
    assert {thread for thread, _ in stopped} == {threading.current_thread()}
    assert [method for _, method in stopped] == ["score", "score", "reserve", "pre_bind"] * 2


def test_pdb_shows_the_plugins_variables_and_quitting_it_ends_the_call() -> None:
    answer = io.StringIO()

    class Stops:
        name = "Stops"

        def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
            pdb.Pdb(stdin=io.StringIO("p pod.name, node.name\nq\n"), stdout=answer).set_trace()
            return 0

    cluster = Cluster(nodes=2, plugins=[Stops])
    with pytest.raises(KeyboardInterrupt) as ended:
        cluster.apply(pod("a"))
    assert isinstance(ended.value.__cause__, bdb.BdbQuit)
    assert re.search(r"\('a', 'node-\d'\)", answer.getvalue())


def test_exceptions_of_plugins_are_kept_with_their_own_lines() -> None:
    class Broken:
        name = "Broken"

        def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> None:
            self.judge(node)

        def judge(self, node: NodeInfo) -> None:
            raise LookupError(f"no rack for {node.name}")

    cluster = Cluster([node("n1")], plugins=[Broken])
    cluster.apply(pod("a"))
    fault = cluster.plugin_faults[-1]
    assert (fault.plugin, fault.method) == ("Broken", "filter")
    assert fault.traceback.splitlines()[-1] == "LookupError: no rack for n1"
    assert 'raise LookupError(f"no rack for {node.name}")' in fault.traceback
    files = re.findall(r'File "(.*)"', fault.traceback)
    assert set(files) == {__file__}
    assert cluster.fork().plugin_faults == cluster.plugin_faults


def test_a_limit_for_calls_of_plugins_is_kept() -> None:
    class Hangs:
        name = "Hangs"

        def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
            released.wait()
            return 0

    released = threading.Event()
    cluster = Cluster(nodes=1, plugins=[Hangs], plugin_limit="100ms")
    cluster.apply(pod("a"), node("n2"), pod("b"))
    released.set()
    assert "score did not return within 0.1s" in cluster.message("b")
    assert len(cluster.plugin_faults) == 0


# -- results ----------------------------------------------------------------------------------------------------


SPEC = SimulationSpec(
    nodes=[node("n1"), node("n2")], manifests=[deployment("web", 3), pod("big", cpu="50")], seed=7, until="5m"
)


def test_a_simulation_is_a_value() -> None:
    again = pickle.loads(pickle.dumps(SPEC))
    result = simulate(SPEC)
    assert again == SPEC
    assert simulate(again) == result == pickle.loads(pickle.dumps(result))
    assert [each.name for each in result.pending] == ["big"]
    assert result.elapsed_s == 300
    assert result.used["cpu"] == pytest.approx(0.3 / 8)
    assert simulate(SimulationSpec(nodes=SPEC.nodes, manifests=SPEC.manifests)).at_rest


def test_a_simulation_has_weights_and_arguments_of_plugins() -> None:
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    spec = SimulationSpec(
        nodes=[node("n1"), node("n2")],
        manifests=[pod(f"p{number}") for number in range(4)],
        plugin_args={"NodeResourcesFit": {"scoringStrategy": strategy}},
        plugin_weights={"NodeResourcesFit": 20},
    )
    assert sorted(each.pods for each in simulate(spec).nodes) == [0, 4]


def test_tables_are_immutable_sequences() -> None:
    cluster = Cluster(nodes=2)
    nodes = cluster.nodes
    assert nodes[0].name == "node-1"
    assert nodes[1:] == nodes.where(lambda each: each.name == "node-2")
    assert isinstance(nodes[1:], Records)
    assert nodes.to_dicts()[0]["cpu_allocatable"] == 4.0
    assert "2 x NodeRecord" in repr(nodes)
    assert next(iter(nodes.__rich_repr__())) == "NodeRecord"


def test_long_cells_are_cut_as_text() -> None:
    cluster = Cluster(nodes=1)
    cluster.apply(pod("a", cpu="9"))
    *_, row = repr(cluster.pending()).splitlines()
    assert "0/1 nodes are available: 1 Insufficient cpu. preemption: ...  unschedulable" in row
    assert cluster.message("a") in cluster.pending()._repr_html_()


def test_names_are_escaped_in_notebooks() -> None:
    cluster = Cluster()
    cluster.apply(pod("a", annotations={"x": "y"}, spec={"schedulerName": "<b>"}))
    assert "<td>&lt;b&gt;" not in cluster.pods._repr_html_()
    records = Records(MovedPod, [MovedPod(namespace="<i>", name="a", node=None, other_node="n")])
    assert "<td>&lt;i&gt;</td>" in records._repr_html_()
    assert "<i>" not in records._repr_html_()


@pytest.mark.parametrize(
    ("library", "convert"),
    [
        ("pandas", lambda records: records.to_pandas()),
        ("polars", lambda records: records.to_polars()),
        ("pyarrow", lambda records: records.to_arrow()),
    ],
)
def test_a_missing_library_is_named(
    monkeypatch: pytest.MonkeyPatch, library: str, convert: Callable[[Any], Any]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(MissingLibraryError, match=rf"{library} is not installed; .*kschedd\[frames\]"):
        convert(Cluster(nodes=1).nodes)


# -- event loops ------------------------------------------------------------------------------------------------


def test_an_explanation_is_the_verdict_of_explain() -> None:
    cluster = Cluster(nodes=1)
    cluster.apply(deployment("web", 2, cpu="3"))
    found = cluster.explain("deployment/web")
    assert isinstance(found, Explanation)
    assert found.cause.code == "ClusterFull"
    assert cluster.run("explain deployment/web").startswith(str(found))
    assert str(found).startswith("deployment/web: 1 of 2 pods")
    assert found._repr_html_().startswith("<pre>deployment/web")
    assert found.remedies.to_dicts()[0]["rank"] == 1
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_plan_is_shown_as_on_the_command_line() -> None:
    cluster = Cluster(nodes=2)
    cluster.apply(pod("a"))
    plan = cluster.plan("cordon node-1")
    assert cluster.run("plan cordon node-1").startswith(str(plan))
    assert "node-1" in plan._repr_html_()


async def test_it_works_in_a_trio_test() -> None:
    cluster = Cluster(nodes=1)
    cluster.apply(pod("a"))
    await trio.lowlevel.checkpoint()
    assert cluster.explain("a").cause.code == "NothingIsWrong"


def test_it_works_under_asyncio() -> None:
    async def main() -> dict[str, str | None]:
        cluster = Cluster(nodes=1)
        cluster.apply(pod("a"))
        await asyncio.sleep(0)
        return cluster.placements()

    assert asyncio.run(main()) == {"a": "node-1"}


# -- the public names -------------------------------------------------------------------------------------------


def test_a_cluster_that_nobody_has_any_more_is_released_without_the_garbage_collector() -> None:
    cluster = Cluster(nodes=2)
    cluster.apply(deployment("web", 2))
    kept, pods, fork = cluster.snapshot(), cluster.pods, cluster.fork()
    stores = [weakref.ref(each._cluster.engine.store) for each in (cluster, fork)]
    gc.disable()
    try:
        del cluster, fork
        assert [store() for store in stores] == [None, None]
    finally:
        gc.enable()
    again = Cluster(nodes=1)
    again.restore(kept)
    assert again.pods == pods


def test_a_cluster_imports_what_it_uses() -> None:
    code = """
import gc, sys
import kschedd
others = ("numpy", "trio", "attrs", "kschedd.sdk")
assert not [name for name in others if name in sys.modules]
cluster = kschedd.Cluster(nodes=2)
cluster.apply(kschedd.deployment("web", 2))
assert len(cluster.pods) == 2 and not cluster.pending()
others = ("structlog", "asyncio", "httpx", "pandas", "kschedd.causes.diagnosis", "kschedd.report.methods")
print([name for name in others if name in sys.modules], gc.isenabled(), gc.get_freeze_count())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True 0\n"


def test_a_method_that_most_programs_do_not_call_is_there_when_it_is_called() -> None:
    cluster = Cluster(nodes=1)
    assert len(cluster.call("rpc.methods")) > 90
    with pytest.raises(KscheddError, match="no method"):
        cluster.call("objects.aply")


def test_the_public_names_are_there_without_any_extra() -> None:
    code = """
import sys
extras = "gymnasium joblib matplotlib optuna pandas polars pyarrow hypothesis pytest kr8s dask ray".split()
sys.modules.update(dict.fromkeys(extras))
import pydoc
import kschedd
from kschedd import *
assert "class KubeSchedulingEnv" in pydoc.plain(pydoc.render_doc(kschedd))
try:
    KubeSchedulingEnv([node("n")], [pod("p")])
except KscheddError as missing:
    print(missing)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == 'gymnasium is not installed; install it with: pip install "kschedd[gym]"\n'


def test_every_public_name_is_there_and_no_other() -> None:
    assert [name for name in kschedd.__all__ if getattr(kschedd, name, None) is None] == []
    assert len(set(kschedd.__all__)) == len(kschedd.__all__)
    assert set(kschedd.__all__) <= set(dir(kschedd))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        kschedd.Nothing  # noqa: B018


def test_objects_are_deleted_by_their_labels() -> None:
    zones = [node(f"{zone}{number}", labels={"zone": zone}) for zone in "ab" for number in (1, 2)]
    cluster = Cluster(zones)
    cluster.apply(pod("x", labels={"app": "web"}), pod("y"))
    cluster.delete("Node", selector="zone=a")
    assert [each.name for each in cluster.nodes] == ["b1", "b2"]
    cluster.delete("Pod", selector="app=web", grace_period_s=0)
    assert [each.name for each in cluster.pods if each.name == "x"] == []
    cluster.delete("Pod", selector="app=nothing")
    with pytest.raises(RpcError, match="one of name, label_selector"):
        cluster.delete("Pod")


def test_pods_have_the_zone_of_their_node() -> None:
    cluster = Cluster([node("a1", cpu="1", labels={"topology.kubernetes.io/zone": "a"}), node("plain", cpu="1")])
    cluster.apply(pod("p1", cpu="900m"), pod("p2", cpu="900m"), pod("p3", cpu="900m"))
    assert {(each.node, each.zone) for each in cluster.pods} == {("a1", "a"), ("plain", ""), (None, None)}


def test_seeds_decide_ties_if_these_are_random() -> None:
    def chosen(**options: Any) -> set[str | None]:
        found: set[str | None] = set()
        for seed in range(8):
            cluster = Cluster(nodes=8, seed=seed, **options)
            cluster.apply(pod("a"))
            found |= set(cluster.placements().values())
        return found

    assert len(chosen()) == 1
    assert len(chosen(ties="random")) > 1
    assert len(chosen(version="1.34")) > 1
    with pytest.raises(ValueError, match="ties: 'never': one of release, random"):
        Cluster(ties="never")  # type: ignore[arg-type]


def test_every_supported_release_makes_a_cluster() -> None:
    assert kschedd.VERSIONS[-1] == "1.37"
    for version in kschedd.VERSIONS:
        assert Cluster(nodes=1, version=version).version == version
