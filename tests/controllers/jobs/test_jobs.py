"""Tests of the Job controller with a store: all writes during the life of a Job, and pods whose Job was deleted."""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.controllers.garbage import GarbageCollector
from kschedd.controllers.jobs.job_pods import TRACKING
from kschedd.controllers.jobs.jobs import Jobs, status_change
from kschedd.controllers.jobs.ttl import TTLAfterFinished, expires_at
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.running.turns import take_turn
from kschedd.store.admission.chain import Admission
from kschedd.store.errors import Invalid, NotFound
from kschedd.store.store import Store
from tests.store.manifests import Clock, pod


class Run:
    def __init__(self) -> None:
        self.clock = Clock()
        self.store = Store(now=self.clock)
        self.controllers = [Jobs(), TTLAfterFinished(), GarbageCollector()]
        self.runner = ControllerRunner(self.store, self.controllers)

    def job(self, name: str = "j", template: dict[str, Any] | None = None, **spec: Any) -> Object:
        container = {"name": "c", "image": "x"}
        whole = template or {"spec": {"restartPolicy": "Never", "containers": [container]}}
        raw = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}}
        made = self.store.create({**raw, "spec": {"template": whole, **spec}})
        self.go()
        return made

    def go(self, seconds: float = 0.0) -> None:
        self.clock.now += seconds
        self.runner.run_until_idle()

    def pods(self) -> list[Pod]:
        return [each for each in self.store.list("Pod") if isinstance(each, Pod)]

    def end(self, pod: Pod, phase: str = "Succeeded", exit_code: int = 0, **status: Any) -> None:
        at = "2023-11-14T22:13:20Z"
        state = {"name": "c", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
        state["state"] = {"terminated": {"exitCode": exit_code, "finishedAt": at}}
        self.store.patch_status("Pod", "default", pod.name, {"phase": phase, "containerStatuses": [state], **status})
        self.go()

    def status(self, name: str = "j") -> dict[str, Any]:
        return dict(self.store.get("Job", "default", name).status)

    def conditions(self, name: str = "j") -> list[tuple[str, str, str]]:
        return [(c["type"], c["status"], c.get("reason", "")) for c in self.status(name).get("conditions", [])]

    def events(self) -> list[tuple[str, str]]:
        written = sorted(self.store.list("Event"), key=lambda event: event.resource_version)
        return [(event.raw["reason"], event.raw["message"]) for event in written]


@pytest.fixture
def run() -> Run:
    return Run()


def test_a_job_makes_its_pods_and_completes(run: Run) -> None:
    run.job(completions=3, parallelism=2)
    assert run.status() == {
        "active": 2,
        "ready": 0,
        "terminating": 0,
        "startTime": "2023-11-14T22:13:20Z",
        "uncountedTerminatedPods": {},
    }
    first, second = run.pods()
    assert first.name.startswith("j-")
    assert first.metadata["finalizers"] == [TRACKING]
    assert first.labels["batch.kubernetes.io/job-name"] == "j"
    run.end(first)
    assert run.status()["succeeded"] == 1
    assert "finalizers" not in run.store.get("Pod", "default", first.name).metadata
    assert len(run.pods()) == 3
    for each in run.pods():
        if not each.finished:
            run.end(each)
    assert run.conditions() == [
        ("SuccessCriteriaMet", "True", "CompletionsReached"),
        ("Complete", "True", "CompletionsReached"),
    ]
    status = run.status()
    assert (status["succeeded"], "active" in status, status["completionTime"]) == (3, False, "2023-11-14T22:13:20Z")
    assert run.events() == [("Completed", "Job completed")]
    assert second.name in {each.name for each in run.pods()}


def test_each_step_of_counting_is_a_write_of_its_own(run: Run) -> None:
    run.job()
    cursor = run.store.watch(("Job", "Pod"))
    [pod] = run.pods()
    run.end(pod)
    seen = []
    for event in cursor.take():
        if event.new.kind == "Job":
            uncounted = event.new.status["uncountedTerminatedPods"]
            seen.append((uncounted, event.new.status.get("succeeded"), len(event.new.status["conditions"])))
        else:
            seen.append(event.new.metadata.get("finalizers"))
    assert seen == [[TRACKING], ({"succeeded": [pod.uid]}, None, 1), None, ({}, 1, 2)]


def test_an_indexed_job_numbers_its_pods(run: Run) -> None:
    run.job(completions=2, parallelism=2, completionMode="Indexed")
    zero, one = run.pods()
    assert zero.name.startswith("j-0-")
    assert one.name.startswith("j-1-")
    assert one.annotations["batch.kubernetes.io/job-completion-index"] == "1"
    assert one.labels["batch.kubernetes.io/job-completion-index"] == "1"
    spec = one.raw["spec"]
    assert spec["hostname"] == "j-1"
    [variable] = spec["containers"][0]["env"]
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    source = variable["valueFrom"]["fieldRef"]["fieldPath"]
    assert source == "metadata.labels['batch.kubernetes.io/job-completion-index']"
    run.end(one)
    assert run.status()["completedIndexes"] == "1"
    run.end(zero)
    assert run.status()["completedIndexes"] == "0,1"
    assert run.conditions()[-1][:2] == ("Complete", "True")


def test_a_long_name_leaves_room_for_the_index(run: Run) -> None:
    name = "a" * 60
    run.job(name, completions=12, parallelism=12, completionMode="Indexed")
    assert {each.name[:-5] for each in run.pods()} >= {"a" * 55 + "-0-", "a" * 54 + "-11-"}


def test_failed_pods_are_made_again_after_a_growing_back_off_until_the_limit(run: Run) -> None:
    run.job(backoffLimit=2)
    waited = []
    for _ in range(2):
        [pod] = [each for each in run.pods() if not each.finished]
        run.clock.now = 1_700_000_000.0
        run.end(pod, "Failed", 1)
        assert "active" not in run.status()
        assert run.runner.next_deadline is not None
        waited.append(run.runner.next_deadline - run.clock.now)
        run.go(waited[-1])
    assert waited == [10, 20]
    [pod] = [each for each in run.pods() if not each.finished]
    run.end(pod, "Failed", 1)
    assert run.conditions() == [
        ("FailureTarget", "True", "BackoffLimitExceeded"),
        ("Failed", "True", "BackoffLimitExceeded"),
    ]
    assert run.status()["failed"] == 3
    assert run.events() == [("BackoffLimitExceeded", "Job has reached the specified backoff limit")]
    assert run.runner.next_deadline is None


def test_a_rule_of_the_failure_policy_ends_the_job_and_its_other_pods(run: Run) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    run.job(parallelism=2, completions=2, podFailurePolicy={"rules": [rule]})
    first, second = run.pods()
    run.end(first, "Failed", 42)
    why = f"Container c for pod default/{first.name} failed with exit code 42 matching FailJob rule at index 0"
    assert [each["message"] for each in run.status()["conditions"]] == [why, why]
    assert run.store.find("Pod", "default", second.name) is None
    assert run.status()["failed"] == 2


def test_suspending_deletes_the_pods_and_resuming_begins_anew(run: Run) -> None:
    run.job(parallelism=2, completions=2)
    run.store.merge_patch("Job", "default", "j", {"spec": {"suspend": True}})
    run.go(5)
    assert run.pods() == []
    assert run.conditions() == [("Suspended", "True", "JobSuspended")]
    assert "failed" not in run.status()
    run.store.merge_patch("Job", "default", "j", {"spec": {"suspend": False}})
    run.go(60)
    assert len(run.pods()) == 2
    assert run.conditions() == [("Suspended", "False", "JobResumed")]
    assert run.status()["startTime"] == "2023-11-14T22:14:25Z"
    assert run.events() == [("Suspended", "Job suspended"), ("Resumed", "Job resumed")]


def test_the_active_deadline_ends_a_job(run: Run) -> None:
    run.job(activeDeadlineSeconds=30)
    assert run.runner.next_deadline == run.clock.now + 30
    run.go(30)
    assert run.conditions() == [("FailureTarget", "True", "DeadlineExceeded"), ("Failed", "True", "DeadlineExceeded")]
    assert run.pods() == []


def test_a_job_is_not_failed_before_its_last_pod_has_gone(run: Run) -> None:
    run.job(activeDeadlineSeconds=30)
    [made] = run.pods()
    run.store.bind("default", made.name, "n1")
    run.go(30)
    assert run.conditions() == [("FailureTarget", "True", "DeadlineExceeded")]
    assert run.status()["terminating"] == 1
    run.store.delete("Pod", "default", made.name, grace_period_s=0)
    run.go()
    assert [each[0] for each in run.conditions()] == ["FailureTarget", "Failed"]
    assert run.status()["terminating"] == 0


def test_pods_of_a_deleted_job_are_let_go(run: Run) -> None:
    run.job(parallelism=3, completions=3)
    run.store.delete("Job", "default", "j")
    run.go()
    assert run.pods() == []


def test_pods_that_a_deleted_job_leaves_behind_lose_their_finalizer(run: Run) -> None:
    run.job()
    run.store.delete("Job", "default", "j", propagation="Orphan")
    run.go()
    [left] = run.pods()
    assert "finalizers" not in left.metadata
    assert "ownerReferences" not in left.metadata


def test_a_job_with_a_selector_of_its_own_adopts_and_releases(run: Run) -> None:
    raw = pod("stray")
    raw["metadata"]["labels"] = {"my": "job"}
    run.store.create(raw)
    template = {
        "metadata": {"labels": {"my": "job"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]},
    }
    run.job(template=template, manualSelector=True, selector={"matchLabels": {"my": "job"}})
    [adopted] = run.pods()
    assert adopted.name == "stray"
    assert adopted.metadata["finalizers"] == [TRACKING]
    assert run.status()["active"] == 1
    run.store.merge_patch("Pod", "default", "stray", {"metadata": {"labels": {"my": "own"}}})
    run.go()
    released = run.store.get("Pod", "default", "stray")
    assert "finalizers" not in released.metadata
    assert "ownerReferences" not in released.metadata
    assert len(run.pods()) == 2


def test_a_pod_that_lost_its_owner_is_adopted_again(run: Run) -> None:
    run.job()
    [pod] = run.pods()
    run.store.merge_patch("Pod", "default", pod.name, {"metadata": {"ownerReferences": None, "finalizers": None}})
    run.go()
    [again] = run.pods()
    assert again.name == pod.name
    assert again.metadata["ownerReferences"] == pod.metadata["ownerReferences"]
    assert again.metadata["finalizers"] == [TRACKING]


def test_pods_that_come_later_are_adopted_where_the_selector_is_the_users(run: Run) -> None:
    template = {
        "metadata": {"labels": {"my": "job"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]},
    }
    run.job(template=template, manualSelector=True, selector={"matchLabels": {"my": "job"}})
    raw = pod("stray")
    raw["metadata"]["labels"] = {"my": "job"}
    run.store.create(raw)
    run.store.create(pod("other"))
    run.go()
    assert [each.metadata["ownerReferences"][0]["name"] for each in run.pods() if each.name != "other"] == ["j"]
    assert "ownerReferences" not in run.store.get("Pod", "default", "other").metadata
    run.store.delete("Job", "default", "j")
    run.go()
    assert [each.name for each in run.pods()] == ["other"]


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        pytest.param(
            {"matchLabels": {"x": "y"}},
            'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`',
            id="does-not-match",
        ),
        pytest.param(
            None,
            "[spec.selector: Required value, spec.template.metadata.labels: "
            'Invalid value: {"a":"b"}: `selector` does not match template `labels`]',
            id="none",
        ),
    ],
)
def test_a_selector_of_the_users_must_match_the_jobs_pods(run: Run, selector: Any, why: str) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]},
    }
    version = run.store.version
    with pytest.raises(Invalid) as refusal:
        run.job(template=template, manualSelector=True, **({"selector": selector} if selector else {}))
    assert str(refusal.value) == f'Job.batch "j" is invalid: {why}'
    assert run.store.version == version


