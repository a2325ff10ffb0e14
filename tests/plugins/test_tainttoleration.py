"""Tests that TaintToleration's verdicts, scores and hints follow from each node's own taints.

The cases are those of upstream's taint_toleration.go and its tests.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import Taint, Toleration
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.versions.kube_versions import V1_34, V1_34_1
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.events import QUEUE, QUEUE_SKIP, ActionType, ClusterEvent, EventResource
from kschedd.framework.handle import Handle
from kschedd.framework.status import Code, Status
from kschedd.plugins import tainttoleration
from kschedd.plugins.tainttoleration import TaintToleration, intolerable, untolerated

HARD, SOFT, OUT = "NoSchedule", "PreferNoSchedule", "NoExecute"


def raw_taint(key: str, effect: str = HARD, value: str = "") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def tolerating(key: str = "", effect: str = "", value: str | None = None) -> dict[str, str]:
    operator = "Exists" if value is None else "Equal"
    return {"key": key, "operator": operator, "value": value or "", "effect": effect}


def node(name: str, *taints: dict[str, str], cordoned: bool = False) -> Node:
    spec = {"taints": list(taints), "unschedulable": cordoned}
    return Node.from_raw({"kind": "Node", "metadata": {"name": name}, "spec": spec, "status": {}})


def pod(*tolerations: dict[str, str], name: str = "new") -> Pod:
    spec = {"containers": [{"name": "c", "image": "i"}], "tolerations": list(tolerations)}
    meta = {"name": name, "namespace": "d", "uid": name}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": spec})


class Cluster:
    def __init__(self, *nodes: Node, rules: Any = V1_34_1.rules) -> None:
        self.cache = SchedulerCache()
        self.cache.load(nodes)
        self.plugin = TaintToleration.from_args(None, Handle(self.cache, rules=rules))

    def rejected(self, incoming: Pod) -> dict[str, Status]:
        table = self.cache.table
        self.plugin.cache_key(self.cache)
        codes = self.plugin.filter_rows(CycleState(), incoming, table, table.order)
        if codes is None:
            return {}
        return {
            table.names[row]: self.plugin.code_status(CycleState(), incoming, code)
            for row, code in zip(table.order.tolist(), codes.tolist(), strict=True)
            if code
        }

    def scores(self, incoming: Pod) -> dict[str, int]:
        table = self.cache.table
        found = self.plugin.score_rows(CycleState(), incoming, table, table.order)
        return {table.names[row]: score for row, score in zip(table.order.tolist(), found.tolist(), strict=True)}

    def normalized(self, incoming: Pod) -> dict[str, int]:
        raw = self.scores(incoming)
        found = self.plugin.normalize(CycleState(), incoming, np.array(list(raw.values()), dtype=np.int64))
        return dict(zip(raw, found.tolist(), strict=True))


@pytest.mark.parametrize(
    ("taints", "tolerations", "first"),
    [
        pytest.param([], [], None, id="none"),
        pytest.param([raw_taint("a")], [], "a", id="hard"),
        pytest.param([raw_taint("a", OUT)], [], "a", id="evicting"),
        pytest.param([raw_taint("a", SOFT)], [], None, id="soft"),
        pytest.param([raw_taint("a", SOFT), raw_taint("b")], [], "b", id="hard-after-soft"),
        pytest.param([raw_taint("a"), raw_taint("b")], [tolerating("a")], "b", id="second-of-two"),
        pytest.param([raw_taint("a"), raw_taint("b")], [tolerating()], None, id="all-keys"),
        pytest.param([raw_taint("a")], [tolerating("a", OUT)], "a", id="another-effect"),
        pytest.param([raw_taint("a", value="x")], [tolerating("a", value="y")], "a", id="another-value"),
        pytest.param([raw_taint("a", value="x")], [tolerating("a", value="x")], None, id="equal-value"),
        pytest.param([raw_taint("a")], [tolerating("b"), tolerating("a")], None, id="second-toleration"),
    ],
)
def test_the_first_hard_taint_that_is_not_tolerated_keeps_a_pod_away(
    taints: list[dict[str, str]], tolerations: list[dict[str, str]], first: str | None
) -> None:
    found = Cluster(node("n", *taints), node("free")).rejected(pod(*tolerations))
    assert list(found) == ([] if first is None else ["n"])
    if first is not None:
        value = "x" if taints[0]["value"] else ""
        assert found["n"].message == f"node(s) had untolerated taint {{{first}: {value}}}"
        assert found["n"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_the_reason_names_no_taint_by_the_rules_of_later_patches() -> None:
    found = Cluster(node("n", raw_taint("a")), rules=V1_34.rules).rejected(pod())
    assert found["n"].message == "node(s) had untolerated taint(s)"


@pytest.mark.parametrize(
    ("tolerations", "scores", "normalized"),
    [
        pytest.param([], [0, 1, 2, 3], [100, 67, 34, 0], id="none-tolerated"),
        pytest.param([tolerating("a", SOFT)], [0, 0, 1, 2], [100, 100, 50, 0], id="one-tolerated"),
        pytest.param([tolerating("a", HARD)], [0, 1, 2, 3], [100, 67, 34, 0], id="tolerated-if-it-were-hard"),
        pytest.param([tolerating("b")], [0, 1, 1, 2], [100, 50, 50, 0], id="of-any-effect"),
        pytest.param([tolerating()], [0, 0, 0, 0], [100, 100, 100, 100], id="all-tolerated"),
    ],
)
def test_fewer_soft_taints_are_better(
    tolerations: list[dict[str, str]], scores: list[int], normalized: list[int]
) -> None:
    soft = [raw_taint(key, SOFT) for key in "abc"]
    cluster = Cluster(*(node(f"n{number}", *soft[:number], raw_taint("d")) for number in range(4)))
    incoming = pod(*tolerations, tolerating("d", HARD))
    assert list(cluster.scores(incoming).values()) == scores
    assert list(cluster.normalized(incoming).values()) == normalized
    constant = cluster.plugin.constant_score(incoming, cluster.cache.table)
    assert constant == (None if any(scores) else 100)


def test_no_node_is_normalized_to_no_score() -> None:
    plugin = Cluster(node("n")).plugin
    assert plugin.normalize(CycleState(), pod(), np.zeros(0, dtype=np.int64)).tolist() == []


taints = st.builds(Taint, st.sampled_from("ab"), st.sampled_from(["", "x", "y"]), st.sampled_from([HARD, SOFT, OUT]))
tolerations = st.builds(
    Toleration,
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["Exists", "Equal"]),
    st.sampled_from(["", "x", "y"]),
    st.sampled_from(["", HARD, SOFT, OUT]),
    st.none(),
)
_tainted = st.lists(st.lists(taints, max_size=3), min_size=1, max_size=5)


@given(_tainted, _tainted, st.lists(tolerations, max_size=3))
def test_taints_looked_up_by_set_are_the_taints_of_each_node(
    before: list[list[Taint]], after: list[list[Taint]], tolerated: list[Toleration]
) -> None:
    """The pod is tried twice; in between, nodes get other taints."""

    def tainted(number: int, of: list[Taint]) -> Node:
        return node(f"n{number}", *(raw_taint(taint.key, taint.effect, taint.value) for taint in of))

    cluster = Cluster(*(tainted(number, of) for number, of in enumerate(before)))
    incoming = pod(*({"key": t.key, "operator": t.operator, "value": t.value, "effect": t.effect} for t in tolerated))
    for nodes in (before, after):
        for number, of in enumerate(nodes):
            cluster.cache.put_node(tainted(number, of))
        reasons, scores = cluster.rejected(incoming), cluster.scores(incoming)
        for number, of in enumerate(nodes):
            name, keeps_away = f"n{number}", untolerated(tuple(of), tuple(tolerated))
            reason = reasons[name].message if name in reasons else None
            assert reason == (keeps_away and f"node(s) had untolerated taint {{{keeps_away.key}: {keeps_away.value}}}")
            assert scores[name] == intolerable(tuple(of), tuple(tolerated))


def test_codes_are_given_out_anew_when_there_were_too_many_taints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tainttoleration, "_MOST_TAINTS", 3)
    cluster, keys = Cluster(node("n")), []
    for number in range(9):
        cluster.cache.put_node(node("n", raw_taint(f"k{number}")))
        found = cluster.rejected(pod())
        assert found["n"].message == f"node(s) had untolerated taint {{k{number}: }}"
        keys.append(cluster.plugin.cache_key(cluster.cache))
    assert keys == [0, 0, 0, 1, 1, 1, 1, 2, 2]
    for _ in range(2):  # The second time, the same taints on unchanged nodes.
        for key in ("k0", "k1", "k2", "k3", "k4"):
            cluster.cache.put_node(node(key, raw_taint(key)))
            found = cluster.rejected(pod())
            assert found[key].message == f"node(s) had untolerated taint {{{key}: }}"
            assert cluster.rejected(pod())[key].message == found[key].message


def test_pods_with_equal_tolerations_share_their_verdicts() -> None:
    plugin = Cluster(node("n")).plugin
    first, another, tolerating_b, plain = (
        plugin.verdict_key(one, CycleState())
        for one in (pod(tolerating("a")), pod(tolerating("a"), name="another"), pod(tolerating("b")), pod())
    )
    assert first == another
    assert first != tolerating_b
    assert plain != tolerating_b


def test_it_is_told_of_new_nodes_of_other_taints_and_of_tolerations() -> None:
    [after_node, after_pod] = Cluster(node("n")).plugin.events_to_register()
    assert after_node.event == ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)
    assert after_pod.event == ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)


@pytest.mark.parametrize("most", [2, 1024])
def test_as_many_kinds_of_pods_as_are_kept_and_more(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tainttoleration, "_MOST_SHAPES", most)
    cluster = Cluster(*(node(f"n{number}", raw_taint(f"k{number}")) for number in range(5)))
    for number in [*range(5), *range(5)]:
        assert f"n{number}" not in cluster.rejected(pod(tolerating(f"k{number}")))
        assert len(cluster.rejected(pod(tolerating(f"k{number}")))) == 4
        assert len(cluster.plugin._judged) <= most


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param(None, [], QUEUE, id="new-node-without-taint"),
        pytest.param(None, [raw_taint("a")], QUEUE_SKIP, id="new-node-with-it"),
        pytest.param([raw_taint("a")], [], QUEUE, id="taint-gone"),
        pytest.param([raw_taint("a")], [raw_taint("a", SOFT)], QUEUE, id="taint-is-soft-now"),
        pytest.param([raw_taint("a")], [raw_taint("a", OUT)], QUEUE_SKIP, id="another-effect"),
        pytest.param([raw_taint("a")], [raw_taint("t")], QUEUE, id="a-tolerated-one-instead"),
        pytest.param([], [raw_taint("b", SOFT)], QUEUE_SKIP, id="it-did-not-keep-the-pod-away"),
        pytest.param([raw_taint("t")], [], QUEUE_SKIP, id="neither-did-a-tolerated-one"),
    ],
)
def test_a_node_wakes_a_pod_when_its_taints_begin_to_be_tolerated(old: Any, new: Any, hint: Any) -> None:
    [after_node, _] = Cluster(node("n")).plugin.events_to_register()
    assert after_node.hint is not None
    before = None if old is None else node("n", *old)
    assert after_node.hint(pod(tolerating("t")), before, node("n", *new)) is hint


def test_a_pod_is_woken_by_a_toleration_of_its_own() -> None:
    [_, after_pod] = Cluster(node("n")).plugin.events_to_register()
    assert after_pod.hint is not None
    waiting = pod()
    assert after_pod.hint(waiting, waiting, pod(tolerating("a"))) is QUEUE
    assert after_pod.hint(waiting, waiting, pod(tolerating("a"), name="another")) is QUEUE_SKIP
    assert after_pod.hint(waiting, waiting, None) is QUEUE_SKIP
