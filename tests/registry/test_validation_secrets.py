"""Tests of rules for Secrets, PodTemplates and changed CronJobs; each row is a rule of upstream's."""

import base64
from typing import Any

import pytest

from kschedd.registry.validation import default_and_validate, validate_updated
from kschedd.store.errors import Invalid
from kschedd.store.store import Store
from tests.api.objects import Raw, named

NAME = "metadata.annotations[kubernetes.io/service-account.name]"
HIDDEN = 'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": '
NO_MAP = "into Go value of type map[string]interface {}"


def secret(kind: str = "", **data: str) -> Raw:
    raw = named("Secret", data={key: base64.b64encode(text.encode()).decode() for key, text in data.items()})
    return {**raw, "type": f"kubernetes.io/{kind}"} if kind else raw


def docker(text: str) -> Raw:
    return secret("dockerconfigjson", **{".dockerconfigjson": text})


def faults_of(raw: Raw) -> list[str]:
    return [str(fault) for fault in default_and_validate(raw).faults]


@pytest.mark.parametrize(
    ("raw", "faults"),
    [
        pytest.param(secret(a="b"), [], id="opaque"),
        pytest.param(secret("example"), [], id="of-no-known-type"),
        pytest.param(secret(a="x" * 2**20), [], id="as-large-as-may-be"),
        pytest.param(secret(a="x" * (2**20 + 1)), ["data: Too long: may not be more than 1048576 bytes"], id="large"),
        pytest.param(secret("service-account-token"), [f"{NAME}: Required value"], id="token"),
        pytest.param(secret("basic-auth", username=""), [], id="a-name-is-enough"),
        pytest.param(
            secret("basic-auth"), ["data[username]: Required value", "data[password]: Required value"], id="no-login"
        ),
        pytest.param(secret("ssh-auth", **{"ssh-privatekey": ""}), ["data[ssh-privatekey]: Required value"], id="ssh"),
        pytest.param(secret("tls", **{"tls.crt": ""}), ["data[tls.key]: Required value"], id="tls"),
        pytest.param(secret("dockercfg"), ["data[.dockercfg]: Required value"], id="docker-without"),
        pytest.param(docker(' {"auths": {}}'), [], id="docker"),
        pytest.param(docker("null"), [], id="docker-null"),
        pytest.param(docker(""), [f"{HIDDEN}unexpected end of JSON input"], id="docker-empty"),
        pytest.param(
            docker("x"), [f"{HIDDEN}invalid character 'x' looking for beginning of value"], id="docker-no-json"
        ),
        pytest.param(docker("[]"), [f"{HIDDEN}json: cannot unmarshal array {NO_MAP}"], id="docker-list"),
        pytest.param(docker("-1"), [f"{HIDDEN}json: cannot unmarshal number {NO_MAP}"], id="docker-number"),
    ],
)
def test_a_secret_holds_what_its_type_says(raw: Raw, faults: list[str]) -> None:
    assert faults_of(raw) == faults


def test_a_secret_has_keys_that_could_be_files() -> None:
    assert [text.partition(":")[0] for text in faults_of(secret(**{"a/b": "c"}))] == ["data[a/b]"]


def template(**spec: Any) -> Raw:
    return {"spec": {"containers": [{"name": "c", "image": "c"}], **spec}}


def test_a_pod_template_is_defaulted_and_checked() -> None:
    made = default_and_validate(named("PodTemplate", template=template()))
    assert not made.faults
    assert made.raw["template"]["spec"]["restartPolicy"] == "Always"
    assert faults_of(named("PodTemplate")) == ["template.spec.containers: Required value"]


def test_a_pod_template_counts_the_changes_of_its_template() -> None:
    store = Store()
    made = store.create(named("PodTemplate", template=template()))
    assert made.metadata["generation"] == 1
    labelled = store.merge_patch("PodTemplate", "default", "x", {"metadata": {"labels": {"a": "b"}}})
    assert labelled.metadata["generation"] == 1
    changed = store.merge_patch("PodTemplate", "default", "x", {"template": {"spec": {"hostNetwork": True}}})
    assert changed.metadata["generation"] == 2
    with pytest.raises(Invalid, match=r"template\.spec\.containers: Required value"):
        store.merge_patch("PodTemplate", "default", "x", {"template": {"spec": {"containers": None}}})


def cron(name: str = "x", **spec: Any) -> Raw:
    held = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template(restartPolicy="Never")}}, **spec}
    return {**named("CronJob", "batch/v1", spec=held), "metadata": {"name": name}}


OWN_ZONE = "TZ=UTC * * * * *"


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        pytest.param(cron("x" * 53), cron("x" * 53, suspend=True), [], id="its-name"),
        pytest.param(cron(timeZone="No/Where"), cron(timeZone="No/Where"), [], id="its-zone"),
        pytest.param(
            cron(timeZone="UTC"),
            cron(timeZone="No/Where"),
            ['spec.timeZone: Invalid value: "No/Where": unknown time zone No/Where'],
            id="another-zone",
        ),
        pytest.param(cron(schedule=OWN_ZONE), cron(schedule=OWN_ZONE), [], id="the-zone-of-its-schedule"),
        pytest.param(
            cron(schedule=OWN_ZONE),
            cron(schedule=OWN_ZONE, timeZone="UTC"),
            [
                f'spec.schedule: Invalid value: "{OWN_ZONE}": cannot use both timeZone field and TZ or CRON_TZ in '
                "schedule"
            ],
            id="two-zones",
        ),
        pytest.param(
            cron(),
            cron(schedule=OWN_ZONE),
            [
                f'spec.schedule: Invalid value: "{OWN_ZONE}": cannot use TZ or CRON_TZ in schedule, use timeZone field '
                "instead"
            ],
            id="a-zone-in-its-schedule",
        ),
    ],
)
def test_a_cron_job_keeps_what_it_could_not_be_made_with(old: Raw, new: Raw, faults: list[str]) -> None:
    before, after = (default_and_validate(each).raw for each in (old, new))
    assert [str(fault) for fault in validate_updated(after, [], before)] == faults
