"""Methods for the process: information about the daemon, and shutdown."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import trio

from kschedd.access.users import User
from kschedd.limits import BOUNDS, MAX_REQUEST_BYTES, Bound, DaemonLimits
from kschedd.live.answers import AgreementAnswer, LeaderAnswer, MirrorAnswer
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.answers import (
    ClientAnswer,
    InfoAnswer,
    InfoLimits,
    LimitAnswer,
    ObjectFaultAnswer,
    PageLinkAnswer,
    PluginCallsAnswer,
    StoppingAnswer,
)
from kschedd.service.errors import RpcError
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method
from kschedd.store.cluster_api import ClusterReader

MOST_GRACE_S = 3600


@attrs.define(eq=False)
class DaemonState:
    """The state of the process. Setting `stop` ends the process; clients then have `grace_s` seconds to disconnect.

    `pid` is 0 without a separate process, for example for a fork. `machine_s` returns seconds of a clock that never
    stops.
    """

    version: str
    socket: str
    started_s: float
    max_request_body_bytes: int = MAX_REQUEST_BYTES
    pid: int = attrs.field(factory=os.getpid)
    stop: trio.Event = attrs.field(factory=trio.Event)
    grace_s: float = 2.0
    machine_s: Callable[[], float] = time.monotonic
    clients: Callable[[], list[ClientAnswer]] = list
    limits: DaemonLimits = attrs.field(factory=DaemonLimits)
    # limit -> function that returns the present and the highest usage
    usage: dict[str, Callable[[], tuple[int, int]]] = attrs.field(factory=dict)
    mirror: Callable[[], MirrorAnswer] | None = None  # returns the mirrored cluster's state; None without a mirror
    agreement: Callable[[], AgreementAnswer] | None = (
        None  # function that returns the comparison of placements; None without --mirror
    )
    # returns the state of the lease in the mirrored cluster, with --schedule
    leader: Callable[[], LeaderAnswer] | None = None
    page: Callable[[User], str] | None = None  # returns a link to the page in the browser; None if it is not served


@attrs.frozen(eq=False)
class DaemonMethods(Methods):
    _cluster: ClusterBackend
    _daemon: DaemonState

    @method(
        "daemon.info",
        reads=True,
        judged=True,
        doc="Returns information about the daemon and its cluster.",
        answer=InfoAnswer,
    )
    async def info(self, call: Call) -> Any:
        cluster = self._cluster
        config, plugins = await cluster.scheduler.query(lambda owner: (owner.machine.config, _costs(owner)))
        (objects, version), most_bytes = await cluster.store.do(lambda store: (_counted(store), store.max_object_bytes))
        unwritable = await cluster.store.condition()
        return InfoAnswer(
            version=self._daemon.version,
            pid=self._daemon.pid,
            socket=self._daemon.socket,
            uptime_s=cluster.clock.now() - self._daemon.started_s,
            kubernetes=f"v{config.version.patch.removeprefix('v')}",
            seed=cluster.seed,
            speed=cluster.clock.speed,
            profiles=[profile.scheduler_name for profile in config.profiles],
            objects=objects,
            resource_version=version,
            epoch=cluster.epoch,
            journal=None if cluster.journal is None else str(cluster.journal),
            read_only=None if unwritable is None else str(unwritable),
            mirror=None if self._daemon.mirror is None else self._daemon.mirror(),
            leader=None if self._daemon.leader is None else self._daemon.leader(),
            recording=cluster.recording(),
            faults=[ObjectFaultAnswer.of(fault) for fault in await cluster.faults()],
            plugins=plugins,
            limits=InfoLimits(self._daemon.max_request_body_bytes, most_bytes),
        )

    @method(
        "daemon.agreement",
        reads=True,
        doc="Returns how often the schedulers of the mirrored cluster choose the node that this daemon would choose.",
        answer=AgreementAnswer,
    )
    async def agreement(self, call: Call) -> Any:
        if self._daemon.agreement is None:
            raise RpcError("invalid", "this daemon mirrors no cluster: start a mirror with `kschedd run --mirror`")
        return self._daemon.agreement()

    @method(
        "daemon.clients",
        reads=True,
        doc="Lists the clients connected to the socket, including this one.",
        returns="longest connected first",
        answer=Sequence[ClientAnswer],
    )
    async def clients(self, call: Call) -> Any:
        return self._daemon.clients()

    @method(
        "daemon.limits",
        reads=True,
        doc="Lists every limit of the daemon with its present usage. `kschedd run --limit NAME=N` sets a limit.",
        answer=Sequence[LimitAnswer],
    )
    async def limits(self, call: Call) -> Any:
        cluster, set_to = self._cluster, self._daemon.limits
        used = {name: usage() for name, usage in self._daemon.usage.items()}
        used["log"] = await cluster.log.query(lambda log: 2 * (len(log),))
        used["watch-history"] = await cluster.store.do(lambda store: store.history_used)
        used["watch-history-bytes"] = await cluster.store.do(lambda store: store.history_bytes_used)
        used["admitted-pods"] = await cluster.store.do(lambda store: store.admitted_used)
        used["admitted-node-affinities"] = await cluster.store.do(lambda store: store.node_affinities_used)
        used["breakpoints"] = await cluster.scheduler.query(
            lambda owner: (len(owner.debugger.breakpoints), owner.debugger.most_set)
        )
        used |= {name: (held, held) for name, held in (await cluster.scheduler.query(_held)).items()}
        return [_limit(bound, set_to[bound.name], used.get(bound.name)) for bound in BOUNDS.values()]

    @method(
        "daemon.page",
        reads=True,
        doc="Returns a link to the page in the browser. If the REST API requires credentials, the link logs one "
        "browser in, in the name of the caller; the link is valid once, for 120 s.",
        answer=PageLinkAnswer,
    )
    async def page(self, call: Call) -> Any:
        if self._daemon.page is None:
            raise RpcError("invalid", "this daemon serves no page: start it with `kschedd run --web`")
        return PageLinkAnswer(self._daemon.page(call.services.caller.user))

    @method(
        "daemon.stop",
        (Param("grace_s", "number", False, 2.0, "time for running requests to finish", (), 0, MOST_GRACE_S),),
        doc="Stops the daemon gracefully.",
        answer=StoppingAnswer,
    )
    async def stop(self, call: Call) -> Any:
        if not self._daemon.pid:
            why = "this cluster in virtual time is not a process that can be stopped"
            raise RpcError("invalid", f"{call.method}: {why} (fork.discard deletes a fork)")
        self._daemon.grace_s = float(call["grace_s"])
        self._daemon.stop.set()
        return StoppingAnswer()


def _limit(bound: Bound, limit: int, used: tuple[int, int] | None) -> LimitAnswer:
    now, most = (None, None) if used is None else used
    return LimitAnswer(bound.name, bound.what, bound.unit, limit, bound.default, now, most, bound.reached)


def _costs(driver: SchedulingDriver) -> list[PluginCallsAnswer]:
    return [
        PluginCallsAnswer(
            cost.name,
            cost.method,
            cost.calls,
            _milliseconds(cost.p50_s),
            _milliseconds(cost.p99_s),
            _milliseconds(cost.longest_s),
            cost.timeouts,
            cost.failures,
        )
        for cost in driver.machine.registry.costs.all()
    ]


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 3)


def _held(owner: SchedulingDriver) -> dict[str, int]:
    """Return the present usage of the scheduler's limits."""
    machine = owner.machine
    labels, resources = machine.cluster.table.columns
    schedulers = machine.schedulers.values()
    return {
        "label-columns": labels,
        "resource-columns": resources,
        "evaluation-cache": max(each.evaluations.bytes_held for each in schedulers),
        "preemption-cache": max(each.candidates.bytes_held for each in schedulers),
        "pod-counters": machine.cluster.counts.counters,
    }


def _counted(store: ClusterReader) -> tuple[dict[str, int], int]:
    return {kind: store.count(kind) for kind in store.kinds()}, store.version
