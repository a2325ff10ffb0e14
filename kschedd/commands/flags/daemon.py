"""Flags of `kschedd run`, and the types of their values. `run` builds the daemon's options from these flags."""

import argparse
import math
from functools import partial
from typing import Any

from kschedd.commands.flags.dump import add_dump_flags
from kschedd.commands.flags.scheduler import add_scheduler_flags
from kschedd.store.authorization.modes import AUTHORIZATION_MODES
from kschedd.store.webhooks.modes import WEBHOOK_MODES
from kschedd.verbs.command_line.parsing import path_value

DEFAULT_HTTP = "127.0.0.1:8001"
OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"  # in the environment
_MAX_REQUEST_BYTES = 3 << 20
_MAX_OBJECT_BYTES = 1536 << 10
_SMALLEST, _LARGEST = 16 << 10, 1 << 30
_LEVELS = ("debug", "info", "warning", "error")


def add_daemon_flags(parser: Any) -> None:
    parser.add_argument(
        "--socket", metavar="PATH", help="path of the socket; default: $KSCHEDD_SOCKET or the runtime directory"
    )
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=N",
        help="set one of the daemon's limits; `kschedd status --limits` lists them with their use",
    )
    _add_listen_flags(parser)
    _add_audit_flags(parser)
    _add_telemetry_flags(parser)
    add_scheduler_flags(parser)
    parser.add_argument(
        "--plugin", type=path_value, action="append", default=[], metavar="FILE.py", help="a Python file with plugins"
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
        help=(
            "schedule only while this daemon holds the lease (requires --schedule; default: the value in the "
            "configuration, else true)"
        ),
    )
    parser.add_argument(
        "--kube-api-qps",
        type=_rate,
        metavar="N",
        help="send at most N requests per second to the real cluster (requires --schedule; negative: no limit; "
        "default: the value in the configuration, else 50, or no limit if the server is on this machine)",
    )
    parser.add_argument(
        "--kube-api-burst",
        type=_burst,
        metavar="N",
        help="send up to N requests without delay after a pause (requires --schedule; default: the value in the "
        "configuration, else 100)",
    )
    _add_controller_flags(parser)


def _add_state_flags(parser: Any) -> None:
    parser.add_argument(
        "--state", type=path_value, metavar="DIR", help="keep a journal in this directory; default: memory only"
    )
    parser.add_argument(
        "--record",
        type=path_value,
        metavar="FILE",
        help="record the run into a new file for `kschedd replay`",
    )
    parser.add_argument(
        "--drop-damaged", action="store_true", help="move a damaged journal aside and start with its intact part"
    )
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        metavar="KIND/NAMESPACE/NAME",
        help="start without this object (KIND/NAME for cluster-scoped kinds); it stays in the journal, with a"
        " copy beside it",
    )
    parser.add_argument(
        "--max-request-body-bytes",
        type=_size,
        default=_MAX_REQUEST_BYTES,
        metavar="N",
        help="limit of a request body in bytes (default 3145728, as in kube-apiserver)",
    )
    parser.add_argument(
        "--max-object-bytes",
        type=_size,
        default=_MAX_OBJECT_BYTES,
        metavar="N",
        help="limit of a stored object in bytes (default 1572864, as in etcd)",
    )


def _add_http_flags(parser: Any) -> None:
    parser.add_argument(
        "--http",
        nargs="?",
        const=DEFAULT_HTTP,
        metavar="ADDRESS:PORT",
        help="also serve Kubernetes' REST API (default 127.0.0.1:8001); addresses other than loopback require TLS and"
        " tokens or client certificates",
    )
    parser.add_argument(
        "--web",
        action="store_true",
        help="also serve a page for browsers on the port of the REST API; `kschedd web` prints its address",
    )
    parser.add_argument(
        "--web-controls",
        action="store_true",
        help="like --web, and let users who may write stop and step the scheduler and advance virtual time on the page",
    )
    parser.add_argument("--http-cert", type=path_value, metavar="FILE", help="server certificate (PEM)")
    parser.add_argument(
        "--http-key", type=path_value, metavar="FILE", help="private key of the server certificate (PEM)"
    )
    parser.add_argument(
        "--http-tokens", type=path_value, metavar="FILE", help="file of bearer tokens: lines of TOKEN,USER,UID"
    )
    parser.add_argument(
        "--http-client-ca",
        type=path_value,
        metavar="FILE",
        help="CA certificate for verifying client certificates (PEM)",
    )
    parser.add_argument(
        "--openapi-descriptions",
        type=path_value,
        metavar="FILE",
        help="an OpenAPI v2 document of Kubernetes whose descriptions `kubectl explain` shows: the repository's "
        "api/openapi-spec/swagger.json, or the output of `kubectl get --raw /openapi/v2`",
    )


