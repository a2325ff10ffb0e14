"""Volumes with the token of a pod's ServiceAccount, which admission adds to pods, and their mounts.

Token volumes are not written by users, so manifests that are derived from pods omit them.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

TOKEN_VOLUME: Final = "kube-api-access-"
"""The beginning of the name of such a volume."""


def without_tokens(entries: Iterable[Mapping[str, Any]] | None) -> list[Any]:
    """Return the volumes, or the mounts of a container, without those of tokens."""
    return [entry for entry in entries or () if not str(entry.get("name")).startswith(TOKEN_VOLUME)]
