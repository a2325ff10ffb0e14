"""Tests that cached parsed conditions do not change the result for a pod's status."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.schemas.check import check_status_schema
from kschedd.api.schemas.codec import decoded, encoded
from kschedd.api.schemas.schema import Fields, type_named
from kschedd.registry.defaults import with_pod_ips
from kschedd.store.patches import typed_status as typed
from kschedd.store.store import Store
from tests.store.manifests import Clock, pod

FIELDS = type_named("PodStatus")
assert isinstance(FIELDS, Fields)
_texts = st.sampled_from(["", "True", "Ready", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+01:00"])
_conditions = st.dictionaries(
    st.sampled_from(["type", "status", "lastProbeTime", "lastTransitionTime", "reason", "observedGeneration", "other"]),
    st.one_of(st.none(), _texts, st.sampled_from([0, 1, True])),
    max_size=4,
)
_statuses = st.dictionaries(
    st.sampled_from(["phase", "podIP", "podIPs", "startTime", "nominatedNodeName", "other"]),
    st.one_of(st.none(), _texts, st.just([]), st.just([{"ip": "1.2.3.4"}])),
    max_size=4,
)


@pytest.fixture(autouse=True)
def _forgets_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed, "_MOST", 2)


def decoded_and_encoded(status: Any) -> Any:
    return typed.typed_status("Pod", status, FIELDS, with_pod_ips)


def alone(status: Any) -> Any:
    """Return the pod status that the plain rule computes, typed and encoded, and its faults."""
    if faults := check_status_schema("Pod", status):
        return {}, {}, faults
    typed = with_pod_ips(decoded(status, FIELDS))
    return typed, encoded(typed, FIELDS), []


def shown(forms: Any) -> Any:
    """Return the value with its order of fields, and without the distinction between equal values of two types."""
    typed, printed, faults = forms
    return repr(typed), repr(printed), [str(fault) for fault in faults]


@given(
    st.lists(st.one_of(st.none(), _conditions), max_size=2),
    st.lists(st.tuples(_statuses, st.booleans()), min_size=2, max_size=4),
)
def test_known_conditions_change_nothing_of_what_a_status_comes_to(conditions: Any, others: Any) -> None:
    for other, first in others:
        status = {"conditions": conditions, **other} if first else {**other, "conditions": conditions}
        assert shown(decoded_and_encoded(status)) == shown(alone(status))


@pytest.mark.parametrize("status", [None, "x", [], {"conditions": None}, {"conditions": {}}, {"conditions": [2**70]}])
def test_what_is_no_status_has_the_faults_that_it_has_alone(status: Any) -> None:
    assert shown(decoded_and_encoded(status)) == shown(alone(status))


def test_pods_that_are_told_the_same_conditions_share_them() -> None:
    store = Store(now=Clock())
    for number in range(3):
        made = store.create(pod(f"p{number}"))
        reported = {"phase": "Running", "podIP": f"1.2.3.{number}", "conditions": [{"type": "Ready", "status": "True"}]}
        store.merge_patch("Pod", made.namespace, made.name, {"status": reported}, subresource="status")
    held = [each.status["conditions"] for each in store.list("Pod")]
    assert held[0] == [{"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}]
    assert held[1] is held[0]
    assert held[2] is held[0]
