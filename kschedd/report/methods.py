"""Methods about the recent history of the cluster: an HTML page, and the nodes over time."""

from typing import Any

import attrs

from kschedd.clusters.virtual import MethodsOf
from kschedd.report.aggregate import history_of, report_of
from kschedd.report.history import HistoryAnswer
from kschedd.report.kept import NOTES, KeptHistory, of_kept
from kschedd.report.page import page
from kschedd.report.redaction import redacted
from kschedd.scheduling.records import AttemptRecord
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot
from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.answers import PageAnswer
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method
from kschedd.service.workers import GivenUp
from kschedd.simulation.engine import Engine
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import Gone
from kschedd.store.objects.log import WatchEvent


@attrs.frozen(eq=False)
class ReportMethods(Methods):
    """`methods`: the methods of a fork of the cluster, on which remedies are verified."""

    _cluster: ClusterBackend
    _methods: MethodsOf

    @method(
        "report.page",
        (Param("redact", "boolean", False, False, doc="replace the cluster's names by made-up names"),),
        reads=True,
        doc="Returns a report about the recorded history: utilization and pending pods over time, filter results by "
        "node, zones, the slowest attempts. The report is computed in a thread, on a fork.",
        answer=PageAnswer,
        large=True,
    )
    async def page(self, call: Call) -> Any:
        snapshot, kept = await self._recent()
        redact = call["redact"]
        return await call.services.workers.run(
            call.client, lambda given_up: PageAnswer(self._page(snapshot, kept, redact, given_up))
        )

    @method(
        "nodes.history",
        reads=True,
        doc="Returns the requested share of each node's resources, and the number of attempts, over the time that the "
        "daemon's log covers. The answer is computed in a thread, on a fork.",
        answer=HistoryAnswer,
        large=True,
    )
    async def history(self, call: Call) -> Any:
        snapshot, kept = await self._recent(reading=True)
        return await call.services.workers.run(call.client, lambda given_up: _history(snapshot, kept, given_up))

    async def _recent(self, *, reading: bool = False) -> tuple[ClusterSnapshot, KeptHistory]:
        """Return a fork of the cluster, and the contents of the logs; `reading`: nothing is scheduled in the fork."""
        entries = await self._cluster.log.query(list)
        since = next((entry.version for entry in entries if isinstance(entry, AttemptRecord) and entry.version), None)
        written = [] if since is None else await self._cluster.store.do(lambda store: _written(store, since))
        return await self._cluster.snapshot(reading=reading), KeptHistory(entries, written)

    def _page(self, snapshot: ClusterSnapshot, kept: KeptHistory, redact: bool, given_up: GivenUp) -> str:
        engine = Engine(resumed=snapshot)
        try:
            collected = of_kept(engine, kept)
            given_up.check()
            facts = [
                ("nodes", f"{engine.store.count('Node'):,}"),
                ("pods", f"{engine.store.count('Pod'):,}"),
                ("pending", f"{len(engine.driver.pending.pods):,}"),
                ("attempts", f"{sum(isinstance(entry, AttemptRecord) for entry in kept.entries):,}"),
            ]
            report = report_of(collected, "Cluster", facts, methods=self._methods, virtual=False, notes=NOTES)
            given_up.check()
            if redact:
                report = redacted(report, [obj.raw for kind in engine.store.kinds() for obj in engine.store.list(kind)])
            return page(report)
        finally:
            engine.close()


def _history(snapshot: ClusterSnapshot, kept: KeptHistory, given_up: GivenUp) -> HistoryAnswer:
    engine = Engine(resumed=snapshot)
    try:
        collected = of_kept(engine, kept, trying=False)
        given_up.check()
        return history_of(collected)
    finally:
        engine.close()


def _written(store: ClusterWriter, since: int) -> list[WatchEvent]:
    try:
        return list(store.shown_after(since))
    except Gone:
        return []
