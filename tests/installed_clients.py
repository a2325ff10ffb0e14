"""The environments of other projects' programs that .ci/clients has installed for tests."""

import os
from pathlib import Path

import attrs
import pytest

FOLDER = "KSCHEDD_CLIENTS"


@attrs.frozen
class Clients:
    """The environments of client libraries that .ci/clients has installed."""

    folder: Path | None

    def environment(self, name: str) -> Path:
        """Return the folder of a client's environment; skip the test if the client is not installed."""
        if self.folder is None:
            pytest.skip(f"the client {name} is not installed: run .ci/clients and set {FOLDER} to the folder it prints")
        if not (self.folder / name).is_dir():
            pytest.skip(f"the client {name} could not be installed in {self.folder}")
        return self.folder / name


def installed_clients() -> Clients:
    named = os.environ.get(FOLDER)
    return Clients(Path(named) if named else None)
