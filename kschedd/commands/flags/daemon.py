"""The flags of `kschedd run`, and what their values may be. `run` makes the daemon's options of them."""

import argparse
from functools import partial
from typing import Any

from kschedd.commands.flags.dump import add_dump_flags
from kschedd.commands.flags.scheduler import add_scheduler_flags
from kschedd.verbs.command_line.parsing import path_value

OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"  # in the environment
_MAX_REQUEST_BYTES = 3 << 20
_MAX_OBJECT_BYTES = 1536 << 10
_SMALLEST, _LARGEST = 16 << 10, 1 << 30
_LEVELS = ("debug", "info", "warning", "error")


def add_daemon_flags(parser: Any) -> None:
    parser.add_argument(
        "--socket", metavar="PATH", help="where to listen; default: $KSCHEDD_SOCKET or the runtime directory"
    )
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=N",
        help="set one of the daemon's bounds; `kschedd status --limits` shows them, with how far each is used",
    )
    _add_listen_flags(parser)
    _add_audit_flags(parser)
    _add_telemetry_flags(parser)
    add_scheduler_flags(parser)
    parser.add_argument(
        "--plugin", type=path_value, action="append", default=[], metavar="FILE", help="a Python file with plugins"
    )
    add_dump_flags(parser)
    _add_state_flags(parser)
    _add_http_flags(parser)
    _add_cluster_flags(parser)
    _add_time_flags(parser)
    _add_log_flags(parser)
    parser.add_argument(
        "--leader-elect",
        nargs="?",
        type=_boolean,
        const=True,
        metavar="BOOL",
        help="with --schedule: only schedule while this daemon holds the lease (as the configuration says; true); a "
        "daemon with a store of its own is the only scheduler of its cluster",
    )
    _add_controller_flags(parser)


def _add_state_flags(parser: Any) -> None:
    parser.add_argument("--state", type=path_value, metavar="DIR", help="keep a journal here; default: in memory only")
    parser.add_argument(
        "--record",
        type=path_value,
        metavar="FILE",
        help="record the run into a new file, which `kschedd replay` plays again",
    )
    parser.add_argument(
        "--drop-damaged", action="store_true", help="set a damaged journal aside and go on with what is whole of it"
    )
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        metavar="KIND/NAMESPACE/NAME",
        help="start without this object (KIND/NAME where the kind has no namespaces); it stays in the journal, and a "
        "copy is put beside it",
    )
    parser.add_argument(
        "--max-request-body-bytes",
        type=_size,
        default=_MAX_REQUEST_BYTES,
        metavar="N",
        help="what one request may take (3145728, as kube-apiserver)",
    )
    parser.add_argument(
        "--max-object-bytes",
        type=_size,
        default=_MAX_OBJECT_BYTES,
        metavar="N",
        help="what one object may take as it is stored (1572864, as etcd)",
    )


def _add_http_flags(parser: Any) -> None:
    parser.add_argument(
        "--http",
        nargs="?",
        const="127.0.0.1:8001",
        metavar="ADDRESS:PORT",
        help="serve Kubernetes' REST API as well (127.0.0.1:8001); beyond loopback only with TLS, and tokens or client "
        "certificates",
    )
    parser.add_argument("--http-cert", type=path_value, metavar="FILE", help="the server's certificate (PEM)")
    parser.add_argument("--http-key", type=path_value, metavar="FILE", help="its private key (PEM)")
    parser.add_argument(
        "--http-tokens", type=path_value, metavar="FILE", help="who may come in: lines of TOKEN,USER,UID"
    )
    parser.add_argument(
        "--http-client-ca", type=path_value, metavar="FILE", help="who has a certificate of this CA may come in (PEM)"
    )


def _add_cluster_flags(parser: Any) -> None:
    parser.add_argument(
        "--service-cluster-ip-range",
        type=_network,
        default="10.0.0.0/16",
        metavar="NETWORK",
        help="the addresses that Services get (10.0.0.0/16), as kube-apiserver",
    )
    parser.add_argument(
        "--without",
        type=_parts,
        default=frozenset(),
        metavar="PART,...",
        help="leave out parts of the cluster: scheduler, kubelets, controllers",
    )
    for verb in ("enable", "disable"):
        parser.add_argument(
            f"--{verb}-admission-plugins",
            type=_plugin_names,
            default=(),
            metavar="NAME,...",
            help=f"{verb} admission plugins, as kube-apiserver's flag does; an unknown name is answered with the list",
        )
    parser.add_argument(
        "--mirror",
        nargs="?",
        const="",
        metavar="CONTEXT",
        help="hold what a real cluster has, and follow it: that of this context of the kubeconfig (the current one); "
        "nothing is written there, nor here",
    )
    parser.add_argument(
        "--schedule",
        nargs="?",
        const="",
        metavar="CONTEXT",
        help="as --mirror, and schedule that cluster's pods as kube-scheduler does: those whose schedulerName a "
        "profile of --config has, while this daemon holds the lease",
    )
    parser.add_argument(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="with --mirror and --schedule: that file ($KUBECONFIG, ~/.kube/config)",
    )


