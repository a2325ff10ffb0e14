"""Tests of the tools: their answers, shortened answers, rejections, and side effects."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kschedd.answers import read
from kschedd.assistants.command import FILE_FLAGS, READING, WRITING, Reconnecting, checked_words
from kschedd.assistants.tool import MAX_CHARS, ToolError
from kschedd.assistants.toolbox import Toolbox
from kschedd.commands import mcp as command
from kschedd.rpc.errors import ConnectionLostError
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.verbs.table import BY_NAME, find_verb, short_words
from tests.assistants.serving import toolbox_of
from tests.dumps.objects import node as dumped_node
from tests.dumps.objects import pod as dumped_pod
from tests.explain.planted import both, node, pod

READS = {"overview", "list", "get", "describe", "events", "queue", "decisions", "explain", "why_not", "expect"}
TRIES = {"plan", "check", "capacity", "nodes_needed", "scenario"}
WRITES = {"apply", "delete", "scale", "cordon", "change"}
BIG = pod("big", cpu="8")


@pytest.fixture
def cluster(tmp_path: Path) -> ScenarioCluster:
    """Return a cluster of two nodes, one cordoned; one pod runs, and one requests more than any node has."""
    found = ScenarioCluster(tmp_path)
    cordoned = node("n2", "b", spec="unschedulable: true")
    answer = found.do("apply", both(node("n1"), cordoned, pod("small"), BIG))
    assert "error" not in answer, answer
    found.do("advance 1s", "")
    return found


@pytest.fixture
def tools(cluster: ScenarioCluster) -> Toolbox:
    return toolbox_of(cluster)


def _said(tools: Toolbox, tool: str, /, **arguments: Any) -> str:
    outcome = tools.call(tool, arguments)
    assert not outcome.is_error, outcome.text
    return outcome.text


def test_each_result_has_the_keys_of_its_schema(cluster: ScenarioCluster) -> None:
    tools = toolbox_of(cluster, writes=True)
    one = pod("one-more")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("overview", {}),
        ("list", {"kind": "pods"}),
        ("get", {"kind": "pod", "name": "small"}),
        ("explain", {"pod": "default/big"}),
        ("explain", {"pod": "default/small"}),
        ("why_not", {"pod": "default/big", "node": "n2"}),
        ("expect", {"what": "nothing pending"}),
        ("plan", {"command": "uncordon n2"}),
        ("check", {"manifests": one}),
        ("capacity", {"manifests": one}),
        ("nodes_needed", {"nodes": node("large", cpu="16")}),
        ("scenario", {"steps": [{"command": "cordon n1"}]}),
        ("cordon", {"node": "n2", "on": False}),
    ]
    for name, arguments in calls:
        outcome = tools.call(name, arguments)
        assert not outcome.is_error, outcome.text
        tool = tools.tools[name]
        schema = tool.output_schema
        assert set(schema["required"]) <= set(outcome.data) <= set(schema["properties"]), name
        assert type(read(tool.data, outcome.data)) is tool.data, name


def _refused(tools: Toolbox, tool: str, /, **arguments: Any) -> str:
    outcome = tools.call(tool, arguments)
    assert outcome.is_error, outcome.text
    return outcome.text


def test_what_changes_the_cluster_is_there_only_where_it_was_allowed(cluster: ScenarioCluster, tools: Toolbox) -> None:
    assert set(tools.tools) == READS | TRIES
    assert set(toolbox_of(cluster, writes=True).tools) == READS | TRIES | WRITES
    assert "started without --allow-writes" in _refused(tools, "delete", kind="pod", name="small")
    assert 'did you mean "explain"' in _refused(tools, "explian", pod="big")


def test_every_tool_has_a_schema_and_says_what_it_does(cluster: ScenarioCluster) -> None:
    for tool in toolbox_of(cluster, writes=True).tools.values():
        schema = tool.schema
        assert tool.doc.endswith(".")
        assert schema["required"] == [param.name for param in tool.params if param.required]
        assert all(one["description"] for one in schema["properties"].values())
        json.dumps(schema)


def test_the_overview_counts_and_groups(tools: Toolbox) -> None:
    answer = _said(tools, "overview")
    assert "nodes: 2 (1 cordoned); pods with a node: 1" in answer
    assert "zone a, 1 nodes: requested cpu 25%" in answer
    assert "pods without a node: 1 (unschedulable 1)" in answer
    assert "1 x 0/2 nodes are available: 1 Insufficient cpu" in answer


def test_lists_are_counted_and_gone_through_by_cursor(cluster: ScenarioCluster, tools: Toolbox) -> None:
    cluster.do("apply", both(*(pod(f"more-{number:03}", cpu="0") for number in range(75))))
    outcome = tools.call("list", {"kind": "pods"})
    assert outcome.text.startswith("pods: 77\nby namespace: default 77\nby status: Pending 57, Running 20\n")
    seen, pages = [], 0
    cursor: Any = 0
    while cursor is not None:
        outcome = tools.call("list", {"kind": "pods", "cursor": cursor, "limit": 20})
        seen += [line.split()[1] for line in outcome.text.splitlines() if line.startswith("default ")]
        cursor, pages = outcome.data.get("next_cursor"), pages + 1
    assert pages == 4
    assert seen == ["big", *(f"more-{number:03}" for number in range(75)), "small"]
    assert "there are 77 pods; begin with 0" in _refused(tools, "list", kind="pods", cursor=100)


def test_long_texts_are_cut_and_can_be_read_on(cluster: ScenarioCluster, tools: Toolbox) -> None:
    keys = "\n".join(f"  key-{number:04}: text-{number:04}-{'x' * 20}" for number in range(600))
    cluster.do("apply", f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: long}}\ndata:\n{keys}\n")
    cursor, texts = 0, []
    while cursor is not None:
        outcome = tools.call("get", {"kind": "configmap", "name": "long", "cursor": cursor})
        assert len(outcome.text) <= MAX_CHARS + 100
        texts.append(outcome.text)
        cursor = outcome.data.get("next_cursor")
    assert len(texts) > 2
    assert "go on with cursor=" in texts[0]
    assert all("".join(texts).count(f"text-{number:04}-") == 1 for number in range(600))
    wide = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: wide}}\ndata: {{a: '{'x' * 20_000}'}}\n"
    cluster.do("apply", wide)
    assert "characters more)" in _said(tools, "get", kind="configmap", name="wide")


def test_why_a_pod_is_pending_and_what_would_place_it(tools: Toolbox) -> None:
    outcome = tools.call("explain", {"pod": "big"})
    assert "default/big fits on no node." in outcome.text
    assert outcome.text.startswith("cause: ")
    assert outcome.data["cause"]["code"] in outcome.text
    first = outcome.data["suggestions"][0]
    assert first["placed"] == "then 1 of 1 of its workload's pods are scheduled"
    assert f"command: {first['steps'][0]['command']}" in outcome.text
    assert "`plan` shows its other effects; this server changes nothing" in outcome.text
    other = _said(tools, "why_not", pod="big", node="n2")
    assert "NodeUnschedulable UnschedulableAndUnresolvable" in " ".join(other.split())
    assert other.startswith("cause: ")
    assert 'no node "n7"; there are n1, n2' in _refused(tools, "why_not", pod="big", node="n7")
    assert 'pods "bigg" not found' in _refused(tools, "explain", pod="bigg")


def test_what_is_tried_changes_nothing(cluster: ScenarioCluster, tools: Toolbox) -> None:
    before = cluster.cluster.engine.store.version
    plan = tools.call("plan", {"command": "uncordon n2"})
    assert plan.data == {"fits": True, "pods": {}}
    assert "node n2: uncordoned" in plan.text
    lost = tools.call("plan", {"command": "apply", "input": BIG.replace("big", "bigger")})
    assert lost.data == {"fits": False, "pods": {"pending": 1}}
    check = tools.call("check", {"manifests": BIG.replace("big", "bigger")})
    assert check.data == {"fits": False, "unplaced": ["default/bigger"]}
    assert "cause: 8 cpu requested, the largest node" in check.text
    assert tools.call("capacity", {"manifests": pod("one-more")}).data == {"fits": {"one-more": 3}}
    assert tools.call("nodes_needed", {"nodes": node("large", cpu="16")}).data == {"nodes": {"large": 1}}
    steps = [
        {"command": "uncordon n2"},
        {"command": "apply", "input": both(pod("x", cpu="4"))},
        {"command": "rest"},
        {"command": "expect pod x on node n2"},
        {"command": "expect pod x on node n1"},
    ]
    scenario = tools.call("scenario", {"steps": steps})
    assert scenario.data == {"failed": [5]}
    assert "found:    pod x is Running on n2" in scenario.text
    assert cluster.cluster.engine.store.version == before
    assert cluster.connect().call("fork.list") == []


def test_changes_say_what_is_pending_then(cluster: ScenarioCluster) -> None:
    tools = toolbox_of(cluster, writes=True)
    assert "pod/third created" in _said(tools, "apply", manifests=pod("third", cpu="4"))
    assert tools.call("cordon", {"node": "n2", "on": False}).data == {"pending": 1}
    assert tools.call("expect", {"what": "pod third on node n2"}).data == {"met": True}
    assert "deleted" in _said(tools, "delete", kind="pod", name="third")
    assert "already uncordoned" in _said(tools, "change", command="kubectl uncordon n2")
    assert "not found" in _refused(tools, "scale", kind="deployment", name="web", replicas=3)
    assert 'name "--all": a single name is expected' in _refused(tools, "delete", kind="pod", name="--all")


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("explain", {}, 'explain: "pod" (parameter 1): got nothing, allowed: string'),
        ("explain", {"pod": 3}, '"pod" (parameter 1): got integer 3, allowed: string'),
        ("list", {"kind": "pods", "label": "a=b"}, 'did you mean "labels"?'),
        ("list", {"kind": "pods", "labels": "==="}, "==="),
        ("list", {"kind": "podz"}, 'no kind "podz"; did you mean'),
        ("list", {"kind": "pods", "limit": 0}, "1 to 1000"),
        ("describe", {"kind": "pod", "name": "-A"}, "a single name is expected"),
        ("queue", {"place": "nowhere"}, "unschedulable"),
        ("plan", {"command": "stop"}, '"stop" is not allowed here'),
        ("plan", {"command": "get 'pods"}, "quote as in a shell"),
        ("plan", {"command": "apply"}, "-f"),
        ("plan", {"command": "apply -f /etc/hosts"}, "files are not read"),
        ("plan", {"command": "apply --filename=/etc/hosts"}, "files are not read"),
        ("plan", {"command": "create configmap a --from-file=/etc/hosts"}, "files are not read"),
        ("plan", {"command": "patch node n1 --patch-file /etc/hosts"}, "files are not read"),
        ("scenario", {"steps": []}, "1 to 100 are allowed"),
        ("scenario", {"steps": [{"command": "get pods -o go-template-file=/etc/hosts"}]}, "files are not read"),
        ("scenario", {"steps": [{"commnd": "get pods"}]}, "step 1: "),
        ("scenario", {"steps": [{"command": "in fork-1 stop"}]}, '"in" is not allowed here'),
        ("check", {"manifests": 3}, "allowed: string|map[]"),
        ("capacity", {"manifests": "a: ["}, "manifests:"),
    ],
)
def test_what_cannot_be_is_told_with_what_is_allowed(
    tools: Toolbox, tool: str, arguments: dict[str, Any], answer: str
) -> None:
    assert answer in _refused(tools, tool, **arguments)


def test_what_verbs_read_from_files_is_known() -> None:
    names = {short_words(name.split())[0] for name in (*READING, *WRITING)}
    assert names <= BY_NAME.keys()
    assert names.isdisjoint({"load", "save", "reload", "edit", "stop", "config", "compare", "diff", "watch"})
    flags = [flag for name in names for flag in find_verb(name).parser().noted]
    reading = {flag.names[-1] for flag in flags if flag.names and "FILE" in flag.metavar}
    assert reading == {f"--{name.replace('_', '-')}" for name in FILE_FLAGS}


def test_a_lost_connection_is_made_anew() -> None:
    made = []

    class Client:
        def call(self, method: str, /, **named: Any) -> Any:
            if method == "lost":
                raise ConnectionLostError("k.sock", "it ended")
            return len(made)

    def connect() -> Any:
        made.append(Client())
        return made[-1]

    client = Reconnecting(connect)
    assert [client.call("a"), client.call("a")] == [1, 1]
    with pytest.raises(ConnectionLostError):
        client.call("lost")
    assert client.call("a") == 2


def test_a_daemon_that_is_not_there_is_told_to_the_assistant(tmp_path: Path) -> None:
    tools = Toolbox(command.target_of_daemon(str(tmp_path / "none.sock")), writes=False)
    assert "start one with `kschedd run --detach`" in _refused(tools, "overview")


def _options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    return parser.parse_args(["mcp", *words])


def test_a_dump_needs_no_daemon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = [dumped_node("n1", 1), dumped_pod("a", 2, "n1", cpu="3"), dumped_pod("b", 3, cpu="2")]
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, dumped_pod("lost", 4, "n9")]}))
    tools = Toolbox(command.target_of_dump(_options("--from", str(file))), writes=True)
    assert "Note: missing nodes were added" in capsys.readouterr().err
    assert tools.call("overview", {}).data == {"pending": 1, "nodes": 2}
    (first, *_) = tools.call("explain", {"pod": "b"}).data["suggestions"]
    for step in first["steps"]:
        assert not tools.call("change", step).is_error
    assert tools.call("expect", {"what": "pod b running", "within": "1m"}).data == {"met": True}


def test_without_the_extra_it_is_said_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert command.main(_options()) == 2
    assert capsys.readouterr().err.strip() == command.NOT_INSTALLED
    assert "pip install 'kschedd[mcp]'" in command.NOT_INSTALLED


@pytest.mark.parametrize("words", [["config", "undo"], ["undo"]])
def test_a_verb_of_a_group_has_both_names(words: list[str]) -> None:
    assert checked_words(words, "", WRITING) == ["undo"]
    with pytest.raises(ToolError, match='"config" is not allowed here'):
        checked_words(["config", "show"], "", WRITING)
