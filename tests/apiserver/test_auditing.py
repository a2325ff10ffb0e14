"""Tests that the audit log contains HTTP writes in kube-apiserver's form."""

import json
from pathlib import Path
from typing import Any

import trio

from kschedd.access.audit_log import AuditFile, AuditLog
from kschedd.apiserver.access import Access
from kschedd.apiserver.face import ApiFace
from kschedd.apiserver.services import FaceServices
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import Peer
from tests.apiserver.asking import asking
from tests.store.policies.made import BAD, binding, config_map, policy

NAMESPACES = "/api/v1/namespaces"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmission"
ITSELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def request(method: str, path: str, body: Any = None, **headers: str) -> HttpRequest:
    given = {"content-type": "application/json", "user-agent": "kubectl/v1.34", **headers}
    return HttpRequest(method, path.encode(), given, b"" if body is None else json.dumps(body).encode(), True)


async def test_what_is_written_and_what_is_refused(tmp_path: Path) -> None:
    audit, peer = AuditLog(AuditFile(tmp_path / "audit.log")), Peer(1, "127.0.0.1")
    with trio.fail_after(90):
        async with asking() as api, trio.open_nursery() as nursery:
            await nursery.start(audit.run)
            face = ApiFace(FaceServices(api.cluster), Access(), "test", audit=audit)
            await face(request("GET", NAMESPACES), peer)
            await face(request("POST", ITSELF, {}), peer)
            await face(request("POST", f"{NAMESPACES}?fieldManager=x", {"metadata": {"name": "a"}}), peer)
            await face(request("DELETE", "/api/v1/namespaces/a/pods/p"), peer)
            await face(request("DELETE", "/api/v1/nodes/n", None, **{"impersonate-user": "eve"}), peer)
            await face(request("POST", "/%zz%ff", {}), peer)
            audit.close()
    created, missing, refused, *rest = map(json.loads, (tmp_path / "audit.log").read_text().splitlines())
    assert created["verb"] == "create"
    assert created["requestURI"] == "/api/v1/namespaces?fieldManager=x"
    assert created["user"] == {"username": "system:admin", "groups": ["system:masters", "system:authenticated"]}
    assert created["sourceIPs"] == ["127.0.0.1"]
    assert created["userAgent"] == "kubectl/v1.34"
    assert created["objectRef"] == {"resource": "namespaces", "apiVersion": "v1"}
    assert created["responseStatus"] == {"metadata": {}, "code": 201}
    assert missing["verb"] == "delete"
    assert (missing["responseStatus"]["code"], missing["responseStatus"]["reason"]) == (404, "NotFound")
    assert refused["responseStatus"]["code"] == 403
    assert refused["user"]["username"] == "system:admin"
    assert refused["impersonatedUser"] == {"username": "eve", "groups": ["system:authenticated"]}
    assert not rest, "a target that cannot be decoded names nothing that could be written"


async def test_annotations_of_admission(tmp_path: Path) -> None:
    audit, peer = AuditLog(AuditFile(tmp_path / "audit.log")), Peer(1, "127.0.0.1")
    seen = {"key": "seen", "valueExpression": "string(object.metadata.name)"}
    with trio.fail_after(90):
        async with asking() as api, trio.open_nursery() as nursery:
            await api.create(f"{POLICIES}policies", policy(auditAnnotations=[seen]))
            await api.create(f"{POLICIES}policybindings", binding(validationActions=["Deny", "Audit"]))
            await nursery.start(audit.run)
            face = ApiFace(FaceServices(api.cluster), Access(), "test", audit=audit)
            for raw in (config_map("good", data={"a": "1"}), config_map("bad", **BAD)):
                await face(request("POST", "/api/v1/namespaces/default/configmaps", raw), peer)
            audit.close()
    good, bad = map(json.loads, (tmp_path / "audit.log").read_text().splitlines())
    assert good["responseStatus"]["code"] == 201
    assert good["annotations"] == {"p/seen": "good"}
    assert bad["responseStatus"]["code"] == 422
    assert bad["annotations"]["p/seen"] == "bad"
    (failure,) = json.loads(bad["annotations"]["validation.policy.admission.k8s.io/validation_failure"])
    assert (failure["message"], failure["validationActions"]) == ("no bad data", ["Deny", "Audit"])
