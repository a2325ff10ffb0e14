"""fork create, list, run, discard, export: what-if analysis on a copy of the whole cluster.

`fork diff` is in `verbs.objects.diffing`.

`fork run NAME VERB ...` runs any verb in a fork, with a client for the fork. The time of a fork advances only on
request (`fork run NAME advance 5m`, `fork run NAME rest`), and while a verb such as drain waits.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import attrs

from kschedd.printing.columns.ages import span
from kschedd.printing.reports.debugging import brief_text
from kschedd.printing.terminal.tables import Table
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.answers import FORMS, write_listing
from kschedd.verbs.command_line.grammar import UsageError, Verb, VerbParser, output_flag
from kschedd.verbs.command_line.session import DaemonClient, ItemStream, VerbSession
from kschedd.verbs.scheduler.timing import span_of

Run = Callable[[VerbSession, Sequence[str]], int]

LONGEST_WAIT_S: Final = 600.0  # maximum virtual time that a verb may wait in a fork


@attrs.frozen(eq=False)
class ForkClient:
    """Client that calls the daemon's methods in a fork."""

    _daemon: DaemonClient
    fork: str

    def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        assert not args, "verbs name the parameters of their calls"
        return self._daemon.call("fork.call", fork=self.fork, method=method, params=named)

    def subscribe(self, method: str, /, **named: Any) -> AbstractContextManager[ItemStream]:
        raise RpcError("invalid", "a fork has no watches: read again after `advance` or `rest`")


def session_in(session: VerbSession, fork: str, *, waits_s: float = LONGEST_WAIT_S) -> VerbSession:
    """Return a session whose verbs run in the fork. Waiting verbs advance the fork's time by at most `waits_s`."""
    daemon = session.daemon
    now = daemon.call("fork.advance", fork=fork, seconds=0)["now_s"]
    waited = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now, waited
        waited += seconds
        if waited > waits_s:
            raise RpcError("timeout", f"timed out after {span(waits_s)} of the fork's time")
        now = daemon.call("fork.advance", fork=fork, seconds=seconds)["now_s"]

    client = ForkClient(daemon, fork)
    return attrs.evolve(
        session,
        connect=lambda: client,
        now=lambda: now,
        cluster_time=None,  # it is `now`
        sleep=sleep,
        streams=False,
        asks_first=lambda: False,  # nothing is lost there
        daemon=None,
    )


def _fork_words(words: VerbParser) -> None:
    words.add_argument("name", nargs="?", metavar="NAME", help="name of the fork; default: fork-1, fork-2, ...")
    words.add_argument("--of", metavar="FORK", help="copy this fork instead of the cluster")
    words.add_argument(
        "--stopped",
        action="store_true",
        help="stop the fork where the debugger has stopped the cluster; default: scheduling runs in the fork",
    )
    words.add_argument(
        "--kube-version", metavar="VERSION", help="use the scheduling rules of this version of Kubernetes, such as 1.36"
    )
    words.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help="enable or disable features of that version, or of the present version",
    )


def fork(session: VerbSession, options: argparse.Namespace) -> int:
    given: dict[str, Any] = {"feature_gates": options.feature_gates} if options.feature_gates else {}
    if options.stopped:
        given["stopped"] = True
    made = session.daemon.call("fork.create", name=options.name, of=options.of, version=options.kube_version, **given)
    of = f" of {made['of']}" if made["of"] else ""
    counts = f"{made['nodes']} nodes, {made['pods']} pods with a node, {made['pending']} pending"
    session.write(f"fork {made['name']}{of}: {counts}\n")
    if made["begins_again"]:
        session.write(
            f"Scheduling is not paused in the fork; the attempt of {made['begins_again']} starts again there.\n"
        )
    if options.stopped:
        where = ForkClient(session.daemon, made["name"]).call("debug.where")
        session.write(
            f"In the fork: {brief_text(where)}"
            f"`kschedd fork run {made['name']} debug next` continues the attempt there.\n"
        )
    return 0


def _forks_words(words: VerbParser) -> None:
    output_flag(words, FORMS)


def forks(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("fork.list")
    return write_listing(
        session, options.output, found, _forks_table, f"No forks. `{session.program}fork create NAME` creates one."
    )


def _forks_table(forks: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            each["name"],
            each["of"] or "<cluster>",
            span(each["age_s"]),
            span(each["idle_s"]),
            span(each["elapsed_s"]),
            str(each["nodes"]),
            str(each["pods"]),
            str(each["pending"]),
            str(each["writes"]),
        )
        for each in forks
    )
    return Table(("NAME", "OF", "AGE", "UNUSED", "ITS TIME", "NODES", "PODS", "PENDING", "WRITES"), rows)


