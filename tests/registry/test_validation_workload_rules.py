"""Tests of rules for workloads; each row is a rule of upstream's apps or batch validation."""

from typing import Any

import pytest

from kschedd.registry.validation import default_and_validate, validate_updated
from kschedd.registry.workloads.job_policies import IndexesError, parse_indexes
from tests.api.objects import Raw, container

LABELS = {"app": "a"}
CONTAINERS = [container(name="c")]


def answer(raw: Raw) -> list[str]:
    return [str(fault) for fault in default_and_validate(raw).faults]


def template(restart: str | None = None, **pod: Any) -> Raw:
    policy = {"restartPolicy": restart} if restart else {}
    return {"metadata": {"labels": LABELS}, "spec": {"containers": CONTAINERS, **policy, **pod}}


def apps(kind: str, **spec: Any) -> Raw:
    meta = {"name": "x", "namespace": "default"}
    held = {"selector": {"matchLabels": LABELS}, "template": template(), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": held}


def job(**spec: Any) -> Raw:
    meta = {"name": "x", "namespace": "default", "uid": "u"}
    held = {"manualSelector": True, "selector": {"matchLabels": LABELS}, "template": template("Never"), **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": held}


def indexed(**spec: Any) -> Raw:
    return job(completionMode="Indexed", **{"completions": 3, **spec})


def cron(**spec: Any) -> Raw:
    meta = {"name": "x", "namespace": "default"}
    held = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template("Never")}}, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": held}


def failing(*rules: Raw, **spec: Any) -> Raw:
    return job(podFailurePolicy={"rules": list(rules)}, **spec)


def succeeding(**rule: Any) -> Raw:
    return indexed(successPolicy={"rules": [rule]})


def rolling(kind: str, **shares: Any) -> Raw:
    field = "strategy" if kind == "Deployment" else "updateStrategy"
    return apps(kind, **{field: {"type": "RollingUpdate", "rollingUpdate": shares}})


NEGATIVE = "must be greater than or equal to 0"
RULES = "spec.podFailurePolicy.rules[0]"
SUCCESS = "spec.successPolicy.rules[0]"
CONDITION = {"type": "A", "status": "True"}


