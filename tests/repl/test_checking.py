"""Tests of the marks in a line while it is typed."""

import pytest

from kschedd_repl.prompt.checking import line_faults
from kschedd_repl.prompt.names import Names


@pytest.mark.parametrize(
    ("line", "marked", "why"),
    [
        pytest.param("gte", "gte", 'did you mean "get"', id="verb-that-nothing-begins-like"),
        pytest.param("gte pods", "gte", 'did you mean "get"', id="unknown-verb"),
        pytest.param("exec web-0", "exec", "pods do not run containers", id="verb-without-a-meaning-here"),
        pytest.param("get pods --outptu json", "--outptu", 'did you mean "--output"', id="unknown-flag"),
        pytest.param("get pods --zz=1", "--zz=1", "unknown flag --zz", id="unknown-flag-with-a-value"),
        pytest.param("get pods -o jsno", "jsno", 'did you mean "json"', id="unknown-output"),
        pytest.param("get pods --output=jsno ", "--output=jsno", 'did you mean "json"', id="unknown-output-equals"),
        pytest.param("delete pod a --cascade formground ", "formground", "foreground", id="choice-of-a-flag"),
        pytest.param("get podz ", "podz", 'no kind "podz"; did you mean', id="unknown-kind"),
        pytest.param("get nodes,podz x", "nodes,podz", "podz", id="unknown-kind-of-two"),
        pytest.param("watch -i 2 gte pods", "gte", "get", id="verb-that-is-watched"),
        pytest.param("help gte ", "gte", "get", id="verb-to-help-with"),
        pytest.param("get pods; gte nodes", "gte", "get", id="second-command"),
        pytest.param("gte pods | wc", "gte", "get", id="before-a-pipe"),
        pytest.param("get pods > a b ", "b", "nothing is expected", id="after-a-file"),
    ],
)
def test_what_is_wrong_is_marked(line: str, marked: str, why: str) -> None:
    fault = line_faults(line, Names())[0]
    assert line[fault.start : fault.end] == marked
    assert why in fault.why


@pytest.mark.parametrize(
    "line",
    [
        "",
        "ge",
        "get pods -A --out",
        "get pods -o js",
        "get pods -o custom-columns=",
        "get po",
        "get po,no web-0 -owide",
        "get pods -Aw",
        "get 'po",
        "get all",
        "get pods | jq .",
        "get pods |",
        "get pods >",
        "get pods > f",
        "widgets",
        "get widgets x",
        "patch pod a -p '{\"spec\": {}}'",
        "drain n1 --grace-period -1",
        "run web --image x -- sleep --long 5",
        "macro x = gte it; all",
        "! gte",
        "quit",
        "help get",
        "where web-0",
        "# gte",
        "set weight NodeAffinity 5",
    ],
)
def test_what_may_become_right_is_not_marked(line: str) -> None:
    macros = {"where": "get pod $1", "widgets": "get widgets"}
    assert line_faults(line, Names(), macros) == []
