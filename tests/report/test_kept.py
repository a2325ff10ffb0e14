"""Tests that a report from a daemon's history equals a report recorded during the run."""

from pathlib import Path

import numpy as np
import pytest

from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.log.log import Log
from kschedd.methods import cluster_methods
from kschedd.report.collector import ReportCollector
from kschedd.report.kept import KeptHistory, of_kept
from kschedd.sdk.objects import node, pod
from kschedd.simulation.engine import Engine
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.table import run_words
from tests.report.runs import report_of


def test_what_is_wound_back_and_forward_is_what_was_noted_as_it_happened() -> None:
    log = Log()
    engine = Engine(seed=1, on_happened=log.extend, recorder=log.append)
    for name in ("a", "b"):
        engine.store.create(node(name, cpu="4", labels={"topology.kubernetes.io/zone": f"zone-{name}"}))
    engine.run_until_idle()
    noted = ReportCollector.observing(engine)
    begin = engine.store.version
    for second, cpu in enumerate(("3", "3", "2", "64", "1")):
        engine.store.create(pod(f"p-{second}", cpu=cpu))
        engine.run_until_idle()
        engine.advance(engine.now + 7)
    engine.store.delete("Pod", "default", "p-0", grace_period_s=0)
    engine.advance(engine.now + 30)
    fork = Engine(resumed=engine.snapshot())
    table = fork.machine.cluster.table
    before = table.requested.copy(), table.pod_count.copy()
    kept = of_kept(fork, KeptHistory(list(log), engine.store.written_after(begin)))
    assert np.array_equal(table.requested, before[0])
    assert np.array_equal(table.pod_count, before[1])
    expected, found = report_of(noted, "", []), report_of(kept, "", [], virtual=False)
    for ours, theirs in zip(found.use, expected.use, strict=True):
        assert ours.resource == theirs.resource
        assert ours.series == pytest.approx(theirs.series)
    assert [(each.name, each.series.tolist()) for each in found.zones] == [
        (each.name, each.series.tolist()) for each in expected.zones
    ]
    pending = {each.reason: each for each in expected.pending}
    for band in found.pending:
        assert band.series == pytest.approx(pending[band.reason].series)
        assert (band.end, band.failures) == (pending[band.reason].end, pending[band.reason].failures)
    assert [each.placed for each in found.by_column] == [each.placed for each in expected.by_column]
    giant = next(each for each in found.decisions.values() if each.pod == "default/p-3" and each.funnel is not None)
    assert giant.funnel is not None
    assert giant.funnel.left == 0


def test_the_verb_writes_over_a_file_only_if_told_so(tmp_path: Path) -> None:
    daemon = VirtualDaemon(VirtualCluster(seed=1), cluster_methods)
    reported: list[str] = []
    errors: list[str] = []
    session = VerbSession(lambda: daemon, reported.append, errors.append, folder=tmp_path)
    assert run_words(session, ["report"]) == 0
    assert "kschedd-report.html: " in reported[-1]
    assert (tmp_path / "kschedd-report.html").read_text().startswith("<!doctype html>")
    assert run_words(session, ["report"]) == 1
    assert "already exists" in "".join(errors)
    assert run_words(session, ["report", "--force"]) == 0
    assert run_words(session, ["report", "none/such.html"]) == 1
    assert "cannot be written" in "".join(errors)


def test_a_daemon_answers_with_its_nodes_over_time() -> None:
    cluster = VirtualCluster(seed=1)
    daemon = VirtualDaemon(cluster, cluster_methods)
    daemon.call("objects.apply", manifests=[node("n1", cpu="4"), node("n2", cpu="4")])
    for name in ("a", "b", "c"):
        daemon.call("objects.apply", manifests=pod(name, cpu="3"))
        cluster.engine.advance(cluster.engine.now + 10)
    found = daemon.call("nodes.history")
    assert (found["nodes"], found["zones"]) == ([["n1"], ["n2"]], ["", ""])
    assert len(found["columns"]) == len(found["attempts"]) == 30
    assert sorted((row[5], row[15], row[25]) for row in found["shares"]["cpu"]) == [("0", "C", "C"), ("C", "C", "C")]
    assert [(each["attempts"], each["placed"], each["failed"]) for each in found["attempts"][::10]] == [
        (1, 1, 0),
        (1, 1, 0),
        (1, 0, 1),
    ]
    assert found["attempts"][10]["first"] == [{"pod": "default/b", "attempt": 1}]


def test_a_daemon_answers_with_the_page() -> None:
    daemon = VirtualDaemon(VirtualCluster(seed=1), cluster_methods)
    daemon.call("objects.apply", manifests=node("acme-node", cpu="2"))
    daemon.call("objects.apply", manifests=pod("acme-small", cpu="1"))
    daemon.call("objects.apply", manifests=pod("acme-giant", cpu="64"))
    text = daemon.call("report.page")["page"]
    assert "default/acme-giant" in text
    assert "Insufficient cpu" in text
    assert "NodeResourcesFit" in text
    assert "acme" not in daemon.call("report.page", redact=True)["page"]