@pytest.mark.parametrize(
    ("raw", "faults"),
    [
        pytest.param(apps("StatefulSet", revisionHistoryLimit=-1), [], id="upstream warns of it only"),
        pytest.param(
            apps("Deployment", revisionHistoryLimit=-1, minReadySeconds=-1, replicas=-1),
            [
                f"spec.replicas: Invalid value: -1: {NEGATIVE}",
                f"spec.minReadySeconds: Invalid value: -1: {NEGATIVE}",
                f"spec.revisionHistoryLimit: Invalid value: -1: {NEGATIVE}",
            ],
            id="counts of a deployment, in order",
        ),
        pytest.param(
            apps("DaemonSet", selector=None),
            ['spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`'],
            id="a daemon set without selector",
        ),
        pytest.param(
            rolling("Deployment", maxUnavailable="00%", maxSurge=0),
            ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "00%": may not be 0 when `maxSurge` is 0'],
            id="a percentage of nothing",
        ),
        pytest.param(
            rolling("DaemonSet", maxUnavailable=1, maxSurge=1),
            [
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: "
                "may not be set when maxUnavailable is non-zero"
            ],
            id="daemons both ways",
        ),
        pytest.param(
            failing({"action": "Count"}),
            [f"{RULES}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required"],
            id="a rule without either",
        ),
        pytest.param(
            failing(
                {
                    "action": "Count",
                    "onExitCodes": {"operator": "In", "values": [1]},
                    "onPodConditions": [CONDITION],
                }
            ),
            [f"{RULES}: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported"],
            id="a rule with both",
        ),
        pytest.param(
            failing({"action": "Count", "onExitCodes": {"operator": "In", "values": [0, 0]}}),
            [
                f"{RULES}.onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
                f"{RULES}.onExitCodes.values[1]: Invalid value: 0: must not be 0 for the In operator",
                f"{RULES}.onExitCodes.values[1]: Duplicate value: 0",
            ],
            id="each zero",
        ),
        pytest.param(
            failing({"action": "Count", "onPodConditions": [CONDITION] * 21}),
            [f"{RULES}.onPodConditions: Too many: 21: must have at most 20 items"],
            id="many conditions",
        ),
        pytest.param(
            succeeding(succeededIndexes="0,2", succeededCount=3),
            [
                f"{SUCCESS}.succeededCount: Invalid value: 3: must be less than or equal to 2 "
                "(the number of indexes in the specified succeededIndexes field)"
            ],
            id="more than the indexes",
        ),
        pytest.param(
            succeeding(succeededIndexes="0-5"),
            [f'{SUCCESS}.succeededIndexes: Invalid value: "0-5": error parsing succeededIndexes: too large index: "5"'],
            id="an index too large",
        ),
        pytest.param(
            indexed(successPolicy={"rules": [{"succeededCount": 1}] * 21}),
            ["spec.successPolicy.rules: Too many: 21: must have at most 20 items"],
            id="many rules of success",
        ),
        pytest.param(
            indexed(backoffLimitPerIndex=1, maxFailedIndexes=4),
            ["spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions"],
            id="more failures than indexes",
        ),
        pytest.param(
            indexed(completions=100_001, parallelism=10_001, backoffLimitPerIndex=1),
            [
                "spec.maxFailedIndexes: Required value: must be specified when completions is above 100000",
                "spec.parallelism: Invalid value: 10001: must be less than or equal to 10000 "
                "when completions are above 100000 and used with backoff limit per index",
            ],
            id="a job of very many",
        ),
        pytest.param(
            job(completionMode="Other", backoffLimitPerIndex=1),
            ['spec.completionMode: Unsupported value: "Other": supported values: "NonIndexed", "Indexed"'],
            id="an unknown mode is neither",
        ),
        pytest.param(
            cron(schedule="TZ=UTC x"),
            [
                'spec.schedule: Invalid value: "TZ=UTC x": expected exactly 5 fields, found 1: [x]',
                'spec.schedule: Invalid value: "TZ=UTC x": '
                "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
            ],
            id="a schedule with a zone is read",
        ),
        pytest.param(
            cron(timeZone="local", startingDeadlineSeconds=-1),
            [
                f"spec.startingDeadlineSeconds: Invalid value: -1: {NEGATIVE}",
                'spec.timeZone: Invalid value: "local": timeZone must be an explicit time zone as defined in '
                "https://www.iana.org/time-zones",
                'spec.timeZone: Invalid value: "local": unknown time zone local',
            ],
            id="the local zone",
        ),
    ],
)
def test_what_is_said(raw: Raw, faults: list[str]) -> None:
    assert answer(raw) == faults


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1-2-3", "can have at most two parts separated by '-'"),
        ("x", 'cannot convert string to integer for index: "x"'),
        ("2-1", "non-increasing order, previous: 2, current: 1"),
        ("2,1", "non-increasing order, previous: 2, current: 1"),
        ("9", 'too large index: "9"'),
    ],
)
def test_indexes_that_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(IndexesError, match=".*" + why.replace("(", "[(]")):
        parse_indexes(text, 5)


def test_indexes() -> None:
    assert parse_indexes("", 5) == []
    assert parse_indexes("0,2-4", 5) == [(0, 0), (2, 4)]


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("", ["spec.managedBy: Required value"]),
        (
            "acme.io/a b",
            [
                'spec.managedBy: Invalid value: "a b": Invalid path (regex used for validation is '
                "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"
            ],
        ),
        ("acme.io/a/b", []),
    ],
)
def test_who_manages_a_job_is_a_path_with_a_domain(name: str, faults: list[str]) -> None:
    assert answer(job(managedBy=name)) == faults


