"""Tests of a stepper by itself: where it stops, the user's changes, and the results that it keeps for the user."""

from typing import Any

import numpy as np
import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status, unschedulable
from kschedd.scheduling.debug.breakpoints import BreakpointSpec, StopPoint
from kschedd.scheduling.debug.debugger import Debugger, Intervention, Reentry, SchedulingStop
from kschedd.scheduling.debug.stepper import DROPPED, VETOED, AttemptDropped, Stepper, dropped_status
from kschedd.scheduling.filter_pass import FilterPass
from tests.scheduling.driven import node, pod
from tests.scheduling.test_node_local_plugins import Plugin, a_filter

WEB = Pod.from_raw(pod("web"))
ROWS = np.arange(3)
STOP = SchedulingStop("breakpoint 1", 5.0)


def stepper(debugger: Debugger | None = None, **fields: Any) -> Stepper:
    cache = SchedulerCache()
    cache.load([Node.from_raw(node(name)) for name in ("a", "b", "c")])
    return Stepper(debugger or Debugger(dict), WEB, 1, cache.table, 1, **fields)


def stops(work: Any) -> list[StopPoint]:
    return list(work)


def passed(one: Stepper, points: int) -> list[int]:
    """Let the attempt pass this number of stop points; return the numbers of those at which it stopped."""
    return [number for number in range(1, points + 1) if stops(one.before("filter", f"F{number}"))]


def test_an_attempt_without_a_reason_to_stop_passes_its_stop_points() -> None:
    one = stepper()
    assert passed(one, 3) == []
    assert one.points == 3


def test_each_stop_point_describes_its_place() -> None:
    places = {
        "before": lambda one: one.before("filter", "F", ROWS),
        "rejected": lambda one: one.rejected("filter", "F", ROWS),
        "waits": lambda one: one.waits("P", "a"),
        "ended": lambda one: one.ended("scheduled", "a"),
    }
    found = {}
    for name, place in places.items():
        debugger = Debugger(dict)
        debugger.add(BreakpointSpec(outcome={"before": "", "waits": "waiting", "ended": "scheduled"}.get(name, name)))
        [at] = stops(place(stepper(debugger)))
        assert (at.cycle, at.pod, at.attempt) == (1, WEB, 1)
        found[name] = at.point, at.plugin, at.outcome, at.node, at.rows is ROWS
    assert found == {
        "before": ("filter", "F", "", "", True),
        "rejected": ("filter", "F", "rejected", "", True),
        "waits": ("permit", "P", "waiting", "a", False),
        "ended": ("", "", "scheduled", "a", False),
    }


def test_changes_are_kept_by_the_number_of_the_stop_point() -> None:
    one = stepper()
    one.intervene(force := Intervention("force", "a"))
    passed(one, 2)
    one.intervene(veto := Intervention("veto", "b"))
    one.intervene(score := Intervention("score", "c", "S", 70))
    assert one.made == {0: [force], 2: [veto, score]}
    assert one.changed == {"forced": "a", "vetoed": {"b"}, "replaced": {("S", "c"): 70}}


def test_a_veto_releases_a_forced_node_but_no_other() -> None:
    one = stepper()
    one.intervene(Intervention("force", "a"))
    one.intervene(Intervention("veto", "b"))
    assert one.forced == "a"
    one.intervene(Intervention("veto", "a"))
    assert (one.forced, one.vetoed) == ("", {"a", "b"})


def test_an_unknown_change_is_rejected() -> None:
    with pytest.raises(ValueError, match="'push' is no intervention"):
        stepper().intervene(Intervention("push", "a"))


def test_a_dropped_attempt_ends_at_its_next_stop_point() -> None:
    one = stepper()
    one.intervene(Intervention("drop"))
    with pytest.raises(AttemptDropped):
        stops(one.before("filter", "F"))
    assert dropped_status() == Status(Code.ERROR, (DROPPED,))


def test_a_repeated_attempt_gets_the_changes_of_the_original_one_at_the_same_places() -> None:
    force, veto = Intervention("force", "a"), Intervention("veto", "b")
    one = stepper(planned={2: [force], 4: [veto]})
    assert passed(one, 3) == []
    assert (one.forced, one.vetoed) == ("a", set())
    passed(one, 1)
    assert one.vetoed == {"b"}
    assert one.made == {2: [force], 4: [veto]}


