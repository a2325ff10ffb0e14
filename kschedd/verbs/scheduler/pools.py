"""scale-up, consolidate, remove-node: launch and remove nodes as Karpenter or Cluster Autoscaler would.

`plan` runs each verb in a fork, where the scheduler places the pods. `plan scale-up` compares the placements with the
autoscaler's expectations. A node is removed as by `drain` and `delete node`: its pods are evicted within their
disruption budgets. `drain` and `delete node` themselves remove any node; `remove-node` first checks the autoscaler's
rules.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.printing.reports.pools import launch_text, removal_text
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.verbs.command_line.answers import FORMS, write_answer
from kschedd.verbs.command_line.grammar import UsageError, Verb, VerbParser, output_flag, verb
from kschedd.verbs.command_line.parsing import path_text
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.objects.manifests import file_flag, sources_of
from kschedd.verbs.scheduler.forks import Run

_REFUSED, _FAILED = 1, 2
_AUTOSCALERS: Final = ("karpenter", "cluster-autoscaler")


def pool_flags(words: VerbParser) -> None:
    words.add_argument(
        "--pools",
        type=path_text,
        action="append",
        default=[],
        metavar="FILE",
        help="node pools: NodePools and instance_types.json, node groups, or the plain form; may be repeated",
    )
    words.add_argument(
        "--autoscaler", choices=_AUTOSCALERS, default="", help="default: the autoscaler whose pools the files contain"
    )
    words.add_argument(
        "--expander",
        default="",
        metavar="NAME,...",
        help="Cluster Autoscaler's expanders: least-waste, most-pods, least-nodes, price, priority, random",
    )


def pools_given(session: VerbSession, options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Return the parameters about pools. Raises UsageError."""
    if not options.pools:
        raise UsageError("--pools FILE is required", name)
    return {
        "pools": pool_sources(session, options.pools, name),
        "autoscaler": options.autoscaler,
        "expander": [each for each in options.expander.split(",") if each],
    }


def pool_sources(session: VerbSession, paths: Sequence[str], name: str) -> list[dict[str, str]]:
    """Return the files as the parameter `pools` of methods. Raises UsageError."""
    sources, failed = sources_of(session, paths)
    if failed:
        raise UsageError(f"--pools: {failed} of {len(paths)} paths cannot be read", name)
    return [{"name": source.name, "text": source.text} for source in sources]


def _scale_up_words(words: VerbParser) -> None:
    pool_flags(words)
    file_flag(words, needed=False)
    words.add_argument("--dry-run", action="store_true", help="only show the launches")
    output_flag(words, FORMS)


@verb(
    "scale-up",
    "Launch the nodes that Karpenter or Cluster Autoscaler would launch for the pending pods. `plan scale-up` shows "
    "where the scheduler would place the pods. Exit status: 0 each pod gets a node, 1 some pods do not.",
    _scale_up_words,
    examples=(
        "scale-up --pools pools.yaml",
        "plan scale-up --pools nodepool.yaml --pools instance_types.json -f app.yaml",
        "plan scale-up --pools groups.yaml --expander most-pods,least-waste",
    ),
    failed=_FAILED,
)
def scale_up(session: VerbSession, options: argparse.Namespace) -> int:
    given = pools_given(session, options, "scale-up")
    if options.filename and (wrong := _apply(session, options.filename)):
        return wrong
    found = session.daemon.call("pools.launch", dry_run=options.dry_run, **given)
    if not write_answer(session, options.output, found):
        session.write(launch_text(found))
    return _REFUSED if found["refused"] else 0


def _apply(session: VerbSession, files: Sequence[str]) -> int:
    """Apply manifests; return 0, or the exit status after an error."""
    sources, failed = sources_of(session, files)
    if failed:
        return _FAILED
    for source in sources:
        applied: Mapping[str, Any] = session.daemon.call("objects.apply", manifests=source.text, source=source.name)
        for fault in applied["errors"]:
            session.error(fault["message"])
            failed += 1
    return _FAILED if failed else 0


# -- removals -------------------------------------------------------------------------------------------------------

