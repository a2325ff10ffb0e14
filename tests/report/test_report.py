"""Tests of a report's content and page."""

import hashlib
import json
import re
from base64 import b64encode
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import attrs
import numpy as np
import pytest

from kschedd.config.loading.load import default_config
from kschedd.framework.registry import Registry
from kschedd.report.aggregate import MOST_ROWS
from kschedd.report.collector import MOST_REASONS, OTHER_REASONS, UNDER_WAY, WAITS, ReportCollector
from kschedd.report.page import page
from kschedd.report.redaction import redacted
from kschedd.sdk.objects import node, pod
from kschedd.simulation.simulation import Simulation
from tests.report.runs import Step, report_of, run, small_run, zoned

HOSTILE = "<script>alert(1)</script>\"'&amp;]]>"
_VOID = frozenset(("meta", "br", "img", "link", "input", "hr"))


class Outline(HTMLParser):
    """The ids, links and loaded resources of a page; every element must be closed inside its parent."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.scripts = 0
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if "id" in given:
            self.ids.append(str(given["id"]))
        if tag == "a":
            self.links.append(str(given["href"]))
        self.scripts += tag == "script"
        self.loads += [str(given[name]) for name in ("src", "srcset", "data", "action", "poster") if name in given]
        assert not [name for name in given if name.startswith("on")], "no handlers in attributes"
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def answers_in(text: str) -> Any:
    """Return the answers in the file of a report."""
    found = re.search(r'(?s)<script type="application/json" id="kept">(.*?)</script>', text)
    assert found is not None
    return json.loads(found[1])


def test_utilisation_is_weighted_by_time() -> None:
    report = small_run()
    cpu = next(use for use in report.use if use.resource == "cpu")
    # Two pods of 3 of 8 CPUs until 40 s, when the first ends and the pod of 2 replaces it.
    assert cpu.series[:40] == pytest.approx([0.75] * 40)
    assert cpu.end == pytest.approx(5 / 8)
    assert cpu.mean == pytest.approx((40 * 0.75 + 60 * 0.625) / 100, abs=0.01)


def test_pending_pods_are_counted_by_reason_as_long_as_they_wait() -> None:
    report = small_run()
    waited = {each.reason: each for each in report.pending}
    assert [name for name in waited if name not in (WAITS, UNDER_WAY)] == ["Insufficient cpu"]
    short = waited["Insufficient cpu"]
    assert short.series[15] == 1
    assert short.series[30] == 2
    assert short.series[90] == 1
    assert short.end == 1
    assert short.pods[0] == "default/giant"
    assert short.example is not None
    assert report.decisions[short.example].pod == "default/late"


def test_the_pod_that_waited_is_the_slowest_decision() -> None:
    report = small_run()
    slowest = [report.decisions[number] for number in report.slowest]
    assert [each.pod for each in slowest] == ["default/late"]
    assert slowest[0].waited_s == pytest.approx(30, abs=2)
    assert slowest[0].attempt >= 2


def test_a_funnel_goes_from_all_nodes_to_those_that_fit() -> None:
    tainted = zoned("tainted", "zone-a", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    steps: list[Step] = [(0, tainted), (0, zoned("small", "zone-a", cpu="1")), (0, zoned("large", "zone-b", cpu="8"))]
    _, collector = run([*steps, (1, pod("p", cpu="2")), (2, pod("giant", cpu="64"))], 3)
    report = report_of(collector, "", [])
    by_pod = {decision.pod: decision for decision in report.decisions.values()}
    funnel = by_pod["default/p"].funnel
    assert funnel is not None
    assert funnel.nodes == 3
    assert [(step.what, step.lost, step.left) for step in funnel.steps] == [
        ("TaintToleration", 1, 2),
        ("NodeResourcesFit", 1, 1),
    ]
    assert funnel.steps[1].reasons == ((1, "Insufficient cpu"),)
    failed = by_pod["default/giant"].funnel
    assert failed is not None
    assert failed.left == 0


def test_zones_and_the_skew_of_workloads() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    pods = [pod(f"web-{n}") for n in range(5)]
    for each in pods:
        each["metadata"]["ownerReferences"] = [owner]
    steps: list[Step] = [(0, zoned("a", "zone-a", pods=4)), (0, zoned("b", "zone-b", pods=1))]
    _, collector = run([*steps, *((1.0, each) for each in pods)], 10)
    report = report_of(collector, "", [])
    assert [(zone.name, zone.nodes, zone.pods) for zone in report.zones] == [("zone-a", 1, 4), ("zone-b", 1, 1)]
    assert [(each.workload, each.pods, each.skew) for each in report.spread] == [("ReplicaSet default/web", (4, 1), 3)]


def test_scores_of_nodes_are_what_the_plugins_gave_them() -> None:
    steps: list[Step] = [(0, zoned("a", "zone-a", cpu="8")), (0, zoned("b", "zone-b", cpu="2"))]
    _, collector = run([*steps, (1, pod("p", cpu="1"))], 2)
    report = report_of(collector, "", [])
    assert report.scores is not None
    assert report.scores.samples == 1
    fit = report.scores.plugins.index("NodeResourcesFit")
    larger, smaller = report.scores.cells[:, fit].tolist()
    assert larger > smaller
    [decision] = report.decisions.values()
    assert decision.best[0].node == decision.node == "a"
    assert decision.best[0].total == decision.score == sum(decision.best[0].scores)


def test_many_nodes_share_rows_and_none_is_left_out() -> None:
    steps: list[Step] = [(0, zoned(f"n-{n}", f"zone-{n % 3}", cpu="2")) for n in range(MOST_ROWS * 2 + 7)]
    _, collector = run([*steps, (1, pod("p", cpu="1"))], 5)
    report = report_of(collector, "", [])
    assert len(report.groups) <= MOST_ROWS
    named = [name for group in report.groups for name in group.nodes]
    assert len(named) == len(set(named)) == MOST_ROWS * 2 + 7
    assert [group.zone for group in report.groups] == sorted(group.zone for group in report.groups)
    fullest = report.maps[0].cells
    assert fullest.shape == (len(report.groups), report.columns.count)
    # One pod requests half of one of the nodes in its row.
    usage = report.at_end.usage
    full = usage.nodes[usage.pods.index(1)]
    row = next(n for n, group in enumerate(report.groups) if full in group.nodes)
    assert fullest[row, 3] == pytest.approx(0.5 / len(report.groups[row].nodes))


def test_a_node_that_went_is_there_and_empty_from_then_on() -> None:
    simulation = Simulation(default_config(), seed=1, registry=Registry(), controllers=())
    collector = ReportCollector.observing(simulation)
    for raw in (node("a", cpu="2"), pod("p", cpu="1")):
        simulation.store.create(raw)
    simulation.advance(simulation.start_s + 10)
    simulation.store.delete("Node", "", "a")
    simulation.store.create(node("b", cpu="2"))
    simulation.advance(simulation.start_s + 20)
    report = report_of(collector, "", [])
    assert [group.nodes for group in report.groups] == [("a",), ("b",)]
    assert report.at_end.usage.nodes == ["b"]
    cells = report.maps[0].cells
    assert cells[0, 5] == pytest.approx(0.5)
    assert cells[0, 15] == 0


def test_kinds_of_reasons_are_bounded() -> None:
    steps: list[Step] = [(0, node("n", cpu="1"))]
    steps += [(1, pod(f"p-{n}", resources={f"example.com/r-{n}": "1"})) for n in range(MOST_REASONS + 10)]
    _, collector = run(steps, 2)
    assert len(collector.reasons) == MOST_REASONS + 1
    assert collector.reasons[OTHER_REASONS].failures >= 10


def test_a_report_changes_no_decision() -> None:
    steps: list[Step] = [(0, zoned(f"n-{n}", f"zone-{n % 2}", cpu="4")) for n in range(5)]
    steps += [(float(n), pod(f"p-{n}", cpu="1")) for n in range(30)]
    with_report, _ = run(steps, 60)
    without, _ = run(steps, 60, observed=False)
    assert with_report.summary(1.0).as_json() == without.summary(1.0).as_json()


# -- the page -------------------------------------------------------------------------------------------------------


def test_the_page_is_whole_and_loads_nothing() -> None:
    text = page(small_run())
    outline = Outline(text)
    assert outline.loads == []
    assert not re.search(r"(?i)https?://|@import|url\(", re.sub(r"(?s)<script>.*?</script>", "", text))
    assert len(outline.ids) == len(set(outline.ids))
    anchors = [link for link in outline.links if not link.startswith("#/")]
    assert {link.removeprefix("#") for link in anchors} <= set(outline.ids)
    assert all(link.startswith("#") for link in outline.links)
    for section in ("use", "nodes", "pending", "scores", "zones", "slowest", "columns", "fullest"):
        assert section in outline.ids


def test_only_the_script_of_the_page_may_run() -> None:
    text = page(small_run())
    script = re.findall(r"(?s)<script>(.*?)</script>", text)[0]
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[0]
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy


def test_the_views_read_the_answers_of_methods_in_the_file() -> None:
    kept = answers_in(page(small_run()))
    [[_, usage]] = kept["nodes.usage"]
    assert (usage["nodes"], usage["pods"]) == (["node-a", "node-b"], [1, 1])
    [[_, history]] = kept["nodes.history"]
    assert history["nodes"] == [["node-a"], ["node-b"]]
    assert [row[39:42] for row in history["shares"]["cpu"]] == ["Cpp", "CCC"]  # 3 of 4 CPUs, then 2 of 4
    [[_, [group]]] = kept["causes.pending"]
    assert group["workloads"] == [{"kind": "Pod", "namespace": "default", "name": "giant"}]
    [[about, cause]] = kept["causes.explain"]
    assert (about, cause["examined"]) == (group["workloads"][0], "default/giant")
    explained = {(params["pod"], params.get("attempt")): answer for params, answer in kept["scheduler.explain"]}
    assert explained["default/first", 1]["node"] == "node-a"
    for number in (1, None):
        [step] = explained["default/giant", number]["funnel"]
        assert (step["plugin"], step["rejected"], step["left"]) == ("NodeResourcesFit", 2, 0)
    queued = {params["place"]: [pod["key"] for pod in answer["pods"]] for params, answer in kept["queue.list"]}
    assert queued["unschedulable"] == ["default/giant"]
    assert kept["objects.list"][0][0]["field_selector"] == "spec.nodeName=node-a"
    assert "fork.list" not in kept


def test_every_drawing_is_well_formed_and_has_a_title() -> None:
    drawings = re.findall(r"(?s)<svg.*?</svg>", page(small_run()))
    assert len(drawings) >= 5
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        title = root.find("title")
        assert title is not None
        assert title.text
        assert root.get("role") == "img"


def test_the_same_run_gives_the_same_bytes() -> None:
    assert page(small_run()) == page(small_run())


def test_a_hostile_name_is_shown_and_does_nothing() -> None:
    report = small_run()
    decision = next(iter(report.decisions.values()))
    hostile_decision = attrs.evolve(decision, pod=HOSTILE, message=HOSTILE, node=HOSTILE)
    changed = {**report.decisions, decision.number: hostile_decision}
    groups = [attrs.evolve(group, label=HOSTILE, zone=HOSTILE, nodes=(HOSTILE,)) for group in report.groups]
    hostile = attrs.evolve(report, title=HOSTILE, decisions=changed, groups=groups, facts=[(HOSTILE, HOSTILE)])
    text = page(hostile)
    outline = Outline(text)
    assert outline.scripts == 2
    assert "<script>alert" not in text
    assert HOSTILE in outline.text
    assert answers_in(text)["nodes.history"][0][1]["nodes"] == [[HOSTILE], [HOSTILE]]


def test_control_characters_in_a_message_are_replaced() -> None:
    text = page(attrs.evolve(small_run(), title="a\x00b\x1b[31mc"))
    assert "a\ufffdb\ufffd[31mc" in text
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", text)


def test_an_empty_run_has_a_page() -> None:
    _, collector = run([], 0)
    text = page(report_of(collector, "Nothing", []))
    Outline(text)
    assert "The cluster has no nodes." in text


# -- redaction ------------------------------------------------------------------------------------------------------


def test_a_redacted_report_has_no_name_of_the_cluster() -> None:
    tainted = zoned(
        "acme-tainted", "eu-acme-1", taints=[{"key": "acmekey", "value": "acmesecret", "effect": "NoSchedule"}]
    )
    steps: list[Step] = [
        (0, tainted),
        (0, zoned("acme-free", "eu-acme-2", cpu="2")),
        (0, pod("acmepod", cpu="1")),
        (1, pod("acmegiant", cpu="64")),
        (2, pod("acmegone", cpu="64")),
        (3, "acmegone"),
    ]
    simulation, collector = run(steps, 10)
    simulation.store.delete("Node", "", "acme-tainted")
    simulation.run_until_idle()
    plain = report_of(collector, "A run", [])
    reported = "0/2 nodes are available: 1 node(s) had untolerated taint {acmekey: acmesecret}, 1 Insufficient cpu."
    decisions = {number: attrs.evolve(each, message=reported) for number, each in plain.decisions.items()}
    plain = attrs.evolve(plain, decisions=decisions)
    store = simulation.store
    report = redacted(plain, [obj.raw for kind in store.kinds() for obj in store.list(kind)])
    text = page(report)
    assert "acmesecret" in page(plain)
    assert "acme" not in text.lower()
    assert "Insufficient cpu" in text
    assert "1 node(s) had untolerated taint {" in text
    assert "NodeResourcesFit" in text
    assert np.array_equal(report.maps[0].cells, plain.maps[0].cells)
    assert len({group.label for group in report.groups}) == 2
