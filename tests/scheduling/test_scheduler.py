"""Tests of one attempt: the plugins called at PreFilter, Score and PostFilter, their order, and the outcome."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.config.versions.kube_versions import V1_34, V1_36, KubernetesVersion
from kschedd.framework.interface import PostFilterResult, PreFilterResult
from kschedd.framework.registry import Registry
from kschedd.framework.status import SKIP, Code, Status, error, unresolvable, unschedulable
from kschedd.framework.writes import Delete
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine

MatchedRegistration = list[str]


def node(name: str, **spec: Any) -> Node:
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}
    return Node.from_raw({"kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status})


def pod(name: str = "p", cpu: str = "1", **spec: Any) -> Pod:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}})


def plugin(called: str, **methods: Callable[..., Any]) -> type[Any]:
    """Create a plugin class with these methods."""
    plain = {name: staticmethod(method) for name, method in methods.items()}
    return type(called, (), {"name": called, **plain})


def machine(
    *plugins: type[Any],
    nodes: Sequence[Node] = (node("a"), node("b")),
    version: KubernetesVersion = V1_34,
    **points: Any,
) -> SchedulingMachine:
    """Create a machine with the default profile and these plugins; `points` are as in a profile's `plugins`."""
    registry = Registry({each.name: each for each in plugins})
    enabled = {"multiPoint": {"enabled": [{"name": each.name} for each in plugins]}, **points}
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": enabled}],
    }
    made = SchedulingMachine(
        config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()}, version=version),
        registry=registry,
        choose=by_name,
    )
    made.cluster.load(nodes)
    return made


def attempt(made: SchedulingMachine, wanted: Pod | None = None) -> Any:
    return drive(made.begin(wanted or pod(), {}))


# -- PreFilter -------------------------------------------------------------------------------------------------


def narrowing(*names: str) -> Callable[..., PreFilterResult]:
    return lambda state, pod, cluster: PreFilterResult(frozenset(names))


def saying(status: Status | None) -> Callable[..., Status | None]:
    return lambda state, pod, cluster: status


@pytest.mark.parametrize(
    ("first", "second", "requests", "message", "blamed"),
    [
        pytest.param(
            saying(unschedulable("not today")),
            saying(None),
            ["One", "Two"],
            "0/2 nodes are available: not today.",
            {"One"},
            id="a-rejection-lets-the-others-prepare",
        ),
        pytest.param(
            saying(unresolvable("never")),
            saying(None),
            ["One"],
            "0/2 nodes are available: never.",
            {"One"},
            id="one-for-good-ends-it",
        ),
        pytest.param(
            saying(error("broken")),
            saying(None),
            ["One"],
            'running PreFilter plugin "One": broken',
            set(),
            id="an-error-ends-it-and-blames-nobody",
        ),
        # RunPreFilterPlugins compares with the codes Unschedulable and UnschedulableAndUnresolvable, without
        # IsRejected.
        pytest.param(
            saying(Status(Code.PENDING, ("not yet",))),
            saying(None),
            ["One"],
            'running PreFilter plugin "One": not yet',
            set(),
            id="as-does-pending-which-is-an-error-here",
        ),
        pytest.param(
            narrowing("a"),
            narrowing("b"),
            ["One", "Two"],
            "0/2 nodes are available: node(s) didn't satisfy plugin(s) [One Two] simultaneously.",
            {"One", "Two"},
            id="narrowed-to-different-nodes",
        ),
        pytest.param(
            narrowing(),
            saying(None),
            ["One"],
            "0/2 nodes are available: node(s) didn't satisfy plugin One.",
            {"One"},
            id="narrowed-to-none",
        ),
    ],
)
def test_a_pod_turned_away_by_prefilter(
    first: Any, second: Any, requests: MatchedRegistration, message: str, blamed: set[str]
) -> None:
    called: MatchedRegistration = []

    def noting(name: str, answer: Any) -> Callable[..., Any]:
        def method(state: Any, pod: Pod, cluster: Any) -> Any:
            called.append(name)
            return answer(state, pod, cluster)

        return method

    made = machine(
        plugin("One", pre_filter=noting("One", first)),
        plugin("Two", pre_filter=noting("Two", second)),
        postFilter={"disabled": [{"name": "*"}]},
    )
    result = attempt(made)
    assert isinstance(result, FitError)
    assert called == requests
    assert result.message == message
    assert result.diagnosis.unschedulable_plugins == blamed


def test_a_pod_goes_where_all_that_narrow_agree() -> None:
    nodes = [node(name) for name in "abcd"]
    made = machine(
        plugin("One", pre_filter=narrowing("b", "c", "gone")),
        plugin("Two", pre_filter=narrowing("c", "d")),
        nodes=nodes,
    )
    result = attempt(made)
    assert isinstance(result, ScheduleResult)
    assert (result.node_name, result.visited, result.score) == ("c", 1, None)


