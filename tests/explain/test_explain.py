"""Explaining: every plugin's verdict on every node, the scores, what would have to change; and it changes nothing."""

import random
from typing import Any, ClassVar

import pytest

from kschedd.answers import plain
from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw, default_config
from kschedd.config.versions.kube_versions import V1_34
from kschedd.explain.explain import NoProfile, explain
from kschedd.framework.registry import Registry
from kschedd.framework.status import Code, Status
from kschedd.framework.writes import Plan
from kschedd.printing.reports.explaining import explanation
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.simulation.engine import Engine, LoggedAttempt

ZONE = "topology.kubernetes.io/zone"


def node(name: str, *, cpu: str = "2", pods: str = "110", labels: dict[str, str] | None = None, **spec: Any) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": "4Gi", "pods": pods},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, cpu: str = "100m", *, labels: dict[str, str] | None = None, **spec: Any) -> Any:
    container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def cluster(*objects: Any, seed: int = 1, **options: Any) -> Engine:
    options.setdefault("config", default_config(version=V1_34))
    engine = Engine(seed=seed, **options)
    for raw in objects:
        engine.store.create(raw)
        engine.run_until_idle()
    return engine


def explained(engine: Engine, name: str, **options: Any) -> dict[str, Any]:
    found = engine.store.get("Pod", "default", name)
    assert isinstance(found, Pod)
    return plain(explain(engine.machine, found, engine.driver.nominator.by_node(), **options))


def by_node(found: dict[str, Any]) -> dict[str, Any]:
    return {verdict["node"]: verdict for verdict in found["verdicts"]}


TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def test_every_rejecting_plugin_of_a_node_is_named_the_first_one_first() -> None:
    engine = cluster(node("small", cpu="1", taints=[TAINT]), node("roomy", taints=[TAINT]), pod("web", "1500m"))
    found = explained(engine, "web")
    small, roomy = by_node(found)["small"], by_node(found)["roomy"]
    assert (small["plugin"], small["code"]) == ("TaintToleration", "UnschedulableAndUnresolvable")
    assert small["reasons"] == ["node(s) had untolerated taint(s)"]
    assert [also["plugin"] for also in small["also"]] == ["NodeResourcesFit"]
    assert roomy["also"] == []
    assert found["chosen"] is None
    assert found["node"] is None


def test_the_message_is_the_one_in_the_pods_condition() -> None:
    engine = cluster(node("a"), node("b", unschedulable=True), pod("web", "3"))
    conditions = engine.store.get("Pod", "default", "web").status["conditions"]
    assert explained(engine, "web")["message"] == conditions[0]["message"]


def test_scores_are_raw_normalized_and_weighted_and_add_up() -> None:
    preferred = [{"key": "soft", "effect": "PreferNoSchedule"}]
    raw = pod("web")
    engine = cluster(node("a", taints=preferred), node("b", cpu="4"))
    created = engine.store.create(raw, dry_run=True)
    assert isinstance(created, Pod)
    found = plain(explain(engine.machine, created, {}))
    taints = found["scores"]["TaintToleration"]
    assert taints == {
        "a": {"raw": 1, "normalized": 0, "weighted": 0},
        "b": {"raw": 0, "normalized": 100, "weighted": 300},
    }
    for name in ("a", "b"):
        assert found["totals"][name] == sum(of_node[name]["weighted"] for of_node in found["scores"].values())
    assert found["chosen"] == "b"
    assert found["message"] == ""


def test_equal_nodes_are_a_tie_and_nobody_is_chosen() -> None:
    engine = cluster(node("a"), node("b"))
    created = engine.store.create(pod("web"), dry_run=True)
    assert isinstance(created, Pod)
    found = plain(explain(engine.machine, created, {}))
    assert sorted(found["ties"]) == ["a", "b"]
    assert found["chosen"] is None
    assert engine.store.find("Pod", "default", "web") is None


def test_a_gated_pod_is_judged_as_if_it_were_let_in() -> None:
    engine = cluster(node("a"), pod("web", schedulingGates=[{"name": "example.com/wait"}]))
    found = explained(engine, "web")
    assert found["gated_by"]["plugin"] == "SchedulingGates"
    assert found["chosen"] == "a"


def test_a_missing_claim_rejects_the_pod_before_any_node() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    engine = cluster(node("a"), pod("web", volumes=volumes))
    found = explained(engine, "web")
    assert found["pre_filter"]["plugin"] == "VolumeRestrictions"
    assert 'persistentvolumeclaim "data" not found' in found["message"]


