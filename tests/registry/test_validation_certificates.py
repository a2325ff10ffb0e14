"""Tests of certificate signing requests with one missing or invalid field."""

import pytest

from kschedd.registry.validation import validate_updated
from kschedd.registry.validation_update import validate_status_update
from tests.api.objects import Raw, named
from tests.registry.certificate_requests import DER, armored
from tests.registry.test_validation_kept_kinds import ABSENT, SUBDOMAIN, answer, changed

API = "certificates.k8s.io/v1"


REQUEST = named(
    "CertificateSigningRequest",
    API,
    spec={
        "request": armored("CERTIFICATE REQUEST"),
        "signerName": "example.com/signer",
        "usages": ["client auth", "digital signature"],
        "expirationSeconds": 600,
    },
)
FORM = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
ARMOR = "PEM block type must be CERTIFICATE REQUEST"


@pytest.mark.parametrize(
    ("path", "value", "faults"),
    [
        ("metadata.name", "Any:Name", []),
        ("metadata.name", "a/b", ["metadata.name: Invalid value: \"a/b\": may not contain '/'"]),
        ("spec.request", ABSENT, [f"spec.request: Invalid value: null: {ARMOR}"]),
        ("spec.request", "", [f'spec.request: Invalid value: "": {ARMOR}']),
        (
            "spec.request",
            armored("CERTIFICATE"),
            [f'spec.request: Invalid value: "{armored("CERTIFICATE")}": {ARMOR}'],
        ),
        ("spec.usages", ABSENT, ["spec.usages: Required value"]),
        ("spec.usages[1]", "client auth", ['spec.usages[1]: Duplicate value: "client auth"']),
        ("spec.signerName", ABSENT, ["spec.signerName: Required value"]),
        ("spec.signerName", "example.com", [f'spec.signerName: Invalid value: "example.com": {FORM}']),
        (
            "spec.signerName",
            "example/a",
            [
                'spec.signerName: Invalid value: "example": should be a domain with at least two segments separated '
                "by dots"
            ],
        ),
        (
            "spec.signerName",
            "example.com/A",
            [f'spec.signerName: Invalid value: "A": validating label "A": {SUBDOMAIN}'],
        ),
        (
            "spec.signerName",
            "kubernetes.io/legacy-unknown",
            [
                'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed '
                "via this API version"
            ],
        ),
        (
            "spec.expirationSeconds",
            599,
            [
                "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds "
                "(10 minutes)"
            ],
        ),
    ],
)
def test_each_fault_is_told_in_the_words_of_the_server(path: str, value: object, faults: list[str]) -> None:
    assert answer(changed(REQUEST, path, value)) == faults


def test_a_usage_is_one_of_those_that_are_known() -> None:
    [fault] = answer(changed(REQUEST, "spec.usages[0]", "fun"))
    assert fault.startswith('spec.usages[0]: Unsupported value: "fun": supported values: "any", "cert sign", ')
    assert fault.endswith('"server auth", "signing", "timestamping"')


MISMATCH = (
    "{optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 "
    "timeType:0 set:false omitEmpty:false}"
)


def tag(kind: int, number: int, length: int, compound: str = "false") -> str:
    found = f"{{class:{kind} tag:{number} length:{length} isCompound:{compound}}}"
    return f"asn1: structure error: tags don't match (16 vs {found})"


@pytest.mark.parametrize(
    ("der", "why"),
    [
        pytest.param(b"", "asn1: syntax error: sequence truncated", id="nothing"),
        pytest.param(b"hello world", f"{tag(1, 8, 101, 'true')} {MISMATCH} certificateRequest @2", id="text"),
        pytest.param(DER[:-10], "asn1: syntax error: data truncated", id="half-of-one"),
        pytest.param(DER + b"\0", "asn1: syntax error: trailing data", id="more-than-one"),
        pytest.param(b"\2\1\5", f"{tag(0, 2, 1)} {MISMATCH} certificateRequest @2", id="a-number"),
        pytest.param(b"\x30\3\2\1\5", f"{tag(0, 2, 1)} {MISMATCH} tbsCertificateRequest @2", id="a-number-within"),
        pytest.param(b"\x30\x84\xff\xff\xff\xff", "asn1: structure error: length too large", id="too-long"),
        pytest.param(b"\x31" + DER[1:], f"{tag(0, 17, 211, 'true')} {MISMATCH} certificateRequest @3", id="a-set"),
    ],
)
def test_what_is_signed_must_be_a_request(der: bytes, why: str) -> None:
    request = armored("CERTIFICATE REQUEST", der)
    assert answer(changed(REQUEST, "spec.request", request)) == [f'spec.request: Invalid value: "{request}": {why}']


