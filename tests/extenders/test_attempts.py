"""Attempts with extenders whose answers are scripted: the requests to them, and the effect of their answers."""

import json
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.extenders.calls import ExtenderCall, ExtenderFailure
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.interface import PostFilterResult
from kschedd.framework.registry import Registry
from kschedd.framework.status import Code, unschedulable
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.binding.cycle import CallExtender, CallPlugin
from kschedd.scheduling.debug.breakpoints import StopPoint
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.effects import Effects
from kschedd.scheduling.inputs import BeginAttempt, CompleteAttempt, Observe, PluginCalled
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.records import PodBound
from kschedd.scheduling.stops import interventions
from kschedd.simulation.engine import Engine
from kschedd.store.objects.log import ADDED, WatchEvent
from tests.extenders.servers import serving
from tests.scheduling.driven import NOW, Raw, node, pod

Answer = Callable[[Raw], Any]


class Extended:
    """A driver with extenders "http://a", "http://b" and so on; `answers` by "a/filter" are JSON, or a failure."""

    def __init__(self, *extenders: Raw, plugins: tuple[type[Any], ...] = (), **settings: Any) -> None:
        registry = Registry({plugin.name: plugin for plugin in plugins})
        enabled = {"multiPoint": {"enabled": [{"name": plugin.name} for plugin in plugins]}}
        named = [{"urlPrefix": f"http://{chr(97 + n)}", **extender} for n, extender in enumerate(extenders)]
        raw = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": named,
            "profiles": [{"schedulerName": "default-scheduler", "plugins": enabled}],
            **settings,
        }
        self.driver = SchedulingDriver(
            SchedulingMachine(
                config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()}), registry=registry, choose=by_name
            )
        )
        self.answers: dict[str, Answer | str] = {}
        self.requests: list[tuple[str, Raw]] = []

    def see(self, *raws: Raw) -> "Extended":
        for raw in raws:
            obj = parse(raw)
            self.driver.step(Observe((WatchEvent(ADDED, None, obj, 1),)))
        return self

    def answer(self, call: ExtenderCall) -> Any:
        where = call.url.removeprefix("http://")
        self.requests.append((where, json.loads(b"".join(call.write()))))
        reply = self.answers[where]
        if isinstance(reply, str):
            return ExtenderFailure(reply)
        try:
            return call.read(200, json.dumps(reply(self.requests[-1][1])).encode())
        except ExtenderFailure as failure:
            return failure

    def attempt(self, raw: Raw) -> ScheduleResult | FitError:
        self.see(raw)
        found = parse(raw)
        assert isinstance(found, Pod)
        attempt = self.driver.step(BeginAttempt(QueuedPod(found, found.key, 0, attempts=1)))
        assert attempt is not None
        answers: Any = None
        try:
            while True:
                calls: Any = attempt.send(answers)
                answers = [self.answer(call) if isinstance(call, ExtenderCall) else call() for call in calls]
        except StopIteration as end:
            result: ScheduleResult | FitError = end.value
            return result

    def chosen(self, raw: Raw) -> str:
        result = self.attempt(raw)
        assert isinstance(result, ScheduleResult), result
        return result.node_name

    def message(self, raw: Raw) -> str:
        result = self.attempt(raw)
        assert isinstance(result, FitError), result
        return result.message

    def wheres(self) -> list[str]:
        return [where for where, _ in self.requests]


NAMES = {"filterVerb": "filter", "nodeCacheCapable": True}
NODES = {"filterVerb": "filter"}
SCORES = {"prioritizeVerb": "score", "weight": 1, "nodeCacheCapable": True}
PREEMPTS = {"preemptVerb": "preempt", "nodeCacheCapable": True}


def only(*names: str, **more: Any) -> Answer:
    return lambda args: {"NodeNames": list(names), **more}


def three(*extenders: Raw, **settings: Any) -> Extended:
    return Extended(*extenders, **settings).see(node("n1"), node("n2"), node("n3"))


# -- filter -----------------------------------------------------------------------------------------------------------


