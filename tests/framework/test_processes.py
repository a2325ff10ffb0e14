"""Tests that worker processes give the same answers as one process, and are replaced when they die or do not answer."""

import os
import select
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.args import RawArgs
from kschedd.framework.costs import CallCosts
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.faults import PluginError, PluginTimeout
from kschedd.framework.guarding import processes as module
from kschedd.framework.guarding.guarded import GuardedPlugin, GuardedRegistry
from kschedd.framework.guarding.processes import WorkerProcesses
from kschedd.framework.handle import Handle
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.registry import PluginLoadError, Registry
from kschedd.framework.status import Status
from tests.actors.clusters import node, pod

PATIENCE_S = 300.0  # limits long enough for a busy machine
PLUGIN = """
import os
import signal
import threading

from kschedd.plugin import unschedulable, unresolvable


class StoredPlace:
    def __init__(self, pod, least):
        self.pod, self.least = pod, least


class Unreadable:
    def __setstate__(self, state):
        raise ValueError("unreadable")

    def __init__(self):
        self.text = "has a state"


class Elsewhere:
    name = "Elsewhere"
    worker_processes = 2

    def __init__(self, args, handle):
        self.args, self.handle = args, handle
        self.inherited = None  # the FIFO, in a process that the plugin has forked

    @classmethod
    def from_args(cls, args, handle):
        return cls(args, handle)

    def pre_filter(self, state, pod, cluster):
        state.data["Elsewhere"] = StoredPlace(pod, 2)
        if pod.name == "locked":
            state.data["lock"] = threading.Lock()
        if pod.name == "unreadable":
            state.data["unreadable"] = Unreadable()

    def filter(self, state, pod, node):
        if self.inherited is not None:
            os.write(self.inherited, b"called again")
        if pod.name == "dies":
            os._exit(3)
        if pod.name == "forks":
            os.fork()
        if pod.name in ("returns", "stays") and node.name == "n0":
            fifo = os.open(self.args.values["fifo"], os.O_WRONLY)
            if os.fork():
                os.close(fifo)
            else:
                self.inherited = fifo
                os.write(fifo, b"here")
                if pod.name == "stays":
                    threading.Event().wait()
        if pod.name == "leaves":
            if os.fork():
                os._exit(4)
            threading.Event().wait()
        if pod.name == "hangs":
            os.open(self.args.values["fifo"], os.O_WRONLY)
            threading.Event().wait()
        if pod.name == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)
        if pod.name == "looks":
            return unschedulable(f"{self.handle.seed} {self.handle.feature_gates}")
        if pod.name == "raises":
            raise ValueError("boom " + node.name)
        if pod.name == "asks":
            return self.handle.cluster
        if pod.name == "writes":
            node.pods[0].labels["x"] = "y"
        if pod.name == "talks":
            return "yes"
        wish = state.data["Elsewhere"]
        if wish.pod.name != pod.name or node.requested["cpu"] > node.allocatable["cpu"]:
            return unresolvable("no")
        return unschedulable("too few", "of them") if len(node.pods) < wish.least else None

    def score(self, state, pod, node):
        return len(node.labels) + self.args.values["more"] + sum(port for _, _, port in node.used_ports) % 7
"""

ARGS_OF_ONE_PROCESS = f"""
import sys

import attrs

@attrs.frozen
class Args:
    more: int = attrs.field(default=5)

    @more.validator
    def check_process(self, attribute, value):
        if "pytest" not in sys.modules:
            raise ValueError("not here")
{PLUGIN.replace("    worker_processes = 2", "    worker_processes = 2; args_type = Args")}"""


