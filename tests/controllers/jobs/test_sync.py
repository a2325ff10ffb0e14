"""Tests of a sync of a Job, with the table of upstream's TestControllerSyncJob: pods and status before and after."""

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.controllers.jobs.indexes import COMPLETION_INDEX
from kschedd.controllers.jobs.job_pods import TRACKING
from kschedd.controllers.jobs.job_tally import JobTally, JobTerms
from kschedd.controllers.jobs.pod_backoff import FAILURE_COUNT, PodBackoff
from kschedd.controllers.jobs.sync import JobSync, syncing
from kschedd.values import run_steps

NOW = 1_700_000_000.0
LONG_AGO = stamp(NOW - 3600)
BACKOFF = ("FailureTarget", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
REACHED = ("True", "CompletionsReached", "Reached expected number of succeeded pods")
SUSPENDED = ("Suspended", "True", "JobSuspended", "Job suspended")


@attrs.frozen
class Given:
    """A Job and its pods by phase; `indexed` contains (index, phase) pairs."""

    parallelism: int = 2
    completions: int | None = 5
    backoff_limit: int = 6
    spec: dict[str, Any] = attrs.field(factory=dict)
    status: dict[str, Any] = attrs.field(factory=dict)
    deleting: bool = False
    pending: int = 0
    active: int = 0
    ready: int = 0  # of the active ones
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    indexed: Sequence[tuple[str, str]] | None = None
    backoff: PodBackoff = attrs.field(factory=PodBackoff)

    def job(self) -> Object:
        spec = {"parallelism": self.parallelism, "completions": self.completions, "backoffLimit": self.backoff_limit}
        pod = {"restartPolicy": "Never", "containers": [{"name": "c"}]}
        spec |= {"template": {"metadata": {"labels": {"a": "b"}}, "spec": pod}, **self.spec}
        if self.indexed is not None:
            spec["completionMode"] = "Indexed"
        meta: dict[str, Any] = {"name": "job", "namespace": "default", "uid": "u-job"}
        if self.deleting:
            meta["deletionTimestamp"] = LONG_AGO
        raw = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec, "status": self.status}
        return Object.from_raw(raw)

    def pods(self) -> list[Pod]:
        kinds = ["Pending"] * self.pending + ["Running"] * self.active
        kinds += ["Succeeded"] * self.succeeded + ["Failed"] * self.failed
        pods = [made(f"p{n}", phase, ready=n - self.pending < self.ready) for n, phase in enumerate(kinds)]
        pods += [made(f"t{n}", "Running", deleted=LONG_AGO) for n in range(self.terminating)]
        for number, (index, phase) in enumerate(self.indexed or ()):
            pods.append(made(f"i{number}", phase, annotations={COMPLETION_INDEX: index}))
        return pods


def sync_job(job: Object, pods: Sequence[Pod], backoff: PodBackoff, now: float) -> JobSync:
    tally = JobTally(JobTerms(None, job.spec.get("completionMode") == "Indexed"))
    for pod in pods:
        tally.put(pod, now)
    return run_steps(syncing(job, tally, backoff, now))


def made(name: str, phase: str, *, ready: bool = False, deleted: str = "", **meta: Any) -> Pod:
    whole: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"u-{name}", "finalizers": [TRACKING], **meta}
    whole["creationTimestamp"] = LONG_AGO
    if deleted:
        whole["deletionTimestamp"] = deleted
    status: dict[str, Any] = {"phase": phase}
    if phase == "Running":
        status["conditions"] = [{"type": "Ready", "status": "True" if ready else "False"}]
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": whole, "spec": {"containers": []}, "status": status}
    return Pod.from_raw(raw)