_MOST_ROUNDS: Final = 1000
_DRAIN: Final = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout", "10m")


def _consolidate_words(words: VerbParser) -> None:
    pool_flags(words)
    words.add_argument("--dry-run", action="store_true", help="only show the next removal and a verdict on each node")
    words.add_argument("--once", action="store_true", help="stop after one removal; default: when nothing is left")
    output_flag(words, FORMS)


def _remove_words(words: VerbParser) -> None:
    words.add_argument("nodes", nargs="+", metavar="NODE")
    pool_flags(words)
    words.add_argument("--dry-run", action="store_true", help="only show whether the nodes may be removed")
    output_flag(words, FORMS)


def _consolidate(run: Run) -> Callable[[VerbSession, argparse.Namespace], int]:
    def do(session: VerbSession, options: argparse.Namespace) -> int:
        given = pools_given(session, options, "consolidate")
        first = session.daemon.call("pools.remove", scan=True, **given)
        done: list[Mapping[str, Any]] = []
        found, failed = first, ""
        while found["removal"] is not None and not options.dry_run and not failed and len(done) < _MOST_ROUNDS:
            failed = _removed(run, session, found["removal"])
            done.append(found["removal"])
            if options.once:
                break
            found = session.daemon.call("pools.remove", **given)
        answer = {**first, "removals": [first["removal"]] if options.dry_run and first["removal"] else done}
        if not write_answer(session, options.output, answer):
            session.write(removal_text(answer, session.style))
        if failed:
            session.error(failed)
        return _REFUSED if failed else 0

    return do


def _remove_node(run: Run) -> Callable[[VerbSession, argparse.Namespace], int]:
    def do(session: VerbSession, options: argparse.Namespace) -> int:
        given = pools_given(session, options, "remove-node")
        verdicts: list[Mapping[str, Any]] = []
        done: list[Mapping[str, Any]] = []
        failed = ""
        for name in options.nodes:
            found = session.daemon.call("pools.remove", nodes=[name], **given)
            verdicts += found["nodes"]
            if found["removal"] is not None:
                done.append(found["removal"])
                failed = failed or ("" if options.dry_run else _removed(run, session, found["removal"]))
        answer = {"autoscaler": found["autoscaler"], "removal": None, "nodes": verdicts, "removals": done}
        if not write_answer(session, options.output, answer):
            session.write(removal_text(answer, session.style))
        if failed:
            session.error(failed)
        return _REFUSED if failed or any(each["verdict"] == "keep" for each in verdicts) else 0

    return do


def _removed(run: Run, session: VerbSession, removal: Mapping[str, Any]) -> str:
    """Create the replacement, then drain and delete the nodes. Return why this failed, or ""."""
    if removal["manifest"] is not None:
        session.daemon.call("objects.create", manifest=removal["manifest"])
    complaints: list[str] = []
    quiet = attrs.evolve(session, write=lambda text: None, write_error=complaints.append, style=TerminalStyle())
    for words in (["drain", *removal["nodes"], *_DRAIN, "--yes"], ["delete", "node", *removal["nodes"], "--yes"]):
        if run(quiet, words):
            errors = [line for line in "".join(complaints).splitlines() if line.startswith("error")]
            return (errors[-1] if errors else "failed").removeprefix("error: ")
    return ""


def verbs(run: Run) -> tuple[Verb, ...]:
    return (
        Verb(
            "consolidate",
            "Remove nodes as Karpenter's consolidation or Cluster Autoscaler's scale-down would, until nothing is left "
            "to remove. Exit status: 0 done, 1 a removal failed.",
            _consolidate(run),
            _consolidate_words,
            examples=("consolidate --pools pools.yaml --dry-run", "plan consolidate --pools pools.yaml"),
            failed=_FAILED,
        ),
        Verb(
            "remove-node",
            "Remove nodes if the autoscaler's rules allow it. Exit status: 0 removed, 1 a rule keeps a node.",
            _remove_node(run),
            _remove_words,
            examples=("remove-node node-a --pools pools.yaml --dry-run", "plan remove-node node-a --pools pools.yaml"),
            completes="node",
            failed=_FAILED,
        ),
    )
