"""Tests of wait: conditions, fields, creation and deletion, in a cluster that changes while a verb sleeps."""

import pytest

from tests.verbs.fake_daemon import pod


@pytest.mark.parametrize(
    ("line", "met"),
    [
        pytest.param("wait --for=condition=Ready node/node-a", "node/node-a condition met\n", id="condition"),
        pytest.param("wait --for=condition=ready=TRUE node node-a", "node/node-a condition met\n", id="in-any-case"),
        pytest.param(
            "wait --for=condition=PodScheduled=false pod/web-1", "pod/web-1 condition met\n", id="condition-of-a-value"
        ),
        pytest.param(
            "wait --for=jsonpath='{.status.phase}'=Running pod/web-0",
            "pod/web-0 condition met\n",
            id="field-of-a-value",
        ),
        pytest.param("wait --for=jsonpath={.status.podIP} pod/web-0", "pod/web-0 condition met\n", id="field"),
        pytest.param(
            """wait --for=jsonpath='{.status.conditions[?(@.type=="Ready")].status}'=True node node-a""",
            "node/node-a condition met\n",
            id="field-found-by-a-filter",
        ),
        pytest.param("wait --for=create pod/web-0", "pod/web-0 condition met\n", id="is-there"),
        pytest.param("wait --for=delete pod/nope", "", id="was-gone-before"),
        pytest.param("wait --for=delete pods -l app=none", "", id="none-to-be-gone"),
        pytest.param(
            "wait --for=condition=Ready nodes --all",
            "node/node-a condition met\nnode/node-b condition met\n",
            id="all-of-a-kind",
        ),
    ],
)
def test_what_holds_is_said_at_once(typed, line, met) -> None:
    assert typed(line) == 0, typed.err
    assert typed.out == met
    assert typed.slept == []


def test_it_looks_again_until_it_holds(typed, daemon) -> None:
    def bind() -> None:
        if len(typed.slept) == 3:
            daemon.objects = [pod("web-1", "node-b") if r["metadata"]["name"] == "web-1" else r for r in daemon.objects]

    typed.on_sleep = bind
    assert typed("wait --for=condition=PodScheduled pod web-0 web-1") == 0
    assert typed.out == "pod/web-0 condition met\npod/web-1 condition met\n"
    assert len(typed.slept) == 3


def test_gone_is_gone_also_where_another_took_the_name(typed, daemon) -> None:
    found = daemon._find("Pod", "web-0")
    found["metadata"]["uid"] = "old"

    def remake() -> None:
        daemon.objects = [pod("web-0") if r is found else r for r in daemon.objects]
        daemon._find("Pod", "web-0")["metadata"]["uid"] = "new"

    typed.on_sleep = remake
    assert typed("wait --for=delete pod/web-0") == 0
    assert typed.out == "pod/web-0 condition met\n"


@pytest.mark.parametrize(
    ("line", "code", "words", "slept"),
    [
        ("wait --for=delete pod/web-0 --timeout=1s", 1, "timed out waiting for the condition on pods/web-0", 1.0),
        ("wait --for=condition=Nope pod/web-0 --timeout=0", 1, "timed out waiting for the condition", 0.0),
        ("wait --for=condition=Ready pod/nope", 1, 'pods "nope" not found', 0.0),
        ("wait --for=condition=Ready pods -l app=none", 1, "no matching resources found", 0.0),
        ("wait --for=nonsense pod/web-0", 2, 'unrecognized condition: "nonsense"', 0.0),
        ("wait pod/web-0", 2, 'unrecognized condition: ""', 0.0),
        ("wait --for=jsonpath={.nope pod/web-0", 2, "is missing", 0.0),
        ("wait --for=jsonpath={.status}=x pod/web-0 --timeout=0", 2, "nested object or list", 0.0),
        ("wait --for=delete pods", 2, "pods: names, -l LABELS or --all are required", 0.0),
        ("wait --for=delete pod/web-0 --timeout=soon", 2, '--timeout "soon"', 0.0),
    ],
)
def test_what_does_not_come_is_a_failure(typed, line, code, words, slept) -> None:
    assert typed(line) == code
    assert words in typed.err
    assert sum(typed.slept) == slept