def test_a_selector_that_does_not_match_is_refused(run: Run) -> None:
    """A generated selector with other labels is rejected, because it would not match the Job's pods."""
    with pytest.raises(Invalid, match="`selector` not auto-generated"):
        run.job(selector={"matchLabels": {"x": "y"}})
    assert run.pods() == []


def test_a_job_that_another_controller_manages_is_left_to_it(run: Run) -> None:
    run.job(managedBy="example.com/kueue")
    assert run.pods() == []
    assert run.status() == {}


def test_refused_pods_are_tried_again_with_growing_delays(run: Run) -> None:
    store = Store(now=run.clock, admission=Admission())
    run.store, run.runner = store, ControllerRunner(store, [Jobs()])
    template = {
        "spec": {"restartPolicy": "Never", "priorityClassName": "gone", "containers": [{"name": "c", "image": "x"}]}
    }
    run.job(template=template, parallelism=2, completions=2)
    assert run.pods() == []
    assert "active" not in run.status()
    [(reason, why)] = run.events()
    assert reason == "FailedCreate"
    assert why.startswith("Error creating: pods ")
    delays = []
    for _ in range(3):
        assert run.runner.next_deadline is not None
        delays.append(run.runner.next_deadline - run.clock.now)
        run.go(delays[-1])
    assert delays == [1, 2, 4]
    assert len(run.events()) == 1
    meta = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gone"}, "value": 1}
    run.store.create(meta)
    run.go(8)
    assert run.status()["active"] == 2


