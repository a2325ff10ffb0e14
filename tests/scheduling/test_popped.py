"""Tests of the popped pods: which are attempted together, and which is shown as the next one."""

import pytest

from kschedd.config.versions.kube_versions import V1_36, V1_37, KubernetesVersion
from kschedd.scheduling.inputs import PodsPopped
from tests.scheduling.driven import NOW, Driven, Raw, node, pod


def known(*, profiles: tuple[str, ...] = ("default-scheduler",)) -> Driven:
    """Return a run that has attempted pods of the template of `popped` before."""
    run = Driven(profiles=profiles)
    run.see(*(node(f"n{number}") for number in range(4)), *(pod(name, cpu="100m") for name in ("before", "again")))
    run.attempt("before")
    run.attempt("again")
    return run


def together(run: Driven, *raws: Raw) -> list[str]:
    """Return the popped pods that may be attempted together."""
    run.see(*raws)
    run.driver.step(PodsPopped([run.entry(raw["metadata"]["name"]) for raw in raws]))
    return [entry.pod.name for entry in run.driver.popped.for_run()]


def test_pods_of_a_known_template_may_be_attempted_together() -> None:
    assert together(known(), *(pod(name, cpu="100m") for name in "abc")) == ["a", "b", "c"]


def test_a_single_pod_is_no_run() -> None:
    assert together(known(), pod("a", cpu="100m")) == []
    assert together(known(), pod("a", cpu="100m"), pod("b", cpu="100m", deletionTimestamp="2025-01-01T00:00:00Z")) == []


def test_a_run_ends_before_a_pod_of_another_profile() -> None:
    other = pod("c", cpu="100m")
    other["spec"]["schedulerName"] = "other"
    run = known(profiles=("default-scheduler", "other"))
    assert together(run, pod("a", cpu="100m"), pod("b", cpu="100m"), other) == ["a", "b"]


def test_a_run_has_the_pods_as_they_are_now_not_as_they_were_popped() -> None:
    run = known()
    run.see(*(pod(name, cpu="100m") for name in "ab"))
    run.driver.step(PodsPopped([run.entry(name) for name in "ab"]))
    run.see(pod("b", cpu="100m", labels={"changed": "yes"}, resourceVersion="2"))
    [_, changed] = run.driver.popped.for_run()
    assert dict(changed.pod.labels) == {"changed": "yes"}


def test_a_pod_that_is_gone_or_assumed_is_skipped() -> None:
    run = Driven()
    run.see(node(), pod("gone"), pod("assumed"), pod("waiting"))
    entries = {name: run.entry(name) for name in ("gone", "assumed", "waiting")}
    run.attempt("assumed")
    run.goes("gone")
    assert {name: run.driver.popped.skips(entry) for name, entry in entries.items()} == {
        "gone": True,
        "assumed": True,
        "waiting": False,
    }


def test_without_pods_the_debugger_is_not_asked_for_a_group() -> None:
    run = Driven()
    assert run.driver.popped.lets_begin(NOW) is True


@pytest.mark.parametrize(
    ("version", "gates", "first"),
    [
        pytest.param(V1_36, ("GenericWorkload", "GangScheduling"), "earlier", id="by-time-in-the-active-queue"),
        pytest.param(V1_37, ("GenericWorkload",), "often", id="or-by-attempts-where-groups-are-counted"),
    ],
)
def test_the_next_pod_of_a_group_is_the_first_in_the_order_of_its_release(
    version: KubernetesVersion, gates: tuple[str, ...], first: str
) -> None:
    run = Driven(version=version, gates=dict.fromkeys(gates, True))
    entries = []
    for name, attempts, seconds in (("earlier", 1, 5), ("often", 3, 9)):
        raw = pod(name)
        raw["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
        run.see(raw)
        entry = run.entry(name)
        entry.attempts, entry.timestamp = attempts, seconds
        entries.append(entry)
    run.driver.step(PodsPopped(entries))
    head = run.driver.popped.first_tried
    assert head is not None
    assert head.pod.name == first
