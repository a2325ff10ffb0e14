"""Where the recorded figures, golden cases and real input are that the project itself does not carry.

A folder with `bench/`, `conformance/` and `realworld/` in it: the one named by the caller, else by the
environment variable KSCHEDD_SHARED, else `shared` beside a source checkout. Tests that need it skip where
there is none.
"""

import os
from pathlib import Path

import attrs

from kschedd.errors import KscheddError

VARIABLE = "KSCHEDD_SHARED"


@attrs.define(eq=False)
class SharedError(KscheddError):
    """A shared folder was named and is not there."""

    named_by: str
    path: Path

    def __str__(self) -> str:
        return f"{self.named_by}: {self.path}: no such folder; it holds bench/, conformance/ and realworld/"


def shared_folder(given: Path | None = None) -> Path | None:
    """The folder, or None if nobody named one and none lies beside the checkout. Raises SharedError."""
    if given is not None:
        return _existing("shared folder", given)
    if named := os.environ.get(VARIABLE):
        return _existing(VARIABLE, Path(named))
    checkout = Path(__file__).resolve().parents[2]
    beside = checkout.parent / "shared"
    # An installed package has site-packages above it, whose neighbours are none of ours.
    if (checkout / "pyproject.toml").is_file() and beside.is_dir():
        return beside
    return None


def _existing(named_by: str, path: Path) -> Path:
    if not path.is_dir():
        raise SharedError(named_by, path)
    return path
