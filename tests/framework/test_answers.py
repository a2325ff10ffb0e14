"""Tests of the validation of out-of-tree plugins' return values, and of their conversion to built-in values."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numpy as np
import pytest

from kschedd.api.pods import Pod
from kschedd.api.read_only import read_only
from kschedd.framework.events import QUEUE, ActionType, ClusterEvent, ClusterEventWithHint, EventResource, on
from kschedd.framework.faults import BadAnswer
from kschedd.framework.guarding import answers
from kschedd.framework.interface import PostFilterResult, PreFilterResult
from kschedd.framework.status import Code, Status, unschedulable
from kschedd.framework.writes import Bind, Create, Delete, MergePatch, Plan, Update
from tests.framework.pods import make_pod

MOST_INT64 = 2**63 - 1
NO = Status(Code.UNSCHEDULABLE, ("no",), "Mine")


class Text(str):
    """A string of a class of the plugin."""

    __slots__ = ()


class Number(int):
    """An int of a class of the plugin."""

    __slots__ = ()


class Level(IntEnum):
    """A named number, which is no score."""

    HIGH = 7


def nested(depth: int, inside: Any, wrap: Callable[[Any], Any]) -> Any:
    for _ in range(depth):
        inside = wrap(inside)
    return inside


def on_node(uid: str) -> Pod | None:
    """Return the assigned pod with this uid."""
    return PODS.get(uid)


PODS = {pod.uid: pod for pod in (make_pod("a"), make_pod("b"))}
PENDING_POD = make_pod("pending")
GIVEN = tuple(map(read_only, PODS.values()))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(lambda: answers.text("a reason", Text("no")), "no", id="text"),
        pytest.param(lambda: answers.number("wait", 2), 2.0, id="whole-seconds"),
        pytest.param(lambda: answers.number("wait", 0), 0.0, id="no-seconds"),
        pytest.param(lambda: answers.number("wait", np.float32(1.5)), 1.5, id="numpy-seconds"),
        pytest.param(lambda: answers.number("wait", np.int64(3)), 3.0, id="whole-numpy-seconds"),
        pytest.param(lambda: answers.number("wait", 10**400), 1e9, id="seconds-have-a-maximum"),
        pytest.param(lambda: answers.status("filter", None, "Mine"), None, id="no-status"),
        pytest.param(
            lambda: answers.status("filter", Status(Code.SUCCESS), "Mine"),
            Status(Code.SUCCESS, (), "Mine"),
            id="success",
        ),
        pytest.param(
            lambda: answers.status("filter", Status(Code.UNSCHEDULABLE, [Text("no")], "Other"), "Mine"),
            NO,
            id="status-of-another-plugin-and-a-list-of-reasons",
        ),
        pytest.param(
            lambda: answers.status("permit", Status(Code.WAIT), "Mine", Code.WAIT),
            Status(Code.WAIT, (), "Mine"),
            id="allowed-code",
        ),
        pytest.param(
            lambda: answers.status("filter", unschedulable(*["x"] * 1000), "Mine"),
            Status(Code.UNSCHEDULABLE, ("x",) * 1000, "Mine"),
            id="1000-reasons",
        ),
        pytest.param(lambda: answers.rejection("code_status", unschedulable("no"), "Mine"), NO, id="rejection"),
        pytest.param(lambda: answers.score("score", np.int32(-5), "Mine"), -5, id="numpy-score"),
        pytest.param(lambda: answers.score("score", Number(5), "Mine"), 5, id="score-of-a-class-of-its-own"),
        pytest.param(lambda: answers.score("score", MOST_INT64, "Mine"), MOST_INT64, id="largest-score"),
        pytest.param(lambda: answers.score("score", -(2**63), "Mine"), -(2**63), id="smallest-score"),
        pytest.param(lambda: answers.score("score", unschedulable("no"), "Mine"), NO, id="status-instead-of-a-score"),
        pytest.param(lambda: answers.flag("f", np.bool_(True)), True, id="numpy-flag"),
        pytest.param(lambda: answers.process_count(0), 0, id="no-worker-processes"),
        pytest.param(lambda: answers.process_count(Number(16)), 16, id="most-worker-processes"),
        pytest.param(
            lambda: answers.plain_key(
                "cache_key", (None, True, Number(1), np.int8(2), np.float32(0.5), Text("a"), b"b")
            ),
            (None, True, 1, 2, 0.5, "a", b"b"),
            id="key-of-values",
        ),
        pytest.param(
            lambda: answers.plain_key("cache_key", frozenset({(Text("a"),)})), frozenset({("a",)}), id="key-of-sets"
        ),
        pytest.param(
            lambda: answers.plain_key("cache_key", nested(32, 1, lambda each: (each,))),
            nested(32, 1, lambda each: (each,)),
            id="deepest-key",
        ),
        pytest.param(
            lambda: answers.sort_key("sort_key", (None, 1.5, "a", b"b", ())),
            (4, ((0,), (1, 1.5), (2, "a"), (3, b"b"), (4, ()))),
            id="sort-key-of-each-type",
        ),
        pytest.param(lambda: answers.pre_filter("pre_filter", None, "Mine"), None, id="no-restriction"),
        pytest.param(
            lambda: answers.pre_filter("pre_filter", Status(Code.SKIP), "Mine"),
            Status(Code.SKIP, (), "Mine"),
            id="pre-filter-skips",
        ),
        pytest.param(
            lambda: answers.pre_filter("pre_filter", PreFilterResult([Text("n1"), "n1"], True), "Mine"),
            PreFilterResult(frozenset({"n1"}), True),
            id="restriction-to-nodes",
        ),
        pytest.param(lambda: answers.unreserve("unreserve", None), None, id="unreserve-without-a-plan"),
        pytest.param(lambda: answers.permit("permit", None, "Mine"), (None, 0.0), id="permitted"),
        pytest.param(
            lambda: answers.permit("permit", Status(Code.WAIT), "Mine"),
            (Status(Code.WAIT, (), "Mine"), 0.0),
            id="wait-without-a-time",
        ),
        pytest.param(
            lambda: answers.permit("permit", [Status(Code.WAIT), 5], "Mine"),
            (Status(Code.WAIT, (), "Mine"), 5.0),
            id="wait-with-a-time",
        ),
        pytest.param(lambda: answers.permit("permit", (None, 1), "Mine"), (None, 1.0), id="permitted-with-a-time"),
        pytest.param(lambda: answers.plan("pre_bind", None, "Mine", str), None, id="no-plan"),
        pytest.param(
            lambda: answers.plan("pre_bind", Status(Code.SKIP), "Mine", str),
            Status(Code.SKIP, (), "Mine"),
            id="bind-skips",
        ),
        pytest.param(lambda: answers.hint("hint", QUEUE), QUEUE, id="hint"),
    ],
)
def test_a_valid_result_becomes_a_built_in_value(answer: Callable[[], Any], expected: Any) -> None:
    found = answer()
    assert (type(found), repr(found)) == (type(expected), repr(expected))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(lambda: answers.text("a reason", 7), "a reason is 7; a text is expected", id="text"),
        pytest.param(
            lambda: answers.number("wait", True), "wait is True; a number of seconds is expected", id="seconds-true"
        ),
        pytest.param(
            lambda: answers.number("wait", "1s"), "wait is '1s'; a number of seconds is expected", id="seconds-text"
        ),
        pytest.param(
            lambda: answers.number("wait", -0.1),
            "wait is -0.1; a number of seconds of at least 0",
            id="negative-seconds",
        ),
        pytest.param(
            lambda: answers.number("wait", float("inf")), "wait is inf; a number of seconds of at least 0", id="endless"
        ),
        pytest.param(
            lambda: answers.status("filter", True, "Mine"), "filter returned True; a Status or None is", id="no-status"
        ),
        pytest.param(
            lambda: answers.status("filter", Status(2), "Mine"),
            "filter returned a Status whose code is 2; a Code is expected",
            id="code-of-another-type",
        ),
        pytest.param(
            lambda: answers.status("filter", Status(Code.WAIT), "Mine", Code.SKIP),
            "filter returned a Status of WAIT; allowed are SUCCESS, ERROR, UNSCHEDULABLE, "
            "UNSCHEDULABLE_AND_UNRESOLVABLE, PENDING, SKIP",
            id="code-of-another-method",
        ),
        pytest.param(
            lambda: answers.status("filter", Status(Code.PENDING, "no"), "Mine"),
            "filter returned a Status whose reasons are 'no'; a tuple of texts is expected",
            id="reasons-text",
        ),
        pytest.param(
            lambda: answers.status("filter", unschedulable(*["x"] * 1001), "Mine"),
            "filter returned a Status whose reasons are ('x', 'x',",
            id="too-many-reasons",
        ),
        pytest.param(
            lambda: answers.status("filter", Status(Code.PENDING, (7,)), "Mine"),
            "a reason in the Status that filter returned is 7; a text is expected",
            id="reason-number",
        ),
        *(
            pytest.param(
                lambda value=value: answers.rejection("code_status", value, "Mine"),
                "; a Status that rejects (Unschedulable, UnschedulableAndUnresolvable, Pending) is expected",
                id=f"rejection-{name}",
            )
            for name, value in (("none", None), ("success", Status(Code.SUCCESS)))
        ),
        pytest.param(
            lambda: answers.score("score", None, "Mine"), "score returned None; an int from 0 to 100", id="no-score"
        ),
        pytest.param(
            lambda: answers.score("score", True, "Mine"), "score returned True; an int from 0 to 100", id="score-true"
        ),
        pytest.param(lambda: answers.score("score", Level.HIGH, "Mine"), "an int from 0 to 100", id="score-enum"),
        pytest.param(
            lambda: answers.score("score", MOST_INT64 + 1, "Mine"), "an int from 0 to 100", id="score-too-large"
        ),
        pytest.param(
            lambda: answers.score("score", -(2**63) - 1, "Mine"), "an int from 0 to 100", id="score-too-small"
        ),
        pytest.param(lambda: answers.flag("by_signature", 1), "by_signature returned 1; True or False is", id="flag"),
        *(
            pytest.param(
                lambda value=value: answers.process_count(value), "a number from 0 to 16 is", id=f"processes-{value}"
            )
            for value in (True, 1.0, -1, 17)
        ),
        *(
            pytest.param(
                lambda value=value: answers.plain_key("cache_key", value),
                "; a number (not NaN), a text, None, or a tuple of such is expected",
                id=f"key-{name}",
            )
            for name, value in (
                ("nan", float("nan")),
                ("list", ["a"]),
                ("object-within", (object(),)),
                ("too-deep", nested(33, 1, lambda each: (each,))),
            )
        ),
        pytest.param(
            lambda: answers.sort_key("sort_key", (frozenset({1}),)),
            "sort_key returned frozenset({1}); a number, a text",
            id="set-as-sort-key",
        ),
        pytest.param(
            lambda: answers.pre_filter("pre_filter", "n1", "Mine"),
            "pre_filter returned 'n1'; a Status, a PreFilterResult or None is expected",
            id="pre-filter",
        ),
        pytest.param(
            lambda: answers.pre_filter("pre_filter", Status(Code.WAIT), "Mine"),
            "returned a Status of WAIT; allowed are",
            id="pre-filter-waits",
        ),
        pytest.param(
            lambda: answers.pre_filter("pre_filter", PreFilterResult("n1"), "Mine"),
            "pre_filter returned a PreFilterResult to 'n1'; a frozenset of node names is expected",
            id="node-names-text",
        ),
        pytest.param(
            lambda: answers.pre_filter("pre_filter", PreFilterResult(frozenset(), 1), "Mine"),
            "pre_filter's PreFilterResult.already_filtered returned 1; True or False is expected",
            id="already-filtered",
        ),
        pytest.param(
            lambda: answers.unreserve("unreserve", 7), "unreserve returned 7; a Plan or None is", id="unreserve"
        ),
        *(
            pytest.param(
                lambda value=value: answers.permit("permit", value, "Mine"),
                "permit returned",
                id=f"permit-{name}",
            )
            for name, value in (
                ("number", 5.0),
                ("one-item", (Status(Code.WAIT),)),
                ("three-items", (Status(Code.WAIT), 1, 2)),
                ("no-status", ("wait", 1)),
            )
        ),
        pytest.param(
            lambda: answers.permit("permit", (Status(Code.WAIT), -1), "Mine"),
            "the time that permit returned is -1; a number of seconds of at least 0 is expected",
            id="permit-negative",
        ),
        pytest.param(
            lambda: answers.permit("permit", (Status(Code.SKIP), 1), "Mine"), "a Status of SKIP", id="permit-skips"
        ),
        pytest.param(
            lambda: answers.plan("bind", 7, "Mine", str), "bind returned 7; a Plan, a Status or None is", id="plan"
        ),
        pytest.param(
            lambda: answers.plan("bind", Plan(ready=7), "Mine", str),
            "bind returned a Plan whose ready is 7; a function is expected",
            id="ready",
        ),
        pytest.param(
            lambda: answers.idle_points("idle_for", "filter"),
            "a sequence or set of pre_filter, filter, binding",
            id="idle-text",
        ),
        pytest.param(
            lambda: answers.idle_points("idle_for", [7]), "idle_for returned 7; allowed are", id="idle-number"
        ),
        pytest.param(
            lambda: answers.hint("hint", True), "hint returned True; QUEUE or QUEUE_SKIP is expected", id="hint"
        ),
    ],
)
def test_an_invalid_result_is_reported_with_what_is_allowed(answer: Callable[[], Any], why: str) -> None:
    with pytest.raises(BadAnswer) as fault:
        answer()
    assert why in str(fault.value)


# -- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(np.array([1, -2], dtype=np.int8), [1, -2], id="small-ints"),
        pytest.param(np.array([1, MOST_INT64], dtype=np.uint64), [1, MOST_INT64], id="unsigned"),
        pytest.param([3, 4], [3, 4], id="list"),
        pytest.param((3, 4), [3, 4], id="tuple"),
        pytest.param([], [], id="empty-list"),
        pytest.param(np.zeros(0), [], id="no-floats"),
    ],
)
def test_a_column_is_copied_as_int64(given: Any, expected: list[int]) -> None:
    found = answers.column("score_rows", given, len(expected))
    assert (found.dtype, found.tolist()) == (np.int64, expected)
    assert not np.shares_memory(found, np.asarray(given))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param({1: 2}, "score_rows returned {1: 2}; an int64 array of 2 values, one for each row, is", id="map"),
        pytest.param(np.zeros(2), "score_rows returned values of float64; an int64 array of 2 values", id="floats"),
        pytest.param([True, False], "score_rows returned values of object", id="list-of-bools"),
        pytest.param(np.zeros(3, dtype=np.int64), "score_rows returned an array of shape (3,)", id="too-long"),
        pytest.param([1], "score_rows returned an array of shape (1,)", id="too-short"),
        pytest.param(
            np.array([1, 2**63], dtype=np.uint64), "score_rows returned 9223372036854775808; an int64", id="too-large"
        ),
    ],
)
def test_a_column_has_one_int64_for_each_row(given: Any, why: str) -> None:
    with pytest.raises(BadAnswer) as fault:
        answers.column("score_rows", given, 2)
    assert why in str(fault.value)


def test_codes_are_not_negative_and_have_31_bits() -> None:
    assert answers.codes("filter_rows", None, 2) is None
    for given in ([0, 2**31 - 1], []):
        found = answers.codes("filter_rows", given, len(given))
        assert found is not None
        assert found.tolist() == given
    for given, worst in (([5, -1], -1), ([0, 2**31], 2**31)):
        with pytest.raises(BadAnswer, match=rf"the code {worst}; codes from 0 \(passes\) to 2147483647 are expected"):
            answers.codes("filter_rows", given, 2)


# -- PostFilter ------------------------------------------------------------------------------------------------------


def test_victims_are_the_schedulers_own_pods() -> None:
    write = Delete("Pod", "default", "a")
    given = PostFilterResult(unschedulable("no"), Text("n1"), list(GIVEN), [write], GIVEN[1:])
    found = answers.post_filter("post_filter", given, "Mine", on_node)
    assert (found.status, found.nominated_node, type(found.nominated_node)) == (NO, "n1", str)
    assert found.victims == tuple(PODS.values())
    assert all(ours is its for ours, its in zip(found.victims, PODS.values(), strict=True))
    assert ([repr(each) for each in found.writes], found.rejected) == ([repr(write)], (PODS["uid-of-b"],))
    assert answers.post_filter("post_filter", PostFilterResult(NO), "Mine", on_node).nominated_node is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param(NO, "a PostFilterResult is expected", id="a-status"),
        pytest.param(
            PostFilterResult(None), "returned a PostFilterResult without a status; a Status is", id="no-status"
        ),
        pytest.param(PostFilterResult(NO, 7), "nominated_node in what post_filter returned is 7", id="nominated"),
        pytest.param(
            PostFilterResult(NO, "", 7), "victims in what post_filter returned is 7; a tuple of", id="victims"
        ),
        pytest.param(
            PostFilterResult(NO, "", (PODS["uid-of-a"],)), "; an assigned pod that was passed", id="not-passed"
        ),
        pytest.param(
            PostFilterResult(NO, "", (read_only(PENDING_POD),)), "; an assigned pod that was", id="unassigned"
        ),
        pytest.param(PostFilterResult(NO, "", (), 7), "writes in what post_filter returned is 7", id="writes"),
        pytest.param(
            PostFilterResult(NO, "", (), (), ("a",)), "rejected in what post_filter returned has 'a'", id="rejected"
        ),
    ],
)
def test_an_invalid_result_of_post_filter_is_reported(given: Any, why: str) -> None:
    with pytest.raises(BadAnswer) as fault:
        answers.post_filter("post_filter", given, "Mine", on_node)
    assert why in str(fault.value)


# -- writes and plans ------------------------------------------------------------------------------------------------


def test_writes_are_copied_with_built_in_values() -> None:
    patch = {Text("a"): [Number(1), 1.5, None, True, Text("b"), (2,)], "deep": nested(30, 1, lambda each: [each])}
    given = [
        Bind(Text("default"), "a", "uid", "n1"),
        Create({"kind": "Pod"}),
        Update({"kind": "Pod"}, "status"),
        MergePatch("Pod", "default", "a", patch, "scale"),
        Delete("Pod", "default", "a", "uid", 0, "Orphan"),
        Delete("Pod", "default", "a", grace_period_s=10**9),
    ]
    found = answers.writes("writes", given)
    expected = [
        Bind("default", "a", "uid", "n1"),
        Create({"kind": "Pod"}),
        Update({"kind": "Pod"}, "status"),
        MergePatch(
            "Pod",
            "default",
            "a",
            {"a": [1, 1.5, None, True, "b", [2]], "deep": nested(30, 1, lambda each: [each])},
            "scale",
        ),
        Delete("Pod", "default", "a", "uid", 0, "Orphan"),
        Delete("Pod", "default", "a", grace_period_s=10**9),
    ]
    assert list(map(repr, found)) == list(map(repr, expected))
    assert all(new is not old for new, old in zip(found, given, strict=True))
    assert type(getattr(found[0], "namespace")) is str  # noqa: B009 - the type of a write is not known here
    assert len(answers.writes("writes", (given[1],) * 1000)) == 1000


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param("Bind", "writes is 'Bind'; a tuple of writes is expected", id="text"),
        pytest.param([Create({})] * 1001, "writes is [Create(raw={}),", id="too-many"),
        pytest.param(
            ("Bind",), "writes has 'Bind'; a Bind, Create, Delete, MergePatch or Update is expected", id="of-texts"
        ),
        pytest.param((Bind("default", 7, "", "n1"),), "writes: Bind.name is 7; a text is expected", id="name"),
        pytest.param((Create([1]),), "writes: Create.raw is [1]; a mapping is expected", id="raw"),
        pytest.param((MergePatch("Pod", "", "a", {7: 1}),), "a key in writes: Patch.patch is 7; a text is", id="key"),
        *(
            pytest.param((Create({"a": value}),), "; a JSON value is expected", id=f"json-{name}")
            for name, value in (
                ("nan", float("nan")),
                ("large", MOST_INT64 + 1),
                ("small", -(2**63) - 1),
                ("set", {1}),
                ("deep", nested(32, 1, lambda each: [each])),
            )
        ),
        pytest.param(
            (MergePatch("Pod", "", "a", {}, "exec"),),
            "writes: Patch.subresource is 'exec'; one of '', 'status', 'scale' is expected",
            id="subresource",
        ),
        pytest.param(
            (Delete("Pod", "", "a", propagation=None),),
            "writes: Delete.propagation is None; one of 'Background', 'Foreground', 'Orphan' is expected",
            id="propagation",
        ),
        *(
            pytest.param(
                (Delete("Pod", "", "a", grace_period_s=value),),
                f"writes: Delete.grace_period_s is {value}; a whole number of seconds from 0 up is expected",
                id=f"grace-period-{value}",
            )
            for value in (-1, 10**9 + 1, True, 1.5)
        ),
    ],
)
def test_an_invalid_write_is_reported(given: Any, why: str) -> None:
    with pytest.raises(BadAnswer) as fault:
        answers.writes("writes", given)
    assert why in str(fault.value)


def test_a_plan_is_copied_with_a_guarded_condition() -> None:
    late, gone = unschedulable("late"), Status(Code.ERROR, ("gone",))
    found = answers.plan(
        "bind", Plan((Create({}),), lambda cluster: None, 2, late, gone), "Mine", lambda ready: ("guarded", ready)
    )
    assert isinstance(found, Plan)
    assert [repr(each) for each in found.writes] == ["Create(raw={})"]
    assert found.ready is not None
    assert found.ready[0] == "guarded"
    assert (found.timeout_s, found.timed_out, found.cancelled) == (2.0, late.by("Mine"), gone.by("Mine"))
    without = answers.plan("bind", Plan(), "Mine", lambda ready: "guarded")
    assert isinstance(without, Plan)
    assert without.ready is None
    undone = answers.unreserve("unreserve", Plan((Create({}),), lambda cluster: None, 2, late))
    assert undone is not None
    assert (len(undone.writes), undone.ready, undone.timeout_s, undone.timed_out) == (1, None, 0.0, None)


# -- registrations ---------------------------------------------------------------------------------------------------


def test_registrations_are_copied_with_guarded_hints() -> None:
    def hint(pod: Any, old: Any, new: Any) -> Any:
        return QUEUE

    given = [
        on(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT, hint, by_signature=True),
        ClusterEventWithHint(ClusterEvent(EventResource.POD, 1, Text("Mine"))),
    ]
    first, second = answers.registrations("events_to_register", iter(given), lambda hint: ("guarded", hint))
    assert (first.event, first.by_signature) == (given[0].event, True)
    assert first.hint == ("guarded", hint)
    assert (second.event, second.hint, second.by_signature) == (
        ClusterEvent(EventResource.POD, ActionType.ADD, "Mine"),
        None,
        False,
    )
    assert (type(second.event.action), type(second.event.custom_label)) == (ActionType, str)
    assert len(answers.registrations("events_to_register", given[1:] * 1000, str)) == 1000
    whole = answers.registrations("events_to_register", [on(EventResource.NODE, ActionType.ALL)], str)
    assert whole[0].event.action == ActionType.ALL


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param(7, "events_to_register returned 7; a sequence of ClusterEventWithHint is expected", id="number"),
        pytest.param([on(EventResource.NODE, ActionType.ADD)] * 1001, "returned more than 1000 events", id="too-many"),
        pytest.param(["NodeAdd"], "returned 'NodeAdd' among the events; a ClusterEventWithHint is expected", id="text"),
        pytest.param([ClusterEventWithHint("NodeAdd")], "among the events; a ClusterEventWithHint is", id="event-text"),
        pytest.param([on("Node", ActionType.ADD)], "returned an event of 'Node'; an EventResource or", id="resource"),
        *(
            pytest.param(
                [on(EventResource.NODE, action)], f"returned an event with action {action}", id=f"action-{action}"
            )
            for action in (True, 1.0, 0, 2**15)
        ),
        pytest.param(
            [on(EventResource.NODE, ActionType.ADD, "yes")], "an event whose hint is 'yes'; a function", id="hint"
        ),
        pytest.param(
            [ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD), None, "yes")],
            "by_signature of an event that events_to_register returned returned 'yes'; True or False is expected",
            id="by-signature",
        ),
    ],
)
def test_an_invalid_registration_is_reported(given: Any, why: str) -> None:
    with pytest.raises(BadAnswer) as fault:
        answers.registrations("events_to_register", given, str)
    assert why in str(fault.value)
