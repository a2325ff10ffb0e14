"""Tests of the rules for a Job's status; each row is a rule of upstream's ValidateJobUpdateStatus."""

import pytest

from kschedd.registry.validation_update import Faults
from kschedd.registry.workloads.job_status import validate_job_status
from tests.api.objects import Raw

AT = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:01:00Z"
INDEXED = {"completionMode": "Indexed", "completions": 5, "parallelism": 2, "backoffLimitPerIndex": 1}


def true(*kinds: str) -> list[Raw]:
    return [{"type": kind, "status": "True"} for kind in kinds]


FAILED: Raw = {"conditions": true("FailureTarget", "Failed"), "startTime": AT}
CONDITIONS = "status.conditions: Invalid value: "


@pytest.mark.parametrize(
    ("spec", "old", "new", "faults"),
    [
        ({}, {}, FAILED, []),
        (
            {},
            {},
            {"conditions": true("Failed"), "startTime": AT},
            [CONDITIONS + "cannot set Failed=True condition without the FailureTarget=true condition"],
        ),
        ({}, {"conditions": true("Failed")}, {"conditions": true("Failed"), "failed": 1}, []),
        (
            {},
            FAILED,
            {**FAILED, "conditions": true("Failed")},
            [CONDITIONS + "cannot disable the terminal FailureTarget=True condition"],
        ),
        ({"suspend": True, "completions": 0}, {}, {"conditions": true("FailureTarget", "Failed")}, []),
        (
            {},
            {},
            {**FAILED, "terminating": 1},
            ["status.terminating: Invalid value: 1: terminating>0 is invalid for finished job"],
        ),
        ({}, {}, {"ready": 2, "active": 1}, ["status.ready: Invalid value: 2: cannot set more ready pods than active"]),
        ({}, {"failed": 2}, {"failed": 1}, ["status.failed: Invalid value: 1: cannot decrease the failed counter"]),
        (
            {},
            {"completionTime": AT, "conditions": true("SuccessCriteriaMet", "Complete"), "startTime": AT},
            {"completionTime": LATER, "conditions": true("SuccessCriteriaMet", "Complete"), "startTime": AT},
            [f'status.completionTime: Invalid value: "{LATER}": completionTime cannot be mutated'],
        ),
        (
            INDEXED,
            {},
            {"completedIndexes": "0-2,4", "failedIndexes": "2-3"},
            ['status.failedIndexes: Invalid value: "2-3": failedIndexes and completedIndexes overlap at index: 2'],
        ),
        (
            {},
            {},
            {"completedIndexes": "0", "failedIndexes": ""},
            [
                'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed '
                "completion mode",
                'status.failedIndexes: Invalid value: "": cannot set non-null failedIndexes when backoffLimitPerIndex '
                "is null",
            ],
        ),
        (
            {},
            {},
            {"uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}},
            [
                'status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
                'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
            ],
        ),
        (
            {},
            {},
            {**FAILED, "uncountedTerminatedPods": {"succeeded": ["a"]}},
            [
                'status.uncountedTerminatedPods: Invalid value: {"Succeeded":["a"],"Failed":null}: '
                "uncountedTerminatedPods needs to be empty for finished job"
            ],
        ),
    ],
)
def test_what_is_said(spec: Raw, old: Raw, new: Raw, faults: list[str]) -> None:
    found: Faults = []
    validate_job_status({"status": old}, {"spec": spec, "status": new}, found)
    assert [str(fault) for fault in found] == faults