@pytest.fixture(scope="module")
def processes() -> Iterator[WorkerProcesses]:
    pool = WorkerProcesses(start_limit_s=PATIENCE_S)
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def cluster() -> SchedulerCache:
    cache = SchedulerCache()
    for number in range(4):
        cache.put(parse(node(f"n{number}")))
        for other in range(number):
            raw = pod(f"p{number}-{other}", nodeName=f"n{number}")
            raw["metadata"]["uid"] = f"{number}-{other}"
            raw["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80 + other}]
            cache.put(parse(raw))
    return cache


def plugin(
    folder: Path, cluster: SchedulerCache, processes: WorkerProcesses | None, text: str = PLUGIN
) -> GuardedPlugin:
    file = folder / "elsewhere.py"
    file.write_text(text)
    registry = Registry(start_limit_s=PATIENCE_S)
    registry.add_file(file)
    guarded = GuardedRegistry(
        registry.added,
        sources=registry.sources,
        limit_s=PATIENCE_S,
        start_limit_s=PATIENCE_S,
        processes=processes,
    )
    args_type = getattr(guarded.added["Elsewhere"], "args_type", None)
    args = args_type() if args_type else RawArgs({"more": 5, "fifo": str(folder / "fifo")})
    made: GuardedPlugin = guarded.make("Elsewhere", args, Handle(cluster, {"Gate": True}, 7))
    return made


def subject(name: str) -> Pod:
    made = parse({**pod(name), "metadata": {"name": name, "namespace": "default", "uid": name}})
    assert isinstance(made, Pod)
    return made


def words(answer: Any) -> Any:
    return (answer.code, answer.reasons) if isinstance(answer, Status) else str(answer)


def here(made: GuardedPlugin, method: str, name: str, cluster: SchedulerCache) -> list[Any]:
    """Return the plugin's result for each node, computed in the main process."""
    state, wanted, answers = CycleState(), subject(name), []
    getattr(made, "pre_filter")(state, wanted, cluster)  # noqa: B009 - a guarded plugin's methods are set one by one
    for row in cluster.table.order.tolist():
        try:
            answers.append(getattr(made, method)(state, wanted, NodeInfo(cluster.table, row)))
        except PluginError as fault:
            answers.append(fault)
    return answers


def elsewhere(made: GuardedPlugin, method: str, name: str, cluster: SchedulerCache) -> list[Any]:
    state, wanted = CycleState(), subject(name)
    getattr(made, "pre_filter")(state, wanted, cluster)  # noqa: B009
    return made.call_elsewhere(method, state, wanted, cluster.table, cluster.table.order.tolist())


@pytest.mark.parametrize("name", ["web", "raises", "talks", "writes", "looks"])
@pytest.mark.parametrize("method", ["filter", "score"])
def test_answers_are_the_same_as_without(
    method: str, name: str, tmp_path: Path, cluster: SchedulerCache, processes: WorkerProcesses
) -> None:
    expected = here(plugin(tmp_path, cluster, None), method, name, cluster)
    made = plugin(tmp_path, cluster, processes)
    for _ in range(2):  # the second time from the worker's cached data
        assert list(map(words, elsewhere(made, method, name, cluster))) == list(map(words, expected))


def test_what_the_file_said_when_it_was_read_counts(
    tmp_path: Path, cluster: SchedulerCache, processes: WorkerProcesses
) -> None:
    made = plugin(tmp_path, cluster, processes, PLUGIN.replace("too few", "too few then"))
    (tmp_path / "elsewhere.py").write_text("raise ValueError")
    [first, *_] = elsewhere(made, "filter", "web", cluster)
    assert words(first)[1] == ("too few then", "of them")


def test_one_that_does_not_answer_is_ended_and_the_next_call_has_another(
    tmp_path: Path, cluster: SchedulerCache, processes: WorkerProcesses
) -> None:
    made = plugin(tmp_path, cluster, processes)
    elsewhere(made, "filter", "web", cluster)
    before = processes.count
    made.guard.limits = {"filter": 0.2}
    os.mkfifo(tmp_path / "fifo")
    why = "plugin Elsewhere: filter did not return within 0.2s, and its worker process was ended"
    with open(os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK), "rb", 0) as fifo:
        with pytest.raises(PluginTimeout, match=why):
            elsewhere(made, "filter", "hangs", cluster)
        assert fifo.read(1) == b"", "the process has ended, and has not left the file open"
    assert processes.count == before - 1
    [cost] = [one for one in made.guard.costs.all() if one.timeouts]
    assert (cost.name, cost.method, cost.timeouts) == ("Elsewhere", "filter", 1)
    made.guard.limits = {}
    assert len(elsewhere(made, "filter", "web", cluster)) == 4


def test_one_that_dies_fails_the_call_alone(
    tmp_path: Path, cluster: SchedulerCache, processes: WorkerProcesses
) -> None:
    made = plugin(tmp_path, cluster, processes)
    for name, status in (("dies", 3), ("leaves", 4)):
        with pytest.raises(PluginError, match=rf"its worker process ended during filter \(exit status {status}\)"):
            elsewhere(made, "filter", name, cluster)
        assert len(elsewhere(made, "filter", "web", cluster)) == 4


