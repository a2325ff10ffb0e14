"""Tests that a recording's values are read as they were written, with instances of the permitted classes only."""

from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.extenders.calls import ExtenderFailure
from kschedd.extenders.messages import FilterResult, MetaVictims
from kschedd.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedd.framework.faults import PluginTimeout
from kschedd.framework.interface import PostFilterResult, PreFilterResult
from kschedd.framework.status import Code, Status
from kschedd.framework.writes import Bind, MergePatch, Plan
from kschedd.recording.values import Ready, UnreadableValue, pack, unpack
from kschedd.values import frozen

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(), inner)
        | st.frozensets(st.text() | st.integers())
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    assert unpack(pack(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        Status(Code.WAIT, ("later", "perhaps"), "Gang"),
        (Status(Code.WAIT), 2.5),
        PreFilterResult(frozenset({"b", "a"}), already_filtered=True),
        Plan((Bind("ns", "web", "u1", "n1"),), timeout_s=3.0, timed_out=Status(Code.ERROR, ("late",))),
        FilterResult(("n1",), {"n2": "no"}, {}, ""),
        {"n1": MetaVictims(("u1",), 2)},
        [ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.DELETE)],
        QueueingHint.QUEUE_SKIP,
        PostFilterResult(Status(Code.SUCCESS), "n1"),
        1 << 80,
    ],
    ids=lambda value: type(value).__name__,
)
def test_answers_come_back_as_they_were(value: Any) -> None:
    assert unpack(pack(value)) == value


def test_arrays_writes_and_faults_come_back_as_they_were() -> None:
    assert unpack(pack(np.array([3, -1], dtype=np.int64))).tolist() == [3, -1]
    patch = unpack(pack(MergePatch("Pod", "ns", "web", frozen({"a": {"b": [1]}}))))
    assert (patch.kind, patch.name, patch.patch) == ("Pod", "web", {"a": {"b": [1]}})
    late = unpack(pack(PluginTimeout("Slow", "filter", "too late")))
    assert (type(late), late.plugin, late.why) == (PluginTimeout, "Slow", "too late")
    assert str(unpack(pack(ExtenderFailure("down")))) == "down"


def test_code_is_never_in_it() -> None:
    plan = unpack(pack(Plan(ready=lambda cluster: None)))
    assert isinstance(plan.ready, Ready)
    with pytest.raises(UnreadableValue):
        plan.ready(None)


def test_a_class_that_is_not_known_is_refused_both_ways() -> None:
    with pytest.raises(TypeError, match="object"):
        pack(object())
    with pytest.raises(UnreadableValue):
        unpack(msgpack.packb(msgpack.ExtType(3, msgpack.packb(["Path", "/etc/passwd"]))))
    with pytest.raises(UnreadableValue):
        unpack(b"\xc1")
