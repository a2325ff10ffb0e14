"""taint, cordon, uncordon: verbs that change whether pods may be scheduled to a node."""

import argparse
from collections.abc import Callable
from typing import Any

from kschedd.api.schemas.kinds import lookup
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import LiveState, UsageError, VerbParser, dry_run_flag, verb
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import with_near_name

NODE = lookup("node")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _node_words(words: VerbParser) -> None:
    words.add_argument("what", nargs="*", metavar="NODE...")
    words.add_argument("-l", "--selector", metavar="LABELS", help="nodes with these labels")
    words.add_argument("--all", action="store_true", help="all nodes")


def _cordon_words(words: VerbParser) -> None:
    _node_words(words)
    dry_run_flag(words)


def node_names(session: VerbSession, options: argparse.Namespace, names: list[str]) -> list[str]:
    """Return the names of the selected nodes. The word `node`, or the prefix `node/`, may precede a name."""
    if names and lookup(names[0]) == NODE:
        names = names[1:]
    names = [name.partition("/")[2] if lookup(name.partition("/")[0]) == NODE else name for name in names]
    everywhere = getattr(options, "all", False)
    if names and (options.selector or everywhere):
        raise UsageError("names exclude -l and --all")
    if options.selector or everywhere:
        found = session.daemon.call("objects.list", kind="Node", label_selector=options.selector)["items"]
        names = [item["metadata"]["name"] for item in found]
        if not names:
            session.write_error("No resources found.\n")
        return names
    if not names:
        raise UsageError("a node name, -l LABELS or --all is required")
    return names


def each_node(
    session: VerbSession, names: list[str], call: Callable[[str], dict[str, Any]], say: Callable[[bool], str]
) -> int:
    failed = 0
    answers = []
    for name in names:
        try:
            answer = call(name)
        except RpcError as error:
            session.error(str(with_near_name(session, error, NODE, name, None)))
            failed += 1
            continue
        answers.append(answer)
        session.write(f"node/{name} {say(bool(answer.get('changed')))}\n")
    session.warn_unsupported(answers)
    return 1 if failed else 0


def set_cordon(session: VerbSession, names: list[str], wanted: bool, dry_run: str) -> int:
    """Cordon or uncordon the nodes. `dry_run` is none, client or server."""
    done = "cordoned" if wanted else "uncordoned"
    suffix = {"none": "", "client": " (dry run)", "server": " (server dry run)"}[dry_run]
    method = "nodes.cordon" if wanted else "nodes.uncordon"
    return each_node(
        session,
        names,
        lambda name: session.daemon.call(method, name=name, dry_run=dry_run != "none"),
        lambda changed: (done if changed else f"already {done}") + suffix,
    )


@verb(
    "cordon",
    "Mark nodes unschedulable.",
    _cordon_words,
    examples=("cordon node-a", "cordon -l topology.kubernetes.io/zone=zone-a"),
    completes="node",
    live=LiveState.UNCORDONED,
)
def cordon(session: VerbSession, options: argparse.Namespace) -> int:
    return set_cordon(session, node_names(session, options, options.what), True, options.dry_run)


@verb(
    "uncordon",
    "Mark nodes schedulable.",
    _cordon_words,
    examples=("uncordon node-a", "uncordon --all"),
    completes="node",
    live=LiveState.CORDONED,
)
def uncordon(session: VerbSession, options: argparse.Namespace) -> int:
    return set_cordon(session, node_names(session, options, options.what), False, options.dry_run)


def _taint_words(words: VerbParser) -> None:
    words.add_argument("what", nargs="+", metavar="NODE... KEY=VALUE:EFFECT | KEY:EFFECT-")
    words.add_argument("--overwrite", action="store_true", help="overwrite taints that have another value")
    words.add_argument("-l", "--selector", metavar="LABELS", help="nodes with these labels")
    words.add_argument("--all", action="store_true", help="all nodes")


@verb(
    "taint",
    "Set or remove taints of nodes.",
    _taint_words,
    examples=("taint node node-a dedicated=gpu:NoSchedule", "taint nodes --all maintenance:NoExecute-"),
    completes="taint",
)
def taint(session: VerbSession, options: argparse.Namespace) -> int:
    taints = [word for word in options.what if _is_taint(word)]
    names = [word for word in options.what if not _is_taint(word)]
    if not taints:
        raise UsageError("a taint is required: KEY=VALUE:EFFECT sets a taint, KEY:EFFECT- or KEY- removes taints")
    for word in taints:
        _check(word)
    setting = [word for word in taints if not word.endswith("-")]
    done = "tainted" if len(setting) == len(taints) else "untainted" if not setting else "modified"
    return each_node(
        session,
        node_names(session, options, names),
        lambda name: session.daemon.call("nodes.taint", name=name, taints=taints, overwrite=options.overwrite),
        lambda changed: f"{done}: {', '.join(taints)}" if changed else f"not {done}: no change",
    )


def _is_taint(word: str) -> bool:
    return ":" in word or "=" in word or word.endswith("-")


def _check(word: str) -> None:
    """Check the syntax of a taint before any node changes. Raises UsageError."""
    removing = word.endswith("-")
    key, colon, effect = word.removesuffix("-").partition(":")
    if not key.partition("=")[0]:
        raise UsageError(f'"{word}": a taint starts with its key, such as dedicated=gpu:NoSchedule')
    if not colon:
        if removing and "=" not in key:
            return
        raise UsageError(f'"{word}": an effect is required, such as {key}:{_EFFECTS[0]}')
    if effect not in _EFFECTS:
        raise UsageError(f'"{word}": unknown effect "{effect}": allowed are {", ".join(_EFFECTS)}')
