"""`kschedd snapshot`: saves the whole state of a cluster in one file, or restores it from the file."""

import argparse
from typing import Any

from kschedd.commands.notices import report_error
from kschedd.printing.terminal.safe import safe
from kschedd.verbs.command_line.parsing import path_value


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "snapshot",
        help="save the whole state of a daemon in a file, or restore it",
        description="Save all objects at one moment, with uid and resourceVersion (including Secrets), or create a "
        "state directory from such a file, with which kschedd run --state DIR continues. kschedd save "
        "writes manifests instead, for other tools.",
    )
    parser.add_argument(
        "--socket", metavar="PATH", help="the daemon's socket; default: $KSCHEDD_SOCKET or the runtime directory"
    )
    what = parser.add_subparsers(dest="what", required=True, metavar="save|restore")
    save = what.add_parser(
        "save", help="write FILE from the running daemon, or from a state directory that no daemon uses"
    )
    save.add_argument("file", type=path_value, metavar="FILE")
    save.add_argument("--state", type=path_value, metavar="DIR", help="a state directory that no daemon uses")
    save.add_argument("--force", action="store_true", help="overwrite an existing file")
    save.set_defaults(run=_save)
    restore = what.add_parser("restore", help="create the state directory DIR from FILE")
    restore.add_argument("file", type=path_value, metavar="FILE")
    restore.add_argument("--state", type=path_value, metavar="DIR", required=True, help="a directory without a journal")
    restore.set_defaults(run=_restore)


def _save(options: argparse.Namespace) -> int:
    from kschedd.store.journal.snapshot_file import snapshot_of_journal, write_snapshot

    if options.file.exists() and not options.force:
        report_error(f"{options.file} already exists; --force overwrites it")
        return 1
    if options.state is not None:
        version, objects = snapshot_of_journal(options.state)
    else:
        from kschedd.rpc.blocking import BlockingClient

        with BlockingClient(options.socket) as daemon:
            answer = daemon.call("snapshot.get")
        version, objects = answer["resource_version"], answer["objects"]
    number = write_snapshot(options.file, version, objects)
    print(safe(f"{options.file}: {number:,} objects at version {version:,}"))
    return 0


def _restore(options: argparse.Namespace) -> int:
    from kschedd.store.journal.snapshot_file import restore_snapshot

    store = restore_snapshot(options.file, options.state)
    number = sum(len(store.list(kind)) for kind in store.kinds())
    print(safe(f"{options.state}: {number:,} objects; versions continue from {store.version:,}"))
    print(safe(f"continue with: kschedd run --state {options.state}"))
    return 0
