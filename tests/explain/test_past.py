"""An attempt that was made is worked out again: the cluster is gone back to as it was, also for a pod that is gone."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.answers import plain
from kschedd.explain.explain import begin, finish, of_past
from kschedd.explain.past import Past
from kschedd.log.log import Log
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.simulation.engine import Engine
from kschedd.store.objects.log import EventLog
from tests.explain.planted import both, node, pod

CLUSTER = both(node("n1", cpu="2"), node("n2", cpu="2", spec="unschedulable: true"), pod(cpu="3"))


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    made = ScenarioCluster(tmp_path)
    assert "error" not in made.do("apply", CLUSTER)
    return made


def explained(cluster: ScenarioCluster, line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.do(f"explain {line} -o json", ""))
    return found


def codes(found: dict[str, Any]) -> dict[str, str | None]:
    return {verdict["node"]: verdict["plugin"] for verdict in found["verdicts"]}


def test_a_past_attempt_is_told_as_things_were_then(cluster: ScenarioCluster) -> None:
    then = codes(explained(cluster, "web"))
    cluster.do("uncordon n2", "")
    large = '{"status": {"allocatable": {"cpu": "4"}, "capacity": {"cpu": "4"}}}'
    cluster.do(f"patch node n1 --subresource status -p '{large}'", "")
    assert cluster.expect("expect pod web on node n1 within 1m").met
    assert codes(explained(cluster, "web"))["n1"] is None
    found = explained(cluster, "web --attempt 1")
    assert codes(found) == then == {"n1": "NodeResourcesFit", "n2": "NodeUnschedulable"}
    assert found["attempt"]["kept"] is True
    assert found["decision"]["attempt"] == 1
    assert found["message"] == found["decision"]["message"]


def test_a_pod_that_is_gone_is_explained_as_of_its_last_attempt(cluster: ScenarioCluster) -> None:
    cluster.do("apply", pod("small"))
    assert cluster.expect("expect pod small on node n1").met
    cluster.do("delete pod small --grace-period 0 --force", "")
    assert cluster.expect("expect pod small gone after 1m").met
    cluster.do("delete node n1", "")
    found = explained(cluster, "small")
    assert found["chosen"] == "n1"
    assert codes(found) == {"n1": None, "n2": "NodeUnschedulable"}
    text = cluster.do("explain small", "")
    assert text.startswith("pod/small: it is gone.\nCause: default/small was deleted on n1 at ")
    assert "\nAttempt 1 of default/small, at " in text
    assert ": it got n1 (1 of 2 nodes fitted)\n" in text


def test_what_is_not_known_is_said(cluster: ScenarioCluster) -> None:
    assert "attempt 7 of pod default/web is not known; known are 1" in cluster.do("explain web --attempt 7", "")
    answer = cluster.do("explain wed", "")
    assert 'pods "wed" not found, nor in the record of attempts (the latest 1)' in answer
    assert 'did you mean "web"' in answer
    assert "--attempt requires the name of a pod" in cluster.do("explain -f - --attempt 1", pod())


def test_a_state_that_is_no_longer_kept_is_said_and_the_record_given(
    cluster: ScenarioCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.cluster.engine.store, "log", EventLog(cluster.cluster.engine.store.version))
    found = explained(cluster, "web --attempt 1")
    assert found["attempt"]["kept"] is False
    assert found["verdicts"] == []
    assert found["decision"]["message"].startswith("0/2 nodes are available")
    assert "the state of the time of attempt 1 is not kept any more" in found["notes"][0]
    text = cluster.do("explain web --attempt 1", "")
    assert "0 of 2 nodes fitted, it got none\n  0/2 nodes are available" in text


@given(st.integers(min_value=0, max_value=2**32))
@settings(max_examples=15, deadline=None)
def test_every_attempt_of_a_random_run_is_worked_out_as_it_was_made(seed: int) -> None:
    pick = random.Random(seed)
    log = Log()
    engine = Engine(seed=seed, on_happened=log.extend)
    for number in range(4):
        engine.store.create(_node(f"n{number}", pick))
    for number in range(25):
        _happens(engine, pick, number)
        if pick.random() < 0.6:
            engine.run_until_idle()
    engine.run_until_idle()
    records = log.attempts()
    for place, record in enumerate(records):
        assert record.attempted is not None
        fork = begin(engine.machine, record.attempted, engine.driver.nominator.by_node())
        past = Past(record, records[:place], engine.store.shown_after(record.version))
        found = plain(finish(of_past(fork, past, engine.driver.observer.version)))
        fits = sorted(v["node"] for v in found["verdicts"] if v["plugin"] is None)
        if record.node:
            assert record.node in (found["ties"] or [found["chosen"]])
            assert len(fits) == record.feasible
        else:
            assert fits == []
            assert found["message"] == record.message


def _node(name: str, pick: random.Random) -> dict[str, Any]:
    amounts = {"cpu": str(pick.choice((1, 2, 4))), "memory": "4Gi", "pods": "5"}
    meta = {"name": name, "labels": {"zone": pick.choice("ab")}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def _happens(engine: Engine, pick: random.Random, number: int) -> None:
    pods, nodes = engine.store.list("Pod"), engine.store.list("Node")
    choice = pick.random()
    if choice < 0.55 or not pods:
        requests = {"cpu": pick.choice(("500m", "1", "3")), "memory": "256Mi"}
        app = {"matchLabels": {"app": pick.choice("xy")}}
        near = [{"topologyKey": "zone", "labelSelector": app}]
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near}}
        spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
        spec |= {"affinity": apart} if pick.random() < 0.3 else {}
        meta = {"name": f"p{number}", "namespace": "default", "labels": {"app": pick.choice("xy")}}
        engine.store.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    elif choice < 0.7:
        engine.store.delete("Pod", "default", pick.choice(pods).name, grace_period_s=0)
    elif choice < 0.85:
        chosen = pick.choice(nodes)
        raw = {**chosen.raw, "spec": {"unschedulable": pick.random() < 0.5}}
        engine.store.update(raw)
    else:
        engine.store.create(_node(f"late-{number}", pick))