def _discard_words(words: VerbParser) -> None:
    words.add_argument("names", nargs="*", metavar="FORK...")
    words.add_argument("--all", action="store_true", help="all forks")


def discard(session: VerbSession, options: argparse.Namespace) -> int:
    if bool(options.names) == options.all:
        raise UsageError("name at least one fork, or pass --all", "discard")
    names = [each["name"] for each in session.daemon.call("fork.list")] if options.all else options.names
    for name in names:
        session.daemon.call("fork.discard", fork=name)
        session.write(f"fork {name} discarded\n")
    return 0


def _export_words(words: VerbParser) -> None:
    words.add_argument("name", metavar="FORK")


def export(session: VerbSession, options: argparse.Namespace) -> int:
    """Print the changes as manifests. Changes that cannot be applied are printed as comments."""
    found = session.daemon.call("fork.export", fork=options.name)
    for change in found["config"]:
        session.write(f"# configuration: {change}\n")
    for gone in found["deleted"]:
        space = f" -n {gone['namespace']}" if gone["namespace"] else ""
        session.write(f"# kschedd delete {gone['kind'].lower()} {gone['name']}{space}\n")
    session.write(found["manifests"])
    if not (found["manifests"] or found["deleted"] or found["config"]):
        session.write_error(f"No changes in fork {options.name}.\n")
    return 0


def _in_words(words: VerbParser) -> None:
    words.add_argument("name", metavar="FORK")
    words.add_argument("words", nargs=argparse.REMAINDER, metavar="VERB ... | advance DURATION | rest")


def in_fork(run: Run) -> Callable[[VerbSession, argparse.Namespace], int]:
    def do(session: VerbSession, options: argparse.Namespace) -> int:
        name, words = options.name, list(options.words)
        if not words:
            raise UsageError("a command is required, such as: fork run what-if get pods", "in")
        if words[0] in ("advance", "rest"):
            return _let_time_pass(session, name, words)
        if words[0] in OF_THE_DAEMON:
            raise UsageError(f"{words[0]} concerns the daemon and cannot run in a fork", "in")
        if words[0] in OVER_FORKS:
            raise UsageError(f"{words[0]} cannot run in a fork; `fork create NAME --of {name}` copies the fork", "in")
        within = attrs.evolve(session_in(session, name), program=f"{session.program}fork run {name} ")
        return run(within, words)

    return do


def _let_time_pass(session: VerbSession, name: str, words: list[str]) -> int:
    if words[0] == "advance":
        if len(words) != 2:
            raise UsageError("advance requires one duration, such as 90s, 5m or 1h", "in")
        moved = session.daemon.call("fork.advance", fork=name, seconds=span_of(words[1]))
    else:
        if len(words) > 2:
            raise UsageError("rest accepts one duration, such as 90s, 5m or 1h", "in")
        limit = {"limit_s": span_of(words[1])} if len(words) > 1 else {}
        moved = session.daemon.call("fork.advance", fork=name, seconds=None, **limit)
    rest = "" if moved["at_rest"] else ", with work still pending"
    session.write(f"{name}: {span(moved['elapsed_s'])} after it was created{rest}\n")
    return 0


OF_THE_DAEMON: Final = ("profile", "record", "stop")
OVER_FORKS: Final = ("fork", "forks", "discard", "export", "in", "plan", *OF_THE_DAEMON)


def verbs(run: Run) -> tuple[Verb, ...]:
    """Return the verbs of the group `fork`; `run` executes a verb's words in a session."""
    return (
        Verb(
            "fork",
            "Create a fork: a copy of the whole cluster.",
            fork,
            _fork_words,
            whole="fork create",
            examples=("fork", "fork what-if", "fork deeper --of what-if"),
        ),
        Verb(
            "forks",
            "List forks.",
            forks,
            _forks_words,
            whole="fork list",
            examples=("forks", "forks -o json"),
        ),
        Verb(
            "in",
            "Run a command in a fork, or advance its time.",
            in_fork(run),
            _in_words,
            whole="fork run",
            examples=(
                "in what-if drain node-a --ignore-daemonsets",
                "in what-if scale deployment web --replicas 30",
                "in what-if node stop -l topology.kubernetes.io/zone=zone-a",
                "in what-if advance 10m",
                "in what-if rest",
                "in what-if get pods -o wide",
            ),
            completes="fork",
        ),
        Verb(
            "discard",
            "Delete forks.",
            discard,
            _discard_words,
            whole="fork discard",
            examples=("discard what-if", "discard --all"),
            completes="fork",
        ),
        Verb(
            "export",
            "Print the changes made in a fork as manifests.",
            export,
            _export_words,
            whole="fork export",
            examples=("export what-if > change.yaml",),
            completes="fork",
        ),
    )