def _add_time_flags(parser: Any) -> None:
    parser.add_argument(
        "--time",
        type=_time,
        default=(1.0, None),
        metavar="real|Nx|virtual[@START]",
        help="how the cluster's time passes (real): N times as fast, such as 10x, or not at all until `advance` or "
        "`debug until` move it; START, such as 2025-01-01T00:00:00Z, is the time at the first start",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="decides ties; the same seed gives the same choices")


def _add_log_flags(parser: Any) -> None:
    parser.add_argument("--log-level", choices=_LEVELS, default="info", help="what to log to standard error (info)")
    parser.add_argument(
        "-v",
        "--v",
        type=int,
        default=0,
        metavar="N",
        dest="verbosity",
        help="as kube-scheduler's: 4 and more is --log-level debug, 5 and more tells of each move in the queue (as "
        "--log-level debug does), 10 of each plugin's score of each node",
    )


def _add_listen_flags(parser: Any) -> None:
    group = parser.add_argument_group("the socket on TCP")
    group.add_argument(
        "--listen",
        metavar="tcp://HOST:PORT",
        help="serve the socket's methods on TCP as well; beyond loopback only with TLS, anywhere only with tokens or "
        "client certificates",
    )
    group.add_argument("--tls-cert", type=path_value, metavar="FILE", help="the server's certificate (PEM)")
    group.add_argument("--tls-key", type=path_value, metavar="FILE", help="its private key (PEM)")
    group.add_argument(
        "--tokens",
        type=path_value,
        metavar="FILE",
        help='who may come in: lines of TOKEN,USER,UID,"GROUPS", mode 0600; users of the group kschedd:read-only '
        "change nothing",
    )
    group.add_argument(
        "--client-ca", type=path_value, metavar="FILE", help="who has a certificate of this CA may come in (PEM)"
    )


def _add_telemetry_flags(parser: Any) -> None:
    group = parser.add_argument_group("telemetry")
    group.add_argument(
        "--otlp-endpoint",
        type=_http_url,
        metavar="URL",
        help="push traces of attempts and the metrics there, by OTLP over HTTP, such as http://localhost:4318; needs "
        f"kschedd[otel], whose OTEL_ variables apply (${OTLP_ENDPOINT})",
    )


def _add_audit_flags(parser: Any) -> None:
    group = parser.add_argument_group("audit")
    group.add_argument(
        "--audit-log", type=path_value, metavar="FILE", help="log all writes there, as lines of audit.k8s.io/v1 Events"
    )
    group.add_argument(
        "--audit-log-maxsize", type=_count, default=100, metavar="MIB", help="size at which it is rotated (100)"
    )
    group.add_argument(
        "--audit-log-maxbackup", type=_count, default=10, metavar="N", help="rotated files that are kept (10)"
    )


def _boolean(text: str) -> bool:
    """As Go's flags. Raises ArgumentTypeError."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r}: true and false are allowed")


def _count(text: str) -> int:
    """Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r}: a number from 1 to 10000 is allowed")
    return int(text)


def _add_controller_flags(parser: Any) -> None:
    from kschedd.controllers.options import OPTIONS  # other commands have the scheduler's flags alone

    group = parser.add_argument_group("controllers")
    for name, option in OPTIONS.items():
        default = f" ({option.default})" if option.default else ""
        group.add_argument(f"--{name}", metavar="VALUE", type=partial(_option, name), help=option.help + default)


def _http_url(text: str) -> str:
    """Raises ArgumentTypeError."""
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f'"{text}" is no URL: expected http://HOST:PORT or https://HOST:PORT')
    return text


def _option(name: str, text: str) -> Any:
    """The value of a controllers' option. Raises ArgumentTypeError."""
    from kschedd.controllers.options import OPTIONS

    try:
        return OPTIONS[name].read(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} {wrong}") from wrong


def _size(text: str) -> int:
    """A number of bytes. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not _SMALLEST <= int(text) <= _LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r}: a number of bytes from {_SMALLEST} to {_LARGEST} is allowed")
    return int(text)


def _time(text: str) -> tuple[float, float | None]:
    """The speed of time, and when it starts. Raises ArgumentTypeError."""
    from kschedd.api.text.times import seconds
    from kschedd.verbs.command_line.grammar import UsageError
    from kschedd.verbs.scheduler.timing import speed_of

    speed, at, start = text.partition("@")
    try:
        return speed_of(speed), seconds(start) if at else None
    except (UsageError, ValueError) as wrong:
        raise argparse.ArgumentTypeError(f"{text!r}: {wrong}") from wrong


def _network(text: str) -> str:
    """Raises ArgumentTypeError."""
    import ipaddress

    try:
        network = ipaddress.ip_network(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(f"{text!r}: {wrong}") from None
    if network.num_addresses < 8:
        raise argparse.ArgumentTypeError(f"{text!r}: there are too few addresses in it")
    return text


def _parts(text: str) -> frozenset[str]:
    """Raises ArgumentTypeError."""
    from kschedd.controllers.parts import PARTS

    parts = frozenset(part.strip() for part in text.split(",") if part.strip())
    if unknown := sorted(parts - set(PARTS)):
        raise argparse.ArgumentTypeError(f"{unknown[0]!r}: the parts are {', '.join(PARTS)}")
    return parts


def _plugin_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
