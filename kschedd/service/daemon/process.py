"""Methods over the process itself: which daemon this is, and how to stop it."""

import os
import time
from collections.abc import Callable
from typing import Any

import attrs
import trio

from kschedd.limits import BOUNDS, MAX_REQUEST_BYTES, DaemonLimits
from kschedd.object_faults import as_maps
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.params import Param
from kschedd.service.table import Call, Method
from kschedd.store.cluster_api import ClusterReader

MOST_GRACE_S = 3600


@attrs.define(eq=False)
class DaemonState:
    """What the process knows of itself. `stop` is set to end it, `grace_s` is how long clients may take then.

    `pid`: 0 if there is no process of its own, as for a fork. `machine_s`: seconds of a clock that never stands still.
    """

    version: str
    socket: str
    started_s: float
    max_request_body_bytes: int = MAX_REQUEST_BYTES
    pid: int = attrs.field(factory=os.getpid)
    stop: trio.Event = attrs.field(factory=trio.Event)
    grace_s: float = 2.0
    machine_s: Callable[[], float] = time.monotonic
    clients: Callable[[], list[dict[str, Any]]] = list
    limits: DaemonLimits = attrs.field(factory=DaemonLimits)
    usage: dict[str, Callable[[], tuple[int, int]]] = attrs.field(factory=dict)  # of a bound now, and at most so far
    mirror: Callable[[], dict[str, Any]] | None = None  # of which cluster it is one, if it is
    leader: Callable[[], dict[str, Any]] | None = None  # whether that cluster is scheduled from here, if it ever is


