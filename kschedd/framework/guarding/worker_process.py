"""A worker process that creates plugins and calls their `filter` and `score`, until its parent ends.

`main` is the entry point. The process receives messages over a pipe and answers each in turn (the other side is
`kschedd.framework.guarding.processes`):

    ("make", key, PluginRecipe)                          None, or why the plugin cannot be made
    ("call", key, method, state.data, pod, [node, ...])  an answer for each node, and the seconds it took

An answer is None, a score, a {"status": [code, reasons]}, or a {"fault": reason} if the plugin raised. When the pipe is
closed, the process ends even if a plugin is running, because a separate thread reads the pipe.

A process that a plugin forks never sends answers. A forked process ends when it returns from the plugin, or with the
worker process. A worker process and the processes forked from it belong to one process group.
"""

import contextlib
import importlib
import os
import signal
import threading
import time
from multiprocessing.connection import Connection
from queue import SimpleQueue
from types import ModuleType
from typing import Any, Final, Never

import attrs
import msgpack

from kschedd.api.read_only import read_only
from kschedd.config.args import ArgsContext, read_plugin_args
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import ConfigReader, ConfigValue
from kschedd.framework.costs import CallCosts
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.faults import PluginError
from kschedd.framework.guard import without_limits
from kschedd.framework.guarding.guarded import GuardedPlugin, GuardedRegistry
from kschedd.framework.guarding.sending import NodeSnapshot, read
from kschedd.framework.guarding.views import StateView
from kschedd.framework.interface import plugin_info
from kschedd.framework.plugin_file import PluginRecipe
from kschedd.framework.registry import PluginLoadError
from kschedd.framework.status import Status, fault_text

_MOST_NODES: Final = 20_000  # largest number of nodes whose parsed bytes are cached
_MOST_PLUGINS: Final = 16


class WorkerHandle:
    """A plugin's handle in a worker process."""

    def __init__(self, recipe: PluginRecipe) -> None:
        self.feature_gates = dict(recipe.feature_gates)
        self.seed = recipe.seed

    def __getattr__(self, name: str) -> Never:
        raise RuntimeError(
            f"the handle has no {name} in a worker process, which has no cluster: read it in pre_filter or "
            "pre_score, which run in the daemon, and put what filter and score need into state.data"
        )


class _Worker:
    def __init__(self) -> None:
        self.forked = False  # true in a process forked from the worker process
        self._made: dict[str, tuple[ModuleType, GuardedPlugin]] = {}
        self._nodes: dict[bytes, NodeSnapshot] = {}

    def make(self, key: str, recipe: PluginRecipe) -> str | None:
        try:
            module = importlib.import_module(recipe.module) if recipe.file is None else recipe.file.module()
            cls: Any = module
            for part in recipe.qualname.split("."):
                cls = getattr(cls, part)
            registry = GuardedRegistry({recipe.name: cls})
            handle: Any = WorkerHandle(recipe)
            plugin = registry.make(recipe.name, _args(recipe, cls), handle)
            self._end_if_forked()
        except PluginLoadError as fault:
            return fault.why
        except BaseException as fault:  # a fault of the plugin
            return fault_text(fault)
        if len(self._made) >= _MOST_PLUGINS:
            self._made.clear()
        self._made[key] = module, plugin
        return None

    def call(self, key: str, method: str, data: bytes, pod: bytes, nodes: list[bytes]) -> tuple[list[Any], list[Any]]:
        made = self._made.get(key)
        if made is None:
            return [], []  # the plugin was dropped and must be created again
        module, plugin = made
        state, subject = CycleState(), read(pod)
        StateView(state, plugin.guard).data.update(read(data, module))
        call, costs = getattr(plugin, method), CallCosts()
        plugin.guard.costs = costs
        answers, seconds = [], []
        for sent in nodes:
            node = self._node(sent)
            started = time.perf_counter()
            answers.append(_answer(call, state, subject, node))
            self._end_if_forked()
            seconds.append(time.perf_counter() - started)
        return answers, seconds

    def _end_if_forked(self) -> None:
        if self.forked:
            os._exit(0)  # exit immediately, because the exit handlers belong to the worker process

    def _node(self, data: bytes) -> NodeSnapshot:
        found = self._nodes.get(data)
        if found is None:
            if len(self._nodes) >= _MOST_NODES:
                self._nodes.clear()
            sent: NodeSnapshot = read(data)
            pods = tuple([read_only(pod) for pod in sent.pods])
            found = self._nodes[data] = attrs.evolve(sent, node=read_only(sent.node), pods=pods)
        return found


def _args(recipe: PluginRecipe, cls: type[Any]) -> Any:
    reading = ConfigReader("args")
    place = None if recipe.args is None else ConfigValue(recipe.args, "$", reading)
    args = read_plugin_args(recipe.name, plugin_info(cls), place, ArgsContext(recipe.feature_gates))
    if reading.faults:
        raise ConfigErrors(tuple(reading.faults))
    return args


def _answer(call: Any, state: CycleState, pod: Any, node: NodeSnapshot) -> Any:
    try:
        answer = call(state, pod, node)
    except PluginError as fault:
        return {"fault": fault.why}
    if isinstance(answer, Status):
        return {"status": [int(answer.code), list(answer.reasons)]}
    return answer


def main(descriptor: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the daemon handles Ctrl-C, and then ends this process
    pipe = Connection(descriptor)
    worker = _Worker()

    def forked() -> None:
        pipe.close()
        worker.forked = True

    os.register_at_fork(after_in_child=forked)
    orders = SimpleQueue[bytes]()

    def listen() -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                orders.put(pipe.recv_bytes())
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=listen, daemon=True).start()
    pipe.send_bytes(msgpack.packb("ready"))
    with without_limits():
        while True:
            what, *rest = read(orders.get())
            pipe.send_bytes(msgpack.packb(worker.make(*rest) if what == "make" else worker.call(*rest)))
