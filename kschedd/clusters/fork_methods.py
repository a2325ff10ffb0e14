"""Methods for forks of the cluster, which answer what-if questions.

A fork serves all methods of the daemon, through `fork.call`.

The event loop takes a fork's snapshot, a few milliseconds at a time. All other work for forks runs in worker threads.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import attrs

from kschedd.api.text.times import LAST_S, stamp
from kschedd.clusters.answers import AdvanceAnswer, ExportAnswer, ForkAnswer, ObjectName
from kschedd.clusters.forks import Forks, NamedFork, fork_of
from kschedd.clusters.virtual import MethodsOf
from kschedd.config.versions.kube_versions import kube_version
from kschedd.printing import documents
from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.process import DaemonState
from kschedd.service.errors import ReadOnlyError, RpcError
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method
from kschedd.service.workers import GivenUp
from kschedd.simulation.comparing.changes import DiffAnswer
from kschedd.simulation.comparing.export import exported

T = TypeVar("T")

_FORK: Final = Param("fork", "string", doc="name of the fork")
_LONGEST_S: Final = 10 * 365 * 86_400
_REST_S: Final = 3_600


@attrs.frozen(eq=False)
class ForkMethods(Methods):
    """Methods for forks. `methods` are the methods that a fork serves."""

    _cluster: ClusterBackend
    _daemon: DaemonState
    _methods: MethodsOf
    _forks: Forks

    @property
    def _now(self) -> float:
        return self._daemon.machine_s()

    @method(
        "fork.create",
        (
            Param("name", "string|null", False, doc="null: fork-1, fork-2, ..."),
            Param("of", "string|null", False, doc="the fork to copy; null: the current cluster"),
            Param("version", "string|null", False, doc="Kubernetes version of its rules; null: unchanged"),
            Param(
                "stopped",
                "boolean",
                False,
                False,
                "stop the fork where the debugger has stopped the cluster, with the breakpoints and the changes made "
                "by hand; otherwise scheduling runs in the fork",
            ),
            Param(
                "feature_gates", "string[]", False, [], "feature gates of that version, such as `GangScheduling=true`"
            ),
            Param(
                "what_if",
                "boolean",
                False,
                False,
                "let pods of Jobs that are created in the fork run until they are deleted, unless their annotations "
                "say otherwise, so that they do not free capacity; otherwise they behave as in the original",
            ),
        ),
        doc="Creates a fork: a copy of the whole cluster (objects, queue, nominations, assumed pods, timers, "
        "random state), which continues in virtual time and serves the daemon's methods. The fork exists until it "
        "is discarded or the daemon stops. At most 8 forks exist; all read-only users together have at most 4, "
        "and each read-only user has at most 2.",
        answer=ForkAnswer,
        own_forks=True,
    )
    async def create(self, call: Call) -> Any:
        now, of = self._now, call["of"]
        version = None if call["version"] is None else kube_version(call["version"])
        gates = call["feature_gates"]
        above = None if of is None else self._forks.find(of, now)
        user, owner, stopped = call.services.caller.user.name, _reader(call), call["stopped"]
        name = self._forks.reserve(call["name"], now, owner)
        try:
            if above is None:
                snapshot = await self._cluster.snapshot()
            else:
                snapshot = await self._run(call, above, lambda fork: fork.cluster.engine.snapshot())
            if stopped and not snapshot.driver.is_stopped:
                raise RpcError("invalid", "scheduling is not stopped: create the fork without `stopped` (--stopped)")
            snapshot = attrs.evolve(snapshot, stopped=stopped)
            if call["what_if"]:
                snapshot.store.keep_jobs_running()
            fork = await call.services.workers.run(
                call.client,
                lambda given_up: fork_of(name, of or "", snapshot, self._methods, now, version, gates, user, owner),
            )
            self._forks.add(fork)
        finally:
            self._forks.release(name)
        return fork.describe(self._now)

    @method("fork.list", reads=True, doc="Lists the forks, the oldest first.", answer=Sequence[ForkAnswer])
    async def list(self, call: Call) -> Any:
        return [fork.describe(self._now) for fork in self._forks]

    @method(
        "fork.discard", (_FORK,), doc="Deletes a fork and returns its last state.", answer=ForkAnswer, own_forks=True
    )
    async def discard(self, call: Call) -> Any:
        self._own(call)
        gone = self._forks.discard(call["fork"])
        last = gone.describe(self._now)
        await call.services.workers.run(call.client, lambda given_up: gone.close())
        return last

    @method(
        "fork.call",
        (
            _FORK,
            Param("method", "string", doc="any method except those for forks and those that open streams"),
            Param("params", "map", False, {}, "parameters of the method, by name"),
        ),
        doc="Calls a method in a fork. The call returns when the work due at the fork's present time is done: pods "
        "are scheduled, and controllers have run.",
        returns="the result of the method",
        answer=Any,
        large=True,
        own_forks=True,
    )
    async def call(self, call: Call) -> Any:
        method, params = call["method"], call["params"]
        fork = self._own(call)
        found = fork.daemon.methods.get(method)
        if _reader(call) and found is not None and found.outside:
            raise ReadOnlyError(method, call.services.caller.user.name)
        return await self._use(call, lambda fork: fork.daemon.perform(method, **params))

    @method(
        "fork.advance",
        (
            _FORK,
            Param(
                "seconds",
                "number|null",
                False,
                doc="virtual time; null: until the fork is idle except for CronJobs",
                minimum=0,
                maximum=_LONGEST_S,
            ),
            Param("limit_s", "number", False, _REST_S, "time limit for `seconds` null", (), 0, _LONGEST_S),
        ),
        doc="Advances the time in a fork, and does all work that becomes due: backoffs, deletions, evictions, jobs.",
        answer=AdvanceAnswer,
        own_forks=True,
    )
    async def advance(self, call: Call) -> Any:
        seconds, limit_s = call["seconds"], call["limit_s"]

        def advance(fork: NamedFork, given_up: GivenUp) -> Any:
            check = partial(fork.check, given_up)
            engine = fork.cluster.engine
            engine.loop.apply_effects()
            at_rest = True
            if seconds is None:
                at_rest = engine.run_to_rest(limit_s, check)
            else:
                if engine.now + seconds > LAST_S:
                    raise RpcError(
                        "invalid", f"cannot advance beyond {stamp(LAST_S)} (current time: {stamp(engine.now)})"
                    )
                engine.advance(engine.now + seconds, check)
            return AdvanceAnswer(engine.elapsed, engine.now, at_rest)

        fork = self._own(call)
        return await call.services.workers.run(
            call.client, lambda given_up: fork.use(partial(advance, given_up=given_up), given_up)
        )

    def _own(self, call: Call) -> NamedFork:
        """Return the fork that a call is about to change.

        Raises RpcError if a read-only user calls a method on another user's fork.
        """
        fork, reader = self._forks.find(call["fork"], self._now), _reader(call)
        if reader and fork.owner != reader:
            why = f'{reader} has read-only access, and did not create the fork "{fork.name}": create one'
            data = {"method": call.method, "name": fork.name, "user": reader}
            raise RpcError("forbidden", f"{call.method}: {why}", data)
        return fork

    @method(
        "fork.diff",
        (_FORK,),
        reads=True,
        doc="Returns the differences between a fork and its state at its creation.",
        answer=DiffAnswer,
    )
    async def diff(self, call: Call) -> Any:
        return await self._use(call, NamedFork.changes)

    @method(
        "fork.export",
        (_FORK,),
        reads=True,
        doc="Returns the changes that calls have made in a fork, as manifests to apply.",
        answer=ExportAnswer,
    )
    async def export(self, call: Call) -> Any:
        def export(fork: NamedFork) -> Any:
            engine = fork.cluster.engine
            found = exported(engine.store, fork.start.version, fork.daemon.written)
            return ExportAnswer(
                "---\n".join(documents.as_yaml(manifest) for manifest in found.manifests),
                [ObjectName(**name) for name in found.deleted],
                [change.what for change in engine.driver.config_changes.made],
            )

        return await self._use(call, export)

    async def _use(self, call: Call, work: Callable[[NamedFork], T]) -> T:
        return await self._run(call, self._forks.find(call["fork"], self._now), work)

    async def _run(self, call: Call, fork: NamedFork, work: Callable[[NamedFork], T]) -> T:
        return await call.services.workers.run(call.client, lambda given_up: fork.use(work, given_up))


def _reader(call: Call) -> str:
    """Return the user's name if the user is read-only; "" otherwise."""
    user = call.services.caller.user
    return user.name if user.read_only else ""
