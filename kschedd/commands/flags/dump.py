"""Flags of commands that load a dumped cluster."""

import argparse
from typing import Any

from kschedd.verbs.command_line.parsing import path_text


def add_dump_flags(parser: Any) -> None:
    """Add --from and the flags that change how a dump is loaded."""
    parser.add_argument(
        "--from",
        dest="origin",
        type=path_text,
        action="append",
        default=[],
        metavar="PATH",
        help="a dump of a cluster: files of kubectl, cluster-info dump, must-gather, /snapshotz ... (see `load --how`)",
    )
    parser.add_argument(
        "--frozen", action="store_true", help="run only the scheduler, no controllers or kubelets (requires --from)"
    )
    parser.add_argument("--keep-secrets", action="store_true", help="keep the data of Secrets and ConfigMaps in a dump")
    parser.add_argument(
        "--scheduler",
        type=_renamed_scheduler,
        action="append",
        default=[],
        metavar="NAME=PROFILE",
        help="schedule pods whose schedulerName is NAME with this profile",
    )


def load_options(options: argparse.Namespace, config: Any) -> Any:
    """Return the `LoadOptions` that the flags describe, for a scheduler with that configuration."""
    from kschedd.dumps.loading import LoadOptions

    return LoadOptions(options.keep_secrets, profiles=config.scheduler_names)


def config_of_dump(options: argparse.Namespace, config: Any, catalogue: Any, dump: Any) -> Any:
    """Return the `Config` for the release of the dump's nodes, unless --kube-version names one.

    Add the reason to the dump's assumptions. Raises ConfigErrors.
    """
    from kschedd.commands.flags.scheduler import with_ties
    from kschedd.config.changing.changes import with_version

    if options.kube_version is not None or not dump.release.reason:
        return config
    dump.assumptions.note(dump.release.reason)
    return with_version(config, with_ties(options, dump.release.version), catalogue)


def _renamed_scheduler(text: str) -> tuple[str, str]:
    """Parse NAME=PROFILE. Raises ArgumentTypeError."""
    name, equals, profile = text.partition("=")
    if not name or not equals or not profile:
        raise argparse.ArgumentTypeError(
            f"invalid value {text!r}: expected NAME=PROFILE, such as volcano=default-scheduler"
        )
    return name, profile
