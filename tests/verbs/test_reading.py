"""Tests of the verbs get, describe and watch with fixed objects."""

import json

import pytest
import yaml

from kschedd.printing.terminal.style import TerminalStyle
from tests.verbs.fake_daemon import pod


def test_pods_as_a_table(typed) -> None:
    assert typed("get pods") == 0
    assert typed.out == (
        "NAME    READY   STATUS    RESTARTS   AGE\n"
        "web-0   1/1     Running   2          5m\n"
        "web-1   0/1     Pending   0          5m\n"
    )


def test_wide_pods_have_their_node(typed) -> None:
    typed("get po -o wide")
    head, first, second = typed.out.splitlines()
    assert head.split("   ")[-1].strip() == "READINESS GATES"
    assert first.split()[5:8] == ["10.0.0.1", "node-a", "<none>"]
    assert second.split()[6] == "<none>"


def test_every_namespace_is_a_column(typed) -> None:
    typed("get pods -A")
    assert [line.split()[0] for line in typed.out.splitlines()] == ["NAMESPACE", "default", "default", "team"]


def test_wide_nodes_say_what_is_taken(typed) -> None:
    typed("get nodes -owide")
    _, a, b = typed.out.splitlines()
    assert a.split() == [
        "node-a", "Ready", "worker", "3d", "zone-a", "<none>", "500m/4", "1Gi/8Gi", "1/110"
    ]  # fmt: skip
    assert b.split()[1] == "Ready,SchedulingDisabled"
    assert b.split()[5:7] == ["gpu=yes:NoSchedule", "1500m/4"]


def test_several_kinds_are_several_tables(typed) -> None:
    typed("get pods,nodes")
    first, second = typed.out.split("\n\n")
    assert "pod/web-0" in first
    assert "node/node-a" in second


def test_one_object_in_full(typed) -> None:
    typed("get pod web-0 -o json")
    assert json.loads(typed.out)["metadata"]["name"] == "web-0"
    typed("get pod/web-0 -o yaml")
    assert yaml.safe_load(typed.out)["spec"]["nodeName"] == "node-a"


def test_several_objects_are_a_list(typed) -> None:
    typed("get pods -o json")
    read = json.loads(typed.out)
    assert read["kind"] == "List"
    assert len(read["items"]) == 2


def test_names_alone(typed) -> None:
    typed("get pods,nodes -o name")
    assert typed.out.split() == ["pod/web-0", "pod/web-1", "node/node-a", "node/node-b"]


def test_jsonpath(typed) -> None:
    typed("""get pods -o jsonpath='{range .items[*]}{.metadata.name}={.spec.nodeName};{end}'""")
    assert typed.out == "web-0=node-a;web-1=;"


def test_labels_and_fields_select(typed) -> None:
    typed("get pods -A -l app=db -o name")
    assert typed.out == "pod/db-0\n"
    typed("get pods -A --field-selector spec.nodeName=node-a -o name")
    assert typed.out == "pod/web-0\n"


def test_flags_may_stand_between_names(typed) -> None:
    assert typed("get pod -n default web-0 -o name web-1") == 0
    assert typed.out.split() == ["pod/web-0", "pod/web-1"]


def test_an_unknown_kind_that_has_objects_is_listed(typed) -> None:
    assert typed("get widgets") == 0
    assert typed.out == "NAME   AGE\nw      60s\n"


def test_sorted_by_a_field(typed) -> None:
    typed("get pods -A --sort-by .metadata.name -o name")
    assert typed.out.split() == ["pod/db-0", "pod/web-0", "pod/web-1"]


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        pytest.param("get podz", 1, 'there is no kind "podz"; did you mean "pod"', id="kind-misspelt"),
        pytest.param("get", 2, "a kind is required", id="nothing-named"),
        pytest.param("get pod web-2", 1, 'did you mean "web-1" or "web-0"?', id="name-misspelt"),
        pytest.param("get pod db-0", 1, "there is one in namespace team: add -n team", id="in-another-namespace"),
        pytest.param("get pvc data", 1, "there are no persistentvolumeclaims in namespace default", id="none-at-all"),
        pytest.param("get pods -o jason", 2, 'did you mean "json"?', id="output-misspelt"),
        pytest.param("get pods -o jsonpath={.a", 2, '"}" is missing', id="jsonpath-unfinished"),
        pytest.param("get pods --namespce x", 2, 'did you mean "--namespace"', id="flag-misspelt"),
        pytest.param("get pod/web-0 web-1", 2, "cannot be mixed with other forms", id="slash-and-plain"),
        pytest.param("get pod web-0 -l a=b", 2, "a name cannot be combined with selectors", id="name-and-selector"),
        pytest.param("get pods,nodes -w", 2, "only one kind", id="watch-two-kinds"),
        pytest.param("get pod web-2 -w", 1, 'did you mean "web-1" or "web-0"?', id="watch-of-a-name-misspelt"),
        pytest.param("get ''", 2, "a kind or name is empty", id="empty-kind"),
        pytest.param("get pods,", 2, "a kind or name is empty", id="empty-kind-beside-another"),
        pytest.param("get pod web-0 ''", 2, "a kind or name is empty", id="empty-name"),
        pytest.param("api-resources ''", 2, "unexpected argument ''", id="empty-argument"),
        pytest.param("gett pods", 2, 'did you mean "get"', id="verb-misspelt"),
    ],
)
def test_what_is_wrong_is_said_with_what_would_be_right(typed, line, code, words) -> None:
    assert typed(line) == code
    assert words in typed.err
    assert typed.out == ""


