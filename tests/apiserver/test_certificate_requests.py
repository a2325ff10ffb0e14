"""In whose name a certificate is asked for."""

import base64
from typing import Any

from tests.api.objects import named
from tests.apiserver.asking import asking

API = "certificates.k8s.io/v1"
PATH = f"/apis/{API}/certificatesigningrequests"
ARMORED = base64.b64encode(b"-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n").decode()
REQUEST = named(
    "CertificateSigningRequest",
    API,
    spec={"request": ARMORED, "signerName": "example.com/signer", "usages": ["client auth"]},
)


async def test_the_request_is_made_in_the_name_of_who_asks() -> None:
    stated: dict[str, Any] = {"username": "somebody", "uid": "1", "groups": ["system:masters"], "extra": {"a": ["b"]}}
    plain = {**REQUEST, "metadata": {"name": "plain"}}
    async with asking() as api:
        made = await api.create(PATH, plain)
        forged = await api.create(PATH, {**REQUEST, "spec": {**REQUEST["spec"], **stated}})
    assert forged["spec"] == made["spec"]
    assert made["spec"]["username"] not in ("", "somebody")
    assert "uid" not in forged["spec"]
    assert "extra" not in forged["spec"]
