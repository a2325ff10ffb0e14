"""scale-up: launch the nodes that an autoscaler would launch for the pending pods.

`plan scale-up` runs the verb in a fork, so that the scheduler places the pods on the launched nodes, and compares the
placements with the autoscaler's expectations.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.printing.reports.pools import launch_text
from kschedd.verbs.command_line.answers import FORMS, write_answer
from kschedd.verbs.command_line.grammar import UsageError, VerbParser, output_flag, verb
from kschedd.verbs.command_line.parsing import path_text
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.objects.manifests import file_flag, sources_of

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
    sources, failed = sources_of(session, options.pools)
    if failed:
        raise UsageError(f"--pools: {failed} of {len(options.pools)} paths cannot be read", name)
    return {
        "pools": [{"name": source.name, "text": source.text} for source in sources],
        "autoscaler": options.autoscaler,
        "expander": [each for each in options.expander.split(",") if each],
    }


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
