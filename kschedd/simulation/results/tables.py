"""The tables of one run (`kschedd simulate --out DIR`): attempts, pods, nodes, usage, queues; schema: docs/DATA.md.

With prices, there is a table of costs; with node pools, there are also `scaling` and `pool_nodes`.

Attempts and pods are written during the run. Usage and queues are sampled when the cluster is idle. At `MOST_SAMPLES`
samples, every second sample is dropped and the interval between samples is doubled. The start and the end of the run
are always sampled.

`load` is the share of a resource's capacity that all pods created so far request. `load` is the time axis of runs with
--fill, in which virtual times have no meaning. In other runs it is null.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from kschedd.api.nodes import ZONE_LABEL
from kschedd.api.pods import Pod
from kschedd.controllers.scaling.node_pools import NodePools
from kschedd.errors import KscheddError
from kschedd.queue.entry import Move, QueuedPod, SubQueue
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.records import Happened
from kschedd.simulation.engine import LoggedAttempt
from kschedd.simulation.results.fragmentation import Fragmentation
from kschedd.simulation.results.measures import COSTS, PodTimes, RunMeasures, short_names
from kschedd.simulation.results.prices import NodePrices
from kschedd.simulation.results.scaling import PoolNodes
from kschedd.simulation.results.table_files import ColumnType, TableFile
from kschedd.simulation.simulation import Simulation
from kschedd.store.objects.log import WatchEvent

Row = dict[str, Any]

MOST_SAMPLES: Final = 256
_MILLI: Final = 1000

#: the columns of each table and their types; pods and nodes also have a column for each other resource
COLUMNS: Final[Mapping[str, Mapping[str, ColumnType]]] = {
    "attempts": {
        **{"time_s": "real", "load": "real", "pod": "text", "attempt": "whole", "node": "text", "feasible": "whole"},
        **{"visited": "whole", "ties": "whole", "score": "whole", "nominated": "text", "message": "text"},
    },
    "pods": {
        **{"pod": "text", "priority": "whole", "created_s": "real", "scheduled_s": "real", "ended_s": "real"},
        **{"wait_s": "real", "node": "text", "phase": "text", "disruption": "text", "cpu": "real", "memory": "whole"},
    },
    "nodes": {
        **{"node": "text", "zone": "text", "pods": "whole", "pods_allocatable": "whole", "cpu_requested": "real"},
        **{"cpu_allocatable": "real", "memory_requested": "whole", "memory_allocatable": "whole"},
    },
    "usage": {
        **{"time_s": "real", "load": "real", "resource": "text", "requested": "whole", "capacity": "whole"},
        **{"used": "real", "fragmented": "real", "unusable_nodes": "real"},
    },
    "queues": {
        **{"time_s": "real", "load": "real", "active": "whole", "backoff": "whole", "unschedulable": "whole"},
        **{"gated": "whole", "in_flight": "whole", "running": "whole", "pending": "whole"},
    },
    "costs": {"time_s": "real", "load": "real", **dict.fromkeys(COSTS, "real")},
    "scaling": {
        **{"time_s": "real", "load": "real", "nodes": "whole", "starting": "whole", "leaving": "whole"},
        **{"launched": "whole", "failed_launches": "whole", "removed_nodes": "whole", "disrupted": "whole"},
    },
    "pool_nodes": {
        **{"node": "text", "pool": "text", "instance_type": "text", "zone": "text", "capacity_type": "text"},
        **{"price": "real", "created_s": "real", "ready_s": "real", "deleted_s": "real", "reason": "text"},
        "cost": "real",
    },
}
_SAMPLED: Final = ("queues", "costs", "scaling")  # tables with one row for each sample


class RunFolderError(KscheddError):
    """The error if the folder of --out cannot be created."""


def made_folder(folder: Path) -> Path:
    """Create the folder if it does not exist. Raises RunFolderError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise RunFolderError(f"{folder}: the folder cannot be created: {fault.strerror}") from fault
    return folder


