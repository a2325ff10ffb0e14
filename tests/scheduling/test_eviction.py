"""Tests of evictions that are rejected, and of evictions of pods that no longer exist."""

import pytest

from kschedd.framework.status import Status, error
from kschedd.framework.writes import Delete, MergePatch, Write
from kschedd.scheduling.preemption.eviction import EvictionOutcome, WrittenPod, evict


def clear(name: str) -> MergePatch:
    return MergePatch("Pod", "a", name, {"metadata": {"uid": f"u-{name}"}, "status": {"nominatedNodeName": None}}, "s")


def victim(name: str) -> list[Write]:
    tell = MergePatch("Pod", "a", name, {"metadata": {"uid": f"u-{name}"}, "status": {"conditions": []}}, "s")
    return [tell, Delete("Pod", "a", name, f"u-{name}")]


@pytest.mark.parametrize(
    ("writes", "there", "refused", "why"),
    [
        pytest.param([*victim("p"), *victim("q")], "pq", "", "", id="evicted-all-it-waits-for-their-end"),
        pytest.param([*victim("p"), *victim("q")], "q", "", "", id="one-was-gone-the-others-end-wakes-it"),
        pytest.param([*victim("p"), *victim("q")], "", "", "all victims were gone already", id="all-were-gone"),
        pytest.param([*victim("p"), *victim("q")], "pq", "q", "no", id="a-refusal-is-told"),
        pytest.param([clear("o"), *victim("p")], "p", "", "", id="a-nomination-that-is-gone-needs-no-clearing"),
        pytest.param([clear("o"), *victim("p")], "op", "o", "no", id="a-nomination-that-cannot-be-cleared-is-told"),
        pytest.param([], "", "", "", id="nothing-to-write"),
    ],
)
def test_what_makes_a_preemptor_come_back_at_once(writes: list[Write], there: str, refused: str, why: str) -> None:
    uids = {name: f"u-{name}" for name in there}
    done: list[str] = []

    def carry_out(write: Write) -> Status | None:
        assert isinstance(write, MergePatch | Delete)
        if write.name not in uids or write.name in refused:
            return error("no")
        done.append(write.name)
        if isinstance(write, Delete):
            del uids[write.name]
        return None

    failure = evict(writes, carry_out, lambda _, name: uids.get(name))
    assert (failure.message if failure is not None else "") == why
    assert set(done) == set(there) - set(refused)


@pytest.mark.parametrize("refused", [MergePatch, Delete])
def test_after_a_refusal_the_other_victims_stay(refused: type[Write]) -> None:
    requests: list[str] = []

    def carry_out(write: Write) -> Status | None:
        assert isinstance(write, MergePatch | Delete)
        requests.append(write.name)
        return error("no") if write.name == "p" and isinstance(write, refused) else None

    writes = [clear("o"), *victim("p"), *victim("q")]
    assert evict(writes, carry_out, lambda _, name: f"u-{name}") is not None
    assert requests == (["o", "p"] if refused is MergePatch else ["o", "p", "p"])


def test_another_pod_of_the_name_is_not_the_victim() -> None:
    assert evict(victim("p"), lambda _: error("conflict"), lambda *_: "u-another") is not None
    both = [*victim("p"), *victim("q")]
    answers = {"p": error("conflict"), "q": None}
    uids = {"p": "u-another", "q": "u-q"}
    assert evict(both, lambda w: answers[getattr(w, "name", "")], lambda _, name: uids[name]) is None


@pytest.mark.parametrize(("gone_fails", "requeued"), [(True, True), (False, False)], ids=["up-to-1.34", "since-1.35"])
def test_a_preemption_whose_victims_were_all_gone(gone_fails: bool, requeued: bool) -> None:
    failure = evict(victim("p"), lambda _: error("not found"), lambda *_: None, gone_fails=gone_fails)
    assert (failure is not None) is requeued


def test_a_victim_that_was_gone_before_its_condition_is_not_deleted() -> None:
    tell, delete = victim("p")
    outcome = EvictionOutcome()
    assert outcome.failure is None
    outcome.note(tell, error("not found"), True)
    assert (outcome.wants(tell), outcome.wants(victim("q")[1]), outcome.wants(delete)) == (True, True, False)
    assert outcome.failure == error("all victims were gone already")
    outcome.note(victim("q")[1], None, False)
    assert outcome.failure is None, "the end of the other victim wakes the preemptor"


def test_the_pod_of_a_write_is_looked_up_by_name_and_uid() -> None:
    tell, delete = victim("p")
    anybody = MergePatch("Pod", "a", "p", {"status": {}}, "status")
    written = [EvictionOutcome.asks_about(write) for write in (tell, delete, anybody)]
    assert written == [WrittenPod("a", "p", "u-p"), WrittenPod("a", "p", "u-p"), WrittenPod("a", "p", "")]
    gone = [[pod is not None and pod.is_gone(now) for now in ("u-p", "u-q", None)] for pod in written]
    assert gone == [[False, True, True], [False, True, True], [False, False, True]]
