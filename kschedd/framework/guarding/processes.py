"""WorkerProcesses: separate processes for the filters and scores of CPU-bound plugins.

A plugin requests worker processes with its class attribute `worker_processes`, the maximum number of parallel
processes. Threads do not help a CPU-bound plugin: only one thread runs at a time, and the plugin slows down the event
loop. Each shard of nodes is sent as a whole to one process, and the calling thread waits for the answer
(`WorkerProcess.call`). The results do not depend on the process that computes them.

A process is started if none is idle, up to `most` processes, and is then reused. A process that does not respond within
the plugin's limit is killed. If a process is killed or crashes, the attempt ends with an error of the plugin, and the
next attempt uses a new process. Starting a process and creating the plugin in it each have the time limit for creating
a plugin in the daemon. Processes that a plugin has forked end with their worker process.

No library fits: Other libraries do not fit: `concurrent.futures` breaks the whole pool if one process dies, and cannot
end a hanging process; `anyio.to_process` and trio-parallel include the start of a process in the limit of the call.

Ends: with `close`. Fails: PluginError, PluginTimeout.
"""

import hashlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from operator import is_
from typing import Any, Final

import attrs
import msgpack

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.cache.table import NodeTable
from kschedd.child_process import beginning, start
from kschedd.framework.costs import CallCosts
from kschedd.framework.faults import PluginError, PluginTimeout
from kschedd.framework.guard import START_LIMIT_S
from kschedd.framework.guarding.answers import MOST_PROCESSES, Answer
from kschedd.framework.guarding.sending import NodeSnapshot, NotSendable, written
from kschedd.framework.node_info import NodeInfo
from kschedd.framework.plugin_file import PluginRecipe
from kschedd.framework.status import Code, Status

_BEGIN: Final = beginning("kschedd.framework.guarding.worker_process")


@attrs.define(eq=False)
class _Gone(Exception):
    """The error if the process has ended, or was killed because it did not answer."""

    late: bool
    status: int | None


class WorkerProcess:
    """One process, used by one thread at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = start(_BEGIN, theirs, stderr=subprocess.DEVNULL)
        self._pipe = Connection(ours.detach())
        self.plugins: set[str] = set()  # keys of the plugins that the process has created

    def answer(self, order: bytes | None, limit_s: float) -> Any:
        """Send the command, if any, and wait for the answer. Raises _Gone."""
        try:
            if order is not None:
                self._pipe.send_bytes(order)
            if not self._pipe.poll(limit_s):
                self.end()
                raise _Gone(True, None)
            return msgpack.unpackb(self._pipe.recv_bytes(), strict_map_key=False)
        # the process has ended, or its answer cannot be parsed
        except (EOFError, OSError, ValueError, msgpack.UnpackException):
            self.end()
            raise _Gone(False, self._process.returncode) from None

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the process from another thread; the thread that uses the process gets _Gone."""
        self._kill_group()
        self._process.wait()

    def end(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0.1)  # wait for the exit status of a process that has ended
        self._kill_group()
        self._process.wait()
        self._pipe.close()

    def _kill_group(self) -> None:
        """Kill the process and the processes that plugins forked from it."""
        # all processes have ended; macOS raises PermissionError if some of them are zombies
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


@attrs.frozen(eq=False)
class ProcessPlugin:
    """A plugin that uses processes: the data to create it, and its maximum number of parallel processes."""

    name: str
    recipe: PluginRecipe
    key: str
    at_once: threading.Semaphore