@attrs.frozen(eq=False)
class DaemonMethods:
    _cluster: ClusterBackend
    _daemon: DaemonState

    def table(self) -> list[Method]:
        return [
            Method(
                "daemon.info",
                self.info,
                reads=True,
                doc="Which daemon this is and what is in it.",
                returns="`{version, pid, socket, uptime_s, seed, speed, profiles: [name], objects: {KIND: count}, "
                "resource_version, epoch, journal, read_only, mirror, leader, recording, faults, plugins, limits: "
                "{max_request_body_bytes, max_object_bytes}}`; epoch names the history that versions count in; journal "
                "is its file, null if objects are kept in memory only; read_only says why the journal cannot be "
                "written now, so that writes are refused, null if it can; mirror is `{server, context, unheard_s, "
                "unreachable}` of the real cluster whose objects are held here: for how long nothing has come from it, "
                "and why it cannot be asked now, null if it can; null for a cluster of its own; leader is `{leads, "
                "lease, leader}` where that cluster is scheduled from here: whether it is now, by which Lease (empty: "
                "without one), and who holds that; null where it is not; recording is `{file, bytes, notes, since_s, "
                "failure}`: what was written of this run's recording, and why it has ended, empty as long as it goes "
                "on; null without one; faults are the objects that cannot be handled now, "
                "each `{kind, namespace, name, component, why, count, first_s, last_s, retry_s}`: what part of the "
                "daemon raised what, how often, and when it tries again (seconds since the epoch; null: at the next "
                "start); "
                "plugins are the calls of out-of-tree plugins and of extenders, each `{name, call, calls, p50_ms, "
                "p99_ms, longest_ms, timeouts, failures}`: the method or verb, quantiles of the last 1,000 calls, and "
                "counts since the start.",
            ),
            Method(
                "daemon.clients",
                self.clients,
                reads=True,
                doc="Who is connected to the socket, this client too.",
                returns="An array of `{number, user, groups, read_only, pid, uid, address, connected_s, idle_s, "
                "requests, streams, waiting_bytes}`, the longest connected first: pid and uid are what the system says "
                "of a client on the Unix socket, address of one on TCP, else null; idle_s is null while the client has "
                "requests or streams, or answers that it has not read.",
            ),
            Method(
                "daemon.limits",
                self.limits,
                reads=True,
                doc="Every bound of the daemon and how far it is used. `kschedd run --limit NAME=N` sets one.",
                returns="An array of `{name, what, unit, limit, default, used, most, reached}`: used is how much of it "
                "is in use now, most the most that there has been since the start (of one client, process or "
                "connection, where the bound is for one), both null where the daemon has no such part; reached is what "
                "happens where there is no more; unit is `bytes`, `s` or empty.",
            ),
            Method(
                "daemon.stop",
                self.stop,
                (
                    Param(
                        "grace_s",
                        "number",
                        False,
                        2.0,
                        "how long requests that run may still take",
                        (),
                        0,
                        MOST_GRACE_S,
                    ),
                ),
                doc="Ends the daemon in order.",
                returns="`{stopping: true}`.",
            ),
        ]

    async def info(self, call: Call) -> Any:
        cluster = self._cluster
        config, plugins = await cluster.scheduler.query(lambda owner: (owner.machine.config, _costs(owner)))
        counted, most_bytes = await cluster.store.do(lambda store: (_counted(store), store.max_object_bytes))
        unwritable = await cluster.store.condition()
        recording = cluster.recording()
        return {
            "version": self._daemon.version,
            "pid": self._daemon.pid,
            "socket": self._daemon.socket,
            "uptime_s": cluster.clock.now() - self._daemon.started_s,
            "seed": cluster.seed,
            "speed": cluster.clock.speed,
            "profiles": [profile.scheduler_name for profile in config.profiles],
            **counted,
            "epoch": cluster.epoch,
            "journal": None if cluster.journal is None else str(cluster.journal),
            "read_only": None if unwritable is None else str(unwritable),
            "mirror": None if self._daemon.mirror is None else self._daemon.mirror(),
            "leader": None if self._daemon.leader is None else self._daemon.leader(),
            "recording": None if recording is None else attrs.asdict(recording),
            "faults": as_maps(await cluster.faults()),
            "plugins": plugins,
            "limits": {
                "max_request_body_bytes": self._daemon.max_request_body_bytes,
                "max_object_bytes": most_bytes,
            },
        }

    async def clients(self, call: Call) -> Any:
        return self._daemon.clients()

    async def limits(self, call: Call) -> Any:
        cluster, set_to = self._cluster, self._daemon.limits
        used = {name: usage() for name, usage in self._daemon.usage.items()}
        used["log"] = await cluster.log.query(lambda log: 2 * (len(log),))
        used["watch-history"] = await cluster.store.do(lambda store: store.history_used)
        used["admitted-pods"] = await cluster.store.do(lambda store: store.admitted_used)
        used["admitted-node-affinities"] = await cluster.store.do(lambda store: store.node_affinities_used)
        used["breakpoints"] = await cluster.scheduler.query(
            lambda owner: (len(owner.debugger.breakpoints), owner.debugger.most_set)
        )
        used |= {name: (held, held) for name, held in (await cluster.scheduler.query(_held)).items()}
        return [
            {
                "name": bound.name,
                "what": bound.what,
                "unit": bound.unit,
                "limit": set_to[bound.name],
                "default": bound.default,
                **dict(zip(("used", "most"), used.get(bound.name, (None, None)), strict=True)),
                "reached": bound.reached,
            }
            for bound in BOUNDS.values()
        ]

    async def stop(self, call: Call) -> Any:
        if not self._daemon.pid:
            why = "this cluster in virtual time is no process that could be stopped"
            raise RpcError("invalid", f"{call.method}: {why} (fork.discard forgets a fork)")
        self._daemon.grace_s = float(call["grace_s"])
        self._daemon.stop.set()
        return {"stopping": True}


def _costs(driver: SchedulingDriver) -> list[dict[str, Any]]:
    return [
        {
            "name": cost.name,
            "call": cost.method,
            "calls": cost.calls,
            "p50_ms": _milliseconds(cost.p50_s),
            "p99_ms": _milliseconds(cost.p99_s),
            "longest_ms": _milliseconds(cost.longest_s),
            "timeouts": cost.timeouts,
            "failures": cost.failures,
        }
        for cost in driver.machine.registry.costs.all()
    ]


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(1000 * seconds, 3)


def _held(owner: SchedulingDriver) -> dict[str, int]:
    """How far the scheduler's own bounds are used."""
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


def _counted(store: ClusterReader) -> dict[str, Any]:
    return {
        "objects": {kind: store.count(kind) for kind in store.kinds()},
        "resource_version": store.version,
    }
