"""Tests that in-tree plugins give the same results for a slice of rows as for one row at a time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.cache.table import Ints, Rows
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34
from kschedd.framework.cycle_state import CycleState
from kschedd.scheduling.machine import SchedulingMachine

ZONE, RACK, HOSTNAME = "topology.kubernetes.io/zone", "rack", "kubernetes.io/hostname"
NODES = 600


def cluster() -> SchedulingMachine:
    machine = SchedulingMachine(default_config(version=V1_34), seed=1)
    for number in range(NODES):
        labels = {HOSTNAME: f"n{number}", ZONE: f"z{number % 3}"}
        if number % 7:
            labels[RACK] = f"r{number % 11}"
        taints = [{"key": "spot", "effect": "NoSchedule"}] if number % 5 == 0 else []
        raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}", "labels": labels}}
        status = {"allocatable": {"cpu": str(1 + number % 4), "memory": "8Gi", "pods": "3"}}
        machine.cluster.put(parse({**raw, "spec": {"taints": taints}, "status": status}))
    for number in range(0, NODES, 2):
        machine.cluster.put(parse(pod(f"there{number}", {"nodeName": f"n{number * 7 % NODES}"})))
    return machine


def pod(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": "900m", "memory": "1Gi"}}}]
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "a"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def spread(key: str, action: str) -> dict[str, Any]:
    of = {"matchLabels": {"app": "a"}}
    return {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": action, "labelSelector": of}


def near(key: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}}


HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
SPECS: dict[str, dict[str, Any]] = {
    "plain": {},
    "hard": {"topologySpreadConstraints": [spread(ZONE, HARD), spread(RACK, HARD)]},
    "one domain": {"topologySpreadConstraints": [spread(ZONE, SOFT)]},
    "lacking": {"topologySpreadConstraints": [spread(RACK, SOFT)]},
    "host": {"topologySpreadConstraints": [spread(HOSTNAME, SOFT)]},
    "several": {"topologySpreadConstraints": [spread(ZONE, SOFT), spread(RACK, SOFT), spread(HOSTNAME, SOFT)]},
    "near": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near(RACK)]}}},
    "away": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near(HOSTNAME)]}}},
    "wish": {
        "affinity": {
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": near(RACK)}]
            }
        }
    },
}


def answers(machine: SchedulingMachine, waiting: Pod, rows: Rows) -> dict[str, Ints]:
    """Return the result of each filter and score for these rows."""
    scheduler = machine.schedulers["default-scheduler"]
    table, answer = machine.cluster.table, {}
    state = CycleState()
    assert scheduler.pre_filters.at_once(state, waiting).status is None
    for one in scheduler.profile.filters:
        if one.name not in state.skip_filter and one.vector is not None:
            codes = one.vector.filter_rows(state, waiting, table, rows)
            answer[f"{one.name} filters"] = np.zeros(len(rows), dtype=np.int64) if codes is None else codes
    assert scheduler.ranking.pre_score(state, waiting, rows) is None
    for score in scheduler.profile.scores:
        if score.name not in state.skip_score and score.vector is not None:
            answer[f"{score.name} scores"] = score.vector.score_rows(state, waiting, table, rows)
    return answer


@pytest.mark.parametrize("of", SPECS)
@pytest.mark.parametrize("part", [lambda order: order[100:500], lambda order: order[-300:]], ids=["middle", "end"])
def test_a_part_of_the_order_and_its_copy_are_answered_alike(of: str, part: Callable[[Rows], Rows]) -> None:
    machine = cluster()
    rows, waiting = part(machine.cluster.table.order), Pod.from_raw(pod("new", SPECS[of]))
    assert isinstance(machine.cluster.table.places(rows), slice)
    as_slice, as_rows = answers(machine, waiting, rows), answers(machine, waiting, rows.copy())
    assert "NodeResourcesFit filters" in as_slice
    assert {name: answer.tolist() for name, answer in as_slice.items()} == {
        name: answer.tolist() for name, answer in as_rows.items()
    }


def test_points_of_one_constraint_are_rounded_as_those_of_rows() -> None:
    """Round scores by domain if there are many rows, and row by row if there are fewer rows than domains."""
    machine = cluster()
    waiting = Pod.from_raw(pod("new", SPECS["one domain"]))
    order = machine.cluster.table.order
    many = answers(machine, waiting, order[:300])["PodTopologySpread scores"]
    few = answers(machine, waiting, order[:3])["PodTopologySpread scores"]
    assert few.tolist() == many[:3].tolist()
