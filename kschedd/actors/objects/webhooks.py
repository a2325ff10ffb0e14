"""Calls of admission webhooks for the clients of the store, in threads and within the timeouts of the webhooks.

Up to `_AT_ONCE` calls run at the same time; further calls wait for a thread, and this counts toward no timeout.

Source: Kubernetes v1.37, apiserver/pkg/util/webhook; client-go/rest/request.go (texts of failed requests).
"""

import errno
import ssl
import uuid
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
import trio

from kschedd.store.awaited import LongEvaluation, WebhookAnswer, WebhookAnswers, WebhookCall

if TYPE_CHECKING:
    from kschedd.http.bounded_pool import BoundedPool, BoundedResponse

_AT_ONCE: Final = 16
_MOST_BYTES: Final = 4 << 20  # of a response
_REVIEW: Final = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
_IN_PATHS: Final = "/%:@!$&'()*+,;=~"  # characters that a path contains unescaped
_LATE: Final = "context deadline exceeded"
_STATUSES: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "forbidden",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    503: "the server is currently unable to handle the request",
}


class WebhookThreads:
    """The limits on concurrent calls and on concurrent evaluations."""

    def __init__(self) -> None:
        self._limits: tuple[trio.CapacityLimiter, trio.CapacityLimiter] | None = None

    async def answer(self, calls: Sequence[WebhookCall | LongEvaluation], answers: WebhookAnswers) -> None:
        """Make these calls concurrently and add their answers. Evaluations run one after the other."""
        if self._limits is None:
            self._limits = trio.CapacityLimiter(_AT_ONCE), trio.CapacityLimiter(1)
        of_calls, of_evaluations = self._limits

        async def one(call: WebhookCall | LongEvaluation) -> None:
            if isinstance(call, LongEvaluation):
                answers.add_result(call, await trio.to_thread.run_sync(call.run, limiter=of_evaluations))
            else:
                answers.add(call, await trio.to_thread.run_sync(send, call, limiter=of_calls, abandon_on_cancel=True))

        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(one, call)


def send(call: WebhookCall) -> WebhookAnswer:
    """Make one call in this thread; return the response of the review, or the failure."""
    import httpcore  # imported here, because most clusters have no webhooks

    from kschedd.http.bounded_pool import TooLong

    uid = str(uuid.uuid4())
    request = {"uid": uid, **call.request}
    shown = f'Post "{call.url}?timeout={call.timeout_s}s"'
    try:
        body = msgspec.json.encode({**_REVIEW, "request": request})
        response = _pool(call.ca).post(
            f"https://{call.address}{quote(call.path, safe=_IN_PATHS)}?timeout={call.timeout_s}s",
            {"Host": call.host, "Content-Type": "application/json", "Accept": "application/json, */*"},
            body,
            call.host,
            call.timeout_s,
            _MOST_BYTES,
        )
    except httpcore.TimeoutException:
        return WebhookAnswer(failure=f"{shown}: {_LATE}")
    except TooLong as fault:
        return WebhookAnswer(failure=str(fault))
    except (httpcore.NetworkError, httpcore.ProtocolError, ssl.SSLError, OSError) as fault:
        return WebhookAnswer(failure=f"{shown}: {_why(call, fault)}")
    if response.status >= 300:
        return WebhookAnswer(failure=_refused(response))
    return _read(uid, response.body)


def _read(uid: str, body: bytes) -> WebhookAnswer:
    """Return the answer in the body of a response."""
    try:
        review: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as fault:
        return WebhookAnswer(failure=f"couldn't get version/kind; json parse error: {fault}")
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        return WebhookAnswer(failure="the response is not an AdmissionReview")
    response = review.get("response")
    if not isinstance(response, dict):
        return WebhookAnswer(failure="webhook response was absent", is_invalid=True)
    if review.get("apiVersion") != _REVIEW["apiVersion"]:
        group, _, version = str(review.get("apiVersion")).rpartition("/")
        kind = "Kind=AdmissionReview"
        why = f"expected webhook response of admission.k8s.io/v1, {kind}, got {group}/{version}, {kind}"
        return WebhookAnswer(failure=why, is_invalid=True)
    if response.get("uid") != uid:
        why = f'expected response.uid="{uid}", got "{response.get("uid") or ""}"'
        return WebhookAnswer(failure=why, is_invalid=True)
    return WebhookAnswer(response)


@lru_cache(64)
def _pool(ca: str) -> "BoundedPool":
    """Return the connections to webhooks with this certificate authority."""
    from kschedd.http.bounded_pool import BoundedPool

    return BoundedPool(ssl.create_default_context(cadata=ca or None))


def _refused(response: "BoundedResponse") -> str:
    code = response.status
    if code in _STATUSES:
        return _STATUSES[code]
    if code >= 500:
        is_text = response.headers.get("content-type", "").startswith("text/")
        text = response.body[:2048].decode(errors="replace").strip() if is_text else "unknown"
        return f'an error on the server ("{text}") has prevented the request from succeeding'
    return f"the server responded with the status code {code} but did not return more information"


def _why(call: WebhookCall, fault: BaseException) -> str:
    """Return the reason of a failed connection, with Go's words for the frequent ones."""
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            if "Hostname mismatch" in str(cause) or "IP address mismatch" in str(cause):
                return f"tls: failed to verify certificate: x509: certificate is not valid for {call.host}"
            return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
            return f"dial tcp {call.address}: connect: connection refused"
        cause = cause.__cause__ or cause.__context__
    if "refused" in str(fault):
        return f"dial tcp {call.address}: connect: connection refused"
    return str(fault) or type(fault).__name__
