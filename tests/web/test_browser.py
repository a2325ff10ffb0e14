"""Use each view of the page in headless Chromium; the program is browser.mjs.

The program also checks accessibility with axe-core, that no text of the cluster becomes an element, that the page fits
into 400 px, and that it requests nothing from other hosts. `KSCHEDD_SCREENSHOTS=FOLDER` stores the screenshots.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.command_line_daemons import command_line_daemon
from tests.installed_clients import installed_clients

HERE = Path(__file__).parent
_TIMEOUT_S = 240
EXPECTED = [
    "address after the login: contains no code",
    "causes: 2",
    "focus after the button: the remedies",
    "remedy: Remedy 1: request 7 cpu verified",
    "cause for one object: deployment/web in default: 4 of 4 pods scheduled.",
    "node by keyboard: n1",
    "cause for a node: nothing is wrong with n1",
    "decided again: yes",
    "moves: several",
    "skip link: main of Queue",
    "fork: Pods: 2 moved",
    "invalid manifest: -:1: apiVersion: Required value",
    "discarded: yes",
    *(f"{view} at 400 px: fits" for view in ("pending", "nodes", "decision", "queue", "what-if")),
    "origins: 1",
    "elements made by names: 0",
    "axe: no violations",
    "faults: none",
]


def test_each_view_in_a_browser(tmp_path: Path) -> None:
    modules = installed_clients().environment("browser") / "node_modules"
    node, chromium = shutil.which("node"), shutil.which("chromium")
    if node is None or chromium is None:
        pytest.skip("the page is tested with node and chromium on PATH")
    (tmp_path / "node_modules").symlink_to(modules)  # Node.js finds modules in the folder of the program
    program = shutil.copy(HERE / "browser.mjs", tmp_path)
    tokens = tmp_path / "tokens"
    tokens.write_text("t,ann,1\n")
    tokens.chmod(0o600)
    with command_line_daemon(tmp_path, "--web", "--http-tokens", str(tokens), nodes=0) as daemon:
        daemon.kschedd("apply", "-f", str(HERE / "cluster.yaml"))
        daemon.kschedd("wait", "--for=condition=Ready", "pod", "-l", "app=web")
        command = [node, program, daemon.kschedd("web").strip(), os.environ.get("KSCHEDD_SCREENSHOTS", "")]
        environment = {**os.environ, "CHROMIUM": chromium}
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.splitlines() == EXPECTED
