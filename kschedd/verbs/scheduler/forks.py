"""fork, forks, in, discard, export: what-if on a copy of the whole cluster. `diff FORK` is in `diffing`.

`in NAME VERB ...` runs any verb in a fork: the same verb, over a client whose calls go to the fork. Time stands still
there unless it is told to pass: `in NAME advance 5m`, `in NAME rest`; a verb that waits (drain) lets it pass as well.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import attrs

from kschedd.api.text.durations import DurationError, parse_duration
from kschedd.printing.columns.ages import span
from kschedd.printing.terminal.tables import Table
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.answers import FORMS, write_listing
from kschedd.verbs.command_line.grammar import UsageError, Verb, VerbParser, output_flag
from kschedd.verbs.command_line.session import DaemonClient, ItemStream, VerbSession

Run = Callable[[VerbSession, Sequence[str]], int]

LONGEST_WAIT_S: Final = 600.0  # of virtual time, of one verb that waits in a fork


@attrs.frozen(eq=False)
class ForkClient:
    """The daemon's methods, called in a fork."""

    _daemon: DaemonClient
    fork: str

    def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        assert not args, "verbs name the parameters of their calls"
        return self._daemon.call("fork.call", fork=self.fork, method=method, params=named)

    def subscribe(self, method: str, /, **named: Any) -> AbstractContextManager[ItemStream]:
        raise RpcError("invalid", "a fork sends no changes: look again after `advance` or `rest`")


def session_in(session: VerbSession, fork: str, *, waits_s: float = LONGEST_WAIT_S) -> VerbSession:
    """A session whose verbs act in the fork. A verb that waits lets virtual time pass there, `waits_s` at most."""
    daemon = session.daemon
    now = daemon.call("fork.advance", fork=fork, seconds=0)["now_s"]
    waited = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now, waited
        waited += seconds
        if waited > waits_s:
            raise RpcError("timeout", f"it has waited for {span(waits_s)} of the fork's time")
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
    words.add_argument("name", nargs="?", metavar="NAME", help="fork-1, fork-2, ... if none is given")
    words.add_argument("--of", metavar="FORK", help="make it of this fork, not of the cluster")
    words.add_argument("--kube-version", metavar="VERSION", help="it makes the decisions of that version, such as 1.36")
    words.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help="turn features of that version, or of the one that decides now, on or off",
    )


def fork(session: VerbSession, options: argparse.Namespace) -> int:
    gates = {"feature_gates": options.feature_gates} if options.feature_gates else {}
    made = session.daemon.call("fork.create", name=options.name, of=options.of, version=options.kube_version, **gates)
    of = f" of {made['of']}" if made["of"] else ""
    counts = f"{made['nodes']} nodes, {made['pods']} pods with a node, {made['pending']} pending"
    session.write(f"fork {made['name']}{of}: {counts}\n")
    if made["begins_again"]:
        session.write(
            f"The attempt of {made['begins_again']}, which is stopped, begins again in it; there nothing is stopped.\n"
        )
    return 0


def _forks_words(words: VerbParser) -> None:
    output_flag(words, FORMS)


def forks(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("fork.list")
    return write_listing(session, options.output, found, _forks_table, "No forks. `fork NAME` makes one.")


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
        raise UsageError("which fork? Say its name, or --all")
    names = [each["name"] for each in session.daemon.call("fork.list")] if options.all else options.names
    for name in names:
        session.daemon.call("fork.discard", fork=name)
        session.write(f"fork {name} discarded\n")
    return 0


def _export_words(words: VerbParser) -> None:
    words.add_argument("name", metavar="FORK")


def export(session: VerbSession, options: argparse.Namespace) -> int:
    """Print manifests on standard output; what cannot be applied is printed as comments."""
    found = session.daemon.call("fork.export", fork=options.name)
    for change in found["config"]:
        session.write(f"# configuration: {change}\n")
    for gone in found["deleted"]:
        space = f" -n {gone['namespace']}" if gone["namespace"] else ""
        session.write(f"# kschedd delete {gone['kind'].lower()} {gone['name']}{space}\n")
    session.write(found["manifests"])
    if not (found["manifests"] or found["deleted"] or found["config"]):
        session.write_error(f"Nothing was changed in {options.name}.\n")
    return 0


def seconds_in(text: str, verb: str) -> float:
    """Raises UsageError."""
    try:
        return parse_duration(text)
    except DurationError as wrong:
        raise UsageError(f"{text}: {wrong}", verb) from None


def _in_words(words: VerbParser) -> None:
    words.add_argument("name", metavar="FORK")
    words.add_argument("words", nargs=argparse.REMAINDER, metavar="VERB ... | advance DURATION | rest")


def in_fork(run: Run) -> Callable[[VerbSession, argparse.Namespace], int]:
    def do(session: VerbSession, options: argparse.Namespace) -> int:
        name, words = options.name, list(options.words)
        if not words:
            raise UsageError("in FORK VERB ...: which verb?", "in")
        if words[0] in ("advance", "rest"):
            return _let_time_pass(session, name, words)
        if words[0] in OF_THE_DAEMON:
            raise UsageError(f"{words[0]} is about the daemon, not about a fork", "in")
        if words[0] in OVER_FORKS:
            raise UsageError(f"{words[0]} is not for within a fork; `fork NAME --of {name}` makes a fork of it", "in")
        return run(session_in(session, name), words)

    return do


def _let_time_pass(session: VerbSession, name: str, words: list[str]) -> int:
    if words[0] == "advance":
        if len(words) != 2:
            raise UsageError("in FORK advance DURATION, such as 90s, 5m or 1h", "in")
        told = session.daemon.call("fork.advance", fork=name, seconds=seconds_in(words[1], "in"))
    else:
        if len(words) > 2:
            raise UsageError("in FORK rest [DURATION]", "in")
        limit = {"limit_s": seconds_in(words[1], "in")} if len(words) > 1 else {}
        told = session.daemon.call("fork.advance", fork=name, seconds=None, **limit)
    rest = "" if told["at_rest"] else ", and not at rest"
    session.write(f"{name}: {span(told['elapsed_s'])} after it was made{rest}\n")
    return 0


OF_THE_DAEMON: Final = ("profile", "record", "stop")
OVER_FORKS: Final = ("fork", "forks", "discard", "export", "in", "plan", *OF_THE_DAEMON)


def verbs(run: Run) -> tuple[Verb, ...]:
    """`run` runs the words of a verb in a session."""
    return (
        Verb(
            "fork",
            "Copy the whole cluster as it is now, to try things on the copy.",
            fork,
            _fork_words,
            examples=("fork", "fork what-if", "fork deeper --of what-if"),
        ),
        Verb(
            "forks",
            "The forks there are, how old they are, and for how long nobody used them.",
            forks,
            _forks_words,
            examples=("forks", "forks -o json"),
        ),
        Verb(
            "in",
            "Run any verb in a fork, or let time pass there.",
            in_fork(run),
            _in_words,
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
            "Forget forks.",
            discard,
            _discard_words,
            examples=("discard what-if", "discard --all"),
            completes="fork",
        ),
        Verb(
            "export",
            "What was changed in a fork, as manifests to apply.",
            export,
            _export_words,
            examples=("export what-if > change.yaml",),
            completes="fork",
        ),
    )