class RunTables:
    """Context manager for the tables of a simulation, which are written to a folder.

    `resource` is the resource of the column `load`; "" omits the column. `prices` are the prices for the table `costs`;
    None omits the table. With `pools` and prices, the tables of node pools are written too. The tables record the
    simulation from their creation on.
    """

    def __init__(
        self,
        folder: Path,
        simulation: Simulation,
        resource: str = "",
        prices: NodePrices | None = None,
        pools: NodePools | None = None,
    ) -> None:
        self._folder = made_folder(folder)
        self._simulation = simulation
        self._resource = resource
        self._requested = 0  # amount of the resource that the pods created so far request
        self._opened = ExitStack()
        self._attempts = self._table("attempts", {})
        self._pods: TableFile | None = None  # None until the resources are known
        self._others: list[str] = []  # resources with a column of their own
        self._samples: list[tuple[list[Row], Mapping[str, Row]]] = []
        self._every, self._idles = 1, 0
        self.measures = RunMeasures(simulation, on_end=self._write_pod, prices=prices, pools=pools)
        self._pools = pools
        self.pool_nodes = None if pools is None or prices is None else PoolNodes(simulation, pools, prices)
        simulation.hear(self._write_attempt)
        simulation.watch(self._count_load)
        simulation.observe(self)

    def __enter__(self) -> "RunTables":
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _table(self, name: str, more: Mapping[str, ColumnType]) -> TableFile:
        return self._opened.enter_context(TableFile(self._folder / name, {**COLUMNS[name], **more}))

    # -- the observer -------------------------------------------------------------------------------------------

    def attempted(self, entry: QueuedPod, result: ScheduleResult | FitError) -> None: ...

    def happened(self, entries: Sequence[Happened]) -> None: ...

    def moved(self, move: Move) -> None: ...

    def idle(self) -> None:
        self._idles += 1
        if (self._idles - 1) % self._every == 0:
            self._samples.append(self._sample())
            if len(self._samples) > MOST_SAMPLES:
                del self._samples[1::2]
                self._every *= 2

    def _write_attempt(self, attempt: LoggedAttempt) -> None:
        self._attempts.append({**attempt.line(), "time_s": round(attempt.time_s, 6), "load": self._load})

    def _count_load(self, events: Sequence[WatchEvent]) -> None:
        if self._resource:
            for event in events:
                if event.old is None and isinstance(event.new, Pod):
                    self._requested += event.new.requests.get(self._resource, 0)

    @property
    def _load(self) -> float | None:
        table = self._simulation.machine.cluster.table
        number = table.resources.get(self._resource)
        there = 0 if number is None else int(table.allocatable[number].sum())
        return round(self._requested / there, 6) if there else None

    def _sample(self) -> tuple[list[Row], Mapping[str, Row]]:
        simulation = self._simulation
        table = simulation.machine.cluster.table
        table.make_every_resource()
        when = {"time_s": round(simulation.elapsed, 6), "load": self._load}
        lost = Fragmentation.of(table, self.measures.targets)
        usage: list[Row] = [
            {
                **when,
                "resource": name,
                "requested": (requested := int(table.requested[table.resources[name]][table.alive].sum())),
                "capacity": (there := int(table.allocatable[table.resources[name]].sum())),
                "used": round(requested / there, 6),
                "fragmented": round(share, 6),
                "unusable_nodes": round(lost.unusable, 6),
            }
            for name, share in lost.fragmented.items()
        ]
        counts = simulation.queue.counts()
        running = self.measures.running
        queues = {
            **when,
            "active": counts[SubQueue.ACTIVE],
            "backoff": counts[SubQueue.BACKOFF] + counts[SubQueue.ERROR_BACKOFF],
            "unschedulable": counts[SubQueue.UNSCHEDULABLE],
            "gated": counts[SubQueue.GATED],
            "in_flight": counts[SubQueue.IN_FLIGHT],
            "running": running,
            "pending": len(self.measures.pods) - running,
        }
        sampled: dict[str, Row] = {"queues": queues}
        if self.measures.costs is not None:
            rounded = {name: round(value, 6) for name, value in self.measures.costs_now().items()}
            sampled["costs"] = {**when, **rounded}
        if self._pools is not None:
            counts_of_pools = {"starting": self._pools.starting, "leaving": self._pools.leaving}
            totals = {name: value for name, value in self._pools.totals.values().items() if name in COLUMNS["scaling"]}
            sampled["scaling"] = {**when, "nodes": table.node_count, **counts_of_pools, **totals}
        return usage, sampled

    # -- pods and the end ---------------------------------------------------------------------------------------

    def _write_pod(self, times: PodTimes) -> None:
        if self._pods is None:
            table = self._simulation.machine.cluster.table
            table.make_every_resource()
            self._others = [name for name in table.resources if name not in ("cpu", "memory")]
            self._pods = self._table("pods", {short: "whole" for short in short_names(self._others).values()})
        pod, short = times.pod, short_names(self._others)
        self._pods.append(
            {
                "pod": pod.key,
                "priority": pod.priority,
                "created_s": round(times.created_s, 6),
                "scheduled_s": None if times.scheduled_s is None else round(times.scheduled_s, 6),
                "ended_s": None if times.ended_s is None else round(times.ended_s, 6),
                "wait_s": None if times.wait_s is None else round(times.wait_s, 6),
                "node": pod.node_name or None,
                "phase": pod.phase,
                "disruption": times.disruption or None,
                "cpu": pod.requests.get("cpu", 0) / _MILLI,
                "memory": pod.requests.get("memory", 0),
                **{short[name]: pod.requests.get(name, 0) for name in self._others},
            }
        )

    def finish(self) -> None:
        """Write the pods that have not ended, the nodes, usage and queues at the end of the run."""
        for times in self.measures.pods.values():
            self._write_pod(times)
        if self._pods is None:
            self._table("pods", {})
        self._samples.append(self._sample())
        usage = self._table("usage", {})
        sampled = {name: self._table(name, {}) for name in _SAMPLED if name in self._samples[-1][1]}
        for rows, row_of in self._samples:
            for each in rows:
                usage.append(each)
            for name, table in sampled.items():
                table.append(row_of[name])
        self._write_nodes()
        if self.pool_nodes is not None:
            pool_nodes = self._table("pool_nodes", {})
            for row in self.pool_nodes.rows():
                pool_nodes.append(row)

    def _write_nodes(self) -> None:
        table = self._simulation.machine.cluster.table
        short = short_names([name for name in table.resources if name not in ("cpu", "memory")])
        more: dict[str, ColumnType] = {
            f"{name}_{what}": "whole" for name in short.values() for what in ("requested", "allocatable")
        }
        file = self._table("nodes", more)
        for node in sorted((node for node in table.nodes if node is not None), key=lambda node: node.name):
            row = table.row_of[node.name]
            amounts = {
                name: (int(table.requested[number, row]), int(table.allocatable[number, row]))
                for name, number in table.resources.items()
            }
            cells: dict[str, Any] = {
                "node": node.name,
                "zone": node.labels.get(ZONE_LABEL),
                "pods": int(table.pod_count[row]),
                "pods_allocatable": int(table.allowed_pods[row]),
            }
            for name, (requested, allocatable) in amounts.items():
                column, unit = short.get(name, name), _MILLI if name == "cpu" else 1
                cells[f"{column}_requested"] = requested / unit if unit > 1 else requested
                cells[f"{column}_allocatable"] = allocatable / unit if unit > 1 else allocatable
            file.append(cells)