def test_a_pod_narrowed_to_nodes_that_are_not_there_visits_none() -> None:
    made = machine(plugin("One", pre_filter=narrowing("gone")), postFilter={"disabled": [{"name": "*"}]})
    made.start.index = 1
    result = attempt(made)
    assert isinstance(result, FitError)
    assert result.message == "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [One]."
    assert made.start.index == 1


def test_a_filter_whose_prefilter_says_skip_is_not_asked() -> None:
    def never(state: Any, pod: Pod, node: Any) -> Status:
        return unschedulable("asked after all")

    assert isinstance(attempt(machine(plugin("Filters", filter=never))), FitError)
    assert isinstance(attempt(machine(plugin("Filters", filter=never, pre_filter=saying(SKIP)))), ScheduleResult)


# -- Score -----------------------------------------------------------------------------------------------------


def test_one_feasible_node_is_not_scored() -> None:
    def score(state: Any, pod: Pod, node: Any) -> int:
        raise AssertionError("nobody should ask")

    made = machine(plugin("Scores", score=score), nodes=[node("a"), node("b", unschedulable=True)])
    result = attempt(made)
    assert isinstance(result, ScheduleResult)
    assert (result.node_name, result.score, result.ties, result.totals) == ("a", None, 1, None)


def test_the_highest_total_wins_and_ties_are_counted() -> None:
    points = {"a": 10, "b": 70, "c": 70}
    made = machine(
        plugin("Scores", score=lambda state, pod, node: points[node.name]),
        nodes=[node(name) for name in points],
        multiPoint={"enabled": [{"name": "Scores", "weight": 3}]},
        score={"disabled": [{"name": "*"}], "enabled": [{"name": "Scores", "weight": 3}]},
    )
    result = attempt(made)
    assert isinstance(result, ScheduleResult)
    assert (result.node_name, result.score, result.ties) == ("b", 210, 2)
    assert result.totals is not None
    assert np.sort(result.totals).tolist() == [30, 210, 210]


def test_the_result_says_which_plugins_chose_the_node() -> None:
    made = machine()
    result = attempt(made)
    assert result.framework is made.schedulers["default-scheduler"].profile


# -- PostFilter ------------------------------------------------------------------------------------------------

GONE = Delete("Pod", "default", "victim", "uid")


def post(status: Status, nominated: str | None = None, *writes: Any) -> PostFilterResult:
    return PostFilterResult(status, nominated, writes=writes)


SUCCESS = Status(Code.SUCCESS)


@pytest.mark.parametrize(
    ("answers", "requests", "nominated", "message", "writes"),
    [
        pytest.param(
            [post(SUCCESS, "a", GONE), post(SUCCESS, "b")], ["P0"], "a", "", 1, id="the-first-that-helps-ends-it"
        ),
        pytest.param(
            [post(unschedulable("no")), post(SUCCESS, "b")], ["P0", "P1"], "b", "", 0, id="one-that-does-not-is-passed"
        ),
        pytest.param(
            [post(unschedulable("no"), "", GONE), post(unschedulable("neither"))],
            ["P0", "P1"],
            "",
            "no, neither",
            1,
            id="none-helps-and-their-words-are-joined",
        ),
        pytest.param(
            [post(unresolvable("hopeless")), post(SUCCESS, "b")], ["P0"], None, "hopeless", 0, id="hopeless-ends-it"
        ),
        pytest.param([post(error("broken")), post(SUCCESS, "b")], ["P0"], None, "broken", 0, id="an-error-ends-it"),
    ],
)
def test_post_filter(
    answers: list[PostFilterResult], requests: MatchedRegistration, nominated: str | None, message: str, writes: int
) -> None:
    called: MatchedRegistration = []

    def answering(name: str, answer: PostFilterResult) -> Callable[..., PostFilterResult]:
        def method(state: Any, pod: Pod, cluster: Any, view: Any) -> PostFilterResult:
            called.append(name)
            return answer

        return method

    plugins = [plugin(f"P{n}", post_filter=answering(f"P{n}", answer)) for n, answer in enumerate(answers)]
    made = machine(
        *plugins,
        postFilter={"disabled": [{"name": "*"}], "enabled": [{"name": each.name} for each in plugins]},
    )
    result = attempt(made, pod(cpu="9"))
    assert isinstance(result, FitError)
    assert called == requests
    assert result.nominated_node == nominated
    assert result.message == f"0/2 nodes are available: 2 Insufficient cpu. {message}".rstrip()
    assert result.post_filter is not None
    assert len(result.post_filter.writes) == writes
    if result.post_filter.status.code is not Code.SUCCESS:
        assert result.post_filter.status.plugin == "P0", "the first plugin that rejected the pod"


