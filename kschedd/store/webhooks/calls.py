"""Calls of webhooks as values, and their answers.

The store never waits. A write that needs the answer of a webhook raises WebhooksNeeded with the calls. Its caller rolls
the write back, makes the calls without blocking, and repeats the write with the answers.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

Raw = Mapping[str, Any]
_VOLATILE: Final = ("uid", "creationTimestamp", "managedFields", "resourceVersion")


@attrs.frozen(eq=False)
class WebhookCall:
    """One call: the address, the certificate authority, the timeout, and the AdmissionReview without its uid."""

    webhook: str
    url: str  # URL for messages, without the query
    address: str  # host and port to connect to
    host: str  # for TLS and the Host header
    path: str
    ca: str  # PEM; "" for the authorities of this machine
    timeout_s: int
    version: str  # of the AdmissionReview
    request: Raw
    round: int = 0

    @property
    def key(self) -> str:
        """The identity of the call in a repeated write, whose new objects have other uids and times."""
        stable = {**self.request, **{part: _stable(self.request.get(part)) for part in ("object", "oldObject")}}
        text = json.dumps([self.webhook, self.url, self.round, stable], sort_keys=True, default=str)
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _stable(raw: Any) -> Any:
    if not isinstance(raw, Mapping):
        return raw
    meta = raw.get("metadata") or {}
    return {**raw, "metadata": {field: value for field, value in meta.items() if field not in _VOLATILE}}


@attrs.frozen
class WebhookAnswer:
    """The `response` of a review, or the failure of the call."""

    response: Raw | None = None
    failure: str = ""
    is_invalid: bool = False  # the webhook answered, but not with a valid response


class WebhooksNeeded(Exception):
    """A write needs the answers of these calls."""

    def __init__(self, calls: Sequence[WebhookCall]) -> None:
        super().__init__(calls)
        self.calls = calls


class WebhookAnswers:
    """The answers for one write."""

    def __init__(self) -> None:
        self._known: dict[str, WebhookAnswer] = {}

    def add(self, call: WebhookCall, answer: WebhookAnswer) -> None:
        self._known[call.key] = answer

    def of(self, calls: Sequence[WebhookCall]) -> list[WebhookAnswer]:
        """Return the answers. Raises WebhooksNeeded if some are not known."""
        if missing := [call for call in calls if call.key not in self._known]:
            raise WebhooksNeeded(missing)
        return [self._known[call.key] for call in calls]
