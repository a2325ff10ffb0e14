"""`kschedd run`: the daemon in the foreground, until Ctrl-C, SIGTERM or `kschedd stop`."""

import argparse
import gc
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kschedd.commands.dump_flags import add_dump_flags
from kschedd.errors import KscheddError
from kschedd.verbs.parsing import path_value

if TYPE_CHECKING:
    from kschedd.startup.options import MirrorOptions

MAX_REQUEST_BYTES = 3 << 20
MAX_OBJECT_BYTES = 1536 << 10
SMALLEST, LARGEST = 16 << 10, 1 << 30
_OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"  # in the environment
_PARTS = ("scheduler", "kubelets", "controllers")
_DEBUG_FROM = 4  # of kube-scheduler's verbosities
_LEVELS = ("debug", "info", "warning", "error")


@attrs.define(eq=False)
class MirrorUsageError(KscheddError):
    why: str


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "run",
        help="run the daemon",
        description="Run the daemon: a cluster's store, controllers and scheduler, with a socket for everybody else. "
        "It ends with Ctrl-C, SIGTERM or `kschedd stop`. With --image it is kubectl's verb, which creates a pod: "
        "kschedd run NAME --image IMAGE.",
    )
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
        default=MAX_REQUEST_BYTES,
        metavar="N",
        help="what one request may take (3145728, as kube-apiserver)",
    )
    parser.add_argument(
        "--max-object-bytes",
        type=_size,
        default=MAX_OBJECT_BYTES,
        metavar="N",
        help="what one object may take as it is stored (1572864, as etcd)",
    )
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
        "--kubeconfig", default="", metavar="FILE", help="with --mirror: that file ($KUBECONFIG, ~/.kube/config)"
    )
    parser.add_argument(
        "--time",
        type=_time,
        default=(1.0, None),
        metavar="real|Nx|virtual[@START]",
        help="how the cluster's time passes (real): N times as fast, such as 10x, or not at all until `advance` or "
        "`until` move it; START, such as 2025-01-01T00:00:00Z, is the time at the first start",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="decides ties; the same seed gives the same choices")
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
    parser.add_argument(
        "--leader-elect",
        nargs="?",
        const="true",
        metavar="BOOL",
        help="kube-scheduler's; no effect: a daemon with a store of its own is the only scheduler of its cluster",
    )
    _add_controller_flags(parser)
    parser.set_defaults(run=run)


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
        f"kschedd[otel], whose OTEL_ variables apply (${_OTLP_ENDPOINT})",
    )


def _http_url(text: str) -> str:
    """Raises ArgumentTypeError."""
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f'"{text}" is no URL: expected http://HOST:PORT or https://HOST:PORT')
    return text


def _endpoint_of_environment() -> str:
    """Where the environment says that telemetry is pushed to. It may be meant for others, so it is no error here."""
    endpoint = os.environ.get(_OTLP_ENDPOINT, "")
    if not endpoint or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ""
    from importlib.util import find_spec

    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        print(f"${_OTLP_ENDPOINT} has no effect without the extra `otel`: pip install 'kschedd[otel]'", file=sys.stderr)
        return ""
    return endpoint


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


def _count(text: str) -> int:
    """Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r}: a number from 1 to 10000 is allowed")
    return int(text)


def _listen_settings(options: argparse.Namespace) -> Any:
    """Raises AccessError."""
    from kschedd.access.addresses import SCHEME, read_address
    from kschedd.access.credentials import SOCKET_FLAGS, ListenSettings
    from kschedd.access.errors import AccessError

    files = (options.tls_cert, options.tls_key, options.client_ca, options.tokens)
    if options.listen is None:
        if any(files):
            raise AccessError("--tls-cert, --tls-key, --client-ca and --tokens say how it is served", "--listen")
        return None
    if not options.listen.startswith(SCHEME):
        raise AccessError(f'"{options.listen}": allowed is tcp://HOST:PORT', "--listen")
    address = read_address(options.listen.removeprefix(SCHEME), "--listen", "tcp://127.0.0.1:7443")
    return ListenSettings(address, *files, flags=SOCKET_FLAGS, open_locally=False, protocols=())


def add_scheduler_flags(parser: Any) -> None:
    """The flags of kube-scheduler that say by which configuration to schedule."""
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
        help="a pod left unschedulable for so long is tried again whatever happens, such as 90s (5m)",
    )


def add_kube_version_flag(parser: Any) -> None:
    parser.add_argument(
        "--kube-version",
        type=kube_version_value,
        default="1.34",
        metavar="VERSION",
        help="whose decisions to make: 1.34.1, 1.34 (its latest patch) or 1.36 (1.34)",
    )


def add_feature_gates_flag(parser: Any) -> None:
    parser.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help="turn features of the scheduler on or off; `help` lists them and what they change",
    )


def kube_version_value(text: str) -> Any:
    """Raises ArgumentTypeError."""
    from kschedd.config.kube_versions import UnknownVersionError, kube_version

    try:
        return kube_version(text)
    except UnknownVersionError as unknown:
        raise argparse.ArgumentTypeError(str(unknown)) from unknown


def gates_of(options: argparse.Namespace) -> Mapping[str, bool]:
    """What --feature-gates says, for that version. Raises ConfigErrors."""
    from kschedd.config.feature_gates import parse_flag

    return parse_flag(options.feature_gates, options.kube_version.gates)


def _duration_s(text: str) -> int:
    """Whole seconds of a duration as Go writes it. Raises ArgumentTypeError."""
    from kschedd.config.reading import seconds_of

    seconds = seconds_of(text)
    if seconds is None or seconds < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a duration of a second or more is allowed, such as 90s or 5m")
    return int(seconds)


def wants_gates(options: argparse.Namespace) -> bool:
    """Whether the list of gates is asked for; then it has been printed."""
    if "help" not in options.feature_gates:
        return False
    from kschedd.config.feature_gates import listing

    print(listing(options.kube_version.gates), end="")
    return True


def _add_controller_flags(parser: Any) -> None:
    from kschedd.controllers.options import OPTIONS  # other commands have the scheduler's flags alone

    group = parser.add_argument_group("controllers")
    for name, option in OPTIONS.items():
        default = f" ({option.default})" if option.default else ""
        group.add_argument(f"--{name}", metavar="VALUE", type=partial(_option, name), help=option.help + default)


def _option(name: str, text: str) -> Any:
    """The value of a controllers' option. Raises ArgumentTypeError."""
    from kschedd.controllers.options import OPTIONS

    try:
        return OPTIONS[name].read(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} {wrong}") from wrong