class WorkerProcesses:
    """The worker processes of a daemon. Several threads may use this object."""

    def __init__(self, most: int = MOST_PROCESSES, start_limit_s: float = START_LIMIT_S) -> None:
        self._start_limit_s = start_limit_s
        self._most = most
        self._changed = threading.Condition()
        self._idle: list[WorkerProcess] = []
        self._all: set[WorkerProcess] = set()
        self._starting = 0
        self._closed = False
        self._sent: dict[str, tuple[Node, tuple[Pod, ...], tuple[int, int], bytes]] = {}  # by node

    @property
    def count(self) -> int:
        """The number of processes."""
        with self._changed:
            return len(self._all)

    def plugin(self, recipe: PluginRecipe, at_once: int) -> ProcessPlugin:
        """Register a plugin. Raises NotSendable."""
        key = hashlib.sha256(written(recipe)).hexdigest()
        return ProcessPlugin(recipe.name, recipe, key, threading.Semaphore(at_once))

    def call(
        self,
        plugin: ProcessPlugin,
        method: str,
        data: Mapping[str, Any],
        pod: Pod,
        table: NodeTable,
        rows: Sequence[int],
        limit_s: float,
        costs: CallCosts,
    ) -> list[Answer | PluginError]:
        """Return the plugin's result for each row; `data` is the plugin's part of `state.data`. Raises PluginError."""
        try:
            given = written(data, plugin.recipe.module)
        except NotSendable as fault:
            why = f"what it put into state.data cannot be sent to a worker process: {fault.why}"
            raise PluginError(plugin.name, method, why) from None
        nodes = [self._node(table, row) for row in rows]
        order = written(("call", plugin.key, method, given, written(pod), nodes))
        with plugin.at_once:
            process = self._taken(plugin, method)
            try:
                answers, seconds = self._request(process, plugin, method, order, limit_s)
            except _Gone as gone:
                self._lost(process)
                if gone.late:
                    costs.timed_out(plugin.name, method)
                    why = f"{method} did not return within {limit_s:g}s, and its worker process was ended"
                    raise PluginTimeout(plugin.name, method, why) from None
                why = f"its worker process ended during {method} ({_how(gone.status)})"
                raise PluginError(plugin.name, method, why) from None
            except PluginError:
                self._given_back(process)
                raise
            self._given_back(process)
        for answer, took in zip(answers, seconds, strict=True):
            costs.returned(plugin.name, method, took, failed=isinstance(answer, dict) and "fault" in answer)
        return [_read(plugin.name, method, answer) for answer in answers]

    def close(self) -> None:
        """End all processes. Threads that wait for a process get a PluginError."""
        with self._changed:
            self._closed = True
            processes = list(self._all)
            self._all.clear()
            self._idle.clear()
            self._changed.notify_all()
        for process in processes:
            process.kill()

    # -- one process ----------------------------------------------------------------------------------------------

    def _request(
        self, process: WorkerProcess, plugin: ProcessPlugin, method: str, order: bytes, limit_s: float
    ) -> tuple[list[Any], list[float]]:
        while True:
            if plugin.key not in process.plugins:
                make = written(("make", plugin.key, plugin.recipe))
                why = process.answer(make, self._start_limit_s)
                if why is not None:
                    raise PluginError(plugin.name, method, f"cannot be created in a worker process: {why}")
                process.plugins.add(plugin.key)
            answers, seconds = process.answer(order, limit_s)
            if answers:
                return answers, seconds
            process.plugins.clear()

    def _taken(self, plugin: ProcessPlugin, method: str) -> WorkerProcess:
        with self._changed:
            while not self._idle and len(self._all) + self._starting >= self._most and not self._closed:
                self._changed.wait()
            if self._closed:
                raise PluginError(plugin.name, method, "the daemon is shutting down")
            while self._idle:
                process = self._idle.pop()
                if process.alive:
                    return process
                self._all.discard(process)
            self._starting += 1
        is_started = False
        try:
            process = WorkerProcess()
            process.answer(None, self._start_limit_s)
            is_started = True
        except (OSError, _Gone) as fault:
            raise PluginError(plugin.name, method, f"no worker process can be started: {fault}") from None
        finally:
            with self._changed:
                self._starting -= 1
                closed = self._closed
                if is_started and not closed:
                    self._all.add(process)
                else:
                    self._changed.notify()
        if not closed:
            return process
        process.end()
        raise PluginError(plugin.name, method, "the daemon is shutting down")

    def _given_back(self, process: WorkerProcess) -> None:
        with self._changed:
            self._idle.append(process)
            self._changed.notify()

    def _lost(self, process: WorkerProcess) -> None:
        with self._changed:
            self._all.discard(process)
            self._changed.notify()

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _node(self, table: NodeTable, row: int) -> bytes:
        """Return the serialized node, cached until the node or its pods change."""
        info = NodeInfo(table, row)
        node, pods, resources = info.node, tuple(info.pods), (table.numbering, len(table.resources))
        known = self._sent.get(node.name)
        if known is not None:
            before, its_pods, its_resources, data = known
            same = before is node and its_resources == resources and len(pods) == len(its_pods)
            if same and all(map(is_, pods, its_pods)):
                return data
        data = written(NodeSnapshot(node, pods, info.allocatable, info.requested, info.used_ports))
        if len(self._sent) > 2 * table.node_count:  # drop the cache, because most of its nodes no longer exist
            self._sent = {name: sent for name, sent in self._sent.items() if name in table.row_of}
        self._sent[node.name] = node, pods, resources, data
        return data


def _how(status: int | None) -> str:
    return f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"


def _read(plugin: str, method: str, answer: Any) -> Answer | PluginError:
    if not isinstance(answer, dict):
        number: int | None = answer
        return number
    if "fault" in answer:
        return PluginError(plugin, method, answer["fault"])
    code, reasons = answer["status"]
    return Status(Code(code), tuple(reasons))
