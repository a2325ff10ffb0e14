"""The table of verbs by name, and the execution of a command line."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Final

from kschedd.api.text.similar import allowed_names, did_you_mean
from kschedd.errors import KscheddError
from kschedd.printing.terminal.safe import brief as shortened
from kschedd.verbs import general, setting
from kschedd.verbs.command_line.grammar import UsageError, Verb, verbs_of
from kschedd.verbs.command_line.overview import brief, listing
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.nodes import drain, node, nodes, top
from kschedd.verbs.objects import (
    access,
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
    browsing,
    capacity,
    config,
    counting,
    debugging,
    descheduling,
    expecting,
    explain,
    forks,
    loading,
    measuring,
    plan,
    plugins,
    pools,
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
    access,
    explain,
    scheduling,
    measuring,
    debugging,
    descheduling,
    pools,
    timing,
    config,
    setting,
    plugins,
    loading,
    profiling,
    recording,
    reporting,
    browsing,
    general,
)
VERBS: Final[tuple[Verb, ...]] = (
    *(verb for module in _MODULES for verb in verbs_of(module)),
    *forks.verbs(lambda session, words: run_words(session, words)),
    *verbs_of(capacity),
    *pools.verbs(lambda session, words: run_words(session, words)),
    *plan.verbs(lambda session, words: run_words(session, words)),
    watching.verb(
        lambda words: find_verb(short_words(without_program(words))[0]),
        lambda session, words: run_words(session, words),
    ),
)
BY_NAME: Final[Mapping[str, Verb]] = {name: verb for verb in VERBS for name in (verb.name, *verb.aliases)}
#: verbs of groups by their full names, such as "debug step"
BY_WHOLE: Final[Mapping[str, Verb]] = {verb.whole: verb for verb in VERBS if verb.whole}
#: first words of the verbs' full names -> description of the group
GROUPS: Final[Mapping[str, str]] = {
    "auth": "Check permissions by Roles and bindings.",
    "debug": "Step through scheduling, stop at breakpoints, change the result of an attempt.",
    "fork": "Work on copies of the whole cluster.",
    "plugin": "Create, check, list and reload scheduler plugins.",
}
#: former names of verbs, for error messages
RENAMED: Final[Mapping[str, str]] = {"count": "spread", "kinds": "api-resources"}

FAILED, WRONG_USE = 1, 2

_NO_CONTAINERS: Final = "pods do not run containers. `describe pod NAME` and `events pod/NAME` show the state of a pod"
#: kubectl's verbs that kschedd lacks -> commands to use instead
INSTEAD: Final[Mapping[str, str]] = {
    **dict.fromkeys(("exec", "attach", "cp", "port-forward"), _NO_CONTAINERS),
    "proxy": "`run --http` (of the daemon) serves the REST API on loopback itself",
    "certificate": "kschedd signs no certificates; `run --http` takes TLS files",
    "cluster-info": "`status` shows the daemon and its cluster",
    "api-versions": "`api-resources` lists all kinds with their versions",
    "autoscale": "`apply -f FILE` creates an autoscaler, `scale KIND NAME --replicas N` sets the replicas",
    "kustomize": "build the manifests elsewhere and apply the result: `apply -f -`",
    "options": "`VERB --help` lists all flags of a verb",
}
#: words that users try as commands -> commands to use
_MEANT: Final[Mapping[str, str]] = {
    "why": "`explain POD` names the cause",
    **dict.fromkeys(("list", "ls", "show"), "`get KIND` lists objects"),
    **dict.fromkeys(("pod", "pods"), "`get pods` lists pods, `explain POD` explains one"),
    **dict.fromkeys(("fail", "crash", "exit"), "annotations of a pod end its containers: docs/PODS.md"),
    "start": "`run --detach` starts a daemon",
    "restart": "`rollout restart KIND/NAME` restarts the pods of a workload",
    "reset": "`stop` and `run --detach` start an empty cluster; `config undo` reverts the configuration",
}


def without_program(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a command line without a leading `kschedd` or `kubectl`."""
    return words[1:] if len(words) > 1 and words[0] in ("kschedd", "kubectl") else words


