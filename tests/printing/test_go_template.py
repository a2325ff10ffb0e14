"""Tests of Go templates: their output, and the messages for invalid ones."""

from typing import Any

import pytest

from kschedd.printing.templates.go_template import GoTemplate, GoTemplateError, evaluate

VALUE: dict[str, Any] = {
    "kind": "List",
    "none": None,
    "items": [
        {"metadata": {"name": "a", "labels": {"app.io/x": "y"}}, "n": 3, "on": True},
        {"metadata": {"name": "b"}, "n": 1.5, "on": False},
    ],
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        pytest.param("plain } text", "plain } text", id="text"),
        pytest.param("{{.kind}}", "List", id="field"),
        pytest.param("{{.x.y.z}}|{{.none}}", "<no value>|<no value>", id="what-is-absent"),
        pytest.param('{{range .items}}{{.metadata.name}}{{"\\n"}}{{end}}', "a\nb\n", id="range"),
        pytest.param("{{range $i, $p := .items}}{{$i}}={{$p.metadata.name}} {{end}}", "0=a 1=b ", id="with-index"),
        pytest.param("{{range $k, $v := (index .items 0).metadata.labels}}{{$k}}:{{$v}}{{end}}", "app.io/x:y", id="m"),
        pytest.param("{{range .no}}x{{else}}empty{{end}}", "empty", id="range-over-nothing"),
        pytest.param("{{range .items}}{{if .on}}{{continue}}{{end}}{{.n}}{{end}}", "1.5", id="continue"),
        pytest.param("{{range .items}}{{.n}}{{break}}{{end}}", "3", id="break"),
        pytest.param('{{if eq .kind "Pod" "List"}}yes{{else}}no{{end}}', "yes", id="eq-any-of"),
        pytest.param('{{if ne .kind "List"}}a{{else if not .none}}b{{else}}c{{end}}', "b", id="else-if"),
        pytest.param("{{if and .kind (gt (len .items) 1) (le 1 1)}}ok{{end}}", "ok", id="and-of-parentheses"),
        pytest.param('{{or .none "default"}}', "default", id="or"),
        pytest.param("{{with (index .items 0).metadata}}{{.name}} {{$.kind}}{{end}}", "a List", id="with-and-root"),
        pytest.param("{{with .none}}x{{else}}nothing{{end}}", "nothing", id="with-nothing"),
        pytest.param("{{$x := 1}}{{range .items}}{{$x = .n}}{{end}}{{$x}}", "1.5", id="variable-that-changes"),
        pytest.param('{{index (index .items 0).metadata.labels "app.io/x"}}', "y", id="index-by-key"),
        pytest.param(
            '{{printf "%-5s|%3d|%q|%v|%05.1f" .kind 7 "q" true 2.25}}', 'List |  7|"q"|true|002.2', id="printf"
        ),
        pytest.param('{{.kind | printf "%s-%s" "x" | len}}', "6", id="pipeline"),
        pytest.param("a  {{- 3 -}}\n  b", "a3b", id="trimmed"),
        pytest.param('{{/* said */}}x{{`raw "}}"`}}', 'xraw "}}"', id="comment-and-raw-string"),
        pytest.param("{{(index .items 1).metadata}} {{.items | len | print}}", "map[name:b] 2", id="whole"),
        pytest.param(
            '{{base64decode "aGk="}} {{exists . "kind"}} {{html "<a>"}}', "hi true &lt;a&gt;", id="kubectls-functions"
        ),
        pytest.param('{{len "é"}} {{slice "abc" 1 2}} {{print 1 2 "a"}}', "2 b 1 2a", id="more-functions"),
        pytest.param('{{printf "%.99999999999f" 1.5}}', "%!(BADPREC)", id="precision-that-is-none"),
    ],
)
def test_what_is_printed(template: str, text: str) -> None:
    assert evaluate(template, VALUE) == text


def test_numbers_that_are_none_are_printed_as_by_go() -> None:
    value = {"up": float("inf"), "down": float("-inf"), "none": float("nan")}
    assert GoTemplate("{{.up}} {{.down}} {{.none}}").evaluate(value) == "+Inf -Inf NaN"


def test_no_text_is_padded_to_more_than_go_pads_it() -> None:
    assert len(GoTemplate('{{printf "%99999999999d" 5}}').evaluate({})) == 1_000_000


@pytest.mark.parametrize(
    ("template", "why"),
    [
        pytest.param("a\n{{.kind", "line 2: an action is not closed", id="open"),
        pytest.param("{{range .items}}", "{{range}} has no {{end}}", id="no-end"),
        pytest.param("{{end}}", "unexpected {{end}}", id="end-of-nothing"),
        pytest.param("{{if}}x{{end}}", "missing value for command", id="no-condition"),
        pytest.param("{{$x}}", 'undefined variable "$x"', id="variable"),
        pytest.param("{{range .items}}{{$y := 1}}{{end}}{{$y}}", 'undefined variable "$y"', id="out-of-scope"),
        pytest.param("{{nofunc .x}}", 'function "nofunc" not defined', id="function"),
        pytest.param('{{define "x"}}{{end}}', "named templates are not supported", id="define"),
        pytest.param('{{template "x"}}', "named templates are not supported", id="template"),
        pytest.param("{{break}}", "{{break}} outside {{range}}", id="break"),
        pytest.param("{{.kind .x}}", "can't give argument to non-function", id="argument"),
        pytest.param("{{.kind.x}}", "can't evaluate field x in List", id="field-of-a-text"),
        pytest.param("{{.none.x}}", "nil pointer evaluating", id="field-of-null"),
        pytest.param("{{index .items 5}}", "error calling index: index out of range: 5", id="index"),
        pytest.param("{{eq .kind 1}}", "incompatible types for comparison", id="comparison"),
        pytest.param("{{len}}", "error calling len: wrong number of args", id="number-of-arguments"),
        pytest.param("{{range .kind}}x{{end}}", "range can't iterate over List", id="range"),
        pytest.param("{{#}}", "unexpected '#'", id="character"),
        pytest.param("{{1e400}}", 'bad number syntax: "1e400"', id="number-beyond-all-floats"),
        pytest.param("{{" + "9" * 5000 + "}}", 'bad number syntax: "9999', id="number-of-many-digits"),
    ],
)
def test_what_cannot_be_used_is_said(template: str, why: str) -> None:
    with pytest.raises(GoTemplateError) as refusal:
        GoTemplate(template).evaluate(VALUE)
    assert why in str(refusal.value)