def test_the_host_names_in_a_stateful_sets_template_are_its_pods_own() -> None:
    assert answer(apps("StatefulSet", template=template(hostname="No Host", subdomain="A_b"))) == []
    assert answer(apps("Deployment", template=template(hostname="No Host")))


def test_what_a_stateful_set_keeps_is_not_looked_at_again_in_an_update() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {}}]
    raw = default_and_validate(apps("StatefulSet", serviceName="No_label", volumeClaimTemplates=claims))
    assert {fault.path for fault in raw.faults} >= {"spec.serviceName", "spec.volumeClaimTemplates[0].spec.accessModes"}
    assert validate_updated(raw.raw, []) == []


def test_the_zone_in_a_schedule_is_looked_for_though_none_may_be_there() -> None:
    schedule = "TZ=Nowhere/City * * * * *"
    assert answer(cron(schedule=schedule)) == [
        f'spec.schedule: Invalid value: "{schedule}": provided bad location Nowhere/City: '
        "unknown time zone Nowhere/City",
        f'spec.schedule: Invalid value: "{schedule}": cannot use TZ or CRON_TZ in schedule, use timeZone field instead',
    ]


@pytest.mark.parametrize(
    ("before", "missing"),
    [
        ({"controller-uid": "u", "job-name": "x"}, []),
        (
            {"batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "x"},
            ["batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"],
        ),
    ],
)
def test_a_job_made_before_its_labels_had_prefixes_need_not_have_them(before: Raw, missing: list[str]) -> None:
    def labelled(labels: Raw) -> Raw:
        raw = job(manualSelector=False, selector={"matchLabels": {"controller-uid": "u"}})
        raw["spec"]["template"] = {**raw["spec"]["template"], "metadata": {"labels": labels}}
        return default_and_validate(raw).raw

    faults = validate_updated(labelled({"controller-uid": "u", "job-name": "x"}), [], labelled(before))
    assert {fault.path for fault in faults} == {f"spec.template.metadata.labels[{label}]" for label in missing}


def test_an_invalid_selector_is_shown_as_it_is_decoded() -> None:
    expressions = [{"key": "app", "values": ["a"]}]
    raw = apps("Deployment", selector={"matchLabels": LABELS, "matchExpressions": expressions})
    assert answer(raw) == [
        'spec.selector.matchExpressions[0].operator: Invalid value: "": not a valid selector operator',
        'spec.selector: Invalid value: {"matchLabels":{"app":"a"},"matchExpressions":[{"key":"app","operator":"",'
        '"values":["a"]}]}: invalid label selector',
    ]


def test_claim_templates_are_checked_before_the_template_and_make_one_volume_of_a_name() -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    named = [{"metadata": {"name": "d"}, **claim}] * 2
    assert answer(apps("StatefulSet", volumeClaimTemplates=named)) == []
    assert [fault.partition(":")[0] for fault in answer(apps("StatefulSet", volumeClaimTemplates=[{}]))] == [
        "spec.volumeClaimTemplates[0].spec.accessModes",
        "spec.volumeClaimTemplates[0].spec.resources[storage]",
        "spec.template.spec.volumes[0].persistentVolumeClaim.claimName",
        "spec.template.spec.volumes[0].name",
    ]


def test_space_around_a_quantity_means_nothing() -> None:
    limits = {"limits": {"cpu": " 500m", "memory": "1Gi "}}
    containers = [container(name="c", resources=limits)]
    done = default_and_validate(apps("Deployment", template=template(containers=containers)))
    assert done.faults == ()
    resources = done.raw["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"cpu": "500m", "memory": "1Gi"}


@pytest.mark.parametrize("data", ["", False, 0, [], [1], "x"])
def test_the_data_of_a_revision_are_an_object(data: object) -> None:
    meta = {"name": "x", "namespace": "default"}
    raw = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta, "revision": 1, "data": data}
    assert answer(raw) == ["data: Required value: data must be a valid JSON object"]