@attrs.frozen
class Came:
    """The result of a sync; `conditions` contains type, status, reason and message of each condition."""

    creations: int = 0
    deletions: int = 0
    patches: int = 0
    active: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    failed: int = 0
    completed: str = ""
    conditions: tuple[tuple[str, ...], ...] = ()
    created: tuple[int, ...] = ()

    @classmethod
    def of(cls, given: Given, done: JobSync) -> "Came":
        status = done.flushed or done.listed or given.status
        assert not any((status.get("uncountedTerminatedPods") or {}).values()), "all that ended are counted in one sync"
        stated = ("type", "status", "reason", "message")
        annotations = [raw["metadata"].get("annotations") or {} for raw in done.create]
        return cls(
            len(done.create),
            len(done.delete) + len(done.forget),
            len(done.counted) + len(done.forget),
            status.get("active", 0),
            status.get("ready", 0),
            status.get("terminating", 0),
            status.get("succeeded", 0),
            status.get("failed", 0),
            status.get("completedIndexes", ""),
            tuple(tuple(each.get(name, "") for name in stated) for each in status.get("conditions") or ()),
            tuple(int(each[COMPLETION_INDEX]) for each in annotations if COMPLETION_INDEX in each),
        )


COMPLETE = (("SuccessCriteriaMet", *REACHED), ("Complete", *REACHED))
FAILED = (BACKOFF, ("Failed", *BACKOFF[1:]))
ONLY_FAILED = {"podReplacementPolicy": "Failed"}
POLICY: dict[str, Any] = {"podFailurePolicy": {"rules": []}}
OUTSIDE = [("0", "Succeeded"), ("5", "Running"), ("6", "Succeeded"), ("7", "Pending"), ("8", "Failed")]
SOME = [("0", "Running"), ("2", "Succeeded"), ("3", "Pending"), *((n, "Succeeded") for n in "45789")]
NO_INDEX = [
    *(("invalid", phase) for phase in ("Running", "Succeeded", "Failed", "Pending")),
    ("0", "Succeeded"),
    ("1", "Running"),
    ("2", "Running"),
]
REPEATED = [("invalid", "Running"), ("0", "Succeeded"), ("1", "Running"), ("2", "Running"), ("2", "Pending")]
ONE_FAILED = [("0", "Succeeded"), ("1", "Failed"), ("2", "Running")]
BY_HAND = {"startTime": LONG_AGO, "active": 1, "ready": 1, "terminating": 0, "uncountedTerminatedPods": {}}


