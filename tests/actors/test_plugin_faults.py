"""Tests of faults in every method of a plugin: the daemon keeps running, and the pod's message names the plugin.

Each fault is tested in a separate cluster with two profiles, one of which contains the plugin. A fault is contained
under these conditions. The pod of the plugin's profile has the expected result: an error that names the plugin, or a
node if the method cannot prevent it. A pod of the other profile is scheduled before and afterwards. After the pod's
deletion, nothing of it remains: no assumed or waiting pod, no reservation, no queue entry and no thread.

Some faults cannot be contained within one process, and are not tested: `os._exit`, crashes in C, closing our files.

The full run tests all cases (some 1,000), the everyday run a selection with each method and each fault.
"""

import asyncio
import gc
import itertools
import logging
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.answers import plain
from kschedd.api.pods import Pod
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.daemon import cluster_actors
from kschedd.explain.explain import explain
from kschedd.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, EventResource, on
from kschedd.framework.faults import PluginError
from kschedd.framework.interface import PostFilterResult, PreFilterResult, plugin_info
from kschedd.framework.registry import PluginLoadError, Registry
from kschedd.framework.status import Code, Status, unschedulable
from kschedd.framework.writes import Bind, Create, Delete, MergePatch, Plan
from kschedd.queue.entry import QueuedPod
from kschedd.scheduling.driver import SchedulingDriver
from tests.actors.clusters import comes_to, node, nothing_is_left_of, placed, pod, rejected, until
from tests.full_run import every, everyday

LIMIT_S = 0.15  # time limit of hanging calls in seconds; on a busy machine, other calls can take as long
let_go = threading.Event()


@pytest.fixture(scope="module", autouse=True)
def _no_thread_stays() -> Any:
    yield
    gc.collect()  # a plugin's threads end with its guard
    threads = [one for one in threading.enumerate() if one.name == "plugin Bad"]
    for one in threads:
        one.join(60)
    assert not [one for one in threads if one.is_alive()]


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    let_go.clear()
    yield
    let_go.set()


# -- the faults ------------------------------------------------------------------------------------------------------


class Treacherous:
    """An object whose every method ends the thread."""

    def _end(self, *args: Any) -> Any:
        raise SystemExit(9)

    __eq__ = __hash__ = __len__ = __bool__ = __iter__ = __repr__ = __str__ = __int__ = __float__ = _end
    __array__ = __getitem__ = __call__ = __index__ = __lt__ = __contains__ = _end


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit(9)


def raises(fault: Callable[[], BaseException]) -> Callable[..., Any]:
    def act(*args: Any) -> Any:
        raise fault()

    return act


def deep(*args: Any) -> Any:
    return deep(*args)


def cancelled(*args: Any) -> Any:
    """Raise a trio.Cancelled from a Trio run that has ended."""
    caught: list[BaseException] = []

    async def main() -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as fault:
                caught.append(fault)
                raise

    trio.run(main)
    raise caught[0]


def busy(*args: Any) -> Any:
    """Compute forever."""
    while not let_go.is_set():
        pass


class Final(BaseException):
    """Nobody knows it."""


def endless(*args: Any) -> Any:
    return iter(int, 1)


async def coroutine_function() -> None:
    """Never awaited."""


def coroutine(*args: Any) -> Any:
    made = coroutine_function()
    made.close()  # or the interpreter warns
    return made


RAISING: dict[str, Callable[..., Any]] = {
    "value-error": raises(lambda: ValueError("boom")),
    "sys-exit": raises(lambda: SystemExit(1)),
    "interrupt": raises(KeyboardInterrupt),
    "generator-exit": raises(GeneratorExit),
    "stop-iteration": raises(StopIteration),
    "cancelled": raises(asyncio.CancelledError),
    "mute": raises(Mute),
    "surrogates": raises(lambda: ValueError("\ud800\x00\x1b[2J")),
    "group": raises(lambda: BaseExceptionGroup("many", [KeyboardInterrupt()])),
    "recursion": deep,
    "assertion": raises(AssertionError),
    "end-of-channel": raises(trio.EndOfChannel),
    "memory": raises(MemoryError),
    "unknown": raises(Final),
    "trio-cancelled": cancelled,
    "hangs": lambda *args: let_go.wait(),
    "hangs-busily": busy,
}
HANGS = ("hangs", "hangs-busily")


