"""Tests of the state of an attempt, and of its clones for what-if evaluations."""

import attrs

from kschedd.framework.cycle_state import CycleState


@attrs.define
class Counted:
    """A value that a what-if evaluation changes."""

    pods: int

    def clone(self) -> "Counted":
        return Counted(self.pods)


def test_a_what_if_evaluation_does_not_change_the_attempt() -> None:
    shared = object()
    state = CycleState({"Counts": Counted(1), "Reads": shared}, {"Fit"}, "NodeName", {"Images"}, resizes=True)
    clone = state.clone()
    assert (clone.data, clone.skip_filter, clone.skip_score) == (state.data, state.skip_filter, state.skip_score)
    assert (clone.already_filtered_by, clone.resizes) == ("NodeName", True)
    assert clone.data["Reads"] is shared
    clone.data["Counts"].pods = 2
    clone.skip_filter.add("Ports")
    clone.skip_score.add("Spread")
    assert state.data["Counts"] == Counted(1)
    assert (state.skip_filter, state.skip_score) == ({"Fit"}, {"Images"})


def test_an_attempt_is_for_a_pending_pod_and_scores_nodes_with_their_pods_by_default() -> None:
    state = CycleState()
    assert not state.resizes
    assert not state.scores_without_pods
