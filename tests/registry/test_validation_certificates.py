"""Certificate signing requests: one field left out, or one value out of range, at a time."""

import base64

import pytest

from tests.api.objects import named
from tests.registry.test_validation_kept_kinds import ABSENT, SUBDOMAIN, changed, said

API = "certificates.k8s.io/v1"


def armored(kind: str) -> str:
    return base64.b64encode(f"-----BEGIN {kind}-----\nMAA=\n-----END {kind}-----\n".encode()).decode()


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
        ("spec.request", ABSENT, [f'spec.request: Invalid value: "": {ARMOR}']),
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
    assert said(changed(REQUEST, path, value)) == faults


def test_a_usage_is_one_of_those_that_are_known() -> None:
    [fault] = said(changed(REQUEST, "spec.usages[0]", "fun"))
    assert fault.startswith('spec.usages[0]: Unsupported value: "fun": supported values: "any", "cert sign", ')
    assert fault.endswith('"server auth", "signing", "timestamping"')
