"""Tests of verbs in a fork, and in a cluster whose time differs from the machine's."""

from pathlib import Path

import pytest

from kschedd.scenarios.commands import ScenarioCluster
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.table import run_words

MACHINE_S = 2_000_000_000.0  # differs much from the cluster's time
CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: node-a}
status: {allocatable: {cpu: 8, memory: 32Gi, pods: 110}}
---
apiVersion: v1
kind: Pod
metadata: {name: stays}
spec: {nodeName: node-a, terminationGracePeriodSeconds: 30, containers: [{name: c, image: app}]}
"""


def typed(scenario: ScenarioCluster, line: str) -> str:
    answer: list[str] = []
    session = VerbSession(
        scenario.connect,
        answer.append,
        answer.append,
        now=lambda: MACHINE_S,
        sleep=lambda seconds: scenario.cluster.engine.advance(scenario.cluster.engine.now + seconds),
        cluster_time=lambda: scenario.cluster.engine.now,
    )
    run_words(session, line.split())
    return "".join(answer)


def test_ages_in_a_fork_are_of_its_own_time() -> None:
    scenario = ScenarioCluster(Path())
    scenario.do("apply -f -", CLUSTER)
    for line in ("fork f", "in f advance 10m", "in f run late --image=app", "in f advance 2m"):
        typed(scenario, line)
    pods = typed(scenario, "in f get pods").splitlines()
    assert [line.split()[-1] for line in pods] == ["AGE", "2m", "12m"]
    assert typed(scenario, "in f decisions").splitlines()[1].startswith("2m ")
    assert typed(scenario, "get pods").split()[-1] == "0s"


def test_a_drain_skips_pods_that_are_deleted_for_long_by_the_clusters_time() -> None:
    scenario = ScenarioCluster(Path())
    scenario.do("apply -f -", CLUSTER)
    answer = typed(scenario, "drain node-a --force --skip-wait-for-delete-timeout=60")
    assert "skipping" not in answer
    assert "pod/stays evicted" in answer


@pytest.mark.parametrize("line", ["record start x.rec", "profile", "stop"])
def test_what_is_about_the_daemon_is_refused_in_a_fork(line: str) -> None:
    scenario = ScenarioCluster(Path())
    typed(scenario, "fork f")
    assert f"error: {line.split()[0]} concerns the daemon and cannot run in a fork" in typed(scenario, f"in f {line}")