def test_an_interrupt_of_the_daemon_does_not_end_a_process(tmp_path: Path, cluster: SchedulerCache) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits SIG_IGN
    try:
        with closing(WorkerProcesses(1, PATIENCE_S)) as processes:
            made = plugin(tmp_path, cluster, processes)
            expected = elsewhere(made, "filter", "web", cluster)
            assert elsewhere(made, "filter", "interrupted", cluster) == expected
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_process_that_cannot_read_the_data_of_a_call_ends(
    tmp_path: Path, cluster: SchedulerCache, processes: WorkerProcesses
) -> None:
    made = plugin(tmp_path, cluster, processes)
    with pytest.raises(PluginError, match=r"its worker process ended during filter \(exit status 1\)"):
        elsewhere(made, "filter", "unreadable", cluster)
    assert len(elsewhere(made, "filter", "web", cluster)) == 4


def test_calls_wait_for_the_only_process(tmp_path: Path, cluster: SchedulerCache) -> None:
    with closing(WorkerProcesses(1, PATIENCE_S)) as processes:
        made = plugin(tmp_path, cluster, processes)
        with ThreadPoolExecutor(2) as threads:
            calls = [threads.submit(elsewhere, made, "filter", "web", cluster) for _ in range(2)]
            try:
                one, other = (call.result(PATIENCE_S) for call in calls)
            finally:
                count = processes.count
                processes.close()
    assert (len(one), one, count) == (4, other, 1)


def test_what_a_plugin_forks_off_does_not_answer_as_well(
    tmp_path: Path, cluster: SchedulerCache, processes: WorkerProcesses
) -> None:
    made = plugin(tmp_path, cluster, processes)
    expected = elsewhere(made, "filter", "web", cluster), elsewhere(made, "score", "web", cluster)
    elsewhere(made, "filter", "forks", cluster)
    for _ in range(10):
        assert (elsewhere(made, "filter", "web", cluster), elsewhere(made, "score", "web", cluster)) == expected


def test_what_a_plugin_forks_off_ends_when_it_returns_and_with_its_process(
    tmp_path: Path, cluster: SchedulerCache
) -> None:
    os.mkfifo(tmp_path / "fifo")
    processes = WorkerProcesses(start_limit_s=PATIENCE_S)
    made = plugin(tmp_path, cluster, processes)
    with closing(processes):
        for word in ("returns", "stays"):
            with open(os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK), "rb", 0) as fifo:
                assert len(elsewhere(made, "filter", word, cluster)) == 4
                select.select([fifo], [], [], PATIENCE_S)
                assert fifo.read(4) == b"here"
                if word == "stays":
                    processes.close()
                select.select([fifo], [], [], PATIENCE_S)
                assert fifo.read(1) == b"", "nobody has it open any more"


def test_there_is_no_cluster_in_a_worker_process(
    tmp_path: Path, cluster: SchedulerCache, processes: WorkerProcesses
) -> None:
    [first, *_] = elsewhere(plugin(tmp_path, cluster, processes), "filter", "asks", cluster)
    assert "the handle has no cluster in a worker process, which has no cluster: read it in pre_filter" in str(first)


def test_what_cannot_be_sent_is_said(tmp_path: Path, cluster: SchedulerCache, processes: WorkerProcesses) -> None:
    with pytest.raises(PluginError, match=r"put into state\.data cannot be sent to a worker process: .*lock"):
        elsewhere(plugin(tmp_path, cluster, processes), "filter", "locked", cluster)


def test_one_that_cannot_be_made_there_says_why(
    tmp_path: Path, cluster: SchedulerCache, processes: WorkerProcesses
) -> None:
    text = PLUGIN.replace(
        "        return cls(args, handle)", "        handle.cluster.table\n        return cls(args, handle)"
    )
    made = plugin(tmp_path, cluster, processes, text)
    with pytest.raises(PluginError, match=r"cannot be created in a worker process: plugin Elsewhere cannot be created"):
        elsewhere(made, "filter", "web", cluster)
    text = f"{PLUGIN}\nimport sys\n\nif 'pytest' not in sys.modules:\n    raise ValueError('not here')\n"
    made = plugin(tmp_path, cluster, processes, text)
    with pytest.raises(PluginError, match=r"cannot be created in a worker process: ValueError: not here"):
        elsewhere(made, "filter", "web", cluster)


def test_arguments_that_cannot_be_read_there_are_reported(
    tmp_path: Path, cluster: SchedulerCache, processes: WorkerProcesses
) -> None:
    made = plugin(tmp_path, cluster, processes, ARGS_OF_ONE_PROCESS)
    with pytest.raises(PluginError, match=r"cannot be created in a worker process: ConfigErrors: args: .* not here"):
        elsewhere(made, "filter", "web", cluster)