def test_preemption_is_told_with_its_victims_and_nothing_is_evicted() -> None:
    engine = cluster(node("a", cpu="1"), pod("low", "1"))
    urgent = engine.store.create(pod("urgent", "1", priorityClassName="system-node-critical"), dry_run=True)
    assert isinstance(urgent, Pod)
    found = plain(explain(engine.machine, urgent, {}))
    preemption = found["preemption"]
    assert (preemption["node"], preemption["victims"], preemption["decided_by"]) == ("a", ["default/low"], "")
    assert not engine.store.get("Pod", "default", "low").deleting


def test_nominated_pods_that_take_the_room_are_named() -> None:
    engine = cluster(node("a", cpu="1"))
    promised = engine.store.create(pod("promised", "1", priority=0), dry_run=True)
    late = engine.store.create(pod("late", "1"), dry_run=True)
    assert isinstance(promised, Pod)
    assert isinstance(late, Pod)
    found = plain(explain(engine.machine, late, {"a": [promised]}))
    assert by_node(found)["a"]["nominated"] == ["default/promised"]


def test_a_placed_pod_is_judged_as_if_it_were_not_there() -> None:
    engine = cluster(node("a", cpu="1"), pod("web", "1"))
    found = explained(engine, "web", recorded={"attempt": 1, "score": 42})
    assert found["as_if_absent"]
    assert found["node"] == found["chosen"] == "a"
    assert found["decision"] == {"attempt": 1, "score": 42}
    table = engine.machine.cluster.table
    assert [other.name for other in table.pods[table.row_of["a"]]] == ["web"]


class Held:
    name: ClassVar = "Held"

    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        return Status(Code.WAIT), 60.0


class Unready:
    name: ClassVar = "Unready"

    def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Plan:
        return Plan(ready=lambda cluster: None, timeout_s=60.0)


@pytest.mark.parametrize(
    ("plugin", "plugins", "note", "head"),
    [
        pytest.param(Held, ["Held"], "waits at Permit on a", "waits at Permit for Held", id="permit"),
        pytest.param(Unready, [], "is being bound on a", "is being bound: PreBind or Bind is under way", id="pre-bind"),
    ],
)
def test_a_pod_that_has_a_node_and_is_not_bound_is_said_to_be(
    plugin: type[Any], plugins: list[str], note: str, head: str
) -> None:
    registry = Registry()
    registry.add(plugin, "test")
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": plugin.name}]}}}],
    }
    config = config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()}, version=V1_34)
    engine = cluster(node("a"), pod("web"), config=config, registry=registry)
    found = explained(engine, "web")
    assert (found["node"], found["as_if_absent"], found["chosen"]) == (None, True, "a")
    assert found["reserved"] == {"node": "a", "plugins": plugins}
    assert found["notes"] == [f"default/web {note}; it is evaluated as if it were not there"]
    assert explanation(found, TerminalStyle()).splitlines()[:2] == [
        f"default/web has a reserved, and {head}",
        "  it would be chosen again, with 475 points, the only node that fits",
    ]


def test_a_pod_for_another_scheduler_is_refused() -> None:
    engine = cluster(node("a"), pod("web", schedulerName="other"))
    with pytest.raises(NoProfile, match="configured profiles: default-scheduler"):
        explained(engine, "web")


class Faulty:
    name: ClassVar = "Faulty"

    def filter(self, state: Any, pod: Pod, node: Any) -> Status | None:
        raise ZeroDivisionError("oops")


def test_a_plugin_that_fails_is_an_error_verdict() -> None:
    registry = Registry()
    registry.add(Faulty, "test")
    plugins = {"multiPoint": {"enabled": [{"name": "Faulty"}]}}
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "plugins": plugins}],
    }
    config = config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()}, version=V1_34)
    engine = cluster(node("a"), pod("web"), config=config, registry=registry)
    verdict = by_node(explained(engine, "web"))["a"]
    assert (verdict["plugin"], verdict["code"]) == ("Faulty", "Error")
    assert "ZeroDivisionError: oops" in verdict["reasons"][0]


class FaultyScore:
    name: ClassVar = "Faulty"

    def score_rows(self, state: Any, pod: Pod, table: Any, rows: Any) -> Any:
        raise SystemExit("oops")


def test_a_score_plugin_that_fails_is_told_as_its_fault() -> None:
    registry = Registry()
    registry.add(FaultyScore, "a test")
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"score": {"enabled": [{"name": "Faulty"}]}}}],
    }
    config = config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()}, version=V1_34)
    engine = cluster(node("a"), node("b"), pod("web"), config=config, registry=registry)
    found = explained(engine, "web")
    line = FaultyScore.score_rows.__code__.co_firstlineno + 1
    why = f'running Score plugins: plugin "Faulty" failed with: SystemExit: oops (test_explain.py:{line})'
    assert (found["message"], found["chosen"], found["scores"]) == (why, None, {})
    assert [verdict["plugin"] for verdict in found["verdicts"]] == [None, None]