def test_a_restart_counts_nothing_twice(run: Run) -> None:
    run.job(completions=3, parallelism=2)
    run.end(run.pods()[0])
    version, status = run.store.version, run.status()
    ControllerRunner(run.store, [Jobs(), TTLAfterFinished()]).run_until_idle()
    assert (run.store.version, run.status()) == (version, status)


def test_thousands_of_pods_go_through_in_portions(run: Run) -> None:
    run.job(completions=1200, parallelism=600)
    assert run.status()["active"] == 600
    while True:
        running = [each for each in run.pods() if not each.finished]
        if not running:
            break
        for each in running:
            run.store.patch_status("Pod", "default", each.name, {"phase": "Succeeded"})
        run.go()
    assert run.status()["succeeded"] == 1200
    assert run.conditions()[-1][0] == "Complete"


# -- TTL


def test_a_finished_job_goes_after_its_time_with_its_pods(run: Run) -> None:
    run.job(ttlSecondsAfterFinished=60)
    run.end(run.pods()[0])
    run.go(59)
    assert run.store.find("Job", "default", "j") is not None
    run.go(10)  # until the Job's back-off has passed
    assert run.store.find("Job", "default", "j") is None
    assert run.pods() == []


def test_a_time_set_later_counts_from_the_end(run: Run) -> None:
    run.job()
    run.end(run.pods()[0])
    run.go(100)
    run.store.merge_patch("Job", "default", "j", {"spec": {"ttlSecondsAfterFinished": 30}})
    run.go()
    with pytest.raises(NotFound):
        run.store.get("Job", "default", "j")


