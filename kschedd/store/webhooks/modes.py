"""Modes for webhooks whose Service has only simulated pods."""

from typing import Final, Literal

WebhookMode = Literal["call", "skip", "fail"]
WEBHOOK_MODES: Final[tuple[WebhookMode, ...]] = ("call", "skip", "fail")
