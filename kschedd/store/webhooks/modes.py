"""Modes for webhooks whose Service only simulated pods back."""

from typing import Final, Literal

WebhookMode = Literal["call", "skip", "fail"]
WEBHOOK_MODES: Final[tuple[WebhookMode, ...]] = ("call", "skip", "fail")