def _size(text: str) -> int:
    """A number of bytes. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or not SMALLEST <= int(text) <= LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r}: a number of bytes from {SMALLEST} to {LARGEST} is allowed")
    return int(text)


def _time(text: str) -> tuple[float, float | None]:
    """The speed of time, and when it starts. Raises ArgumentTypeError."""
    from kschedd.api.times import seconds
    from kschedd.verbs.grammar import UsageError
    from kschedd.verbs.timing import speed_of

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
    parts = frozenset(part.strip() for part in text.split(",") if part.strip())
    if unknown := sorted(parts - set(_PARTS)):
        raise argparse.ArgumentTypeError(f"{unknown[0]!r}: the parts are {', '.join(_PARTS)}")
    return parts


def _mirror(options: argparse.Namespace) -> "MirrorOptions | None":
    """Raises MirrorUsageError."""
    from kschedd.startup.options import MirrorOptions

    if options.mirror is None:
        if options.kubeconfig:
            raise MirrorUsageError("--kubeconfig goes with --mirror")
        return None
    others = {"--state": options.state, "--from": options.origin, "--record": options.record}
    for flag, value in others.items():
        if value:
            raise MirrorUsageError(f"{flag} does not go with --mirror: the cluster's objects are its own, and now")
    if options.time != (1.0, None):
        raise MirrorUsageError("--time does not go with --mirror: the cluster's time is the real one")
    return MirrorOptions(options.kubeconfig, options.mirror)


def _plugin_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def run(options: argparse.Namespace) -> int:
    if wants_gates(options):
        return 0
    import trio

    from kschedd.access.addresses import read_address
    from kschedd.access.audit_log import AuditFile
    from kschedd.access.credentials import ListenSettings
    from kschedd.access.errors import AccessError
    from kschedd.controllers.options import OPTIONS, controller_options
    from kschedd.daemon import MOVES_LOGGED
    from kschedd.limits import read_limits
    from kschedd.serving import run_daemon
    from kschedd.startup.options import DaemonOptions
    from kschedd.store.set_aside import read_ref

    level = "debug" if options.verbosity >= _DEBUG_FROM else options.log_level
    if options.leader_elect is not None:
        print("--leader-elect has no effect: this daemon is the only scheduler of its own cluster", file=sys.stderr)

    files = (options.http_cert, options.http_key, options.http_tokens, options.http_client_ca)
    if options.http is None and any(files):
        raise AccessError("the other --http options say how it is served: give --http as well")
    http = None
    if options.http is not None:
        cert, key, tokens, client_ca = files
        http = ListenSettings(read_address(options.http), cert, key, client_ca, tokens)
    given = DaemonOptions(
        socket=None if options.socket is None else Path(options.socket),
        config_file=options.config,
        plugin_files=tuple(options.plugin),
        state_dir=options.state,
        seed=options.seed,
        log_level=level,
        verbosity=max(options.verbosity, MOVES_LOGGED if options.log_level == "debug" else 0),
        version=options.kube_version,
        feature_gates=gates_of(options),
        unschedulable_flush_s=options.pod_max_in_unschedulable_pods_duration,
        drop_damaged=options.drop_damaged,
        record_file=options.record,
        origin=tuple(options.origin),
        keep_secrets=options.keep_secrets,
        schedulers=dict(options.scheduler),
        speed=options.time[0],
        start_s=options.time[1],
        leave_out=tuple(map(read_ref, options.leave_out)),
        max_request_body_bytes=options.max_request_body_bytes,
        max_object_bytes=options.max_object_bytes,
        controller_options=controller_options(
            {name: value for name in OPTIONS if (value := getattr(options, name.replace("-", "_"))) is not None}
        ),
        service_range=options.service_cluster_ip_range,
        without=options.without
        | ({"kubelets", "controllers"} if options.frozen or options.mirror is not None else frozenset()),
        mirror=_mirror(options),
        limits=read_limits(options.limit),
        audit=None
        if options.audit_log is None
        else AuditFile(options.audit_log, options.audit_log_maxsize << 20, options.audit_log_maxbackup),
        listen=_listen_settings(options),
        otlp_endpoint=options.otlp_endpoint or _endpoint_of_environment(),
        http=http,
        enable_admission=options.enable_admission_plugins,
        disable_admission=options.disable_admission_plugins,
    )
    try:
        return trio.run(run_daemon, given)
    finally:
        gc.freeze()  # what goes with the process need not be looked at
