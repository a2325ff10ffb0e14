"""Tests of the conditions and taints that an unresponsive kubelet's node gets, by upstream's rules."""

from typing import Any

import pytest

from kschedd.api.nodes import Node
from kschedd.api.text.times import stamp
from kschedd.controllers.nodes.node_health import silent_conditions, wanted_taint, with_taint

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def node(conditions: list[Any] | None = None, taints: list[Any] | None = None) -> Node:
    raw = {"kind": "Node", "metadata": {"name": "n", "creationTimestamp": stamp(50)}}
    return Node.from_raw({**raw, "spec": {"taints": taints or []}, "status": {"conditions": conditions or []}})


def test_conditions_of_the_kubelet_become_unknown_and_others_stay() -> None:
    ready, network = {"type": "Ready", "status": "True", "x": "y"}, {"type": "NetworkUnavailable", "status": "False"}
    unknown = {"type": "DiskPressure", "status": "Unknown", "reason": "Mine"}
    found = silent_conditions(node([network, ready, unknown]), 100)
    stopped = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    assert found[:3] == [
        network,
        {**ready, "status": "Unknown", **stopped, "lastTransitionTime": stamp(100)},
        unknown,
    ]
    assert found[3:] == [
        {
            "type": missing,
            "status": "Unknown",
            "lastHeartbeatTime": stamp(50),
            "lastTransitionTime": stamp(100),
            "reason": "NodeStatusNeverUpdated",
            "message": "Kubelet never posted node status.",
        }
        for missing in ("MemoryPressure", "PIDPressure")
    ]


@pytest.mark.parametrize(
    ("status", "key"), [("True", None), ("", None), (None, None), ("False", NOT_READY), ("Unknown", UNREACHABLE)]
)
def test_the_ready_condition_decides_the_taint(status: str | None, key: str | None) -> None:
    assert wanted_taint(status) == key


@pytest.mark.parametrize(
    ("there", "key", "left"),
    [
        pytest.param([], None, None, id="nothing-to-remove"),
        pytest.param([NOT_READY], None, [], id="removed"),
        pytest.param([], NOT_READY, [NOT_READY], id="added"),
        pytest.param([NOT_READY], NOT_READY, None, id="there-already"),
        pytest.param([NOT_READY], UNREACHABLE, [UNREACHABLE], id="replaced"),
        pytest.param([NOT_READY, UNREACHABLE], UNREACHABLE, [UNREACHABLE], id="the-other-removed"),
        pytest.param(["mine", NOT_READY], UNREACHABLE, ["mine", UNREACHABLE], id="others-stay"),
    ],
)
def test_a_node_has_at_most_one_of_the_two_taints(there: list[str], key: str | None, left: list[str] | None) -> None:
    soft = {"key": NOT_READY, "effect": "NoSchedule"}
    write = with_taint(node(taints=[soft, *({"key": each, "effect": "NoExecute"} for each in there)]), key, 100)
    if left is None:
        assert write is None
        return
    assert write is not None
    first, *others = write.patch["spec"]["taints"]
    assert first == soft
    assert [taint["key"] for taint in others] == left
    added = [taint["timeAdded"] for taint in others if "timeAdded" in taint]
    assert added == ([] if key is None or key in there else [stamp(100)])
