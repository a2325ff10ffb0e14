"""Tests of bindings: which ones are rejected, and the pod after a binding."""

from typing import Any

import attrs
import pytest

from kschedd.api.pods import Pod
from kschedd.store.binding import bound, refuse_binding
from kschedd.store.errors import ApiError, Conflict, Invalid

AT = "2026-01-01T00:00:00Z"
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": AT}


def pod(*, status: Any = None, spec: Any = None, **meta: Any) -> Pod:
    meta = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "1", "labels": {"app": "web"}, **meta}
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [], **(spec or {})}}
    return Pod.from_raw({**raw, **({} if status is None else {"status": status})})


def test_a_pod_without_a_node_can_be_bound() -> None:
    for uid in ("", "u"):
        refuse_binding(pod(), "n1.example.com", uid)


@pytest.mark.parametrize(
    ("to_bind", "node", "uid", "error", "why"),
    [
        pytest.param(pod(), "", "", Invalid, "target.name: Required value", id="no-node"),
        pytest.param(pod(), "N_1", "", Invalid, 'target.name: Invalid value: "N_1": a lowercase RFC 1123', id="name"),
        pytest.param(
            pod(), "n", "v", Conflict, "Precondition failed: UID in precondition: v, UID in object meta: u", id="uid"
        ),
        pytest.param(
            pod(deletionTimestamp=AT, spec=None),
            "n",
            "",
            Conflict,
            "pod web is being deleted, cannot be assigned to a host",
            id="being-deleted",
        ),
        pytest.param(
            pod(spec={"nodeName": "m"}), "n", "", Conflict, 'pod web is already assigned to node "m"', id="assigned"
        ),
        pytest.param(
            pod(spec={"schedulingGates": [{"name": "g"}]}),
            "n",
            "",
            Conflict,
            "pod web has non-empty .spec.schedulingGates",
            id="gated",
        ),
    ],
)
def test_other_bindings_are_rejected(to_bind: Pod, node: str, uid: str, error: type[ApiError], why: str) -> None:
    with pytest.raises(error) as refused:
        refuse_binding(to_bind, node, uid)
    assert why in str(refused.value)
    if isinstance(refused.value, Conflict):
        assert refused.value.subresource == ("" if uid else "binding")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, {"conditions": [SCHEDULED]}, id="no-status"),
        pytest.param(
            {"phase": "Pending", "qosClass": "Burstable"},
            {"phase": "Pending", "qosClass": "Burstable", "conditions": [SCHEDULED]},
            id="unchanged-since-its-creation",
        ),
        pytest.param(
            {"phase": "Running", "qosClass": "Burstable"},
            {"phase": "Running", "qosClass": "Burstable", "conditions": [SCHEDULED]},
            id="another-phase",
        ),
        pytest.param(
            {"phase": "Pending", "reason": "x"},
            {"phase": "Pending", "reason": "x", "conditions": [SCHEDULED]},
            id="reason",
        ),
        pytest.param(
            {
                "phase": "Pending",
                "nominatedNodeName": "m",
                "conditions": [{"type": "PodScheduled", "status": "False"}, {"type": "Other", "status": "True"}],
            },
            {"phase": "Pending", "conditions": [SCHEDULED, {"type": "Other", "status": "True"}]},
            id="condition-and-nomination",
        ),
    ],
)
def test_a_bound_pod_has_its_node_and_its_condition(before: Any, after: Any) -> None:
    pending = pod(status=before)
    found = bound(pending, "n", 5, AT)
    assert found.raw["status"] == after
    read = Pod.from_raw(found.raw)
    assert attrs.asdict(attrs.evolve(read, signature=found.signature), recurse=False) == attrs.asdict(
        found, recurse=False
    )
    assert (found.node_name, found.resource_version, found.signature) == ("n", 5, pending.signature)
    assert pending.raw["spec"].get("nodeName") is None
