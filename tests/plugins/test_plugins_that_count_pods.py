"""Tests that plugins which count pods keep the rules of `verdict_key` and `repeats_while_unchanged`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.domain_counter import FEW_DOMAINS
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import SKIP, Status
from tests.scheduling.test_evaluation import scheduler

_ZONE = "topology.kubernetes.io/zone"
_ZONES = ("a", "b", "c", "")  # "": without the label
_NODES = 8


def _spread(skew: int) -> dict[str, Any]:
    return {
        "maxSkew": skew,
        "topologyKey": _ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }


def _required(kind: str, app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": _ZONE}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


_SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "spread": {"topologySpreadConstraints": [_spread(1)]},
    "spread-twice": {"topologySpreadConstraints": [_spread(1), {**_spread(2), "topologyKey": "rack"}]},
    "near-its-like": _required("podAffinity", "x"),
    "near-others": _required("podAffinity", "y"),
    "away": _required("podAntiAffinity", "x"),
    "softly-spread": {"topologySpreadConstraints": [{**_spread(1), "whenUnsatisfiable": "ScheduleAnyway"}]},
}


def _node(number: int) -> Node:
    zone = _ZONES[number % len(_ZONES)]
    labels = {"rack": f"r{number % 3}"} | ({_ZONE: zone} if zone else {})
    return Node.from_raw({"kind": "Node", "metadata": {"name": f"n{number}", "labels": labels}})


def _pod(name: str, spec: str, app: str, on: str = "") -> Pod:
    meta = {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}}
    containers = [{"name": "c", "image": "i"}]
    raw = {"kind": "Pod", "metadata": meta, "spec": {**_SPECS[spec], "containers": containers}}
    return Pod.from_raw(raw | ({"spec": {**raw["spec"], "nodeName": on}} if on else {}))


_apps = st.sampled_from(["x", "y"])
_comes = st.tuples(st.sampled_from(sorted(_SPECS)), _apps, st.integers(0, _NODES - 1))


@given(st.lists(st.one_of(_comes, st.integers(0, 30)), max_size=25), st.sampled_from(sorted(_SPECS)), _apps)
def test_equal_keys_mean_equal_codes_and_who_skips_goes_on_to(changes: list[Any], spec: str, app: str) -> None:
    cluster = SchedulerCache()
    for number in range(_NODES):
        cluster.put_node(_node(number))
    profile = scheduler(cluster, True).profile
    plugins = [one for one in profile.filters if one.name in ("PodTopologySpread", "InterPodAffinity")]
    assert len(plugins) == 2
    there: list[Pod] = []
    known: dict[Any, list[int]] = {}
    skips: dict[Any, list[str]] = {}
    for number, change in enumerate(changes):
        if not isinstance(change, int):
            own, whose, node = change
            there.append(_pod(f"p{number}", own, whose, f"n{node}"))
            cluster.put_pod(there[-1])
        elif there:
            cluster.remove_pod(there.pop(change % len(there)))
        pod, state = _pod("new", spec, app), CycleState()
        for one in plugins:
            plugin: Any = one.plugin
            # Adding or removing a pod with terms changes the version of a part of the cluster.
            since = one.name, cluster.versions.parts_at
            skipped = skips.setdefault(since, plugin.repeats_while_unchanged(pod, cluster))
            answer = plugin.pre_filter(state, pod, cluster)
            scores = plugin.pre_score(state, pod, cluster, cluster.table.order)
            assert "pre_filter" not in skipped or answer is SKIP
            assert "pre_score" not in skipped or scores is SKIP
            if isinstance(answer, Status):
                continue
            codes = plugin.filter_rows(state, pod, cluster.table, cluster.table.order).tolist()
            assert known.setdefault((*since, plugin.verdict_key(pod, state)), codes) == codes


@pytest.mark.parametrize(("spec", "name"), [("spread", "PodTopologySpread"), ("near-others", "InterPodAffinity")])
def test_of_many_domains_there_is_no_key(spec: str, name: str) -> None:
    cluster = SchedulerCache()
    for number in range(FEW_DOMAINS):
        labels = {_ZONE: f"z{number}"}
        cluster.put_node(Node.from_raw({"kind": "Node", "metadata": {"name": f"n{number}", "labels": labels}}))
    plugin: Any = next(one.plugin for one in scheduler(cluster, True).profile.filters if one.name == name)
    state = CycleState()
    pod = _pod("new", spec, "x")
    assert plugin.pre_filter(state, pod, cluster) is None
    assert plugin.verdict_key(pod, state) is None
