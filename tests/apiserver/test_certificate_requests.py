"""Tests of the user in a certificate signing request."""

from typing import Any

from tests.api.objects import named
from tests.apiserver.asking import MERGE, asking
from tests.registry.certificate_requests import REQUEST as ARMORED

API = "certificates.k8s.io/v1"
PATH = f"/apis/{API}/certificatesigningrequests"
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


async def test_an_approval_changes_the_conditions_alone_and_dates_them() -> None:
    path, condition = f"{PATH}/{REQUEST['metadata']['name']}", {"type": "Approved", "status": "True"}
    async with asking() as api:
        await api.create(PATH, REQUEST)
        stated = {"status": {"conditions": [condition], "certificate": "eA=="}, "spec": {"usages": ["any"]}}
        await api.ask("PATCH", f"{path}/approval", stated, content_type=MERGE)
        approved = await api.get(path)
        failed = {"conditions": [{"type": "Failed", "status": "True"}, {**condition, "reason": "other"}]}
        await api.ask("PATCH", f"{path}/status", {"status": failed}, content_type=MERGE)
        signed = await api.get(path)
    assert approved["spec"]["usages"] == ["client auth"]
    [first] = approved["status"]["conditions"]
    assert first["lastTransitionTime"] == first["lastUpdateTime"] != ""
    assert "certificate" not in approved["status"]
    assert signed["status"]["conditions"][1] == first
    assert signed["status"]["conditions"][0]["lastTransitionTime"] != ""
