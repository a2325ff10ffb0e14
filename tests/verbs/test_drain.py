"""Tests of drain on a cluster in virtual time that tests/scenarios/drain.txt (its flags and messages) cannot cover."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kschedd.scenarios.commands import ScenarioCluster
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.nodes.drain_blockers import blockers
from kschedd.verbs.table import run_words

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: node-a}
status: {allocatable: {cpu: 8, memory: 32Gi, pods: 110}}
---
apiVersion: v1
kind: Pod
metadata: {name: db-1, labels: {app: db}}
spec: {nodeName: node-a, terminationGracePeriodSeconds: 0, containers: [{name: c, image: app}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, labels: {app: web}}
spec: {nodeName: node-a, terminationGracePeriodSeconds: 0, containers: [{name: c, image: app}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep-db}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: db}}}
"""


@pytest.fixture
def scenario() -> ScenarioCluster:
    made = ScenarioCluster(Path())
    made.do("apply -f -", CLUSTER)
    return made


def typed(scenario: ScenarioCluster, sleep: Callable[[float], None], line: str) -> tuple[int, str, str]:
    out: list[str] = []
    err: list[str] = []
    session = VerbSession(
        scenario.connect,
        out.append,
        err.append,
        now=lambda: scenario.cluster.engine.now,
        sleep=sleep,
        program="kschedd ",
    )
    return run_words(session, line.split()), "".join(out), "".join(err)


def test_ctrl_c_leaves_the_node_cordoned_and_says_what_is_left(scenario: ScenarioCluster) -> None:
    heard: list[str] = []

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    def run() -> None:
        session = VerbSession(
            scenario.connect,
            heard.append,
            heard.append,
            now=lambda: scenario.cluster.engine.now,
            sleep=interrupted,
            program="kschedd ",
        )
        run_words(session, "drain node-a --force".split())

    with pytest.raises(KeyboardInterrupt):
        run()
    answer = "".join(heard)
    assert answer.endswith(
        "pod/web-1 evicted\n"
        "interrupted: node/node-a not drained, and still cordoned; the evictions made so far stand\n"
        "`kschedd drain node-a` goes on, `kschedd uncordon node-a` lets pods onto it again\n"
    )
    store = scenario.cluster.engine.store
    assert store.get("Node", "", "node-a").spec["unschedulable"] is True
    assert store.find("Pod", "default", "web-1") is None
    assert store.find("Pod", "default", "db-1") is not None


def test_a_budget_that_allows_more_meanwhile_lets_the_drain_through(scenario: ScenarioCluster) -> None:
    engine = scenario.cluster.engine
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        engine.advance(engine.now + seconds)
        if len(slept) == 2:
            scenario.do(
                'patch pdb keep-db --type merge -p \'{"spec": {"maxUnavailable": null, "minAvailable": 0}}\'', ""
            )

    code, out, err = typed(scenario, sleep, "drain node-a --force")
    assert code == 0, err
    assert slept == [5.0, 5.0]
    assert out.splitlines()[-3:] == ["evicting pod default/db-1", "pod/db-1 evicted", "node/node-a drained"]
    assert err.count("(will retry after 5s)") == 2


def test_a_drain_without_end_ends_in_a_scenario(scenario: ScenarioCluster) -> None:
    answer = scenario.do("drain node-a --force", "")
    assert answer.endswith("error: it has waited for 1h0m0s of virtual time: longer than a scenario waits\n")


class Canned:
    """A daemon with a PodDisruptionBudget and its pods, or without them."""

    def __init__(self, budget: dict[str, Any] | None, *pods: dict[str, Any]) -> None:
        self.budget, self.pods = budget, list(pods)

    def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        if method == "objects.list":
            return {"items": self.pods}
        if self.budget is None:
            raise RpcError("not_found", "gone")
        return {"object": self.budget}

    def subscribe(self, method: str, /, **named: Any) -> Any:
        raise AssertionError("nobody watches here")


def member(name: str, phase: str = "Running", **conditions: str) -> dict[str, Any]:
    stated = [
        {"type": type_, "status": status, "message": "0/3 nodes fit. And so on."}
        for type_, status in conditions.items()
    ]
    return {"metadata": {"name": name}, "status": {"phase": phase, "conditions": stated}}


BUDGET = {"spec": {"selector": {"matchLabels": {"a": "b"}}}}
FAILED = {"type": "DisruptionAllowed", "reason": "SyncFailed", "message": "no scale"}


@pytest.mark.parametrize(
    ("daemon", "refusal", "lines"),
    [
        pytest.param(Canned(None), {"why": "w", "budget": "b"}, ["w"], id="a-budget-that-is-gone-meanwhile"),
        pytest.param(Canned(None), None, [], id="an-error-without-data"),
        pytest.param(
            Canned(BUDGET, member("p", "Pending", PodScheduled="False"), member("q", Ready="True")),
            {"why": "w", "budget": "b"},
            ["w", "pod/p is Pending: 0/3 nodes fit."],
            id="a-pod-that-fits-nowhere",
        ),
        pytest.param(
            Canned(BUDGET, *(member(f"p{i}", Ready="False") for i in range(5))),
            {"why": "w", "budget": "b"},
            ["w", *(f"pod/p{i} is Running and not ready" for i in range(3)), "and 2 more of its pods are not ready"],
            id="more-than-are-named",
        ),
        pytest.param(
            Canned({**BUDGET, "status": {"conditions": [FAILED]}}, member("p")),
            {"why": "w", "budget": "b"},
            ["w", "its status could not be computed: no scale"],
            id="a-status-that-could-not-be-computed",
        ),
        pytest.param(
            Canned(None),
            {"budgets": ["b", "c"]},
            ["they are b, c: one of them has to go, or to select other pods"],
            id="two-budgets",
        ),
    ],
)
def test_what_keeps_a_pod_is_told(daemon: Canned, refusal: Any, lines: list[str]) -> None:
    assert blockers(daemon, "default", refusal) == lines