def condition(kind: str, status: str = "True") -> Raw:
    return {"type": kind, "status": status}


CERTIFICATE = armored("CERTIFICATE")
WHERE, EXCLUSIVE = "status.conditions", "Approved and Denied conditions are mutually exclusive"
ADDED = "status.conditions: Forbidden: updates may not add a condition of type"
BAD = 'status.certificate: Invalid value: "<certificate data>"'


@pytest.mark.parametrize(
    ("status", "approval", "signing"),
    [
        pytest.param({}, [], [], id="nothing"),
        pytest.param({"conditions": [condition("Approved")]}, [], [f'{ADDED} "Approved"'], id="approved"),
        pytest.param({"conditions": [condition("Denied")]}, [], [f'{ADDED} "Denied"'], id="denied"),
        pytest.param({"conditions": [condition("Failed")]}, [], [], id="failed"),
        pytest.param(
            {"conditions": [condition("Approved"), condition("Denied")]},
            [f'{WHERE}: Invalid value: "Denied": {EXCLUSIVE}'],
            [f'{WHERE}: Invalid value: "Denied": {EXCLUSIVE}', f'{ADDED} "Approved"', f'{ADDED} "Denied"'],
            id="both",
        ),
        pytest.param({"conditions": [{"status": "True"}]}, *[[f"{WHERE}[0].type: Required value"]] * 2, id="no-type"),
        pytest.param({"conditions": [{"type": "Odd"}]}, *[[f"{WHERE}[0].status: Required value"]] * 2, id="no-status"),
        pytest.param(
            {"conditions": [condition("Odd", "x"), condition("Odd", "False")]},
            *[
                [
                    f'{WHERE}[0].status: Unsupported value: "x": supported values: "False", "True", "Unknown"',
                    f'{WHERE}[1].type: Duplicate value: "Odd"',
                ]
            ]
            * 2,
            id="an-odd-one-twice",
        ),
        pytest.param(
            {"conditions": [condition("Failed", "False")]},
            *[[f'{WHERE}[0].status: Unsupported value: "False": supported values: "True"']] * 2,
            id="not-failed",
        ),
        pytest.param({"certificate": CERTIFICATE}, [], [], id="certificate"),
        pytest.param(
            {"certificate": "eA=="}, *[[f"{BAD}: must contain at least one CERTIFICATE PEM block"]] * 2, id="text"
        ),
        pytest.param(
            {"certificate": armored("CERTIFICATE REQUEST")},
            *[[f'{BAD}: only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"']] * 2,
            id="request",
        ),
        pytest.param(
            {"certificate": armored("CERTIFICATE", headers="A: b\n\n")},
            *[[f"{BAD}: no PEM block headers are permitted"]] * 2,
            id="headers",
        ),
        pytest.param(
            {"certificate": armored("CERTIFICATE", b"hello")},
            *[[f"{BAD}: x509: malformed certificate"]] * 2,
            id="bytes",
        ),
    ],
)
def test_what_may_be_added_to_a_request(status: Raw, approval: list[str], signing: list[str]) -> None:
    new = {**REQUEST, "status": status}
    assert [str(fault) for fault in validate_status_update(REQUEST, new, "approval")] == approval
    assert [str(fault) for fault in validate_status_update(REQUEST, new)] == signing


def test_a_verdict_and_a_certificate_stay() -> None:
    kinds = ("Approved", "Failed")
    old = {**REQUEST, "status": {"conditions": [condition(kind) for kind in kinds], "certificate": CERTIFICATE}}
    new = {**REQUEST, "status": {"certificate": CERTIFICATE + CERTIFICATE}}
    gone = [f'{WHERE}: Forbidden: updates may not remove a condition of type "{kind}"' for kind in kinds]
    resigned = "status.certificate: Forbidden: updates may not modify existing certificate content"
    assert [str(fault) for fault in validate_status_update(old, new)] == [*gone, resigned]
    assert [str(fault) for fault in validate_status_update(old, new, "approval")] == gone


def test_an_update_tolerates_what_was_wrong_before() -> None:
    spec = {**REQUEST["spec"], "usages": ["fun", "fun"], "signerName": "kubernetes.io/legacy-unknown"}
    conditions = [condition("Approved"), condition("Denied"), condition(""), condition("")]
    old = {**REQUEST, "spec": spec, "status": {"conditions": conditions, "certificate": "eA=="}}
    assert validate_updated(old, [], old) == []
    assert validate_status_update(old, old) == validate_status_update(old, old, "approval") == []
    assert validate_updated(old, [], REQUEST) != []
