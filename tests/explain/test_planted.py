"""A pod stays Pending for a known reason: the verdicts name the plugins that reject it."""

from pathlib import Path
from typing import Any

import pytest

from kschedd.scenarios.commands import ScenarioCluster
from tests.explain.planted import PLANTED, Planted, pod


def planted_cluster(reason: Planted, folder: Path) -> ScenarioCluster:
    cluster = ScenarioCluster(folder)
    answer = cluster.do("apply", reason.manifests)
    assert "error" not in answer, answer
    if reason.name == "not-ready":
        cluster.do("node stop n1", "")
        cluster.do("advance 2m", "")
        assert "created" in cluster.do("apply", pod())
    cluster.do(f"advance {reason.advance}", "")
    return cluster


def rejecting(found: dict[str, Any]) -> list[set[str]]:
    """Return the plugins that reject the pod on each node."""
    before = {found[at]["plugin"] for at in ("gated_by", "pre_filter") if found[at]}
    nodes = [{v["plugin"], *(also["plugin"] for also in v["also"])} - {None} for v in found["verdicts"]]
    return [before | node for node in nodes] or [before]


@pytest.mark.parametrize("reason", PLANTED, ids=lambda reason: reason.name)
def test_the_plugins_that_reject_the_pod_are_named(reason: Planted, tmp_path: Path) -> None:
    cluster = planted_cluster(reason, tmp_path)
    assert cluster.expect("expect pod web running").met is False
    found = cluster.connect().call("scheduler.explain", pod="default/web")
    assert any(node >= set(reason.plugins) for node in rejecting(found)), rejecting(found)