def short_words(words: Sequence[str]) -> list[str]:
    """Return the words with the verb's short name in place of its full name: `step` for `debug step`."""
    verb = BY_WHOLE.get(" ".join(words[:2]))
    return list(words) if verb is None else [verb.name, *words[2:]]


def group_members(group: str) -> list[tuple[str, str]]:
    """Return the second words of the verbs in a group, with their summaries."""
    return [
        (name.removeprefix(f"{group} "), verb.summary) for name, verb in BY_WHOLE.items() if name.split()[0] == group
    ]


def find_verb(word: str, others: Sequence[str] = ()) -> Verb:
    """Return the verb with this name. Raises UsageError, with similar names from the verbs and `others`."""
    verb = BY_NAME.get(word)
    if verb is None and word in INSTEAD:
        raise UsageError(f"{word} is not supported: {INSTEAD[word]}")
    if verb is None and word in RENAMED:
        raise UsageError(f"{word} was renamed to `{RENAMED[word]}`")
    if verb is None:
        meant = f"; {_MEANT[word]}" if word in _MEANT else ""
        hint = meant or did_you_mean(word, (*BY_NAME, *GROUPS, *others)) or "; `help` lists all commands"
        raise UsageError(f'unknown command "{shortened(word)}"{hint}')
    return verb


def _in_group(session: VerbSession, words: Sequence[str]) -> bool:
    """Print the help of a group if the words request it; return whether it was printed.

    Raises UsageError if a verb of a group is given without the group's name, or if the group does not contain it.
    """
    first, second = words[0], words[1] if len(words) > 1 else ""
    if first in GROUPS and (session.whole_names or first not in BY_NAME):
        members = dict(group_members(first))
        if second in ("", "-h", "--help"):
            session.write(f"usage: {session.program}{first} COMMAND ...\n\n{GROUPS[first]}\n\ncommands:\n")
            session.write(listing(((name, brief(what)) for name, what in members.items()), session.style.width))
            return True
        if second not in members:
            discards = first == "fork" and second in ("delete", "remove", "rm")
            names = "" if discards else did_you_mean(second, members)
            if not names:
                forks = (
                    "`fork discard NAME` deletes a fork"
                    if discards
                    else f"`fork create {shortened(second)}` creates a fork"
                )
                hints = {"debug": _NO_CONTAINERS, "fork": forks}
                names = allowed_names(second, members) + (f"; {hints[first]}" if first in hints else "")
            raise UsageError(f'{first}: unknown command "{shortened(second)}"{names}')
    elif session.whole_names and first in BY_NAME and BY_NAME[first].whole:
        raise UsageError(f"{first} was renamed to `{BY_NAME[first].whole}`")
    return False


def run_words(session: VerbSession, words: Sequence[str], others: Sequence[str] = ()) -> int:
    """Run a command and return its exit status. Errors are printed to standard error.

    Raises ConnectionLostError and NoDaemonError, so that the caller decides whether to continue.
    """
    from kschedd.rpc.errors import ConnectionLostError, NoDaemonError

    words = without_program(words)
    try:
        if _in_group(session, words):
            return 0
        words = short_words(words)
        verb = find_verb(words[0], others)
        parser = verb.parser(session.program)
        if wants_help(words[1:]):
            session.write(parser.format_help())
            return 0
        return verb.run(session, _read(verb, session, words[1:]))
    except UsageError as wrong:
        session.error(str(wrong))
        if wrong.verb:
            known = BY_NAME.get(wrong.verb)
            name = known.whole if known is not None and known.whole and session.program else wrong.verb
            session.write_error(f"See {session.program}{name} --help\n" if session.program else f"See help {name}\n")
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
        # flags after the inner verb belong to it
        return parser.parse_args(parser.switched(words, leading=True))
    return parser.read(words)
