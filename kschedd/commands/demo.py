"""`kschedd demo`: a temporary daemon with an example cluster of three zones.

The demo starts a daemon as a child process on a socket in a temporary directory, runs ordinary verbs on it, and stops
it at the end. On a terminal the demo opens the REPL before it stops the daemon.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.commands.child_daemon import ChildDaemon
from kschedd.errors import KscheddError
from kschedd.printing.terminal.progress import ProgressLine
from kschedd.printing.terminal.style import style_of
from kschedd.printing.terminal.tables import flowing
from kschedd.verbs.command_line.session import VerbSession

_LOOK_S = 0.05
_MOST_LOOKS = 600  # without any change

_LONGEST_PATH: Final = 40  # characters


@attrs.define(eq=False)
class DemoError(KscheddError):
    """The error if the demo cannot continue."""

    why: str


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="show an example",
        description="Start a daemon on a temporary socket and load an example cluster with three zones and workloads. "
        "Show the node of each pod and the reason, and explain why one pod stays Pending. On a terminal, open "
        "the prompt afterwards. The daemon stops when the demo ends.",
    )
    parser.add_argument("--no-repl", action="store_true", help="exit after the demo instead of opening the prompt")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of tie-breaking (1)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from kschedd.cli import make_session
    from kschedd.commands.demo import data_folder

    examples = data_folder("examples") / "demo"
    if not examples.is_dir():
        raise DemoError(f"the example cluster is missing: no folder {examples}; reinstall kschedd")
    progress = ProgressLine(sys.stderr)
    with daemon_of_its_own(options.seed, lambda: progress.show("starting a daemon")) as socket:
        progress.clear()
        opened: list[Any] = []
        session = make_session(socket, opened)
        try:
            _show(session, examples, progress)
        finally:
            for client in opened:
                client.close()
        if not options.no_repl and sys.stdin.isatty() and sys.stdout.isatty():
            from kschedd_repl.app import run_repl

            turn = "Your turn: try `explain report`, `scale deployment web --replicas 9`, `cordon node-a1`, "
            turn += "`plan drain node-b1 --ignore-daemonsets`, `help`. `exit` ends the demo. "
            turn += f"From another terminal: `kschedd --socket {socket} get pods`.\n"
            print(f"\n{flowing(turn, style_of(sys.stdout, os.environ))}")
            run_repl(socket, farewell="The demo's daemon has been stopped.")
    print("\nNext: `kschedd run --detach` starts a daemon of your own.")
    print("`kschedd --help` lists all commands.")
    return 0


@contextmanager
def daemon_of_its_own(seed: int, on_look: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Yield the socket of a daemon in a child process. The daemon ends when the block ends. Raises DaemonStartError."""
    with tempfile.TemporaryDirectory(prefix="kschedd-demo-") as folder:
        socket, log = Path(folder, "kschedd.sock"), Path(folder, "log")
        child = ChildDaemon.start(["run", "--seed", str(seed), "--log-level", "warning"], socket, log)
        try:
            child.wait_until_ready(on_look)
            yield str(socket)
        finally:
            child.stop()


# -- the demo -------------------------------------------------------------------------------------------------------


def _show(session: VerbSession, examples: Path, progress: ProgressLine) -> None:
    _print(session, "A cluster of three zones, and the workloads of a shop:")
    _do(session, "apply", "-f", str(examples), shown=f"apply -f {_short(examples)}")
    pods = _pods_when_placed(session, progress)
    _print(session, "Its nodes:")
    _do(session, "get", "nodes", "-o", "wide")
    _print(session, "The placement of each pod:")
    _do(session, "get", "pods", "-o", "wide")
    placed = [pod for pod in pods if (pod.get("spec") or {}).get("nodeName")]
    pending = [pod for pod in pods if not (pod.get("spec") or {}).get("nodeName")]
    if not placed or not pending:
        raise DemoError("exactly one pod should be Pending; see the table above")
    # A pod of `api` is a good example, because several nodes are feasible and the pod has a node preference.
    chosen = next((pod for pod in placed if pod["metadata"].get("labels", {}).get("app") == "api"), placed[0])
    name = chosen["metadata"]["name"]
    _print(session, f"Why {name} runs on this node:")
    _do(session, "explain", name)
    for pod in pending:
        name = pod["metadata"]["name"]
        _print(session, f"Why {name} is Pending:")
        _do(session, "events", f"pod/{name}")
        _do(session, "explain", name)


def _short(path: Path) -> str:
    """Return the path; if shorter, relative to the working directory.

    Of a long path, return the last two names.
    """
    try:
        near = os.path.relpath(path)
    except ValueError:
        return str(path)
    shown = min(near, str(path), key=len)
    return shown if len(shown) <= _LONGEST_PATH else f".../{path.parent.name}/{path.name}"


def _print(session: VerbSession, text: str) -> None:
    session.write("\n" + session.style.paint(text, "bold") + "\n\n")


def _do(session: VerbSession, *words: str, shown: str = "") -> None:
    """Print the command line of a verb, and run the verb. Raises DemoError if the verb fails."""
    from kschedd.verbs.table import run_words

    session.write(session.style.paint(f"$ kschedd {shown or ' '.join(words)}", "cyan") + "\n")
    if run_words(session, words) != 0:
        raise DemoError(f"`kschedd {' '.join(words)}` failed")


def _pods_when_placed(session: VerbSession, progress: ProgressLine) -> list[dict[str, Any]]:
    """Wait until each pod of the Deployments is running or unschedulable; return the pods.

    Raises DemoError if nothing changes for a while.
    """
    before, looks = -1, 0
    while True:
        pods: list[dict[str, Any]] = session.daemon.call("objects.list", kind="Pod", namespace="default")["items"]
        deployments = session.daemon.call("objects.list", kind="Deployment", namespace="default")["items"]
        wanted = sum((deployment.get("spec") or {}).get("replicas", 1) for deployment in deployments)
        made = sum(bool(pod["metadata"].get("ownerReferences")) for pod in pods)
        done = sum(map(_at_rest, pods))
        if made >= wanted and done == len(pods):
            progress.clear()
            return pods
        progress.show(f"scheduling: {done} of {max(len(pods), wanted)} pods")
        looks = looks + 1 if made + done == before else 0
        before = made + done
        if looks > _MOST_LOOKS:
            raise DemoError(
                f"{done} of {len(pods)} pods are scheduled, and none was for {_MOST_LOOKS * _LOOK_S:g} s. Run "
                "`kschedd demo` again on an idle machine; if it fails again, please report it"
            )
        time.sleep(_LOOK_S)


def _at_rest(pod: dict[str, Any]) -> bool:
    status = pod.get("status") or {}
    if status.get("phase") == "Running":
        return True
    conditions = status.get("conditions") or ()
    return any(c.get("type") == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions)


_PACKAGE = Path(__file__).parent.parent


def data_folder(name: str) -> Path:
    """Return the directory `examples` or `profiles`.

    The directory may be missing; the caller then reports a broken installation.
    """
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
