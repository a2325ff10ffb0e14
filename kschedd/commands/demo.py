"""`kschedd demo`: a temporary daemon with an example cluster of three zones; shows the placement of every pod, and why.

Starts a daemon as a child process on a socket in a temporary directory, uses it through ordinary verbs, and always
stops it at the end. On a terminal it opens the REPL before it stops the daemon.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from kschedd.errors import KscheddError
from kschedd.verbs.command_line.session import VerbSession

_START_S, _REST_S, _END_S = 30.0, 30.0, 10.0
_LOOK_S = 0.05


@attrs.define(eq=False)
class DemoError(KscheddError):
    """The demo cannot continue."""

    why: str


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="see it work",
        description="Start a daemon on a socket of its own, load an example cluster of three zones and some workloads, "
        "show where every pod went and why, and one that stays Pending; then open the REPL if there is a terminal. "
        "The daemon ends with the demo.",
    )
    parser.add_argument("--no-repl", action="store_true", help="end after the show, even with a terminal")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="decides ties (1)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from kschedd.cli import make_session
    from kschedd.commands.demo import data_folder

    examples = data_folder("examples") / "demo"
    if not examples.is_dir():
        raise DemoError(f"the example cluster is missing: no folder {examples}; reinstall kschedd")
    with daemon_of_its_own(options.seed) as socket:
        opened: list[Any] = []
        session = make_session(socket, opened)
        try:
            _show(session, examples)
        finally:
            for client in opened:
                client.close()
        if not options.no_repl and sys.stdin.isatty() and sys.stdout.isatty():
            from kschedd_repl.app import run_repl

            print("\nNow it is yours: try `get pods -o wide`, `explain report`, `scale deployment web --replicas 9`,")
            print("`cordon node-a1`, `help`. `exit` ends the demo.\n")
            run_repl(socket, farewell="The demo's daemon ends with it.")
    return 0


@contextmanager
def daemon_of_its_own(seed: int) -> Iterator[str]:
    """The socket of a daemon that runs in a child process until the block ends. Raises DemoError."""
    with tempfile.TemporaryDirectory(prefix="kschedd-demo-") as folder:
        socket, log = Path(folder, "kschedd.sock"), Path(folder, "log")
        command = [sys.executable, "-m", "kschedd.cli", "run", "--socket", str(socket), "--seed", str(seed)]
        with log.open("wb") as said:
            # Its own session: Ctrl-C at the terminal reaches only this process, which stops the daemon in order.
            child = subprocess.Popen(
                [*command, "--log-level", "warning"], stdout=said, stderr=said, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        try:
            _wait_for(socket, child, log)
            yield str(socket)
        finally:
            _end(child)


def _wait_for(socket: Path, child: "subprocess.Popen[bytes]", log: Path) -> None:
    from kschedd.rpc.blocking import BlockingClient
    from kschedd.rpc.errors import NoDaemonError

    deadline = time.monotonic() + _START_S
    while True:
        if child.poll() is not None:
            raise DemoError(f"the daemon ended at once, with status {child.returncode}:\n{_tail(log)}")
        try:
            with BlockingClient(socket, timeout=_START_S) as daemon:
                daemon.call("rpc.ping")
                return
        except NoDaemonError:
            if time.monotonic() > deadline:
                raise DemoError(f"the daemon did not answer within {_START_S:g} s:\n{_tail(log)}") from None
            time.sleep(_LOOK_S)


def _tail(log: Path) -> str:
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-15:])


def _end(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(_END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


# -- the demo -------------------------------------------------------------------------------------------------------


def _show(session: VerbSession, examples: Path) -> None:
    _say(session, "A cluster of three zones, and a shop to run in it:")
    _do(session, "apply", "-f", str(examples), shown=f"apply -f {_short(examples)}")
    pods = _pods_when_placed(session)
    _say(session, "Its nodes, and what is taken of them:")
    _do(session, "get", "nodes", "-o", "wide")
    _say(session, "Where every pod went:")
    _do(session, "get", "pods", "-o", "wide")
    placed = [pod for pod in pods if (pod.get("spec") or {}).get("nodeName")]
    pending = [pod for pod in pods if not (pod.get("spec") or {}).get("nodeName")]
    if not placed or not pending:
        raise DemoError("the example is to leave one pod Pending and no more; see the table above")
    # A pod of `api` makes a good example: several nodes are feasible, and it has a preference.
    chosen = next((pod for pod in placed if pod["metadata"].get("labels", {}).get("app") == "api"), placed[0])
    name = chosen["metadata"]["name"]
    _say(session, f"Why {name} is where it is, as the cluster stands now:")
    _do(session, "explain", name)
    for pod in pending:
        name = pod["metadata"]["name"]
        _say(session, f"And {name} stays Pending. Why:")
        _do(session, "events", f"pod/{name}")
        _do(session, "explain", name)


def _short(path: Path) -> str:
    """The path relative to the working directory, if that is shorter."""
    try:
        near = os.path.relpath(path)
    except ValueError:
        return str(path)
    return min(near, str(path), key=len)


def _say(session: VerbSession, text: str) -> None:
    session.write("\n" + session.style.paint(text, "bold") + "\n\n")


def _do(session: VerbSession, *words: str, shown: str = "") -> None:
    """Run a verb, and print its command line as if a user had typed it."""
    from kschedd.verbs.table import run_words

    session.write(session.style.paint(f"$ kschedd {shown or ' '.join(words)}", "cyan") + "\n")
    if run_words(session, words) != 0:
        raise DemoError(f"`kschedd {' '.join(words)}` failed")


def _pods_when_placed(session: VerbSession) -> list[dict[str, Any]]:
    """Wait until every Deployment has all its pods and each pod is running or unschedulable; returns the pods."""
    deadline = time.monotonic() + _REST_S
    while True:
        pods: list[dict[str, Any]] = session.daemon.call("objects.list", kind="Pod", namespace="default")["items"]
        deployments = session.daemon.call("objects.list", kind="Deployment", namespace="default")["items"]
        wanted = sum((deployment.get("spec") or {}).get("replicas", 1) for deployment in deployments)
        made = sum(bool(pod["metadata"].get("ownerReferences")) for pod in pods)
        if made >= wanted and all(map(_at_rest, pods)):
            return pods
        if time.monotonic() > deadline:
            raise DemoError(f"after {_REST_S:g} s the pods have not come to rest: {made} of {wanted} are made")
        time.sleep(_LOOK_S)


def _at_rest(pod: dict[str, Any]) -> bool:
    status = pod.get("status") or {}
    if status.get("phase") == "Running":
        return True
    conditions = status.get("conditions") or ()
    return any(c.get("type") == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions)


_PACKAGE = Path(__file__).parent.parent


def data_folder(name: str) -> Path:
    """The directory `examples` or `profiles`. It may not exist: the caller reports a broken installation."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
