"""Tests of the log entries about attempts."""

from structlog.testing import capture_logs

from kschedd.actors.scheduler.attempt_log import log_scores, log_slow
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.inputs import BeginAttempt
from tests.scheduling.driven import Driven, node, pod


def test_a_slow_attempt_is_logged_with_its_steps() -> None:
    run = Driven()
    run.see(node(), pod("p"))
    run.attempt("p")
    with capture_logs() as lines:
        log_slow(run.entry("p"), run.driver.steps_of("default-scheduler"), 0.25)
    [line] = lines
    assert (line["event"], line["pod"], line["took"]) == ("slow_attempt", "default/p", "250.0ms")
    assert (line["PreFilter"], line["Filter"]) == ("1.0ms", "1.0ms")


def test_scores_are_logged_by_plugin_and_node_and_add_up() -> None:
    run = Driven()
    run.see(node("a"), node("b", cpu="4"), pod("p"))
    entry = run.entry("p")
    attempt = run.driver.step(BeginAttempt(entry))
    assert attempt is not None
    result = drive(attempt)
    with capture_logs() as lines:
        log_scores(run.driver, result)
    parts = [line for line in lines if line["event"] == "Plugin scored node for pod"]
    totals = {line["node"]: line["score"] for line in lines if line["event"] == "Calculated node's final score for pod"}
    assert len(totals) == 2
    for name, total in totals.items():
        assert sum(line["score"] for line in parts if line["node"] == name) == total
    assert {"NodeResourcesFit", "TaintToleration"} <= {line["plugin"] for line in parts}


def test_a_pod_without_a_choice_has_no_scores() -> None:
    run = Driven()
    run.see(node("a"), pod("p"), pod("big", cpu="9"))
    with capture_logs() as lines:
        for name in ("p", "big"):
            entry = run.entry(name)
            attempt = run.driver.step(BeginAttempt(entry))
            assert attempt is not None
            log_scores(run.driver, drive(attempt))
    assert lines == []
