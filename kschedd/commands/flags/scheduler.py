"""Flags of kube-scheduler that select a configuration, for `kschedd run` and for offline commands."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kschedd.verbs.command_line.parsing import path_value

if TYPE_CHECKING:
    from kschedd.config.versions.kube_versions import KubernetesVersion


def add_scheduler_flags(parser: Any) -> None:
    """Add the flags of kube-scheduler that select a configuration."""
    parser.add_argument(
        "--config",
        type=path_value,
        metavar="FILE",
        help="a KubeSchedulerConfiguration of any release, or a Policy; `kschedd config check -f FILE` checks it",
    )
    add_kube_version_flag(parser)
    add_feature_gates_flag(parser)
    parser.add_argument(
        "--pod-max-in-unschedulable-pods-duration",
        type=_duration_s,
        metavar="DURATION",
        help="retry unschedulable pods after this time, such as 90s (5m)",
    )


def add_kube_version_flag(parser: Any) -> None:
    parser.add_argument(
        "--kube-version",
        type=kube_version_value,
        metavar="VERSION",
        help="schedule as this version of Kubernetes: 1.34.1, or the latest patch of 1.34, 1.35, 1.36 or 1.37"
        " (1.37; with a dump or a mirror, the version of its nodes)",
    )
    parser.add_argument(
        "--ties",
        choices=("release", "random"),
        default="release",
        help="how to choose among equally good nodes: release, as kube-scheduler of --kube-version (before 1.35 "
        "at random, since then the first of a heap), or random, with --seed (release)",
    )


def version_of(options: argparse.Namespace) -> "KubernetesVersion":
    """Return the version that --kube-version and --ties select."""
    from kschedd.config.versions.kube_versions import DEFAULT

    return with_ties(options, options.kube_version or DEFAULT)


def with_ties(options: argparse.Namespace, version: "KubernetesVersion") -> "KubernetesVersion":
    """Return the version with the tie-breaking that --ties selects."""
    return version.with_random_ties() if options.ties == "random" else version


def add_feature_gates_flag(parser: Any) -> None:
    parser.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help="turn features of the scheduler on or off; the value `help` lists them with their effects",
    )


def kube_version_value(text: str) -> Any:
    """Parse the name of a supported version. Raises ArgumentTypeError."""
    from kschedd.config.versions.kube_versions import UnknownVersionError, kube_version

    try:
        return kube_version(text)
    except UnknownVersionError as unknown:
        raise argparse.ArgumentTypeError(str(unknown)) from unknown


def gates_of(options: argparse.Namespace) -> Mapping[str, bool]:
    """Return the states that --feature-gates sets, for the selected version. Raises ConfigErrors."""
    from kschedd.config.versions.feature_gates import parse_flag

    return parse_flag(options.feature_gates, version_of(options).gates)


def wants_gates(options: argparse.Namespace) -> bool:
    """Print the list of feature gates if the flag is `--feature-gates help`; return whether it was printed."""
    if "help" not in options.feature_gates:
        return False
    from kschedd.config.versions.feature_gates import listing

    print(listing(version_of(options).gates), end="")
    return True


def _duration_s(text: str) -> int:
    """Parse whole seconds of a duration in Go's notation. Raises ArgumentTypeError."""
    from kschedd.config.parsing.reading import seconds_of

    seconds = seconds_of(text)
    if seconds is None or seconds < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a duration of a second or more is allowed, such as 90s or 5m")
    return int(seconds)