def gives(value: Any) -> Callable[..., Any]:
    return lambda *args: value


# Invalid results for any method that returns a value.
WRONG: dict[str, Callable[..., Any]] = {
    "a-number": gives(7.5),
    "a-text": gives("yes"),
    "an-object": lambda *args: object(),
    "a-class": gives(Status),
    "a-generator": endless,
    "a-coroutine": coroutine,
    "treacherous": lambda *args: Treacherous(),
    "nan": gives(float("nan")),
    "a-code": gives(Code.UNSCHEDULABLE),
    "a-dict": gives({"code": 1}),
}

BAD_STATUSES: dict[str, Callable[..., Any]] = {
    "code-of-99": gives(Status(99)),
    "code-true": gives(Status(True)),
    "code-text": gives(Status("Error")),
    "reasons-a-text": gives(Status(Code.UNSCHEDULABLE, "no room")),
    "reasons-numbers": gives(Status(Code.UNSCHEDULABLE, (1, 2))),
    "reasons-none": gives(Status(Code.UNSCHEDULABLE, None)),
    "reasons-treacherous": lambda *args: Status(Code.UNSCHEDULABLE, (Treacherous(),)),
    "reasons-without-end": gives(Status(Code.UNSCHEDULABLE, itertools.repeat("x"))),
}


def rows_of(*args: Any) -> int:
    return len(args[3])


BAD_COLUMNS: dict[str, Callable[..., Any]] = {
    "floats": lambda *args: np.full(rows_of(*args), 0.5),
    "nans": lambda *args: np.full(rows_of(*args), np.nan),
    "bools": lambda *args: np.ones(rows_of(*args), dtype=bool),
    "texts": lambda *args: np.array(["a"] * rows_of(*args)),
    "objects": lambda *args: np.array([Treacherous() for _ in range(rows_of(*args))], dtype=object),
    "too-short": lambda *args: np.zeros(rows_of(*args) - 1, dtype=np.int64),
    "too-long": lambda *args: np.zeros(rows_of(*args) + 1, dtype=np.int64),
    "two-dimensional": lambda *args: np.zeros((rows_of(*args), 2), dtype=np.int64),
    "no-dimension": lambda *args: np.int64(3),
    "beyond-int64": lambda *args: np.full(rows_of(*args), 2**64 - 1, dtype=np.uint64),
    "list-of-texts": lambda *args: ["x"] * rows_of(*args),
    "list-of-huge": lambda *args: [10**400] * rows_of(*args),
}


def normalized(column: Callable[..., Any]) -> Callable[..., Any]:
    """Return wrong scores from `normalize`, whose third argument are the scores."""
    return lambda *args: column(*args[:2], None, args[2])


BAD_SCORES: dict[str, Callable[..., Any]] = {
    "huge": gives(10**400),
    "minus-huge": gives(-(10**400)),
    "true": gives(True),
    "none": gives(None),
    "too-high": gives(101),
    "negative": gives(-1),
    "numpy-too-high": gives(np.int64(2**62)),
    "numpy-unsigned": gives(np.uint64(2**64 - 1)),
    "numpy-float": gives(np.float64(1)),
}

BAD_PLANS: dict[str, Callable[..., Any]] = {
    "ready-a-number": gives(Plan((), 7)),
    "timeout-nan": gives(Plan((), lambda cluster: None, float("nan"))),
    "timeout-a-text": gives(Plan((), lambda cluster: None, "1s")),
    "timed-out-a-text": gives(Plan((), lambda cluster: None, 1.0, "late")),
    "writes-none": gives(Plan(None)),
    "writes-a-text": gives(Plan("Bind")),
    "write-of-a-number": gives(Plan((Bind("default", 7, "", "n1"),))),
    "patch-of-an-object": gives(Plan((MergePatch("Pod", "default", "p", {"metadata": object()}),))),
    "patch-of-nan": gives(Plan((MergePatch("Pod", "default", "p", {"metadata": {"x": float("nan")}}),))),
    "patch-no-mapping": gives(Plan((MergePatch("Pod", "default", "p", [1]),))),
    "patch-elsewhere": gives(Plan((MergePatch("Pod", "default", "p", {}, "exec"),))),
    "delete-slowly": gives(Plan((Delete("Pod", "default", "p", grace_period_s="1"),))),
    "create-a-text": gives(Plan((Create("Pod"),))),
}

