"""Tests of the REST API if another program replaces the kubelets or the controllers."""

from collections.abc import Collection

import pytest

from kschedd.controllers.parts import PARTS, Part, admission_without
from kschedd.store.admission.chain import Admission
from tests.apiserver.asking import PODS, asking, node, pod


@pytest.mark.parametrize(
    ("without", "tainted"),
    [
        pytest.param((), False, id="a-simulated-node-is-ready-at-once"),
        pytest.param(("scheduler",), False, id="a-scheduler-of-ones-own-finds-ready-nodes"),
        pytest.param(("kubelets",), True, id="nobody-has-said-that-the-node-is-ready"),
        pytest.param(("controllers",), True, id="nobody-takes-the-taint-away"),
        pytest.param(PARTS, True, id="the-api-server-alone"),
    ],
)
async def test_a_new_node_bears_the_taint_not_ready(without: Collection[Part], tainted: bool) -> None:
    async with asking(admission=Admission(admission_without(without)), without=without) as api:
        made = await api.create("/api/v1/nodes", node("n1"))
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert (made["spec"].get("taints") or []) == ([taint] if tainted else [])


@pytest.mark.parametrize(
    ("without", "status", "words"),
    [
        pytest.param((), 200, "ready to serve", id="simulated"),
        pytest.param(("kubelets",), 500, '"https://n1:10250/containerLogs/default/a/main?tailLines=1"', id="left-out"),
    ],
)
async def test_a_log_is_asked_of_the_kubelet(without: Collection[Part], status: int, words: str) -> None:
    async with asking(without=without) as api:
        manifest = pod("a", annotations={"kschedd.io/logs": "ready to serve"})
        await api.create(PODS, {**manifest, "spec": {**manifest["spec"], "nodeName": "n1"}})
        answered = await api.ask("GET", f"{PODS}/a/log?container=main&tailLines=1")
    assert answered.status == status
    text = answered.body.decode() if status == 200 else answered.json["message"]
    assert words in text
