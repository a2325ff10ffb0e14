"""Tests of tokens of ServiceAccounts: the claims, the audiences, and the objects on which the validity depends."""

import base64
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kschedd.access.errors import AccessError
from kschedd.apiserver.tokens import ISSUER, Tokens, signing_key
from tests.apiserver.asking import MERGE, PODS, Answered, Asker, asking, pod

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
SECRETS = "/api/v1/namespaces/default/secrets"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
GROUPS = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]


@pytest.fixture
async def api(autojump_clock: Any) -> AsyncIterator[Asker]:
    async with asking() as api:
        await api.create(ACCOUNTS, {"metadata": {"name": "sa"}})
        yield api


async def requested(api: Asker, **spec: Any) -> Answered:
    return await api.ask("POST", f"{ACCOUNTS}/sa/token", {"spec": spec})


async def token_of(api: Asker, **spec: Any) -> str:
    return str((await requested(api, **spec)).json["status"]["token"])


def claims_in(token: str) -> Any:
    body = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))


async def whoami(api: Asker, token: str) -> Answered:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = f"{AUTHENTICATION}/selfsubjectreviews"
    return await api.ask("POST", path, body, headers={"authorization": f"Bearer {token}"})


async def reviewed(api: Asker, token: str, *audiences: str) -> Any:
    body = {"spec": {"token": token, "audiences": list(audiences)}}
    return (await api.create(f"{AUTHENTICATION}/tokenreviews", body))["status"]


async def test_a_token_contains_the_claims_of_kubernetes(api: Asker) -> None:
    uid = (await api.get(f"{ACCOUNTS}/sa"))["metadata"]["uid"]
    claims = claims_in(await token_of(api, expirationSeconds=900))
    assert claims["exp"] - claims["iat"] == 900
    assert claims["nbf"] == claims["iat"]
    assert (claims["iss"], claims["aud"]) == (ISSUER, [ISSUER])
    assert claims["sub"] == "system:serviceaccount:default:sa"
    assert claims["kubernetes.io"] == {"namespace": "default", "serviceaccount": {"name": "sa", "uid": uid}}


async def test_a_client_with_a_token_is_the_user_of_the_account(api: Asker) -> None:
    token = await token_of(api)
    user = {
        "username": "system:serviceaccount:default:sa",
        "uid": (await api.get(f"{ACCOUNTS}/sa"))["metadata"]["uid"],
        "groups": GROUPS,
        "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims_in(token)['jti']}"]},
    }
    assert (await whoami(api, token)).json["status"]["userInfo"] == user
    assert await reviewed(api, token) == {"authenticated": True, "user": user, "audiences": [ISSUER]}
    other = await whoami(api, f"{token}x")
    assert (other.status, other.json["reason"]) == (401, "Unauthorized")


async def test_a_token_of_a_deleted_or_recreated_account_is_invalid(api: Asker) -> None:
    token = await token_of(api)
    await api.ask("DELETE", f"{ACCOUNTS}/sa")
    assert (await whoami(api, token)).status == 401
    await api.create(ACCOUNTS, {"metadata": {"name": "sa"}})
    assert (await whoami(api, token)).status == 401
    assert await reviewed(api, token) == {"user": {}, "error": "invalid bearer token"}


async def test_a_token_for_another_audience_is_not_for_this_api(api: Asker) -> None:
    token = await token_of(api, audiences=["vault", "other"])
    assert claims_in(token)["aud"] == ["vault", "other"]
    assert (await whoami(api, token)).status == 401
    assert await reviewed(api, token) == {"user": {}, "error": "invalid bearer token"}
    assert (await reviewed(api, token, "vault", "more"))["audiences"] == ["vault"]