def test_a_process_creates_a_plugin_again_that_it_has_dropped(tmp_path: Path, cluster: SchedulerCache) -> None:
    with closing(WorkerProcesses(1, PATIENCE_S)) as processes:
        plugins = [plugin(tmp_path, cluster, processes, f"{PLUGIN}# {number}\n") for number in range(17)]
        for made in [*plugins, *plugins[:2]]:
            assert len(elsewhere(made, "filter", "web", cluster)) == 4
        assert processes.count == 1


def test_a_call_that_waits_for_the_only_process_gets_another_if_it_dies(
    tmp_path: Path, cluster: SchedulerCache
) -> None:
    with closing(WorkerProcesses(1, PATIENCE_S)) as processes:
        made = plugin(tmp_path, cluster, processes)
        with ThreadPoolExecutor(2) as threads:
            dying, waiting = (threads.submit(elsewhere, made, "filter", name, cluster) for name in ("dies", "web"))
            with pytest.raises(PluginError, match="exit status 3"):
                dying.result(PATIENCE_S)
            try:
                assert len(waiting.result(PATIENCE_S)) == 4
            finally:
                processes.close()


def test_a_process_that_cannot_be_started_fails_the_call_alone(
    tmp_path: Path, cluster: SchedulerCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoProcess:
        def __init__(self) -> None:
            raise OSError("no more processes")

    monkeypatch.setattr(module, "WorkerProcess", NoProcess)
    made = plugin(tmp_path, cluster, WorkerProcesses(1))
    for _ in range(2):
        with pytest.raises(PluginError, match="no worker process can be started: no more processes"):
            elsewhere(made, "filter", "web", cluster)


def test_a_process_that_starts_while_the_daemon_ends_is_ended(
    tmp_path: Path, cluster: SchedulerCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    processes = WorkerProcesses()

    class Starting:
        def answer(self, order: bytes | None, limit_s: float) -> None:
            processes.close()
            calls.append("started")

        def end(self) -> None:
            calls.append("ended")

    monkeypatch.setattr(module, "WorkerProcess", Starting)
    with pytest.raises(PluginError, match="the daemon is shutting down"):
        elsewhere(plugin(tmp_path, cluster, processes), "filter", "web", cluster)
    assert (calls, processes.count) == (["started", "ended"], 0)


@pytest.mark.parametrize("number", ["-1", "17", "True", "'two'", "1.5"])
def test_the_number_of_processes_is_bounded(number: str, tmp_path: Path, cluster: SchedulerCache) -> None:
    text = PLUGIN.replace("worker_processes = 2", f"worker_processes = {number}")
    with pytest.raises(PluginLoadError, match=r"worker_processes .* a number from 0 to 16"):
        plugin(tmp_path, cluster, None, text)


def test_the_end_ends_them_all(tmp_path: Path, cluster: SchedulerCache) -> None:
    pool = WorkerProcesses(start_limit_s=PATIENCE_S)
    made = plugin(tmp_path, cluster, pool)
    elsewhere(made, "filter", "web", cluster)
    assert pool.count == 1
    pool.close()
    assert pool.count == 0
    with pytest.raises(PluginError, match="the daemon is shutting down"):
        elsewhere(made, "filter", "web", cluster)


def test_a_rejected_node_is_not_counted_as_a_failure(
    tmp_path: Path, cluster: SchedulerCache, processes: WorkerProcesses
) -> None:
    made = plugin(tmp_path, cluster, processes)
    made.guard.costs = CallCosts()
    answers = elsewhere(made, "filter", "looks", cluster)
    assert all(isinstance(answer, Status) for answer in answers)
    assert {cost.method: (cost.calls, cost.failures) for cost in made.guard.costs.all()} == {
        "pre_filter": (1, 0),
        "filter": (4, 0),
    }


def test_costs_are_counted_node_by_node(tmp_path: Path, cluster: SchedulerCache, processes: WorkerProcesses) -> None:
    made = plugin(tmp_path, cluster, processes)
    made.guard.costs = CallCosts()
    began_s = perf_counter()
    elsewhere(made, "filter", "raises", cluster)
    whole_s = perf_counter() - began_s
    counted = {cost.method: (cost.calls, cost.failures) for cost in made.guard.costs.all()}
    assert counted == {"pre_filter": (1, 0), "filter": (4, 4)}
    assert all(cost.longest_s is not None and 0 <= cost.longest_s <= whole_s for cost in made.guard.costs.all())
