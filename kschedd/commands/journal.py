"""`kschedd journal`: maintenance of the journal of a stopped daemon."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from kschedd.commands.notices import warn
from kschedd.errors import KscheddError
from kschedd.printing.terminal.safe import exact, safe
from kschedd.verbs.command_line.parsing import path_value

WHOLE, DAMAGED, UNUSABLE = 0, 1, 2
_PROGRESS_S = 1.0


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "journal",
        help="verify, repair, compact or export the journal of a stopped daemon, or remove objects",
        description="Maintain a journal: PATH is the state directory of a daemon (run --state) or a journal file. A "
        "journal that a daemon uses is rejected; for a running daemon, use kschedd snapshot save. Exit status of "
        "verify: 1 if the journal is damaged, 2 if it cannot be read.",
    )
    what = parser.add_subparsers(dest="what", required=True, metavar="verify|repair|compact|export|remove")
    verify = what.add_parser("verify", help="verify the checksum of every row without changing anything")
    verify.add_argument("-o", "--output", choices=("text", "json"), default="text")
    verify.set_defaults(run=_verify)
    repair = what.add_parser("repair", help="keep the intact part of a damaged journal, and report the lost part")
    repair.set_defaults(run=_repair)
    compact = what.add_parser("compact", help="replace the log by a snapshot of the last state")
    compact.set_defaults(run=_compact)
    export = what.add_parser("export", help="print the objects as a List for `kschedd run --from`, or the writes")
    export.add_argument("-o", "--output", choices=("json", "yaml"), default="json", help="output format (json)")
    export.add_argument("--events", action="store_true", help="print the writes since the snapshot, as JSON lines")
    export.set_defaults(run=_export)
    remove = what.add_parser("remove", help="remove objects, such as those that `verify` lists as unreadable")
    remove.set_defaults(run=_remove)
    for each in (verify, repair, compact, export, remove):
        each.add_argument("path", type=path_value, metavar="PATH", help="a state directory or a journal file")
    remove.add_argument("objects", nargs="+", metavar="KIND/NAMESPACE/NAME", help="KIND/NAME for cluster-scoped kinds")


def _verify(options: argparse.Namespace) -> int:
    import attrs

    from kschedd.store.journal.offline import verified

    try:
        found = verified(options.path, _progress("verify"))
    except KscheddError as error:
        print(f"error: {safe(str(error))}", file=sys.stderr)
        return UNUSABLE
    if options.output == "json":
        print(exact(json.dumps({**attrs.asdict(found), "whole": found.is_whole}, indent=2)))
    else:
        print(*map(safe, found.lines()), sep="\n")
    return WHOLE if found.is_whole else DAMAGED


def _repair(options: argparse.Namespace) -> int:
    from kschedd.store.journal.offline import repaired

    if not repaired(options.path, report=lambda what: print(safe(what), flush=True)):
        print("whole: there is nothing to repair")
    return 0


def _compact(options: argparse.Namespace) -> int:
    from kschedd.store.journal.offline import compacted

    before, after = compacted(options.path, _progress("compact"))
    print(f"{before:,} bytes before, {after:,} after")
    return 0


def _export(options: argparse.Namespace) -> int:
    from kschedd.store.journal.offline import exported_events, exported_objects

    if options.events:
        for event in exported_events(options.path):
            print(exact(json.dumps(event, default=str)))
    elif options.output == "yaml":
        import yaml

        for raw in exported_objects(options.path, _warn):
            print(exact("---\n" + yaml.safe_dump(raw, sort_keys=False, allow_unicode=True)), end="")
    else:
        before = '{"apiVersion": "v1", "kind": "List", "items": [\n'  # printed only if the journal can be read
        for raw in exported_objects(options.path, _warn):
            print(before, exact(json.dumps(raw)), sep="", end="")
            before = ",\n"
        print("\n]}" if before == ",\n" else f"{before}]}}")
    return 0


def _remove(options: argparse.Namespace) -> int:
    from kschedd.store.journal.offline import removed
    from kschedd.store.set_aside import read_ref

    refs = [read_ref(text, "remove") for text in options.objects]
    for ref, copy in zip(refs, removed(options.path, refs), strict=True):
        print(safe(f"{ref} removed; a copy is in {copy}"))
    return 0


def _warn(what: str) -> None:
    warn(what)


def _progress(what: str) -> Callable[[int, int], None]:
    """Report progress from the first second on, whether or not the output is a terminal."""
    shown_at = time.monotonic()

    def show_progress(done: int, total: int) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at > _PROGRESS_S:
            shown_at = time.monotonic()
            print(f"{what}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    return show_progress
