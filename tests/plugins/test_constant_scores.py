"""Tests that a plugin which declares equal scores for all nodes also returns equal scores node by node."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.handle import Handle
from kschedd.plugins.resources.imagelocality import ImageLocality
from kschedd.plugins.tainttoleration import TaintToleration

_TAINTS = [{"key": key, "effect": effect} for key in "ab" for effect in ("PreferNoSchedule", "NoSchedule")]
_IMAGES = ["one:1", "two:1", "three:1"]

_nodes = st.lists(
    st.tuples(st.lists(st.sampled_from(_TAINTS), max_size=2), st.lists(st.sampled_from(_IMAGES), max_size=2)),
    min_size=1,
    max_size=5,
)
_tolerations = st.lists(st.sampled_from([{"key": "a", "operator": "Exists"}, {"operator": "Exists"}]), max_size=1)


def _cluster(nodes: list[tuple[list[Any], list[str]]]) -> SchedulerCache:
    cluster = SchedulerCache()
    for number, (taints, images) in enumerate(nodes):
        status = {"images": [{"names": [name], "sizeBytes": 900 << 20} for name in images]}
        meta = {"name": f"n{number}", "labels": {}}
        raw = {"kind": "Node", "metadata": meta, "spec": {"taints": taints}, "status": status}
        cluster.put_node(Node.from_raw(raw))
    return cluster


def _pod(tolerations: list[Any], image: str) -> Pod:
    spec = {"containers": [{"name": "c", "image": image}], "tolerations": tolerations}
    return Pod.from_raw({"kind": "Pod", "metadata": {"name": "p", "namespace": "d", "uid": "p"}, "spec": spec})


@given(_nodes, _tolerations)
def test_no_soft_taint_that_a_pod_minds_is_a_constant_score(nodes: list[Any], tolerations: list[Any]) -> None:
    cluster, pod = _cluster(nodes), _pod(tolerations, "one:1")
    plugin, table = TaintToleration.from_args(None, Handle(cluster)), cluster.table
    constant = plugin.constant_score(pod, table)
    scores = plugin.normalize(CycleState(), pod, plugin.score_rows(CycleState(), pod, table, table.order)).tolist()
    if constant is not None:
        assert scores == [constant] * len(nodes)
    else:
        assert any(plugin.score_rows(CycleState(), pod, table, table.order))


@given(_nodes, st.sampled_from(_IMAGES))
def test_an_image_that_no_node_has_is_a_constant_score(nodes: list[Any], image: str) -> None:
    cluster, pod = _cluster(nodes), _pod([], image)
    plugin, table = ImageLocality.from_args(None, Handle(cluster)), cluster.table
    constant = plugin.constant_score(pod, table)
    if constant is not None:
        assert plugin.score_rows(CycleState(), pod, table, table.order).tolist() == [constant] * len(nodes)
    else:
        assert any(image in images for _, images in nodes)


@pytest.mark.parametrize("taints", [[], [_TAINTS[1]]], ids=["no-taints", "hard-taints-only"])
def test_hard_taints_do_not_count_against_a_node(taints: list[Any]) -> None:
    cluster = _cluster([(taints, [])])
    assert TaintToleration.from_args(None, Handle(cluster)).constant_score(_pod([], "one:1"), cluster.table) == 100
