"""Use each view of the page in headless Chromium.

The programs also check accessibility with axe-core, that no text of the cluster becomes an element, that the page fits
into 400 px, and that it requests nothing from other hosts.
"""

from pathlib import Path

from tests.command_line_daemons import command_line_daemon
from tests.web.chromium import Chromium, chromium

__all__ = ["chromium"]

HERE = Path(__file__).parent
VIEWS = ("pending", "nodes", "decision", "queue", "what-if")
EXPECTED = [
    "address after the login: contains no code",
    "causes: 2",
    "focus after the button: the remedies",
    "remedy: Remedy 1: request 7 cpu verified",
    "cause for one object: deployment/web in default: 4 of 4 pods scheduled.",
    "node by keyboard: n1",
    "cause for a node: nothing is wrong with n1",
    "nodes at the first time: 2 nodes in 2 zones",
    "decided again: yes",
    "scores at 1200 px: fits",
    "moves: several",
    "skip link: main of Queue",
    "fork: Pods: 2 moved",
    "invalid manifest: -:1: apiVersion: Required value",
    "discarded: yes",
    *(f"{view} at {size} px: fits" for size in (400, 1200, 2000) for view in VIEWS),
    "elements made by names: 0",
    "origins: 1",
    "axe: no violations",
    "faults: none",
]


def tokens_file(folder: Path) -> str:
    path = folder / "tokens"
    path.write_text("t,ann,1\n")
    path.chmod(0o600)
    return str(path)


def test_each_view_in_a_browser(tmp_path: Path, chromium: Chromium) -> None:
    with command_line_daemon(tmp_path, "--web", "--http-tokens", tokens_file(tmp_path), nodes=0) as daemon:
        daemon.kschedd("apply", "-f", str(HERE / "cluster.yaml"))
        daemon.kschedd("wait", "--for=condition=Ready", "pod", "-l", "app=web")
        assert chromium.run("browser.mjs", daemon.kschedd("web").strip()) == EXPECTED