BAD_NARROWINGS: dict[str, Callable[..., Any]] = {
    "names-a-text": gives(PreFilterResult("n1")),
    "names-numbers": gives(PreFilterResult(frozenset((1,)))),
    "names-none": gives(PreFilterResult(None)),
    "already_filtered-a-text": gives(PreFilterResult(frozenset(("n1",)), "yes")),
}

BAD_RESULTS: dict[str, Callable[..., Any]] = {
    "nothing": gives(None),
    "status-none": gives(PostFilterResult(None)),
    "nominated-a-number": gives(PostFilterResult(Status(Code.SUCCESS), 7)),
    "victims-texts": gives(PostFilterResult(Status(Code.SUCCESS), "n1", ("web",))),
    "victims-a-number": gives(PostFilterResult(Status(Code.SUCCESS), "n1", 7)),
    "victim-not-on-a-node": lambda *args: PostFilterResult(Status(Code.SUCCESS), "n1", (args[1],)),
    "writes-texts": gives(PostFilterResult(Status(Code.SUCCESS), "n1", (), ("Delete",))),
    "rejected-texts": gives(PostFilterResult(Status(Code.SUCCESS), "n1", (), (), ("web",))),
}

BAD_PERMITS: dict[str, Callable[..., Any]] = {
    "seconds-nan": gives((Status(Code.WAIT), float("nan"))),
    "seconds-negative": gives((Status(Code.WAIT), -1)),
    "seconds-a-text": gives((Status(Code.WAIT), "1s")),
    "three-things": gives((Status(Code.WAIT), 1, 2)),
    "turned-round": gives((1.0, Status(Code.WAIT))),
}


def tries_to_write(*args: Any) -> None:
    """Write into every argument; the raised error lists the arguments that could be written."""
    written = []
    for name, change in list(_changes(args)):
        try:
            change()
        except (TypeError, ValueError, AttributeError):
            continue
        written.append(name)
    raise LookupError(f"written: {written}")


def _changes(args: tuple[Any, ...]) -> Any:
    for number, arg in enumerate(args):
        things = {"arg": arg, "table": getattr(arg, "table", None), "pod": getattr(arg, "pod", None)}
        for thing, value in things.items():
            for name, change in _ways(value):
                yield f"{number} {thing} {name}", change