def test_an_extender_is_asked_about_the_nodes_that_are_left_by_name() -> None:
    run = three(NAMES)
    run.see(node("small", cpu="1m"))
    run.answers["a/filter"] = only("n3")
    assert run.chosen(pod("p")) == "n3"
    [(_, args)] = run.requests
    assert args["NodeNames"] == ["n1", "n2", "n3"]
    assert args["Nodes"] is None
    assert args["Pod"]["metadata"]["name"] == "p"
    assert "kind" not in args["Pod"]


def test_or_with_the_whole_nodes() -> None:
    run = three(NODES)

    def last(args: Raw) -> Raw:
        return {"nodes": {"items": args["Nodes"]["items"][-1:]}}

    run.answers["a/filter"] = last
    assert run.chosen(pod("p")) == "n3"
    [(_, args)] = run.requests
    assert args["NodeNames"] is None
    assert [one["metadata"]["name"] for one in args["Nodes"]["items"]] == ["n1", "n2", "n3"]
    assert args["Nodes"]["items"][0]["status"]["allocatable"]["cpu"] == "1"


def test_each_is_asked_about_what_the_one_before_left_and_those_to_be_ignored_come_last() -> None:
    run = three({**NAMES, "ignorable": True}, NAMES)
    run.answers["a/filter"] = only("n2")
    run.answers["b/filter"] = only("n2", "n3")
    assert run.chosen(pod("p")) == "n2"
    assert [(where, args["NodeNames"]) for where, args in run.requests] == [
        ("b/filter", ["n1", "n2", "n3"]),
        ("a/filter", ["n2", "n3"]),
    ]


def test_nobody_is_asked_when_no_node_is_left() -> None:
    run = three(NAMES, NAMES)
    run.answers["a/filter"] = only()
    assert run.message(pod("p")).startswith("0/3 nodes are available:")
    assert run.wheres() == ["a/filter"]


