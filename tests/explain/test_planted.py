"""A pod stays Pending for a known reason: explain names it, and its first suggestion, carried out, places the pod."""

from pathlib import Path
from typing import Any

import pytest

from kschedd.scenarios.commands import ScenarioCluster
from tests.explain.planted import PLANTED, Planted, pod


def planted_cluster(reason: Planted, folder: Path) -> ScenarioCluster:
    cluster = ScenarioCluster(folder)
    said = cluster.do("apply", reason.manifests)
    assert "error" not in said, said
    if reason.name == "not-ready":
        cluster.do("node stop n1", "")
        cluster.do("advance 2m", "")
        assert "created" in cluster.do("apply", pod())
    cluster.do(f"advance {reason.advance}", "")
    return cluster


def explained(cluster: ScenarioCluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.connect().call("scheduler.explain", pod="default/web")
    return found


def causes(found: dict[str, Any]) -> tuple[str, ...]:
    """The plugins that reject the pod where the first suggestion would have it."""
    gate = [found["gated_by"]["plugin"]] if found["gated_by"] else []
    if found["pre_filter"]:
        return (*gate, found["pre_filter"]["plugin"])
    first = (found["suggestions"] or [{"nodes": []}])[0]["nodes"]
    rejected = [verdict for verdict in found["verdicts"] if verdict["node"] in first and verdict["plugin"]]
    one = rejected[:1]
    return (*gate, *(plugin for v in one for plugin in (v["plugin"], *(also["plugin"] for also in v["also"]))))


@pytest.mark.parametrize("reason", PLANTED, ids=lambda reason: reason.name)
def test_the_cause_is_named_and_the_first_suggestion_places_the_pod(reason: Planted, tmp_path: Path) -> None:
    cluster = planted_cluster(reason, tmp_path)
    assert cluster.expect("expect pod web running").met is False
    found = explained(cluster)
    assert set(causes(found)) >= set(reason.plugins), causes(found)
    first = found["suggestions"][0]
    for change in first["commands"]:
        result = cluster.execute(change["command"], change["input"])
        assert result.status == 0, result.text
    placed = cluster.expect(f"expect pod web on node {first['placed_on']} within 10m")
    assert placed.met, (first, placed)
    assert cluster.expect("expect pod web running within 1m").met