@pytest.mark.parametrize(
    ("spec", "conditions", "at"),
    [
        pytest.param({}, [("Complete", "True")], None, id="no-time-said"),
        pytest.param({"ttlSecondsAfterFinished": 5}, [], None, id="it-has-not-ended"),
        pytest.param({"ttlSecondsAfterFinished": 5}, [("Complete", "False")], None, id="nor-here"),
        pytest.param({"ttlSecondsAfterFinished": 5}, [("SuccessCriteriaMet", "True")], None, id="not-quite"),
        pytest.param({"ttlSecondsAfterFinished": 5}, [("Failed", "True")], 1_700_000_005.0, id="failed"),
        pytest.param({"ttlSecondsAfterFinished": 0}, [("Complete", "True")], 1_700_000_000.0, id="at-once"),
    ],
)
def test_when_a_job_expires(spec: dict[str, Any], conditions: list[tuple[str, str]], at: float | None) -> None:
    stated = [{"type": t, "status": s, "lastTransitionTime": "2023-11-14T22:13:20Z"} for t, s in conditions]
    meta = {"name": "j", "namespace": "default", "uid": "u"}
    job = Object.from_raw({"kind": "Job", "metadata": meta, "spec": spec, "status": {"conditions": stated}})
    assert expires_at(job) == at


