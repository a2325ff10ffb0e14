"""The shared folder: recorded figures, golden cases and real-world input, which are not part of the project.

The folder contains `bench/`, `conformance/` and `realworld/`. The caller of a function may name the shared folder. If
the caller does not name the folder, the environment variable KSCHEDD_SHARED names it; the default is `shared` beside a
source checkout. Tests that need the folder are skipped if it does not exist.
"""

import os
from pathlib import Path

import attrs

from kschedd.errors import KscheddError

VARIABLE = "KSCHEDD_SHARED"


@attrs.define(eq=False)
class SharedError(KscheddError):
    """The error if the named shared folder does not exist."""

    named_by: str
    path: Path

    def __str__(self) -> str:
        return f"{self.named_by}: {self.path}: no such folder; it holds bench/, conformance/ and realworld/"


def shared_folder(given: Path | None = None) -> Path | None:
    """Return the folder; None if no folder was named and there is none beside the checkout. Raises SharedError."""
    if given is not None:
        return _existing("shared folder", given)
    if named := os.environ.get(VARIABLE):
        return _existing(VARIABLE, Path(named))
    checkout = Path(__file__).resolve().parents[2]
    beside = checkout.parent / "shared"
    # Only a source checkout has pyproject.toml; for an installed package, this path would be beside site-packages.
    if (checkout / "pyproject.toml").is_file() and beside.is_dir():
        return beside
    return None


def _existing(named_by: str, path: Path) -> Path:
    if not path.is_dir():
        raise SharedError(named_by, path)
    return path
