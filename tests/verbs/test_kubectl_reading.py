"""Tests of further columns and formats of kubectl's get."""

import json

import pytest

from tests.verbs.fake_daemon import pod


def test_labels_have_columns_of_their_own(typed) -> None:
    assert typed("get pods -A -L app,example.com/tier -L none") == 0
    head, first, *_ = typed.out.splitlines()
    assert head.split()[-3:] == ["APP", "TIER", "NONE"]
    assert first.split()[-1] == "web"


def test_label_columns_stand_before_all_labels(typed) -> None:
    typed("get pods -L app --show-labels")
    assert typed.out.splitlines()[0].split()[-2:] == ["APP", "LABELS"]


def test_the_kind_before_the_name(typed) -> None:
    assert typed("get pods --show-kind --no-headers") == 0
    assert [line.split()[0] for line in typed.out.splitlines()] == ["pod/web-0", "pod/web-1"]


def test_columns_of_the_users_choice(typed) -> None:
    assert typed("get pods,nodes -o custom-columns=NAME:.metadata.name,ON:.spec.nodeName") == 0
    assert typed.out == ("NAME     ON\nweb-0    node-a\nweb-1    <none>\nnode-a   <none>\nnode-b   <none>\n")
    assert typed("get pods --no-headers -o custom-columns=NAME:.metadata.name") == 0
    assert typed.out == "web-0\nweb-1\n"


def test_no_objects_leave_the_headers_of_chosen_columns(typed) -> None:
    assert typed("get pods -n nowhere -o custom-columns=NAME:.metadata.name") == 0
    assert (typed.out, typed.err) == ("NAME\n", "")
    assert typed("get pod nope -o custom-columns=NAME:.metadata.name") == 1
    assert typed.out == ""


def test_columns_from_a_file(typed, tmp_path) -> None:
    (tmp_path / "columns").write_text("N\n.metadata.name\n")
    typed.folder = tmp_path
    assert typed("get pod web-0 -o custom-columns-file=columns") == 0
    assert typed.out == "N\nweb-0\n"


def test_a_watch_goes_on_in_chosen_columns(typed, daemon) -> None:
    daemon.streams["objects.watch"] = [{"type": "MODIFIED", "object": pod("web-1", "node-b"), "resource_version": 10}]
    assert typed("get pods -w -o custom-columns=N:.metadata.name,ON:.spec.nodeName") == 0
    assert typed.out.splitlines()[-1] == "web-1   node-b"


def test_values_of_a_path_as_json(typed) -> None:
    assert typed("get pods -o jsonpath-as-json='{.items[*].metadata.name}'") == 0
    assert json.loads(typed.out) == ["web-0", "web-1"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("get pods -o custom-columns=NAME", "expected <header>:<json-path-expr>"),
        ("get pods -o custom-columns", "-o custom-columns requires a template"),
        ("get pods -o custom-columns-file=nope", "nope: cannot be read: No such file"),
        ("get pods -o jsonpath-as-json={.a", "is missing"),
        ("get pods -o go-template={{define}}", "named templates are not supported here"),
    ],
)
def test_a_format_that_cannot_be_read_says_what_is_expected(typed, line, words) -> None:
    assert typed(line) == 2
    assert words in typed.err
    assert typed.out == ""


def test_go_templates(typed, tmp_path) -> None:
    assert typed("get pods -o go-template='{{range .items}}{{.metadata.name}} {{end}}'") == 0
    assert typed.out == "web-0 web-1 "
    (tmp_path / "t").write_text("{{.metadata.name}}!\n")
    typed.folder = tmp_path
    assert typed("get pod web-0 -o go-template-file=t") == 0
    assert typed.out == "web-0!\n"
    assert typed("get pods -o go-template='{{range}}'") == 2
    assert "go-template, line 1: missing value for command" in typed.err
    assert typed("get pods -o go-template") == 2
    assert "requires a template" in typed.err
