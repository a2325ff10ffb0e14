"""Audit records of writes over HTTP: all requests except GET and except reviews of the caller's own access.

Source: Kubernetes v1.34, apiserver/pkg/endpoints/filters/audit.go.
"""

from collections.abc import Awaitable, Callable

import msgspec

from kschedd.access.audit import AuditedCall, AuditOutcome, ref_of_path
from kschedd.access.audit_log import AuditLog
from kschedd.access.users import Caller, User
from kschedd.apiserver.access import FOR_EVERYBODY, Access
from kschedd.apiserver.codec.status import StatusError
from kschedd.apiserver.requests import access_request, split_target
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import HttpResponse, Peer

_UNKNOWN = User("system:anonymous", ("system:unauthenticated",))


class _Refusal(msgspec.Struct):
    """The part of a rejection's Status that is recorded."""

    reason: str = ""
    message: str = ""


async def audited(
    log: AuditLog,
    access: Access,
    request: HttpRequest,
    peer: Peer,
    answer: Callable[[HttpRequest, Peer, dict[str, str]], Awaitable[HttpResponse]],
) -> HttpResponse:
    """Return the answer to a request. Record the request with its outcome, even if it fails.

    `answer` adds the annotations of the event to a dict.
    """
    annotations: dict[str, str] = {}
    try:
        path, query = split_target(request.target)
    except StatusError:
        return await answer(request, peer, annotations)  # rejects the request
    ref = ref_of_path(path)
    if ref.get("resource") in FOR_EVERYBODY:
        return await answer(request, peer, annotations)
    user = _user_of(access, request, peer)
    noted = AuditedCall(
        Caller(user, address=peer.address),
        access_request(request.method, path, query, user).verb,
        request.target.decode("latin-1"),
        log.now_s(),
        ref,
        annotations,
        user_agent=request.headers.get("user-agent", "")[:256],
    )
    outcome = AuditOutcome.of_error("cancelled", "the client went")
    try:
        response = await answer(request, peer, annotations)
        outcome = _outcome_of(response)
        return response
    finally:
        log.note(noted, outcome)


def _user_of(access: Access, request: HttpRequest, peer: Peer) -> User:
    try:
        return access.user_of(request, peer)
    except StatusError:
        return _UNKNOWN


def _outcome_of(response: HttpResponse) -> AuditOutcome:
    if response.status < 400:
        return AuditOutcome(response.status)
    try:
        refusal = msgspec.json.decode(response.body, type=_Refusal)
    except msgspec.DecodeError:  # text, or protobuf
        refusal = _Refusal()
    return AuditOutcome(response.status, refusal.reason or "Unknown", refusal.message)