def stated(type_: str) -> dict[str, Any]:
    return {"type": type_, "status": "False", "reason": "ConditionAddedManually", "message": "Testing"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(Given(), Came(creations=2, active=2), id="job-start"),
        pytest.param(Given(completions=None), Came(creations=2, active=2), id="work-queue-start"),
        pytest.param(Given(pending=2), Came(active=2), id="pending-pods"),
        pytest.param(Given(parallelism=3, active=3, ready=2), Came(active=3, ready=2), id="correct-number-of-pods"),
        pytest.param(Given(completions=None, active=2), Came(active=2), id="work-queue-correct-number"),
        pytest.param(
            Given(active=1, succeeded=1), Came(creations=1, active=2, succeeded=1, patches=1), id="too-few-active-pods"
        ),
        pytest.param(
            Given(1, None, spec=ONLY_FAILED, active=1, failed=1, terminating=1),
            Came(active=1, failed=1, patches=1, terminating=1),
            id="only-failed-pods-are-replaced",
        ),
        pytest.param(
            Given(1, 1, active=1, failed=1, terminating=1),
            Came(active=1, failed=2, patches=2, terminating=1),
            id="terminating-pods-count-as-failed-by-default",
        ),
        pytest.param(
            Given(1, 1, spec=ONLY_FAILED, active=2, terminating=4),
            Came(deletions=1, active=1, patches=1, terminating=5),
            id="more-terminating-than-parallelism",
        ),
        pytest.param(
            Given(1, 1, spec=POLICY, active=2, terminating=4),
            Came(deletions=1, active=1, patches=1, terminating=5),
            id="more-terminating-than-parallelism-with-a-failure-policy",
        ),
        pytest.param(Given(1, 1, backoff=PodBackoff(1, NOW)), Came(), id="too-few-pods-but-backing-off"),
        pytest.param(Given(1, 1, backoff=PodBackoff(0, NOW)), Came(creations=1, active=1), id="no-back-off"),
        pytest.param(
            Given(1, 1, backoff=PodBackoff(3, NOW - 40)), Came(creations=1, active=1), id="the-back-off-is-over"
        ),
        pytest.param(Given(completions=None, active=1), Came(creations=1, active=2), id="too-few-in-a-work-queue"),
        pytest.param(Given(active=3), Came(deletions=1, active=2, patches=1, terminating=1), id="too-many-active-pods"),
        pytest.param(
            Given(active=3, ready=3),
            Came(deletions=1, active=2, ready=2, patches=1, terminating=1),
            id="ready-pods-that-are-deleted-do-not-count",
        ),
        pytest.param(
            Given(active=1, succeeded=1, failed=1),
            Came(creations=1, active=2, succeeded=1, failed=1, patches=2),
            id="a-success-resets-the-back-off",
        ),
        pytest.param(Given(active=1, failed=1), Came(creations=1, active=2, failed=1, patches=1), id="new-failed-pod"),
        pytest.param(
            Given(1, 1, active=1, status={"active": 1, "failed": 1}),
            Came(active=1, failed=1),
            id="a-failure-that-was-counted-before",
        ),
        pytest.param(Given(succeeded=5), Came(succeeded=5, patches=5, conditions=COMPLETE), id="job-finish"),
        pytest.param(
            Given(completions=None, active=1, succeeded=1),
            Came(active=1, succeeded=1, patches=1),
            id="work-queue-ending",
        ),
        pytest.param(
            Given(completions=None, succeeded=2),
            Came(succeeded=2, patches=2, conditions=COMPLETE),
            id="work-queue-done",
        ),
        pytest.param(
            Given(completions=None, succeeded=1, failed=1),
            Came(succeeded=1, failed=1, patches=2, conditions=COMPLETE),
            id="work-queue-done-despite-one-failure",
        ),
        pytest.param(
            Given(active=10), Came(deletions=8, active=2, patches=8, terminating=8), id="more-active-than-parallelism"
        ),
        pytest.param(
            Given(3, 4, active=3, succeeded=2),
            Came(deletions=1, active=2, succeeded=2, patches=3, terminating=1),
            id="more-active-than-completions-left",
        ),
        pytest.param(Given(active=2, succeeded=2), Came(active=2, succeeded=2, patches=2), id="status-change"),
        pytest.param(
            Given(deleting=True, pending=1, active=1, succeeded=1),
            Came(active=2, succeeded=1, patches=3),
            id="a-job-being-deleted-lets-its-pods-go",
        ),
        pytest.param(Given(100, 200), Came(creations=100, active=100), id="as-many-as-parallelism"),
        pytest.param(Given(700, 900), Came(creations=500, active=500), id="500-in-a-sync"),
        pytest.param(
            Given(backoff_limit=0, deleting=True, failed=1),
            Came(failed=1, patches=1, conditions=FAILED),
            id="too-many-failures",
        ),
        pytest.param(Given(indexed=()), Came(creations=2, active=2, created=(0, 1)), id="indexed-start"),
        pytest.param(
            Given(spec=ONLY_FAILED, indexed=(), terminating=1),
            Came(creations=1, active=1, created=(0,), terminating=1),
            id="indexed-some-deleted-only-failed-are-replaced",
        ),
        pytest.param(
            Given(indexed=(), terminating=1),
            Came(creations=2, active=2, created=(0, 1), patches=1, terminating=1),
            id="indexed-some-deleted-all-are-replaced",
        ),
        pytest.param(
            Given(2, 3, indexed=[("0", "Succeeded"), ("1", "Failed"), ("1", "Succeeded"), ("2", "Succeeded")]),
            Came(succeeded=3, failed=1, completed="0-2", patches=4, conditions=COMPLETE),
            id="indexed-completed",
        ),
        pytest.param(
            Given(2, 3, 0, indexed=ONE_FAILED),
            Came(deletions=1, succeeded=1, failed=2, completed="0", patches=3, terminating=1, conditions=(BACKOFF,)),
            id="indexed-failed-and-a-pod-is-still-ending",
        ),
        pytest.param(
            Given(2, 3, 0, active=2, ready=2, failed=1),
            Came(deletions=2, failed=3, patches=3, terminating=2, conditions=(BACKOFF,)),
            id="no-pod-is-ready-when-the-job-fails",
        ),
        pytest.param(
            Given(2, 3, indexed=[("0", "Succeeded"), ("1", "Succeeded"), ("1", "Succeeded")]),
            Came(creations=1, active=1, succeeded=2, completed="0,1", created=(2,), patches=3),
            id="indexed-repeated-completed-index",
        ),
        pytest.param(
            Given(8, 20, indexed=SOME),
            Came(creations=6, active=8, succeeded=6, completed="2,4,5,7-9", created=(1, 6, 10, 11, 12, 13), patches=6),
            id="indexed-some-running-and-completed",
        ),
        pytest.param(
            Given(3, 4, indexed=[("0", "Failed"), ("1", "Pending"), ("2", "Failed")]),
            Came(creations=2, active=3, failed=2, created=(0, 2), patches=2),
            id="indexed-some-failed",
        ),
        pytest.param(
            Given(indexed=NO_INDEX, active=1, succeeded=1, failed=1),
            Came(deletions=3, active=2, succeeded=1, completed="0", patches=8, terminating=3),
            id="indexed-pods-without-an-index-go-uncounted",
        ),
        pytest.param(
            Given(5, 5, indexed=REPEATED, succeeded=1, failed=1),
            Came(deletions=2, active=2, succeeded=1, completed="0", patches=5, terminating=2),
            id="indexed-repeated-indexes",
        ),
        pytest.param(
            Given(indexed=OUTSIDE),
            Came(deletions=2, succeeded=1, completed="0", patches=5, terminating=2),
            id="indexed-outside-of-the-range",
        ),
        pytest.param(
            Given(2, 4, spec={"suspend": True}, active=2),
            Came(deletions=2, patches=2, terminating=2, conditions=(SUSPENDED,)),
            id="suspending-deletes-the-pods",
        ),
        pytest.param(
            Given(2, 4, spec={"suspend": True}, active=2, ready=2),
            Came(deletions=2, patches=2, terminating=2, conditions=(SUSPENDED,)),
            id="suspending-leaves-none-ready",
        ),
        pytest.param(
            Given(2, 4, status={"conditions": [{"type": "Suspended", "status": "True", "reason": "JobSuspended"}]}),
            Came(creations=2, active=2, conditions=(("Suspended", "False", "JobResumed", "Job resumed"),)),
            id="resuming",
        ),
        pytest.param(
            Given(2, 4, spec={"suspend": True}, deleting=True, active=2),
            Came(active=2, patches=2),
            id="suspending-what-is-being-deleted",
        ),
        pytest.param(
            Given(1, 1, active=1, ready=1, status={**BY_HAND, "conditions": [stated("FailureTarget")]}),
            Came(active=1, ready=1, conditions=(("FailureTarget", "False", "ConditionAddedManually", "Testing"),)),
            id="a-false-failure-target-by-hand-is-ignored",
        ),
        pytest.param(
            Given(1, 1, active=1, ready=1, status={**BY_HAND, "conditions": [stated("SuccessCriteriaMet")]}),
            Came(active=1, ready=1, conditions=(("SuccessCriteriaMet", "False", "ConditionAddedManually", "Testing"),)),
            id="a-false-success-criterion-by-hand-is-ignored",
        ),
        pytest.param(Given(2, 0), Came(conditions=COMPLETE), id="nothing-to-complete-is-complete"),
        pytest.param(Given(0, 5), Came(), id="parallelism-0-makes-none"),
        pytest.param(
            Given(0, 5, active=2),
            Came(deletions=2, patches=2, terminating=2),
            id="parallelism-0-deletes-those-there-are",
        ),
    ],
)
def test_one_sync(given: Given, expected: Came) -> None:
    assert Came.of(given, sync_job(given.job(), given.pods(), given.backoff, NOW)) == expected