def test_each_step_is_timed_by_the_clock_that_is_given() -> None:
    engine = cluster(node("a"), node("b"), pod("web"))
    ticks = iter(range(1000))
    took = explained(engine, "web", clock=lambda: next(ticks) / 1000)["took_us"]
    assert {"point": "Filter", "plugin": "NodeResourcesFit", "us": 1000} in took
    assert {"point": "Score", "plugin": "ImageLocality", "us": 1000} in took


def _run(seed: int, *, explaining: bool) -> list[dict[str, object]]:
    """Return the decisions of a mixed run in which recent pods are explained after every step, or none are."""
    chance = random.Random(seed)
    decisions: list[LoggedAttempt] = []
    engine = Engine(seed=seed, on_decision=decisions.append)
    for number in range(120):
        engine.store.create(node(f"n{number}", cpu="1", labels={ZONE: f"z{number % 3}"}))
    names: list[str] = []
    for number in range(80):
        spec: dict[str, Any] = {}
        if number % 5 == 0:
            spec["priority"] = 0
        if number % 3 == 0:
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": ZONE,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }
            ]
        if number % 7 == 0:
            spec["priorityClassName"] = "system-cluster-critical"
            spec.pop("priority", None)
        cpu = chance.choice(("300m", "900m", "900m", "2"))
        names.append(f"p{number}")
        engine.store.create(pod(f"p{number}", cpu, labels={"app": "web"}, **spec))
        engine.run_until_idle()
        if number % 9 == 8:
            engine.store.delete("Pod", "default", names.pop(chance.randrange(len(names))), grace_period_s=0)
        if explaining:
            for name in names[-3:]:
                if engine.store.find("Pod", "default", name) is not None:
                    explained(engine, name)
        engine.advance(engine.now + 2)
    return [decision.line() for decision in decisions]


@pytest.mark.parametrize("seed", [3, 4])
def test_explaining_changes_no_later_decision(seed: int) -> None:
    assert _run(seed, explaining=True) == _run(seed, explaining=False)


def test_where_upstream_decides_by_a_bug_of_its_own_a_note_says_so() -> None:
    engine = cluster(node("n1"), node("n2"))
    selector = {"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["prod"]}]}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaceSelector": selector}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    engine.store.create(pod("apart", "3", affinity=affinity))
    engine.store.create(pod("huge", "4e18"))
    engine.store.create(pod("plain"))
    engine.run_until_idle()
    notes = {name: explained(engine, name)["notes"] for name in ("apart", "huge", "plain")}
    assert [note for note in notes["apart"] if "kubernetes#141526" in note] == [
        "its affinity to pods in namespaces with env notin (prod) counts pods of every namespace, as in kube-scheduler "
        "before 1.37 (kubernetes#141526)"
    ]
    assert "its cpu requests do not fit 64 bits and count as 0, as in kube-scheduler" in notes["huge"]
    assert not [note for note in notes["plain"] if "kube-scheduler" in note]


def test_who_rejects_the_nominated_node_is_named_of_the_nodes_left_out() -> None:
    engine = cluster(node("n1", taints=[{"key": "k", "effect": "NoSchedule"}]), node("n2", cpu="1"), node("n3"))
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    raw = {**pod("p", "2", affinity=affinity), "status": {"nominatedNodeName": "n1"}}
    found = plain(explain(engine.machine, Pod.from_raw(raw), {}))
    answer = {name: verdict["reasons"] for name, verdict in by_node(found).items()}
    assert answer["n1"] == ["node(s) had untolerated taint(s)"]
    assert answer["n3"] == ["node(s) didn't satisfy plugin(s) [NodeAffinity TaintToleration]"]
    assert "1 node(s) didn't satisfy plugin(s) [NodeAffinity TaintToleration]" in found["message"]


def test_scores_out_of_range_choose_no_node() -> None:
    engine = cluster(node("n1"), node("n2"))
    requests = [{"memory": "9223372036854775807"}, {"memory": "1Gi"}]
    containers = [{"name": f"c{n}", "image": "i", "resources": {"requests": r}} for n, r in enumerate(requests)]
    engine.store.create(pod("wraps", containers=containers))
    engine.run_until_idle()
    found = explained(engine, "wraps")
    assert "returns an invalid score" in found["message"]
    assert (found["chosen"], found["ties"]) == (None, [])
