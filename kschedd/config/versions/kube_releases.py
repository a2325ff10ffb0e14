"""Releases of Kubernetes as ordered values: 1.34 < 1.34.1 < 1.34.9 < 1.35."""

from __future__ import annotations

import attrs


@attrs.frozen(order=True)
class Release:
    """A release; `patch` is 0 for the first release of a minor version."""

    minor: int
    patch: int = 0

    @classmethod
    def of(cls, text: str) -> Release:
        """Return the release for `1.34` or `1.34.9`."""
        major, minor, *patch = map(int, text.split("."))
        assert major == 1, f"{text} is expected to be a release of Kubernetes 1"
        return cls(minor, *patch)

    def __str__(self) -> str:
        return f"1.{self.minor}.{self.patch}" if self.patch else f"1.{self.minor}"