def test_a_resumed_job_starts_anew() -> None:
    given = Given(status={"startTime": LONG_AGO, "conditions": [{"type": "Suspended", "status": "True"}]})
    done = sync_job(given.job(), given.pods(), PodBackoff(), NOW)
    assert done.listed is not None
    assert done.listed["startTime"] == stamp(NOW)
    assert done.events == [(False, "Resumed", "Job resumed")]


def test_a_suspended_job_that_never_ran_has_no_start_time() -> None:
    given = Given(spec={"suspend": True})
    done = sync_job(given.job(), [], PodBackoff(), NOW)
    assert done.listed is not None
    assert "startTime" not in done.listed


def test_what_ended_is_listed_before_its_finalizers_go_and_counted_after() -> None:
    given = Given(completions=2, succeeded=2)
    done = sync_job(given.job(), given.pods(), PodBackoff(), NOW)
    assert done.listed is not None
    assert done.flushed is not None
    assert done.listed["uncountedTerminatedPods"] == {"succeeded": ["u-p0", "u-p1"]}
    assert [each["type"] for each in done.listed["conditions"]] == ["SuccessCriteriaMet"]
    assert "succeeded" not in done.listed
    assert done.flushed["uncountedTerminatedPods"] == {}
    assert done.flushed["succeeded"] == 2
    assert done.flushed["completionTime"] == stamp(NOW)
    assert done.events == [(False, "Completed", "Job completed")]