def test_the_patch_between_two_statuses_takes_away_what_is_gone() -> None:
    before = {"active": 2, "failed": 1, "uncountedTerminatedPods": {"failed": ["a"], "succeeded": ["b"]}}
    after = {"failed": 1, "succeeded": 1, "uncountedTerminatedPods": {"failed": ["a"]}}
    assert status_change(before, after) == {
        "active": None,
        "succeeded": 1,
        "uncountedTerminatedPods": {"failed": ["a"], "succeeded": None},
    }


def test_a_job_makes_no_more_pods_where_its_controller_is_behind_with_events() -> None:
    store = Store(now=Clock(), seed=1)
    jobs = Jobs()
    watch = store.watch(jobs.kinds)
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    raw = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}}
    store.create({**raw, "spec": {"parallelism": 10, "template": template}})
    while watch.behind:
        take_turn(jobs, watch.take(4), store)
    assert len([event for event in store.written_after(0) if event.new.kind == "Pod"]) == 10
    assert store.get("Job", "default", "j").status["active"] == 10


def test_a_pod_that_is_orphaned_after_its_job_went_is_held_no_longer(run: Run) -> None:
    run.job(parallelism=1)
    (held,) = run.pods()
    run.store.delete("Job", "default", "j")
    run.store.merge_patch("Pod", "default", held.name, {"metadata": {"ownerReferences": None}})
    run.go()
    assert "finalizers" not in run.store.get("Pod", "default", held.name).metadata


def test_a_pod_that_is_taken_from_an_indexed_job_leaves_its_index_to_another(run: Run) -> None:
    run.job(completions=2, parallelism=2, completionMode="Indexed")
    first = next(each for each in run.pods() if each.labels["batch.kubernetes.io/job-completion-index"] == "0")
    other = [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}]
    run.store.merge_patch("Pod", "default", first.name, {"metadata": {"ownerReferences": other}})
    run.go()
    owned = [each for each in run.pods() if each.owner is not None and each.owner.kind == "Job"]
    assert sorted(each.labels["batch.kubernetes.io/job-completion-index"] for each in owned) == ["0", "1"]


def test_pods_that_are_going_are_not_ready(run: Run) -> None:
    run.job(parallelism=2, completions=5)
    for each in run.pods():
        ready = [{"type": "Ready", "status": "True"}]
        run.store.patch_status("Pod", "default", each.name, {"phase": "Running", "conditions": ready})
        run.store.bind("default", each.name, "n1")  # otherwise its kubelet would have to remove it
    run.go()
    assert run.status()["ready"] == 2
    run.store.delete("Pod", "default", run.pods()[0].name)
    run.go(10)  # until the Job's back-off has passed
    assert (run.status()["ready"], run.status()["terminating"]) == (1, 1)


@pytest.mark.parametrize("restarted", [pytest.param(True, id="after-a-restart"), pytest.param(False, id="meanwhile")])
def test_a_pod_that_nothing_controls_is_held_no_longer(run: Run, restarted: bool) -> None:
    run.job(parallelism=1)
    (held,) = run.pods()
    run.store.merge_patch("Pod", "default", held.name, {"metadata": {"ownerReferences": None, "labels": None}})
    run.store.delete("Job", "default", "j")
    runner = ControllerRunner(run.store, [Jobs()]) if restarted else run.runner
    runner.run_until_idle()
    assert "finalizers" not in run.store.get("Pod", "default", held.name).metadata


def test_a_pod_of_another_controller_keeps_its_finalizers(run: Run) -> None:
    owner = {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "u", "controller": True}
    raw = pod("theirs")
    raw["metadata"] |= {"ownerReferences": [owner], "finalizers": [TRACKING]}
    run.store.create(raw)
    run.go()
    assert run.store.get("Pod", "default", "theirs").metadata["finalizers"] == [TRACKING]
