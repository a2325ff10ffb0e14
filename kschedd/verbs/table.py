"""The table of verbs by name, and the execution of a command line."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Final

from kschedd.errors import KscheddError
from kschedd.printing.terminal.safe import brief
from kschedd.verbs import general, setting
from kschedd.verbs.command_line.grammar import UsageError, Verb, suggest, verbs_of
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.nodes import drain, node, nodes, top
from kschedd.verbs.objects import (
    changing,
    creating,
    diffing,
    editing,
    events,
    manifests,
    reading,
    replacing,
    rollout,
    waiting,
    watching,
)
from kschedd.verbs.scheduler import (
    capacity,
    config,
    counting,
    debugging,
    expecting,
    explain,
    forks,
    loading,
    measuring,
    plan,
    plugins,
    profiling,
    recording,
    reporting,
    scheduling,
    timing,
)

_MODULES: Final = (
    reading,
    manifests,
    diffing,
    top,
    counting,
    creating,
    changing,
    replacing,
    editing,
    waiting,
    expecting,
    rollout,
    nodes,
    node,
    drain,
    events,
    explain,
    scheduling,
    measuring,
    debugging,
    timing,
    config,
    setting,
    plugins,
    loading,
    profiling,
    recording,
    reporting,
    general,
)
VERBS: Final[tuple[Verb, ...]] = (
    *(verb for module in _MODULES for verb in verbs_of(module)),
    *forks.verbs(lambda session, words: run_words(session, words)),
    *verbs_of(capacity),
    *plan.verbs(lambda session, words: run_words(session, words)),
    watching.verb(lambda word: find_verb(word), lambda session, words: run_words(session, words)),
)
BY_NAME: Final[Mapping[str, Verb]] = {name: verb for verb in VERBS for name in (verb.name, *verb.aliases)}

FAILED, WRONG_USE = 1, 2

_NO_CONTAINERS: Final = "pods do not run containers. `describe pod NAME` and `events pod/NAME` tell what becomes of one"
#: kubectl's verbs without a meaning here, and what to use
INSTEAD: Final[Mapping[str, str]] = {
    **dict.fromkeys(("exec", "attach", "cp", "port-forward", "debug"), _NO_CONTAINERS),
    "proxy": "`run --http` (of the daemon) serves the REST API on loopback itself",
    "auth": "whoever may use the socket may do everything, and with a read-only token read; `clients` shows who is who",
    "certificate": "nobody asks for certificates; `run --http` takes TLS files",
    "cluster-info": "`status` says what the daemon is and does",
    "api-versions": "`kinds` lists all kinds with their versions",
    "autoscale": "autoscalers are kept and do not act: `scale KIND NAME --replicas N`",
    "kustomize": "build elsewhere, and apply the result: `apply -f -`",
    "options": "`VERB --help` lists all flags of a verb",
}


def find_verb(word: str, others: Sequence[str] = ()) -> Verb:
    """The verb of that name. Raises UsageError with similar names, including those in `others`."""
    verb = BY_NAME.get(word)
    if verb is None and word in INSTEAD:
        raise UsageError(f"{word} has no meaning here: {INSTEAD[word]}")
    if verb is None:
        hint = suggest(word, (*BY_NAME, *others)) or "; `help` lists them all"
        raise UsageError(f'there is no verb "{brief(word)}"{hint}')
    return verb


def run_words(session: VerbSession, words: Sequence[str], others: Sequence[str] = ()) -> int:
    """Run a command. Every error is written to standard error; returns 0, `Verb.failed` or 2 (wrong use).

    Raises ConnectionLostError and NoDaemonError: the caller decides whether the session goes on.
    """
    from kschedd.rpc.errors import ConnectionLostError, NoDaemonError

    try:
        verb = find_verb(words[0], others)
        parser = verb.parser(session.program)
        if wants_help(words[1:]):
            session.write(parser.format_help())
            return 0
        return verb.run(session, _read(verb, session, words[1:]))
    except UsageError as wrong:
        session.error(str(wrong))
        if wrong.verb:
            session.write_error(f"See {session.program}{'help ' if not session.program else ''}{wrong.verb}")
            session.write_error(" --help\n" if session.program else "\n")
        return WRONG_USE
    except (ConnectionLostError, NoDaemonError):
        raise
    except KscheddError as error:
        session.error(str(error))
        return verb.failed


def wants_help(words: Sequence[str]) -> bool:
    before = list(words[: words.index("--")]) if "--" in words else words
    return "-h" in before or "--help" in before


def _read(verb: Verb, session: VerbSession, words: Sequence[str]) -> argparse.Namespace:
    parser = verb.parser(session.program)
    if verb.name in ("watch", "in", "plan"):
        # Flags after the inner verb belong to that verb.
        return parser.parse_args(parser.switched(words, leading=True))
    return parser.read(words)