def _add_cluster_flags(parser: Any) -> None:
    parser.add_argument(
        "--service-cluster-ip-range",
        type=_networks,
        default="10.0.0.0/16",
        metavar="NETWORK,...",
        help="range of cluster IPs, like kube-apiserver's flag (default 10.0.0.0/16); with a range of each IP family, "
        "as 10.0.0.0/16,fd00::/108, pods and new nodes have addresses of both families",
    )
    parser.add_argument(
        "--without",
        type=_parts,
        default=frozenset(),
        metavar="PART,...",
        help="do not run these parts: scheduler, kubelets, controllers",
    )
    parser.add_argument(
        "--no-default-storage-class",
        action="store_true",
        help="start a new cluster without the default StorageClass 'standard', which has a simulated provisioner",
    )
    parser.add_argument(
        "--webhooks",
        choices=WEBHOOK_MODES,
        default="skip",
        help="what happens to an admission webhook whose Service has only simulated pods: skip it with a warning "
        "(default), fail as if nothing listened, or call the cluster IP",
    )
    parser.add_argument(
        "--authorization-mode",
        choices=AUTHORIZATION_MODES,
        default="AlwaysAllow",
        help="AlwaysAllow: every authenticated client has full access (default); RBAC: Roles and bindings decide, with "
        "kube-apiserver's default roles",
    )
    for verb in ("enable", "disable"):
        parser.add_argument(
            f"--{verb}-admission-plugins",
            type=_plugin_names,
            default=(),
            metavar="NAME,...",
            help=f"{verb} admission plugins, like kube-apiserver's flag; the error for an unknown name lists them",
        )
    parser.add_argument(
        "--mirror",
        nargs="?",
        const="",
        metavar="CONTEXT",
        help="follow a real cluster without changing it: that of this kubeconfig context (default: the current one)",
    )
    parser.add_argument(
        "--schedule",
        nargs="?",
        const="",
        metavar="CONTEXT",
        help="follow a real cluster like --mirror, and schedule its pods that name a profile of --config, "
        "while this daemon holds the lease",
    )
    parser.add_argument(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="kubeconfig for --mirror or --schedule (default $KUBECONFIG or ~/.kube/config)",
    )


def _add_time_flags(parser: Any) -> None:
    parser.add_argument(
        "--time",
        type=_time,
        default=(1.0, None),
        metavar="real|Nx|virtual[@START]",
        help="speed of the cluster's time: real (the default), N times as fast, such as 10x, or virtual, so that only "
        "`advance` and `debug until` move it. START, such as 2025-01-01T00:00:00Z, is the time at the first"
        " start",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="seed for breaking ties: the same seed gives the same decisions"
    )


def _add_log_flags(parser: Any) -> None:
    parser.add_argument("--log-level", choices=_LEVELS, default="info", help="log level (default info)")
    parser.add_argument(
        "-v",
        "--v",
        type=int,
        default=0,
        metavar="N",
        dest="verbosity",
        help="verbosity, like kube-scheduler's flag: 4 means --log-level debug, 5 logs each move in the queue (as "
        "--log-level debug does), 10 logs each plugin's score of each node",
    )


def _add_listen_flags(parser: Any) -> None:
    group = parser.add_argument_group("the socket on TCP")
    group.add_argument(
        "--listen",
        metavar="tcp://HOST:PORT",
        help="also serve the socket's methods on TCP; requires tokens or client certificates, and TLS except "
        "on loopback",
    )
    group.add_argument("--tls-cert", type=path_value, metavar="FILE", help="server certificate (PEM)")
    group.add_argument("--tls-key", type=path_value, metavar="FILE", help="private key of the server certificate (PEM)")
    group.add_argument(
        "--tokens",
        type=path_value,
        metavar="FILE",
        help='file of bearer tokens: lines of TOKEN,USER,UID,"GROUPS", mode 0600; the group kschedd:read-only'
        " has read-only access",
    )
    group.add_argument(
        "--client-ca", type=path_value, metavar="FILE", help="CA certificate for verifying client certificates (PEM)"
    )