def test_nothing_found_is_no_failure(typed) -> None:
    assert typed("get pods -n nowhere") == 0
    assert typed.err == 'No resources found in nowhere namespace.\nThere is no namespace "nowhere"\n'


def test_one_of_several_missing_fails_and_shows_the_others(typed) -> None:
    assert typed("get pod web-0 nope") == 1
    assert "web-0" in typed.out
    assert "nope" in typed.err


def test_a_watch_goes_on_in_the_same_columns(typed, daemon) -> None:
    changed = pod("web-1", "node-b")
    other = pod("web-9", labels={"app": "other"})
    daemon.streams["objects.watch"] = [
        {"type": "MODIFIED", "object": changed, "resource_version": 10},
        {"type": "ADDED", "object": other, "resource_version": 11},
    ]
    assert typed("get pods -l app=web -w") == 0
    assert typed.out.splitlines()[-1] == "web-1   1/1     Running   2          5m"
    assert "web-9" not in typed.out
    assert daemon.calls[-1] == ("objects.watch", {"kind": "Pod", "namespace": "default", "since": 9, "epoch": "e1"})


def test_describe_a_pending_pod_says_why(typed) -> None:
    assert typed("describe pod web-1") == 0
    assert "Why Pending:      0/2 nodes are available: 2 Insufficient cpu.\n" in typed.out
    assert "Queue:            unschedulable, 2 attempts, for 95s, rejected by NodeResourcesFit\n" in typed.out
    assert "FailedScheduling" in typed.out
    assert "(x3 over 2m)" in typed.out


def test_describe_a_pod_that_waits_at_permit(typed, daemon) -> None:
    daemon.objects.append(pod("gang-0"))
    typed("describe pod gang-0")
    assert "Waiting:          on node-a at Permit, for Gang (12s left)\n" in typed.out


def test_describe_a_node_adds_up_its_pods(typed) -> None:
    typed("describe node node-b")
    assert "Taints:           gpu=yes:NoSchedule\n" in typed.out
    assert "Pods (1 of at most 110):\n" in typed.out
    assert "1500m (37%)" in typed.out


def test_describe_any_kind(typed) -> None:
    assert typed("describe widget w") == 0
    assert "Kind:             Widget\n" in typed.out


def test_top_of_nodes_is_what_is_requested_of_them(typed) -> None:
    assert typed("top nodes --sort-by cpu") == 0
    head, b, a = typed.out.splitlines()
    assert head.split() == [
        "NAME", "CPU(REQUESTED)", "CPU(ALLOCATABLE)", "CPU%",
        "MEMORY(REQUESTED)", "MEMORY(ALLOCATABLE)", "MEMORY%", "PODS",
    ]  # fmt: skip
    assert b.split() == ["node-b", "1500m", "4", "37%", "1Gi", "8Gi", "12%", "1/110"]
    assert a.split()[:3] == ["node-a", "500m", "4"]


def test_top_of_pods_is_what_they_request(typed) -> None:
    assert typed("top pods -A --no-headers --sort-by memory") == 0
    assert [line.split() for line in typed.out.splitlines()] == [
        ["default", "web-0", "500m", "1Gi", "node-a"],
        ["default", "web-1", "500m", "1Gi", "<none>"],
        ["team", "db-0", "1500m", "1Gi", "node-b"],
    ]
    assert typed("top pod web-0") == 0
    assert typed.out.splitlines()[1].split() == ["web-0", "500m", "1Gi", "node-a"]
    assert typed("top") == 2
    assert typed("top deployments") == 2
    assert typed("top pod web-7") == 1


def test_watch_shows_another_verb_again(typed) -> None:
    assert typed("watch -i 500ms --times 3 get pods -o name") == 0
    assert typed.out == "pod/web-0\npod/web-1\n" * 3
    assert typed.slept == [0.5, 0.5]


def test_watch_shows_the_head_of_what_is_too_tall(typed) -> None:
    typed.style = TerminalStyle(width=30, height=8)
    assert typed("watch --times 1 get pods -A") == 0
    screen = typed.out.removeprefix("\x1b[?1049h\x1b[H\x1b[2J").removesuffix("\x1b[?1049l").splitlines()
    assert screen[0] == "every 1 s: get pods -A    (Ctrl-C ends)"
    assert screen[2].startswith("NAMESPACE  NAME")
    assert screen[-1] == "... and 3 more lines"


def test_help_of_a_verb(typed, daemon) -> None:
    assert typed("get pods --help") == 0
    assert "examples:" in typed.out
    assert daemon.calls == []
