"""The flags by which a command starts with a cluster as it stands."""

import argparse
from typing import Any

from kschedd.verbs.command_line.parsing import path_text


def add_dump_flags(parser: Any, name: str = "--from") -> None:
    """The flags that say which cluster there is at first; the dump is given by the flag of this name."""
    parser.add_argument(
        name,
        dest="origin",
        type=path_text,
        action="append",
        default=[],
        metavar="PATH",
        help="a cluster as it stands: dumps of kubectl, cluster-info dump, must-gather, /snapshotz ... (`load --how`)",
    )
    parser.add_argument(
        "--frozen", action="store_true", help=f"only the scheduler acts: no controllers, no kubelets (with {name})"
    )
    parser.add_argument("--keep-secrets", action="store_true", help="keep the data of Secrets and ConfigMaps of a dump")
    parser.add_argument(
        "--scheduler",
        type=_renamed_scheduler,
        action="append",
        default=[],
        metavar="NAME=PROFILE",
        help="pods that name this scheduler, as those of a dump may, are scheduled as by this profile",
    )


def load_options(options: argparse.Namespace, config: Any) -> Any:
    """The `LoadOptions` that the flags say, for a scheduler of that configuration."""
    from kschedd.dumps.loading import LoadOptions

    return LoadOptions(options.keep_secrets, profiles=config.scheduler_names)


def config_of_dump(options: argparse.Namespace, config: Any, catalogue: Any, dump: Any) -> Any:
    """Return the `Config` by the release that a dump's nodes show, unless --kube-version names one.

    The reason is noted among the dump's assumptions. Raises ConfigErrors.
    """
    from kschedd.commands.flags.scheduler import with_ties
    from kschedd.config.changing.changes import with_version

    if options.kube_version is not None or not dump.release.told:
        return config
    dump.assumptions.note(dump.release.told)
    return with_version(config, with_ties(options, dump.release.version), catalogue)


def _renamed_scheduler(text: str) -> tuple[str, str]:
    """Raises ArgumentTypeError."""
    name, equals, profile = text.partition("=")
    if not name or not equals or not profile:
        raise argparse.ArgumentTypeError(f"{text!r}: NAME=PROFILE is expected, such as volcano=default-scheduler")
    return name, profile