def _add_telemetry_flags(parser: Any) -> None:
    group = parser.add_argument_group("telemetry")
    group.add_argument(
        "--otlp-endpoint",
        type=_http_url,
        metavar="URL",
        help="push traces of attempts and metrics to this collector by OTLP over HTTP, such as "
        f"http://localhost:4318; requires kschedd[otel] (${OTLP_ENDPOINT})",
    )


def _add_audit_flags(parser: Any) -> None:
    group = parser.add_argument_group("audit")
    group.add_argument(
        "--audit-log",
        type=path_value,
        metavar="FILE",
        help="log all writes to this file, as audit.k8s.io/v1 Events in JSON lines",
    )
    group.add_argument(
        "--audit-log-maxsize",
        type=_count,
        default=100,
        metavar="MIB",
        help="rotate the audit log at this size (default 100)",
    )
    group.add_argument(
        "--audit-log-maxbackup",
        type=_count,
        default=10,
        metavar="N",
        help="number of rotated audit logs to keep (default 10)",
    )


def _boolean(text: str) -> bool:
    """Parse a boolean in the syntax of Go's flags. Raises ArgumentTypeError."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r}: allowed are true and false")


def _rate(text: str) -> float:
    """Parse a number of requests per second. Raises ArgumentTypeError."""
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not rate or not math.isfinite(rate):
        raise argparse.ArgumentTypeError(f"{text!r}: a number except 0 is allowed")
    return rate


def _burst(text: str) -> int:
    """Parse a number of requests from 1 to 1000000. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r}: a number from 1 to 1000000 is allowed")
    return int(text)


def _count(text: str) -> int:
    """Parse a number from 1 to 10000. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r}: a number from 1 to 10000 is allowed")
    return int(text)


def _add_controller_flags(parser: Any) -> None:
    from kschedd.controllers.options import OPTIONS  # other commands have only the flags of the scheduler

    group = parser.add_argument_group("controllers")
    for name, option in OPTIONS.items():
        default = f" ({option.default})" if option.default else ""
        group.add_argument(f"--{name}", metavar="VALUE", type=partial(_option, name), help=option.help + default)


def _http_url(text: str) -> str:
    """Check that the text is an HTTP URL. Raises ArgumentTypeError."""
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f'"{text}" is not a URL: expected http://HOST:PORT or https://HOST:PORT')
    return text


def _option(name: str, text: str) -> Any:
    """Parse the value of a controller option. Raises ArgumentTypeError."""
    from kschedd.controllers.options import OPTIONS

    try:
        return OPTIONS[name].read(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} {wrong}") from wrong


def _size(text: str) -> int:
    """Parse a number of bytes. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not _SMALLEST <= int(text) <= _LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r}: a number of bytes from {_SMALLEST} to {_LARGEST} is allowed")
    return int(text)


def _time(text: str) -> tuple[float, float | None]:
    """Parse the speed of time and the time at the start. Raises ArgumentTypeError."""
    from kschedd.api.text.times import seconds
    from kschedd.verbs.command_line.grammar import UsageError
    from kschedd.verbs.scheduler.timing import speed_of

    speed, at, start = text.partition("@")
    try:
        return speed_of(speed), seconds(start) if at else None
    except (UsageError, ValueError) as wrong:
        raise argparse.ArgumentTypeError(f"{text!r}: {wrong}") from wrong


def _networks(text: str) -> str:
    """Check that the text is one network, or one of each IP family, with enough addresses. Raises ArgumentTypeError."""
    from kschedd.store.creating.service_addresses import networks_of

    try:
        networks = networks_of(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(f"{text!r}: {wrong}") from None
    if any(network.num_addresses < 8 for network in networks.values()):
        raise argparse.ArgumentTypeError(f"{text!r}: the network has too few addresses")
    return text


def _parts(text: str) -> frozenset[str]:
    """Parse names of parts of the control plane. Raises ArgumentTypeError."""
    from kschedd.controllers.parts import PARTS

    parts = frozenset(part.strip() for part in text.split(",") if part.strip())
    if unknown := sorted(parts - set(PARTS)):
        raise argparse.ArgumentTypeError(f"{unknown[0]!r}: the parts are {', '.join(PARTS)}")
    return parts


def _plugin_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