def test_a_repeated_attempt_stops_where_the_original_one_stopped_with_its_changes() -> None:
    force = Intervention("force", "a")
    debugger = Debugger(dict)
    made = debugger.add(BreakpointSpec(plugin="F2"))
    debugger.reentry = Reentry(WEB.uid, 3, {}, STOP)
    one = stepper(debugger, planned={3: [force]}, reenters_at=3)
    stopped = []
    for number in range(1, 4):
        for at in one.before("filter", f"F{number}"):
            stopped.append((at.plugin, one.forced))
    assert stopped == [("F3", "a")], "the changes can be seen at the stop"
    assert one.made == {3: [force]}
    assert debugger.stop is not None
    assert (debugger.stop.why, debugger.stop.since_s) == (STOP.why, STOP.since_s)
    assert made.hits == 0, "the breakpoints of the places before have counted the original attempt"


def test_after_its_reentry_a_repeated_attempt_stops_as_any_other() -> None:
    debugger = Debugger(dict)
    debugger.add(BreakpointSpec(plugin="F3"))
    debugger.reentry = Reentry(WEB.uid, 1, {}, STOP)
    one = stepper(debugger, reenters_at=1)
    assert passed(one, 4) == [1, 3]


@pytest.mark.parametrize("watching", [False, True])
def test_the_numbers_of_stop_points_do_not_depend_on_breakpoints(watching: bool) -> None:
    debugger = Debugger(dict)
    if watching:
        debugger.add(BreakpointSpec(outcome="rejected"))
    one = stepper(debugger)
    found = stops(one.filtered("F", ROWS, ROWS[:1]))
    assert one.points == 1
    assert [at.rows.tolist() for at in found if at.rows is not None] == ([[1, 2]] if watching else [])
    assert stops(one.filtered("F", ROWS, ROWS)) == [], "nothing was rejected"
    assert one.points == 1


def test_a_repeated_attempt_reenters_after_a_rejection_and_gets_changes_there() -> None:
    debugger = Debugger(dict)
    debugger.reentry = Reentry(WEB.uid, 2, {}, STOP)
    one = stepper(debugger, planned={1: [Intervention("force", "a")]}, reenters_at=2)
    assert stops(one.filtered("F1", ROWS, ROWS[:2])) == []
    assert one.forced == "a"
    [at] = stops(one.filtered("F2", ROWS[:2], ROWS[:1]))
    assert (at.plugin, at.outcome) == ("F2", "rejected")


def filtering(one: Stepper) -> FilterPass:
    done = FilterPass(ROWS)
    one.filtering(done, {2: unschedulable("own").by("F1")}, (a_filter(Plugin(), 0), a_filter(Plugin(), 1)))
    return done


def test_the_verdicts_during_a_search() -> None:
    one = stepper()
    assert (one.verdicts_so_far(), one.nodes_left()) == (None, None)
    done = filtering(one)
    assert one.verdicts_so_far() is None, "PreFilter has not finished"
    one.state = CycleState()
    done.reject(1, np.array([0, 7, 0]))
    so_far = one.verdicts_so_far()
    assert so_far is not None
    assert so_far.failed.tolist()[1] == 1
    assert (so_far.codes.tolist()[1], so_far.explicit_status) == (7, {2: unschedulable("own").by("F1")})
    left = one.nodes_left()
    assert left is not None
    assert left.tolist() == [0, 2]
    done.reject(1, np.array([1, 0]))
    assert so_far.failed.tolist().count(1) == 1, "the verdicts do not change later"
    one.scoring = ROWS[2:]
    left = one.nodes_left()
    assert left is not None
    assert left.tolist() == [2]


def test_the_verdicts_of_a_complete_search_replace_those_of_the_search_in_progress() -> None:
    one = stepper(state=CycleState())
    filtering(one)
    one.verdicts = before = one.verdicts_so_far()
    assert one.verdicts_so_far() is before
    filtering(one)
    assert one.verdicts is None, "of the earlier search"


def test_the_statuses_of_vetoed_nodes() -> None:
    one = stepper(vetoed={"b", "c", "unknown"})
    found = one.vetoes(ROWS[:2])
    assert list(found) == [1]
    assert (found[1].code, found[1].reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (VETOED,))


def test_replaced_scores_count_in_the_totals() -> None:
    one = stepper(scoring=ROWS[:2])
    one.scored("S", 2, np.array([1, 2]), np.array([10, 20]))
    one.scored("T", 1, np.array([1, 2]), np.array([5, 5]))
    assert one.totals().tolist() == [25, 45]
    for change in (Intervention("score", "a", "S", 100), Intervention("score", "unknown", "T", 100)):
        one.intervene(change)
    assert one.normalized("S").tolist() == [100, 20]
    assert one.normalized("T").tolist() == [5, 5]
    assert one.totals().tolist() == [205, 45]
    assert (one.scores["S"].weight, one.scores["S"].raw.tolist()) == (2, [1, 2])