def _ways(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        yield "array", lambda: value.__setitem__(slice(None), -5)
        yield "flags", lambda: setattr(value.flags, "writeable", True)
    if isinstance(value, Pod):
        yield "raw", lambda: value.raw["spec"].__setitem__("nodeName", "x")
        yield "container", lambda: value.raw["spec"]["containers"][0].clear()
        yield "spec", lambda: value.pod_spec.raw.__setitem__("x", 1)
        yield "labels", lambda: value.labels.__setitem__("x", "y")
        yield "shape labels", lambda: value.signature.labels.__setitem__("x", "y")
        yield "requests", lambda: value.requests.__setitem__("cpu", 1)
        yield "node_name", lambda: setattr(value, "node_name", "n1")
        yield "annotations", lambda: value.annotations.__setitem__("x", "y")
    if hasattr(value, "requested") and hasattr(value, "row_of"):
        yield "requested", lambda: value.requested.__setitem__((0, 0), -5)
        yield "column", lambda: setattr(value, "requested", None)
        yield "names", lambda: value.names.__setitem__(0, "x")
        yield "row_of", lambda: value.row_of.__setitem__("x", 0)
        yield "node", lambda: value.nodes[0].raw["metadata"].clear()
        yield "allocatable", lambda: value.nodes[0].allocatable.clear()
        yield "put_node", lambda: value.put_node(value.nodes[0])
        yield "label", lambda: value.label("x").ids.__setitem__(0, 5)
        yield "label values", lambda: value.label("x").values.append("x")
    if hasattr(value, "skip_filter"):
        yield "skip", lambda: value.skip_filter.add("NodeName")
    if hasattr(value, "assumed_pods"):
        yield "assume", lambda: value.assume(value.assumed_pods()[0], "n1")
        yield "objects", lambda: value.of_kind("Service").__setitem__("x", None)


# -- which methods they are put into ---------------------------------------------------------------------------------

ERROR, PLACED, GATED = "an error that names the plugin", "a node", "gated by the plugin"


@attrs.frozen
class SubQueue:
    """A method: further attributes of its plugin, its pod, and the expected result."""

    method: str
    wrong: tuple[dict[str, Callable[..., Any]], ...] = ()
    others: dict[str, Any] = attrs.field(factory=dict)
    pod: dict[str, Any] = attrs.field(factory=dict)
    comes_to: str = ERROR
    full: bool = False  # True if the nodes are full of pods that must be preempted
    tried_by: tuple[str, ...] = ()


def passes(*args: Any) -> None:
    return None


def scores(*args: Any) -> Any:
    return np.zeros(rows_of(*args), dtype=np.int64)


def ones(*args: Any) -> Any:
    return np.ones(rows_of(*args), dtype=np.int64)


def says_no(*args: Any) -> Status:
    return unschedulable("Bad says no")


def keeps(state: Any, *args: Any) -> None:
    state.data["Bad"] = Cloned()


class Cloned:
    def clone(self) -> Any:
        return CURRENT[0]()


CURRENT: list[Callable[..., Any]] = [passes]
IMPORTANT = {"priorityClassName": "important"}
PRIORITY_CLASS = {"kind": "PriorityClass", "metadata": {"name": "important"}, "value": 10}
NOTHING: dict[str, Callable[..., Any]] = {"nothing": gives(None)}
BAD_POINTS: dict[str, Callable[..., Any]] = {"unknown-point": gives(("score",)), "points-numbers": gives([1])}

METHODS = [
    SubQueue("pre_enqueue", (WRONG, BAD_STATUSES), comes_to=GATED),
    SubQueue("pre_filter", (WRONG, BAD_STATUSES, BAD_NARROWINGS)),
    SubQueue("filter", (WRONG, BAD_STATUSES)),
    SubQueue("filter_rows", (WRONG, BAD_COLUMNS), {"code_status": says_no}),
    SubQueue("filter_rows", (WRONG, BAD_COLUMNS), {"code_status": says_no, "depends_on": frozenset({"node", "pods"})}),
    SubQueue("code_status", (WRONG, BAD_STATUSES, NOTHING), {"filter_rows": ones}),
    SubQueue("post_filter", (WRONG, BAD_RESULTS), pod={"cpu": "100"}),
    SubQueue("add_pod", (), {"filter": passes, "pre_filter": passes, "remove_pod": passes}, IMPORTANT, full=True),
    SubQueue("remove_pod", (), {"filter": passes, "pre_filter": passes, "add_pod": passes}, IMPORTANT, full=True),
    SubQueue(
        "clone",
        (),
        {"filter": passes, "pre_filter": keeps, "add_pod": passes, "remove_pod": passes},
        IMPORTANT,
        full=True,
    ),
    SubQueue("pre_score", (WRONG, BAD_STATUSES), {"score": gives(1)}),
    SubQueue("score", (WRONG, BAD_SCORES)),
    SubQueue("score_rows", (WRONG, BAD_COLUMNS, NOTHING)),
    SubQueue("score_rows", (WRONG, BAD_COLUMNS), {"depends_on": frozenset({"node"})}),
    SubQueue(
        "normalize",
        (WRONG, {name: normalized(act) for name, act in BAD_COLUMNS.items()}, NOTHING),
        {"score_rows": scores},
    ),
    SubQueue("idle_for", (WRONG, NOTHING, BAD_POINTS), {"filter": passes}),
    SubQueue("idle_for", (WRONG, NOTHING, BAD_POINTS), {"pre_filter": passes}),
    SubQueue("cache_key", (), {"filter_rows": passes, "code_status": says_no, "depends_on": frozenset({"node"})}),
    SubQueue("reserve", (WRONG, BAD_STATUSES)),
    SubQueue("unreserve", (WRONG, BAD_PLANS), {"reserve": passes, "permit": says_no}),
    SubQueue("permit", (WRONG, BAD_STATUSES, BAD_PERMITS)),
    SubQueue("pre_bind", (WRONG, BAD_STATUSES, BAD_PLANS)),
    SubQueue("ready", (WRONG, BAD_STATUSES), {"pre_bind": lambda *args: Plan((), lambda c: CURRENT[0](c), 30.0)}),
    SubQueue("bind", (WRONG, BAD_STATUSES, BAD_PLANS)),
    SubQueue("post_bind", (), comes_to=PLACED),
    SubQueue("sort_key", ({k: v for k, v in WRONG.items() if k not in ("a-text", "a-number")},), comes_to=PLACED),
    SubQueue("hint", (WRONG, NOTHING), comes_to=PLACED),
]


@attrs.frozen
class Case:
    place: SubQueue
    fault: str
    act: Callable[..., Any]

    def __str__(self) -> str:
        reads = "-that-reads" if "depends_on" in self.place.others else ""
        return f"{self.place.method}{reads}-{self.fault}"


def _cases() -> list[Case]:
    found = []
    for place in METHODS:
        faults = dict(RAISING)
        for wrong in place.wrong:
            faults.update(wrong)
        if place.method not in ("ready", "clone", "hint", "sort_key"):
            faults["writes"] = tries_to_write
        found += [Case(place, fault, act) for fault, act in faults.items()]
    return found


def _selected(cases: list[Case]) -> list[Case]:
    """Return cases with each method and each fault: the first of each, and every 30th of the others."""
    methods, faults, others = set[str](), set[str](), 0
    chosen = []
    for case in cases:
        new = case.place.method not in methods or case.fault not in faults
        others += not new
        if new or others % 30 == 0:
            chosen.append(case)
            methods.add(case.place.method)
            faults.add(case.fault)
    return chosen


CASES = _cases()
SELECTED = frozenset(map(id, _selected(CASES)))


def _plugin(case: Case) -> type[Any]:
    CURRENT[0] = case.act
    members: dict[str, Any] = dict(case.place.others)
    if case.place.method == "hint":
        members["filter"] = lambda state, pod, node: None if node.name == "n3" else says_no()
        members["events_to_register"] = lambda: [on(EventResource.NODE, ActionType.ADD, case.act)]
    elif case.place.method not in ("ready", "clone"):
        members[case.place.method] = case.act
    wrapped = {name: staticmethod(value) if callable(value) else value for name, value in members.items()}
    return type("Bad", (), {"name": "Bad", **wrapped})


def _config(cls: type[Any], *, everywhere: bool) -> Any:
    catalogue = {**IN_TREE, "Bad": plugin_info(cls)}
    bad: dict[str, Any] = {"multiPoint": {"enabled": [{"name": "Bad"}]}}
    if everywhere:
        bad = {"queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "Bad"}]}}
    elif "bind" in vars(cls):
        bad["bind"] = {"disabled": [{"name": "DefaultBinder"}]}
    if "post_filter" in vars(cls):
        bad["postFilter"] = {"disabled": [{"name": "DefaultPreemption"}]}
    profiles = [
        {"schedulerName": "default-scheduler", "plugins": bad if everywhere else {}},
        {"schedulerName": "bad", "plugins": bad},
    ]
    raw = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": profiles}
    return config_from_raw(raw, catalogue=catalogue)


async def _come_to(cluster: LiveCluster, place: SubQueue, name: str) -> str:
    """Return the result for the pod: its node, its condition's message, or the plugin that gates it."""
    if place.comes_to == GATED:
        await comes_to(cluster.queue, lambda owner: bool((e := owner.queue.entry(f"default/{name}")) and e.gated), True)
        entry = await cluster.queue.query(lambda owner: owner.queue.entry(f"default/{name}"))
        assert entry is not None
        assert entry.gating_status is not None
        return f"{entry.gating_plugin}: {entry.gating_status.message}"

    def answer(store: Any) -> str:
        found = store.find("Pod", "default", name)
        if found.node_name:
            return f"on {found.node_name}"
        conditions = found.status.get("conditions") or ()
        texts = [c.get("message", "") for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
        if place.comes_to == PLACED or not texts:
            return ""
        return str(texts[0])

    return str(await until(cluster, answer))


async def _placed(cluster: LiveCluster, name: str) -> None:
    await until(cluster, lambda store: store.get("Pod", "default", name).node_name)


@pytest.mark.parametrize("case", everyday(CASES, lambda case: id(case) in SELECTED), ids=str)
async def test_a_fault_is_the_plugins_and_the_daemon_lives(case: Case) -> None:
    place = case.place
    cls = _plugin(case)
    registry = Registry({"Bad": cls})
    config = _config(cls, everywhere=place.method == "sort_key")
    async with cluster_actors(
        config, registry=registry, plugin_limit_s=LIMIT_S if case.fault in HANGS else 20.0
    ) as cluster:
        await cluster.store.create_many([node("n1", cpu="4"), node("n2", cpu="4")])
        if place.full:
            await cluster.store.create({"apiVersion": "scheduling.k8s.io/v1", **PRIORITY_CLASS})
            await cluster.store.create_many([pod(f"low-{number}", cpu="1900m") for number in range(4)])
            for number in range(4):
                await _placed(cluster, f"low-{number}")
        else:
            await cluster.store.create(pod("before"))
            await _placed(cluster, "before")
        spec = {"schedulerName": "bad", **place.pod}
        if place.full:
            spec["cpu"] = "1000m"
        names = ["bad-1", "bad-2"] if place.method == "cache_key" else ["bad-1"]
        for name in names:
            await cluster.store.create(pod(name, **spec))
        if place.method == "cache_key":
            await _placed(cluster, "bad-1")
        if place.method == "hint":
            await until(cluster, lambda store: store.get("Pod", "default", "bad-1").status.get("conditions"))
            await cluster.store.create(node("n3"))
            if case.fault in HANGS:
                await rejected(cluster, "bad-1", "filter was not called")
                let_go.set()
        came = await _come_to(cluster, place, names[-1])
        if place.comes_to == PLACED:
            assert came.startswith("on n")
        else:
            assert "Bad" in came, came
        if case.fault == "writes" and place.comes_to == ERROR and place.method != "unreserve":
            # The scores passed to `normalize` are a copy, and may be changed.
            assert "written: []" in came or (place.method == "normalize" and "written: ['2 arg array'" in came), came
        let_go.set()
        stored = await cluster.store.do(lambda store: store.get("Pod", "default", names[-1]))
        try:
            reported = await cluster.scheduler.query(lambda owner: plain(explain(owner.machine, stored, {})))
        except PluginError as fault:
            assert fault.plugin == "Bad"  # noqa: PT017 - one of two ways to say so
        else:
            assert set(reported) >= {"verdicts", "scores", "message"}
        await cluster.store.create(pod("after", cpu="50m"))
        await _placed(cluster, "after")
        status = await cluster.scheduler.query(lambda owner: owner.machine.cluster.table.requested.min())
        assert status >= 0
        await nothing_is_left_of(cluster, *names)


# -- what is no fault, and not nice either ---------------------------------------------------------------------------


def prints(plugin: Any) -> None:
    """Write a megabyte to both streams and to the log."""
    for stream in (sys.stdout, sys.stderr):
        stream.write("noise " * 80_000 + "\n")
    for number in range(200):
        logging.getLogger("noisy").warning("%s %s", number, "x" * 500)


def starts_threads(plugin: Any) -> None:
    """Start threads that call all functions of the handle, with valid and invalid arguments."""

    def use() -> None:
        handle = plugin.handle
        pods = [waiting for waiting, _ in handle.waiting_pods()]
        for call in (
            lambda: handle.allow("nobody", "Bad"),
            lambda: handle.reject("nobody", "Bad", "why"),
            lambda: handle.activate(pods),
            lambda: handle.activate([object()]),
            lambda: handle.allow(None, 7),
            lambda: handle.nominated_pods("n1"),
            lambda: handle.evicting("nobody"),
            lambda: handle.cluster.table.label("zone"),
            lambda: list(handle.cluster.of_kind("Pod")),
        ):
            with suppress(TypeError, RuntimeError):
                call()

    threads = [threading.Thread(target=use) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def recurses(plugin: Any) -> None:
    with suppress(RecursionError):
        deep()


NASTY = {"prints": prints, "starts-threads": starts_threads, "recurses": recurses}
ANSWERS: dict[str, Any] = {
    **dict.fromkeys(("pre_enqueue", "pre_filter", "filter", "pre_score", "reserve", "unreserve", "permit"), None),
    **dict.fromkeys(("pre_bind", "post_bind"), None),
    "score": 1,
}


@pytest.mark.parametrize("nasty", every(3, NASTY))
async def test_what_is_not_nice_fails_nothing(nasty: str) -> None:
    """Check the methods that are called before a pod has a node."""
    requests: set[str] = set()

    class Bad:
        name = "Bad"

        def __init__(self, handle: Any) -> None:
            self.handle = handle

        @classmethod
        def from_args(cls, args: Any, handle: Any) -> Any:
            return cls(handle)

    def of(method: str) -> Callable[..., Any]:
        def act(self: Any, *args: Any) -> Any:
            requests.add(method)
            NASTY[nasty](self)
            return ANSWERS[method]

        return act

    for method in ANSWERS:
        setattr(Bad, method, of(method))
    async with cluster_actors(_config(Bad, everywhere=False), registry=Registry({"Bad": Bad})) as cluster:
        await cluster.store.create_many([node("n1"), node("n2")])
        await cluster.store.create_many([pod("bad-1", schedulerName="bad"), pod("other")])
        await placed(cluster, "bad-1", "other")
        await comes_to(cluster.scheduler, lambda driver: requests >= ANSWERS.keys() - {"unreserve"}, True)
        await nothing_is_left_of(cluster, "bad-1")


# -- faults of the start ---------------------------------------------------------------------------------------------


STARTS: dict[str, tuple[str, str]] = {
    # id: file, expected position
    "syntax": ("def f(:\n", "(bad.py:1)"),
    "raises": ("import os\nraise ValueError('boom')\n", "ValueError: boom (bad.py:2)"),
    "sys-exit": ("import sys\n\nsys.exit(3)\n", "SystemExit: 3 (bad.py:3)"),
    "interrupt": ("raise KeyboardInterrupt\n", "KeyboardInterrupt (bad.py:1)"),
    "missing": (
        "import no_such_module_here\n",
        "ModuleNotFoundError: No module named 'no_such_module_here' (bad.py:1)",
    ),
    "hangs": ("import threading\nthreading.Event().wait()\n", "import did not return within 0.3s"),
    "empty": ("x = 1\n", "defines no plugin"),
    "no-method": ("class Bad:\n    name = 'Bad'\n", "none of the methods"),
    "in-tree-name": (
        "class Bad:\n    name = 'NodeName'\n    def filter(self, *a): pass\n",
        "belongs to an in-tree plugin",
    ),
    "two-of-a-name": (
        "class A:\n    name = 'Bad'\n    def filter(self, *a): pass\nclass B(A): pass\n",
        "the name Bad belongs to a plugin",
    ),
    "metaclass": (
        "class Meta(type):\n    def __getattr__(cls, name):\n        raise SystemExit(4)\n"
        "class Bad(metaclass=Meta):\n    name = 'Bad'\n    def filter(self, *a): pass\n",
        "SystemExit: 4 (bad.py:3)",
    ),
}


@pytest.mark.parametrize("fault", STARTS)
def test_a_module_that_cannot_be_used_is_said_with_its_line(fault: str, tmp_path: Any) -> None:
    source, answer = STARTS[fault]
    file = tmp_path / "bad.py"
    file.write_text(source)
    registry = Registry(start_limit_s=0.3 if fault == "hangs" else 20.0)
    with pytest.raises(PluginLoadError) as raised:
        registry.add_file(file)
    assert str(raised.value).startswith(f"{file}: ")
    assert answer in str(raised.value)


def _made(**members: Any) -> type[Any]:
    return type("Bad", (), {"name": "Bad", "filter": passes, **members})


class _Property:
    def __init__(self, act: Callable[..., Any]) -> None:
        self._act = act

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else self._act()


def _registers(*events: Any) -> Callable[..., Any]:
    return lambda self: events


MAKING: dict[str, type[Any]] = {
    **{f"from_args-{name}": _made(from_args=classmethod(act)) for name, act in RAISING.items()},
    **{f"init-{name}": _made(__init__=act) for name, act in RAISING.items()},
    **{f"events-{name}": _made(events_to_register=act) for name, act in {**RAISING, **WRONG}.items()},
    **{f"depends-on-{name}": _made(depends_on=_Property(act)) for name, act in {**RAISING, **WRONG}.items()},
    "init-with-arguments": _made(__init__=lambda self, size: None),
    "events-of-texts": _made(events_to_register=_registers("NodeAdd")),
    "events-bare": _made(events_to_register=_registers(ClusterEvent(EventResource.NODE, ActionType.ADD))),
    "events-of-no-action": _made(events_to_register=_registers(on(EventResource.NODE, ActionType(0)))),
    "events-of-a-huge-action": _made(events_to_register=_registers(on(EventResource.NODE, 1 << 40))),
    "events-of-a-resource-text": _made(events_to_register=_registers(on("Node", ActionType.ADD))),
    "events-of-a-hint-text": _made(events_to_register=_registers(on(EventResource.NODE, ActionType.ADD, "yes"))),
    "events-treacherous": _made(events_to_register=_registers(ClusterEventWithHint(Treacherous()))),
    "events-without-end": _made(events_to_register=lambda self: itertools.repeat(1)),
    "depends-on-unknown": _made(depends_on=frozenset({"moon"})),
    "columns-without-words": _made(filter_rows=scores),
}


@pytest.mark.parametrize("fault", MAKING)
async def test_a_plugin_that_cannot_be_made_keeps_the_daemon_from_starting_and_says_which(fault: str) -> None:
    cls = MAKING[fault]
    registry = Registry(
        {"Bad": cls},
        {"Bad": "bad.py"},
        start_limit_s=LIMIT_S if "hangs" in fault or "without-end" in fault else 20.0,
    )
    with pytest.raises(PluginLoadError) as raised:
        async with cluster_actors(_config(cls, everywhere=False), registry=registry):
            raise AssertionError("the plugin cannot be created")
    assert str(raised.value).startswith("bad.py: plugin Bad cannot be created: ")


class Late:
    """A plugin whose properties become invalid after its creation, when they are no longer read."""

    name: ClassVar = "Bad"
    looked = 0

    @property
    def depends_on(self) -> Any:
        self.looked += 1
        if self.looked > 1:
            raise SystemExit(1)

    def filter_rows(self, state: Any, pod: Any, table: Any, rows: Any) -> None:
        return None

    def code_status(self, state: Any, pod: Any, code: int) -> Any:
        raise AssertionError("never asked")


async def test_what_a_plugin_is_is_looked_at_once() -> None:
    config = _config(Late, everywhere=False)
    async with cluster_actors(config, registry=Registry({"Bad": Late})) as cluster:
        await cluster.store.create(node())
        await cluster.store.create_many([pod("p", schedulerName="bad"), pod("q", schedulerName="bad")])
        await _placed(cluster, "p")
        await _placed(cluster, "q")


async def test_attempts_of_other_profiles_need_no_thread_because_of_it() -> None:
    cls = _made()
    async with cluster_actors(_config(cls, everywhere=False), registry=Registry({"Bad": cls})) as cluster:

        def calls(driver: SchedulingDriver) -> list[bool]:
            profiles = "default-scheduler", "bad", "unknown"
            pods = [Pod.from_raw(pod(name, schedulerName=name)) for name in profiles]
            return [driver.attempts.calls_out_of_tree(QueuedPod(one, one.key, 0)) for one in pods]

        assert await cluster.scheduler.query(calls) == [False, True, True]