def test_the_reasons_are_in_the_message_and_the_pod_waits_for_any_event() -> None:
    run = three(NAMES, profiles=[{"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}])
    run.answers["a/filter"] = only(
        FailedNodes={"n1": "no card", "n2": "no card", "elsewhere": "who is that"},
        FailedAndUnresolvableNodes={"n2": "no such card", "n3": "no such card"},
    )
    failed = run.attempt(pod("p"))
    assert isinstance(failed, FitError)
    assert failed.message == "0/3 nodes are available: 1 no card, 1 who is that, 2 no such card."
    assert failed.diagnosis.unschedulable_plugins == {"Extender"}
    assert "Extender" in run.driver.machine.registrations()["default-scheduler"]


def test_an_extender_may_say_more_of_nodes_that_plugins_rejected() -> None:
    run = three(NAMES, profiles=[{"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}])
    run.see(node("small", cpu="1m"))
    run.answers["a/filter"] = only(FailedNodes={name: "no card" for name in ("n1", "n2", "n3", "small")})
    assert run.message(pod("p")) == "0/4 nodes are available: 4 no card."


FAILURES: dict[str, tuple[Answer | str, str]] = {
    "that-is-down": ('Post "http://a/filter": EOF', 'Post "http://a/filter": EOF'),
    "that-says-so": (lambda args: {"Error": "out of order"}, "out of order"),
    "that-names-others": (
        only("n1", "n9"),
        'extender "http://a" claims a filtered node "n9" which is not found in the input node list',
    ),
    "that-talks-nonsense": (
        lambda args: "yes",
        "json: cannot unmarshal string into Go value of type v1.ExtenderFilterResult",
    ),
}


@pytest.mark.parametrize("fault", FAILURES)
def test_the_attempt_fails_by_an_extender(fault: str) -> None:
    run = three(NAMES)
    run.answers["a/filter"], message = FAILURES[fault]
    failed = run.attempt(pod("p"))
    assert isinstance(failed, FitError)
    assert failed.message == message
    outcome = run.driver.step(CompleteAttempt(QueuedPod(failed.pod, failed.pod.key, 0, attempts=1), failed), NOW)
    assert (getattr(outcome, "reason", ""), getattr(outcome, "message", "")) == ("SchedulerError", message)


@pytest.mark.parametrize("fault", FAILURES)
def test_one_to_be_ignored_is_as_if_it_were_not_there_where_it_fails(fault: str) -> None:
    run = three({**NAMES, "ignorable": True})
    run.answers["a/filter"] = FAILURES[fault][0]
    result = run.attempt(pod("p"))
    assert isinstance(result, ScheduleResult)
    assert len(result.feasible) == 3


def asking_for(**resources: str) -> Raw:
    raw = pod("p", cpu="1m")
    raw["spec"]["initContainers"] = [{"name": "i", "image": "i", "resources": {"limits": resources}}]
    return raw


def test_one_that_manages_resources_is_asked_about_pods_that_want_them() -> None:
    managed = [{"name": "example.com/card", "ignoredByScheduler": True}]
    run = three({**NAMES, "managedResources": managed})
    assert run.chosen(pod("other")) == "n1"
    assert run.requests == []
    run.answers["a/filter"] = only("n2")
    assert run.chosen(asking_for(**{"example.com/card": "1"})) == "n2"  # no node has any: it is left to the extender


def test_the_nominated_node_is_asked_about_first_and_a_failure_makes_it_one_of_many() -> None:
    run = three(NAMES)
    run.answers["a/filter"] = lambda args: {"NodeNames": args["NodeNames"]}
    assert run.chosen(pod("p", nominated="n2")) == "n2"
    assert [args["NodeNames"] for _, args in run.requests] == [["n2"]]
    run.requests.clear()
    run.answers["a/filter"] = lambda args: {"Error": "no"} if args["NodeNames"] == ["n2"] else {"NodeNames": ["n3"]}
    assert run.chosen(pod("q", nominated="n2")) == "n3"
    assert len(run.requests) == 2


def test_a_search_for_an_extender_does_not_end_with_the_first_node() -> None:
    unscored = {"plugins": {"score": {"disabled": [{"name": "*"}]}, "preScore": {"disabled": [{"name": "*"}]}}}
    run = three(NAMES, profiles=[unscored])
    run.answers["a/filter"] = only("n3")
    assert run.chosen(pod("p")) == "n3"
    assert run.requests[0][1]["NodeNames"] == ["n1", "n2", "n3"]


def test_a_search_for_an_extender_that_scores_does_not_end_with_the_first_node_either() -> None:
    unscored = {"plugins": {"score": {"disabled": [{"name": "*"}]}, "preScore": {"disabled": [{"name": "*"}]}}}
    run = three(SCORES, profiles=[unscored])
    run.answers["a/score"] = lambda args: [{"Host": "n3", "Score": 10}]
    assert run.chosen(pod("p")) == "n3"


# -- prioritize -------------------------------------------------------------------------------------------------------


def test_scores_count_ten_times_their_weight() -> None:
    run = three({**SCORES, "weight": 3}, SCORES)
    plain = three().attempt(pod("p"))
    assert isinstance(plain, ScheduleResult)
    assert plain.score is not None
    run.answers["a/score"] = lambda args: [{"Host": "n2", "Score": 4}, {"Host": "nobody", "Score": 9}]
    run.answers["b/score"] = lambda args: [{"host": "n2", "score": 1}, {"host": "n3", "score": 10}]
    result = run.attempt(pod("p"))
    assert isinstance(result, ScheduleResult)
    assert result.node_name == "n2"
    assert result.score == plain.score + 4 * 3 * 10 + 10
    assert run.wheres() == ["a/score", "b/score"]


def test_scores_wrap_as_int64() -> None:
    run = three(SCORES)
    run.answers["a/score"] = lambda args: [
        {"Host": "n2", "Score": 900_000_000_000_000_000},
        {"Host": "n2", "Score": 900_000_000_000_000_000},
        {"Host": "n3", "Score": 1},
    ]
    assert run.chosen(pod("p")) == "n3"


@pytest.mark.parametrize("answer", ["down", lambda args: {"Host": "n2"}, lambda args: [{"Host": 1}]])
def test_one_that_fails_to_score_gives_no_score(answer: Any) -> None:
    run = three(SCORES, SCORES)
    run.answers["a/score"] = answer
    run.answers["b/score"] = lambda args: [{"Host": "n3", "Score": 1}]
    assert run.chosen(pod("p")) == "n3"


def test_nobody_scores_a_single_node() -> None:
    run = Extended(SCORES).see(node("n1"))
    assert run.chosen(pod("p")) == "n1"
    assert run.requests == []


# -- bind -------------------------------------------------------------------------------------------------------------

BINDS = {"bindVerb": "bind"}


def binding(extender: Raw, answer: Answer | str | None) -> tuple[Extended, Effects]:
    """Bind a pod as far as possible without the API server, and return the remaining effects."""
    run = Extended(extender).see(node("n1"))
    if answer is not None:
        run.answers["a/bind"] = answer
    result = run.attempt(pod("p"))
    run.driver.step(CompleteAttempt(QueuedPod(result.pod, result.pod.key, 0, attempts=1), result), NOW)
    effects = run.driver.take_effects()
    for wanted in effects.calls:
        assert isinstance(wanted, CallExtender)
        run.driver.step(PluginCalled(wanted.uid, wanted.answered(run.answer(wanted.call))), NOW)
        effects = run.driver.take_effects()
    return run, effects


def bound(effects: Effects) -> list[str]:
    return [entry.pod for entry in effects.happened if isinstance(entry, PodBound)]


def test_an_extender_that_binds_is_asked_instead_of_the_plugins() -> None:
    run, effects = binding(BINDS, lambda args: {})
    args = {"PodName": "p", "PodNamespace": "default", "PodUID": "uid-p", "Node": "n1"}
    assert run.requests == [("a/bind", args)]
    assert bound(effects) == ["default/p"]
    assert effects.plans == []
    assert [one.uid for one in run.driver.machine.cluster.assumed_pods()] == ["uid-p"]  # until its write is seen


class Informed:
    """Records the pods of its calls."""

    name: ClassVar = "Informed"
    reported: ClassVar[list[str]] = []

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.reported.append(f"{pod.name} on {node_name}")


def test_what_an_extender_has_bound_is_told_to_the_plugins() -> None:
    """In bindingCycle RunPostBindPlugins follows on `bind`, which asks an extender or the Bind plugins."""
    Informed.reported.clear()
    run = Extended(BINDS, plugins=(Informed,)).see(node("n1"))
    run.answers["a/bind"] = lambda args: {}
    result = run.attempt(pod("p"))
    run.driver.step(CompleteAttempt(QueuedPod(result.pod, result.pod.key, 0, attempts=1), result), NOW)
    [requests] = run.driver.take_effects().calls
    assert isinstance(requests, CallExtender)
    run.driver.step(PluginCalled(requests.uid, requests.answered(run.answer(requests.call))), NOW)
    effects = run.driver.take_effects()
    assert bound(effects) == []
    [reported] = effects.calls
    assert isinstance(reported, CallPlugin)
    run.driver.step(PluginCalled(reported.uid, reported.run()), NOW)
    assert Informed.reported == ["p on n1"]
    assert bound(run.driver.take_effects()) == ["default/p"]


def test_its_refusal_fails_the_binding() -> None:
    run, effects = binding(BINDS, lambda args: {"Error": "no card left"})
    [failed] = effects.failures
    assert (failed.reason, failed.message) == ("SchedulerError", "no card left")
    assert not run.driver.machine.cluster.assumed_pods()


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        pytest.param({"ignorable": True}, "down", id="one-to-be-ignored-failed"),
        pytest.param({"managedResources": [{"name": "example.com/card"}]}, None, id="it-manages-other-pods"),
    ],
)
def test_the_plugins_bind_where(settings: Raw, answer: str | None) -> None:
    _, effects = binding({**BINDS, **settings}, answer)
    assert [wanted.uid for wanted in effects.plans] == ["uid-p"]


# -- preempt ----------------------------------------------------------------------------------------------------------


def crowded(*extenders: Raw) -> Extended:
    """Three nodes, each with a less important pod of which n1's is the least."""
    run = three(*extenders)
    return run.see(*[pod(f"low-{n}", priority=n, on=f"n{n}") for n in (1, 2, 3)])


def victims(**of_nodes: list[str]) -> Answer:
    by_node = {name: {"Pods": [{"UID": uid} for uid in uids]} for name, uids in of_nodes.items()}
    return lambda args: {"NodeNameToMetaVictims": by_node}


def preemption(run: Extended) -> PostFilterResult:
    failed = run.attempt(pod("p", priority=9))
    assert isinstance(failed, FitError)
    assert failed.post_filter is not None
    return failed.post_filter


def test_an_extender_has_its_say_in_whom_to_evict() -> None:
    assert preemption(crowded()).nominated_node == "n1"
    run = crowded(PREEMPTS)
    run.answers["a/preempt"] = victims(n2=["uid-low-2"], n3=["uid-low-3"])
    result = preemption(run)
    assert (result.nominated_node, [one.name for one in result.victims]) == ("n2", ["low-2"])
    [(_, args)] = run.requests
    assert args["NodeNameToVictims"] is None
    assert args["NodeNameToMetaVictims"]["n1"] == {"Pods": [{"UID": "uid-low-1"}], "NumPDBViolations": 0}


@pytest.mark.parametrize(
    ("priorities", "chosen"),
    [
        pytest.param({"n1": (5, 4), "n2": (5, 2), "n3": (5, 3)}, "n2", id="lowest-sum-of-priorities"),
        pytest.param({"n1": (5, -9), "n2": (5,)}, "n2", id="fewest-victims-although-priorities-may-be-negative"),
    ],
)
def test_of_the_candidates_that_extenders_leave_the_one_whose_victims_matter_least_is_chosen(
    priorities: dict[str, tuple[int, ...]], chosen: str
) -> None:
    run = three(PREEMPTS)
    for on, of_pods in priorities.items():
        run.see(*[pod(f"{on}-{n}", cpu="500m", priority=of_pod, on=on) for n, of_pod in enumerate(of_pods)])
    run.see(*[pod(f"full-{on}", priority=99, on=on) for on in ("n1", "n2", "n3") if on not in priorities])
    run.answers["a/preempt"] = victims(
        **{on: [f"uid-{on}-{n}" for n in range(len(of_pods))] for on, of_pods in priorities.items()}
    )
    assert preemption(run).nominated_node == chosen


def test_one_without_pods_of_its_own_gets_them_whole() -> None:
    run = crowded({"preemptVerb": "preempt"})
    run.answers["a/preempt"] = victims(n3=["uid-low-3"])
    assert preemption(run).nominated_node == "n3"
    [(_, args)] = run.requests
    assert args["NodeNameToMetaVictims"] is None
    assert args["NodeNameToVictims"]["n2"]["Pods"][0]["metadata"]["name"] == "low-2"


def test_where_none_is_left_nobody_is_evicted_and_the_nomination_stays() -> None:
    run = crowded(PREEMPTS, PREEMPTS)
    run.answers["a/preempt"] = victims()
    result = preemption(run)
    assert result.status.message.endswith("preemption: no candidate node for preemption")
    assert result.nominated_node is None
    assert run.wheres() == ["a/preempt"]


class Tries:
    """A PostFilter plugin that makes a dry run of a preemption on all nodes, and evicts no pod."""

    name = "Tries"
    candidates: ClassVar[list[str]] = []

    def post_filter(self, state: CycleState, pod: Pod, cluster: Any, view: Any) -> PostFilterResult:
        tried = view.dry_run(state, pod, view.rows_with(Code.UNSCHEDULABLE), 0, 3)
        self.candidates[:] = [candidate.node_name for candidate in tried.candidates]
        return PostFilterResult(unschedulable("no"))


def test_no_extender_is_called_for_a_dry_run_of_a_plugin_out_of_the_tree() -> None:
    only = {"disabled": [{"name": "*"}], "enabled": [{"name": "Tries"}]}
    profiles = [{"plugins": {"multiPoint": {"enabled": [{"name": "Tries"}]}, "postFilter": only}}]
    run = three(PREEMPTS, plugins=(Tries,), profiles=profiles)
    run.see(*[pod(f"low-{n}", priority=n, on=f"n{n}") for n in (1, 2, 3)])
    assert not preemption(run).writes
    assert sorted(Tries.candidates) == ["n1", "n2", "n3"]
    assert run.requests == []


PREEMPT_FAILURES: dict[str, tuple[Answer | str, str]] = {
    "down": ("down", "preemption: down"),
    "no-such-node": (victims(n9=["x"]), 'preemption: nodeinfo not found for node name "n9"'),
    "no-such-pod": (
        victims(n1=["x"]),
        "preemption: extender: http://a claims to preempt pod (UID: &MetaPod{UID:x,}) on node: n1, but the pod is not "
        "found on that node",
    ),
    "nobody": (victims(n1=[]), 'preemption: expected at least one victim pod on node "n1"'),
}


@pytest.mark.parametrize("fault", PREEMPT_FAILURES)
def test_preemption_fails_by_an_extender_that_names(fault: str) -> None:
    run = crowded(PREEMPTS)
    run.answers["a/preempt"], message = PREEMPT_FAILURES[fault]
    result = preemption(run)
    assert message in result.status.message
    assert not result.writes


@pytest.mark.parametrize("fault", ["down", "no-such-node", "no-such-pod"])
def test_one_to_be_ignored_changes_nothing_where_it_names(fault: str) -> None:
    run = crowded({**PREEMPTS, "ignorable": True})
    run.answers["a/preempt"] = PREEMPT_FAILURES[fault][0]
    assert preemption(run).nominated_node == "n1"


# -- in virtual time --------------------------------------------------------------------------------------------------


def test_a_simulation_asks_real_extenders_but_to_bind_and_binds_for_one_that_would() -> None:
    with serving({"filter": lambda args: {"NodeNames": ["n2"]}, "bind": lambda args: {}}) as extender:
        verbs = {"filterVerb": "filter", "bindVerb": "bind", "nodeCacheCapable": True}
        raw = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [{"urlPrefix": extender.url, **verbs}],
        }
        engine = Engine(config_from_raw(raw))
        for manifest in (node("n1"), node("n2"), pod("p")):
            engine.store.create(manifest)
        engine.run_until_idle()
        placed = engine.store.get("Pod", "default", "p")
        assert isinstance(placed, Pod)
        assert placed.node_name == "n2"
        assert [verb for verb, _ in extender.requests] == ["filter"]


# -- step by step ---------------------------------------------------------------------------------------------------


def _stepped(run: Extended, raw: Raw, at: Callable[[SchedulingDriver, StopPoint], None]) -> tuple[Any, list[str]]:
    """Return the outcome of an attempt with a stop at each plugin, and the stops; `at` may change something there."""
    run.see(raw)
    found = parse(raw)
    assert isinstance(found, Pod)
    run.driver.debugger.next()
    attempt = run.driver.step(BeginAttempt(QueuedPod(found, found.key, 0, attempts=1)))
    assert attempt is not None
    answers: Any = None
    stops: list[str] = []
    try:
        while True:
            requests = attempt.send(answers)
            if isinstance(requests, StopPoint):
                stops.append(requests.point)
                at(run.driver, requests)
                run.driver.debugger.next()
                answers = []
            else:
                answers = [run.answer(call) for call in requests]
    except StopIteration as end:
        return end.value, stops


def _answering(run: Extended) -> Extended:
    run.answers = {
        "a/filter": lambda args: {"NodeNames": [name for name in args["NodeNames"] if name != "n3"]},
        "a/score": lambda args: [{"Host": "n1", "Score": 1}, {"Host": "n2", "Score": 9}],
    }
    return run


def test_step_by_step_extenders_are_asked_the_same_and_the_same_node_is_chosen() -> None:
    both = {**NAMES, **SCORES}
    plain, stepped = _answering(three(both)), _answering(three(both))
    chosen = plain.chosen(pod("web"))
    result, stops = _stepped(stepped, pod("web"), lambda driver, at: None)
    assert isinstance(result, ScheduleResult)
    assert result.node_name == chosen == "n2"
    assert stepped.requests == plain.requests
    assert {"filter", "score"} <= set(stops)


def test_what_is_changed_by_hand_counts_beside_what_an_extender_says() -> None:
    def veto(driver: SchedulingDriver, at: StopPoint) -> None:
        if at.point == "filter":
            interventions.veto(driver, "n2")

    run = _answering(three({**NAMES, **SCORES}))
    result, _ = _stepped(run, pod("web"), veto)
    assert isinstance(result, ScheduleResult)
    assert result.node_name == "n1"
    assert "n2" not in run.requests[0][1]["NodeNames"]


def test_an_attempt_that_an_extender_fails_fails_step_by_step() -> None:
    run = three(NAMES)
    run.answers = {"a/filter": "it is down"}
    result, _ = _stepped(run, pod("web"), lambda driver, at: None)
    assert isinstance(result, FitError)
    assert "it is down" in result.message


# -- nodes without their pods -----------------------------------------------------------------------------------------


def all_whole(args: Raw) -> Raw:
    return {"Nodes": args["Nodes"]}


def loaded(*extenders: Raw, **settings: Any) -> Extended:
    """Return a run with a large node that is nearly full, and a smaller node without pods."""
    run = Extended(*extenders, **settings).see(node("busy", cpu="20"), node("idle", cpu="10"))
    return run.see(pod("filler", cpu="18", on="busy"))


@pytest.mark.parametrize(
    ("extender", "answer", "chosen"),
    [
        pytest.param(NODES, all_whole, "busy", id="whole nodes lose their pods"),
        pytest.param(NAMES, only("busy", "idle"), "idle", id="names keep them"),
        pytest.param(
            NAMES,
            lambda args: {"Nodes": {"items": [{"metadata": {"name": "busy"}}, {"metadata": {"name": "idle"}}]}},
            "busy",
            id="whole nodes in place of names",
        ),
        pytest.param({**NODES, "managedResources": [{"name": "example.com/card"}]}, all_whole, "idle", id="not asked"),
    ],
)
def test_nodes_that_an_extender_answers_with_are_scored_without_their_pods(
    extender: Raw, answer: Answer, chosen: str
) -> None:
    run = loaded(extender)
    run.answers["a/filter"] = answer
    assert run.chosen(pod("p")) == chosen


def test_by_earlier_releases_they_keep_their_pods() -> None:
    run = loaded(NODES, apiVersion="kubescheduler.config.k8s.io/v1beta3")
    run.answers["a/filter"] = all_whole
    assert run.chosen(pod("p")) == "idle"


def test_pods_of_the_node_do_not_count_for_spreading_by_host_either() -> None:
    profiles = [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "PodTopologySpread"}]}},
        }
    ]
    spread = {
        "topologyKey": "kubernetes.io/hostname",
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    for extender, answer, chosen in ((NODES, all_whole, "n1"), (NAMES, only("n1", "n2"), "n2")):
        run = Extended(extender, profiles=profiles)
        for name in ("n1", "n2"):
            raw = node(name)
            raw["metadata"]["labels"] = {"kubernetes.io/hostname": name}
            run.see(raw)
        run.see(pod("there", on="n1", labels={"app": "web"}))
        run.answers["a/filter"] = answer
        requests = pod("p", cpu="0", labels={"app": "web"})
        requests["spec"]["topologySpreadConstraints"] = [spread]
        assert run.chosen(requests) == chosen