async def test_a_token_bound_to_a_pod_is_valid_as_long_as_the_pod_exists(api: Asker) -> None:
    body = pod("p")
    body["spec"] |= {"serviceAccountName": "sa", "nodeName": "n1"}
    uid = (await api.create(PODS, body))["metadata"]["uid"]
    token = await token_of(api, boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid})
    extra = (await whoami(api, token)).json["status"]["userInfo"]["extra"]
    extra.pop("authentication.kubernetes.io/credential-id")
    assert extra == {
        "authentication.kubernetes.io/node-name": ["n1"],
        "authentication.kubernetes.io/pod-name": ["p"],
        "authentication.kubernetes.io/pod-uid": [uid],
    }
    await api.ask("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    assert (await whoami(api, token)).status == 401


@pytest.mark.parametrize(
    ("ref", "status", "message"),
    [
        pytest.param({"kind": "Pod", "name": "none"}, 404, 'pods "none" not found', id="a-missing-pod"),
        pytest.param({"kind": "Secret", "name": "none"}, 404, 'secrets "none" not found', id="a-missing-secret"),
        pytest.param({"kind": "Node", "name": "none"}, 404, 'nodes "none" not found', id="a-missing-node"),
        pytest.param(
            {"kind": "ConfigMap", "name": "c"},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
            id="a-kind-without-tokens",
        ),
        pytest.param(
            {"kind": "Pod", "name": "p"},
            400,
            'cannot bind token for serviceaccount "sa" to pod running with different serviceaccount name.',
            id="a-pod-of-another-account",
        ),
        pytest.param(
            {"kind": "Secret", "name": "s", "uid": "7"},
            409,
            'Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (7) does not match the '
            "UID in record. The object might have been deleted and then recreated",
            id="another-uid",
        ),
    ],
)
async def test_a_token_cannot_be_bound_to_another_object(api: Asker, ref: Any, status: int, message: str) -> None:
    await api.create(PODS, pod("p"))
    await api.create(SECRETS, {"metadata": {"name": "s"}})
    refused = await requested(api, boundObjectRef={"apiVersion": "v1", **ref})
    assert (refused.status, refused.json["message"]) == (status, message)


async def test_the_token_of_a_secret_is_valid_as_long_as_the_secret_contains_it(api: Asker) -> None:
    account = await api.cluster.store.do(lambda store: store.get("ServiceAccount", "default", "sa"))
    token = api.face.services.tokens.for_secret(account, "s")
    assert (await whoami(api, token)).status == 401
    secret = {
        "metadata": {"name": "s", "annotations": {"kubernetes.io/service-account.name": "sa"}},
        "type": "kubernetes.io/service-account-token",
        "data": {"token": base64.b64encode(token.encode()).decode()},
    }
    await api.create(SECRETS, secret)
    user = {"username": "system:serviceaccount:default:sa", "uid": account.uid, "groups": GROUPS}
    assert (await whoami(api, token)).json["status"]["userInfo"] == user
    await api.ask("PATCH", f"{SECRETS}/s", {"data": {"token": "eA=="}}, content_type=MERGE)
    assert (await whoami(api, token)).status == 401


async def test_a_token_is_valid_after_a_restart_with_the_same_state(api: Asker, tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    account = await api.cluster.store.do(lambda store: store.get("ServiceAccount", "default", "sa"))
    token = Tokens(lambda: 100.0, signing_key(journal)).issue(account, 600, [ISSUER], {})
    for now, valid in ((99.0, False), (100.0, True), (699.0, True), (700.0, False)):
        assert (Tokens(lambda now=now: now, signing_key(journal)).user_of(token) is not None) is valid
    assert Tokens(lambda: 100.0, signing_key(None)).user_of(token) is None


def test_the_key_is_stored_beside_the_journal_for_this_user(tmp_path: Path) -> None:
    key = signing_key(tmp_path / "journal.db")
    file = tmp_path / "service-accounts.key"
    assert list(tmp_path.iterdir()) == [file]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert signing_key(tmp_path / "journal.db") == key


def test_a_damaged_key_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "service-accounts.key"
    file.touch(0o600)
    with pytest.raises(AccessError, match="is not a signing key"):
        signing_key(tmp_path / "journal.db")
