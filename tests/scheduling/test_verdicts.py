"""Tests of messages, counts and combination of the filters' verdicts."""

from typing import Any, ClassVar

import numpy as np
import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, error, unresolvable, unschedulable
from kschedd.scheduling.profiles.plugin_metrics import PluginMetrics
from kschedd.scheduling.profiles.profile import enabled_filter
from kschedd.scheduling.verdicts import EXPLICIT, PASSED, Diagnosis, Verdicts, fit_error

POD = Pod.from_raw({"kind": "Pod", "metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": []}})


class Coded:
    """A plugin whose code 1 means that waiting may help, and 2 that it cannot."""

    name: ClassVar = "Coded"

    def code_status(self, state: Any, pod: Pod, code: int) -> Status:
        return unschedulable("too small") if code == 1 else unresolvable("wrong kind", "wrong place")


def verdicts(*answer: int | Status, default_status: Status | None = None, nodes: int = 6) -> Verdicts:
    """Return verdicts on the nodes n0, n1 and so on: 0 passes, another number is Coded's code, a Status is Spoken's."""
    cluster = SchedulerCache()
    cluster.load(Node.from_raw({"kind": "Node", "metadata": {"name": f"n{number}"}}) for number in range(nodes))
    filters = tuple(
        enabled_filter(place, name, Coded(), True, PluginMetrics()) for place, name in enumerate(("Coded", "Spoken"))
    )
    failed = [PASSED if one == 0 else 0 if isinstance(one, int) else 1 for one in answer]
    codes = [one if isinstance(one, int) else EXPLICIT for one in answer]
    explicit_status = {row: one.by("Spoken") for row, one in enumerate(answer) if isinstance(one, Status)}
    made = Verdicts(
        cluster.table,
        filters,
        CycleState(),
        POD,
        np.arange(len(answer), dtype=np.int64),
        np.array(failed, dtype=np.int16),
        np.array(codes, dtype=np.int64),
        explicit_status,
    )
    if default_status is not None:
        made.default_status = default_status
    return made


def test_each_node_has_the_status_of_the_plugin_that_rejected_it() -> None:
    found = dict(verdicts(0, 1, 2, unschedulable("says so")).by_node())
    assert found["n0"] is None
    answer = {name: (status.plugin, status.reasons) for name, status in found.items() if status is not None}
    assert answer == {
        "n1": ("Coded", ("too small",)),
        "n2": ("Coded", ("wrong kind", "wrong place")),
        "n3": ("Spoken", ("says so",)),
    }


def test_reasons_are_counted_over_codes_and_words_alike() -> None:
    made = verdicts(1, 1, 2, unschedulable("too small"))
    assert made.reasons() == {"too small": 3, "wrong kind": 1, "wrong place": 1}
    assert len(made) == 4


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        pytest.param(Code.UNSCHEDULABLE, [1, 3], id="of-codes-and-words"),
        pytest.param(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [2, 4, 5], id="those-nobody-asked-about-come-last"),
        pytest.param(Code.ERROR, [], id="none"),
    ],
)
def test_rows_with_a_code(code: Code, rows: list[int]) -> None:
    assert verdicts(0, 1, 2, unschedulable("says so")).rows_with(code).tolist() == rows


def test_the_code_of_one_row() -> None:
    made = verdicts(0, 1, unresolvable("never"))
    assert [made.code_on(row) for row in range(4)] == [
        Code.SUCCESS,
        Code.UNSCHEDULABLE,
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    ]


def test_what_came_after_an_error_does_not_count() -> None:
    made = verdicts(1, error("broken"), 2).before_error()
    assert made.rows.tolist() == [0]
    assert made.reasons() == {"too small": 1}


@pytest.mark.parametrize(
    ("diagnosis", "message"),
    [
        pytest.param(
            Diagnosis(6, verdicts(1, 1, 2, 0, 0, 0)),
            "0/6 nodes are available: 1 wrong kind, 1 wrong place, 2 too small.",
            id="reasons-in-the-order-of-their-text",
        ),
        pytest.param(
            Diagnosis(6, verdicts(1, default_status=unresolvable("elsewhere"))),
            "0/6 nodes are available: 1 too small, 5 elsewhere.",
            id="nodes-left-out-have-their-reason-too",
        ),
        pytest.param(
            Diagnosis(6, pre_filter=unschedulable("not at all"), post_filter_message="preemption: no."),
            "0/6 nodes are available: not at all. preemption: no.",
            id="prefilter-speaks-for-all-and-postfilter-last",
        ),
        pytest.param(Diagnosis(6), "0/6 nodes are available:", id="nobody-said-anything"),
    ],
)
def test_the_message_of_a_fit_error(diagnosis: Diagnosis, message: str) -> None:
    assert diagnosis.message == message


def test_plugins_to_be_waited_for_are_told_apart_from_those_that_rejected() -> None:
    diagnosis = Diagnosis(6, verdicts(1, Status(Code.PENDING, ("soon",))))
    diagnosis.add_verdicts()
    assert (diagnosis.unschedulable_plugins, diagnosis.pending_plugins) == ({"Coded"}, {"Spoken"})


def test_counts_are_sorted_as_text_as_upstream_has_it() -> None:
    assert fit_error(30, {"b": 9, "a": 21}) == "0/30 nodes are available: 21 a, 9 b."