def test_at_most_500_pods_are_counted_in_a_sync() -> None:
    given = Given(700, 700, succeeded=700)
    done = sync_job(given.job(), given.pods(), PodBackoff(), NOW)
    assert len(done.counted) == 500
    assert done.again_at == NOW
    assert done.flushed is not None
    assert [each["type"] for each in done.flushed["conditions"]] == ["SuccessCriteriaMet"]


def test_pods_listed_by_a_sync_that_was_cut_short_are_not_counted_twice() -> None:
    uncounted = {"succeeded": ["u-p0", "u-gone"], "failed": ["u-also-gone"]}
    given = Given(1, 5, succeeded=1, status={"succeeded": 3, "failed": 2, "uncountedTerminatedPods": uncounted})
    done = sync_job(given.job(), given.pods(), PodBackoff(), NOW)
    assert done.flushed is not None
    assert (done.flushed["succeeded"], done.flushed["failed"]) == (5, 3)
    assert done.flushed["conditions"][-1]["type"] == "Complete"


@pytest.mark.parametrize(
    ("limit", "restarts", "fails"),
    [
        pytest.param(1, (0, 0), False, id="no-restart"),
        pytest.param(0, (0, 0), False, id="none-allowed-and-none"),
        pytest.param(0, (1, 0), True, id="none-allowed"),
        pytest.param(3, (1, 1), False, id="below-the-limit"),
        pytest.param(3, (2, 1), True, id="restarts-of-all-pods-add-up"),
    ],
)
def test_restarts_count_where_containers_are_restarted(limit: int, restarts: tuple[int, int], fails: bool) -> None:
    template = {"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "c"}]}}
    given = Given(2, 5, limit, spec={"template": template})
    pods = []
    for number, count in enumerate(restarts):
        raw = dict(made(f"p{number}", "Running").raw)
        raw["status"] = {**raw["status"], "containerStatuses": [{"name": "c", "restartCount": count}]}
        pods.append(Pod.from_raw(raw))
    done = sync_job(given.job(), pods, PodBackoff(), NOW)
    assert bool(done.delete) is fails


@pytest.mark.parametrize(
    ("started_s", "suspended", "over", "again"),
    [
        pytest.param(10, False, True, None, id="just-over"),
        pytest.param(4, False, False, NOW + 6, id="it-looks-again-when-it-will-be"),
        pytest.param(1000, True, False, None, id="not-while-suspended"),
    ],
)
def test_the_active_deadline(started_s: float, suspended: bool, over: bool, again: float | None) -> None:
    spec = {"activeDeadlineSeconds": 10, "suspend": suspended}
    given = Given(1, 1, spec=spec, active=1, status={"startTime": stamp(NOW - started_s)})
    done = sync_job(given.job(), given.pods(), PodBackoff(), NOW)
    assert done.again_at == again
    conditions = [] if done.listed is None else done.listed.get("conditions", [])
    why = "Job was active longer than specified deadline"
    found = [each["message"] for each in conditions if each["reason"] == "DeadlineExceeded"]
    assert found == ([why] if over else [])


def failed_at(name: str, index: int, ago_s: float, failures: int = 0) -> Pod:
    annotations = {COMPLETION_INDEX: str(index), FAILURE_COUNT: str(failures)}
    raw = dict(made(name, "Failed", annotations=annotations).raw)
    ended = {"name": "c", "state": {"terminated": {"exitCode": 1, "finishedAt": stamp(NOW - ago_s)}}}
    raw["status"] = {"phase": "Failed", "containerStatuses": [ended]}
    return Pod.from_raw(raw)


def on_exit_code_1(action: str) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [1]}}]}}