class Looks:
    """A PostFilter plugin that records its arguments."""

    name: ClassVar = "Looks"
    seen: ClassVar[list[Any]] = []

    def post_filter(self, state: Any, pod: Pod, cluster: Any, view: Any) -> PostFilterResult:
        names = cluster.table.names
        helped = sorted(names[row] for row in view.rows_with(Code.UNSCHEDULABLE).tolist())
        codes = [view.code_on(name) for name in ("a", "b", "gone")]
        self.seen.append((helped, [other.name for other in view.nominated_on("a")], codes))
        return post(unschedulable("no"))


def test_post_filter_sees_who_is_nominated_and_a_second_look_sees_who_is_by_then() -> None:
    Looks.seen.clear()
    made = machine(
        Looks,
        nodes=[node("a"), node("b", unschedulable=True)],
        postFilter={"disabled": [{"name": "DefaultPreemption"}]},
    )
    made.cluster.put(attrs.evolve(pod("there", cpu="7"), node_name="a"))
    wanted = pod(cpu="3")
    failed = drive(made.begin(wanted, {"a": (pod("first"),)}))
    assert isinstance(failed, FitError)
    again = made.schedulers["default-scheduler"].post_filters.reconsider(failed, {"a": (pod("second"),)})
    assert again.message == failed.message
    for_good = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    codes = [Code.UNSCHEDULABLE, for_good, for_good]
    assert Looks.seen == [(["a"], ["first"], codes), (["a"], ["second"], codes)]


@pytest.mark.parametrize(("version", "nominated"), [(V1_34, None), (V1_36, "")])
def test_without_post_filter_a_failed_attempt_clears_the_nomination_since_1_35(
    version: KubernetesVersion, nominated: str | None
) -> None:
    made = machine(version=version, postFilter={"disabled": [{"name": "*"}]})
    failed = attempt(made, pod(cpu="9"))
    assert isinstance(failed, FitError)
    assert (failed.post_filter, failed.nominated_node) == (None, nominated)
    assert made.schedulers["default-scheduler"].post_filters.reconsider(failed, {}) is failed


def test_an_exception_of_post_filter_is_an_error() -> None:
    def fails(state: Any, pod: Pod, cluster: Any, view: Any) -> PostFilterResult:
        raise OverflowError("too much")

    made = machine(
        plugin("Fails", post_filter=fails), postFilter={"disabled": [{"name": "*"}], "enabled": [{"name": "Fails"}]}
    )
    failed = attempt(made, pod(cpu="9"))
    assert (failed.status.code, failed.post_filter) == (Code.ERROR, None)
    assert "too much" in failed.message


def test_an_attempt_without_nodes_and_an_internal_error_have_messages_of_their_own() -> None:
    failed = attempt(machine(nodes=[]))
    assert isinstance(failed, FitError)
    assert failed.diagnosis.node_count == 0
    assert failed.message == failed.status.message == "no nodes available to schedule pods"
    one = attempt(machine(nodes=[node("a")]), pod(cpu="9"))
    assert one.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    broken = attrs.evolve(one, status=error("broken"))
    assert broken.message == "broken"


def test_only_the_nodes_of_a_placement_are_considered_and_counted() -> None:
    made = machine(nodes=[node("a"), node("b"), node("c", unschedulable=True)])
    scheduler = made.schedulers["default-scheduler"]

    def within(*names: str, cpu: str = "1") -> Any:
        placement = np.array([made.cluster.table.row_of[name] for name in names], dtype=np.int64)
        return drive(scheduler.attempt(pod(cpu=cpu), {}, placement=placement, post_filters=False))

    assert within("b", "c").node_name == "b"
    assert sorted(within("a", "b").feasible.tolist()) == [0, 1]
    assert within("c").message == "0/1 nodes are available: 1 node(s) were unschedulable."
    failed = within("a", "c", cpu="9")
    assert failed.message == "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    assert failed.nominated_node is None


@pytest.mark.parametrize("options", [{}, {"every_node": True}, {"placement": np.arange(2)}], ids=str)
def test_only_an_attempt_without_restrictions_prepares_those_of_later_pods(options: dict[str, Any]) -> None:
    made = machine()
    scheduler, wanted = made.schedulers["default-scheduler"], pod()
    for _ in range(3):
        drive(scheduler.attempt(wanted, {}, **options))
    assert scheduler.preparations is not None
    assert (scheduler.preparations.of(wanted) is not None) is not bool(options)


def test_explaining_looks_at_every_node_and_moves_nothing() -> None:
    made = machine(nodes=[node(f"n{number:03}") for number in range(150)])
    scheduler = made.schedulers["default-scheduler"]
    result: Any = drive(scheduler.attempt(pod(), {}, every_node=True))
    assert len(result.feasible) == 150
    assert made.start.index == 0
