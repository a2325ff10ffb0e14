"""The authorization modes of a daemon."""

from typing import Final

RBAC_MODE: Final = "RBAC"
AUTHORIZATION_MODES: Final = ("AlwaysAllow", RBAC_MODE)