@pytest.mark.parametrize(
    ("pods", "spec", "created", "failed_indexes", "end"),
    [
        pytest.param([failed_at("a", 0, 60)], {}, {0: "1", 1: "0"}, "", "", id="the-count-goes-to-the-next-pod"),
        pytest.param([failed_at("a", 0, 5)], {}, {1: "0"}, "", "", id="an-index-that-backs-off-holds-up-no-other"),
        pytest.param([failed_at("a", 0, 60, 1)], {}, {1: "0", 2: "0"}, "0", "", id="the-limit-of-an-index"),
        pytest.param(
            [failed_at("a", 0, 60, 1), failed_at("b", 2, 60, 1)],
            {},
            {},
            "0,2",
            "MaxFailedIndexesExceeded",
            id="too-many",
        ),
        pytest.param(
            [failed_at(str(n), n, 60, 1) for n in range(3)],
            {"maxFailedIndexes": None},
            {},
            "0-2",
            "FailedIndexes",
            id="all-indexes-ended-and-some-failed",
        ),
        pytest.param(
            [failed_at("a", 1, 60)], on_exit_code_1("FailIndex"), {0: "0", 2: "0"}, "1", "", id="a-rule-fails-the-index"
        ),
        pytest.param(
            [failed_at("a", 0, 60)], on_exit_code_1("Ignore"), {0: "0", 1: "0"}, "", "", id="an-ignored-failure"
        ),
    ],
)
def test_limits_of_each_index(
    pods: list[Pod], spec: dict[str, Any], created: dict[int, str], failed_indexes: str, end: str
) -> None:
    given = Given(2, 3, 2**31 - 1, spec={"backoffLimitPerIndex": 1, "maxFailedIndexes": 1, **spec}, indexed=())
    done = sync_job(given.job(), pods, PodBackoff(), NOW)
    status = done.flushed or done.listed
    assert status is not None
    made_of = [raw["metadata"]["annotations"] for raw in done.create]
    assert {int(each[COMPLETION_INDEX]): each[FAILURE_COUNT] for each in made_of} == created
    assert status["failedIndexes"] == failed_indexes
    assert [each["reason"] for each in status.get("conditions", [])] == ([end, end] if end else [])


@pytest.mark.parametrize(
    ("policy", "succeeded", "message"),
    [
        pytest.param([{"succeededIndexes": "0-1"}], "01", "Matched rules at index 0", id="these-indexes"),
        pytest.param([{"succeededIndexes": "0-1"}], "02", "", id="not-all-of-them"),
        pytest.param([{"succeededCount": 2}], "13", "Matched rules at index 0", id="so-many-of-any"),
        pytest.param(
            [{"succeededIndexes": "4"}, {"succeededIndexes": "0-2", "succeededCount": 2}],
            "02",
            "Matched rules at index 1",
            id="so-many-of-these",
        ),
        pytest.param([{"succeededIndexes": "x"}], "0", "", id="a-rule-that-cannot-be-read-is-passed-over"),
    ],
)
def test_the_success_policy(policy: list[Any], succeeded: str, message: str) -> None:
    indexed = [(index, "Succeeded") for index in succeeded]
    given = Given(1, 5, spec={"successPolicy": {"rules": policy}}, indexed=[*indexed, ("4", "Running")])
    done = sync_job(given.job(), given.pods(), PodBackoff(), NOW)
    assert done.listed is not None
    met = [each for each in done.listed.get("conditions", []) if each["type"] == "SuccessCriteriaMet"]
    assert [each["message"] for each in met] == ([message] if message else [])
    assert [each.get("reason") for each in met] == (["SuccessPolicy"] if message else [])
    assert len(done.delete) == (1 if message else 0)
