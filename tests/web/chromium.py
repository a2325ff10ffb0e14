"""Programs that use the page in headless Chromium; each prints one line for each result.

`KSCHEDD_SCREENSHOTS=FOLDER` stores their screenshots.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.installed_clients import installed_clients

_HERE = Path(__file__).parent
_TIMEOUT_S = 240


class Chromium:
    """The folder of the programs, beside the modules that they import."""

    def __init__(self, folder: Path) -> None:
        modules = installed_clients().environment("browser") / "node_modules"
        node, chromium = shutil.which("node"), shutil.which("chromium")
        if node is None or chromium is None:
            pytest.skip("the page is tested with node and chromium on PATH")
        self._node, self._folder = node, folder
        self._environment = {**os.environ, "CHROMIUM": chromium}
        (folder / "node_modules").symlink_to(modules)  # Node.js finds modules in the folder of the program
        for program in _HERE.glob("*.mjs"):
            shutil.copy(program, folder)

    def run(self, program: str, *words: str) -> list[str]:
        """Run a program, and return the lines of its output."""
        command = [self._node, str(self._folder / program), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, env=self._environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()


@pytest.fixture
def chromium(tmp_path: Path) -> Chromium:
    return Chromium(tmp_path)
