"""`kschedd run`: runs the daemon, in the foreground or, with --detach, in the background."""

import argparse
import gc
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kschedd.commands.flags.daemon import DEFAULT_HTTP, OTLP_ENDPOINT, add_daemon_flags
from kschedd.commands.flags.scheduler import gates_of, version_of, wants_gates
from kschedd.errors import KscheddError
from kschedd.store.authorization.modes import RBAC_MODE

if TYPE_CHECKING:
    from kschedd.access.audit_log import AuditFile
    from kschedd.access.credentials import ListenSettings
    from kschedd.controllers.parts import Part
    from kschedd.startup.options import DaemonOptions, MirrorOptions

_DEBUG_FROM = 4  # kube-scheduler's verbosity level from which debug messages are logged


@attrs.define(eq=False)
class MirrorUsageError(KscheddError):
    why: str


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "run",
        help="start the daemon",
        description="Start the daemon: the store, controllers and scheduler of a cluster, with a socket for clients. "
        "The daemon ends with Ctrl-C, SIGTERM or `kschedd stop`. With --image, this is kubectl's verb that "
        "creates a pod (kschedd run NAME --image IMAGE); see `kschedd kubectl run --help`.",
    )
    parser.add_argument(
        "--detach",
        action="store_true",
        help="run in the background: return when the daemon is ready; it logs to a file",
    )
    add_daemon_flags(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if wants_gates(options):
        return 0
    if options.detach:
        return _detach(options)
    import trio

    from kschedd.serving import run_daemon

    if options.leader_elect is not None and options.schedule is None:
        print("--leader-elect has no effect: this daemon is the only scheduler of its own cluster", file=sys.stderr)
    given = daemon_options(options)
    try:
        return trio.run(run_daemon, given)
    finally:
        gc.freeze()  # modules exist until the process ends, so they need no garbage collection


def _detach(options: argparse.Namespace) -> int:
    """Start the daemon as a child process and wait until it is ready. Raises DaemonStartError."""
    from kschedd.commands.child_daemon import ChildDaemon
    from kschedd.printing.terminal.progress import ProgressLine
    from kschedd.rpc.paths import default_socket_path, prepare_path

    socket = prepare_path(options.socket or default_socket_path())
    log = socket.with_suffix(".log")
    words = [word for word in options.command_line if word != "--detach"]
    child = ChildDaemon.start(words, socket, log)
    progress = ProgressLine(sys.stderr)
    try:
        child.wait_until_ready(lambda: progress.show(f"Starting the daemon ... {child.latest()}"))
    except KeyboardInterrupt:
        child.stop()
        raise
    finally:
        progress.clear()
    client = "kschedd" if options.socket is None else f"kschedd --socket {shlex.quote(options.socket)}"
    print(f"The daemon is ready: pid {child.process.pid}, socket {socket}, log {log}")
    if options.http:
        from kschedd.commands.kubeconfig import rest_address

        print(f"REST API: {rest_address(str(socket))}; kubeconfig for kubectl: {client} kubeconfig > FILE")
    print(f"Stop it with: {client} stop")
    return 0


def daemon_options(options: argparse.Namespace) -> "DaemonOptions":
    """Build the daemon's options. Raises AccessError, ConfigErrors, MirrorUsageError and other KscheddErrors."""
    import attrs

    from kschedd.api.simulation.pod_behavior import DEFAULT, PodBehavior
    from kschedd.controllers.options import OPTIONS, controller_options
    from kschedd.daemon import MOVES_LOGGED
    from kschedd.limits import read_limits
    from kschedd.startup.options import DaemonOptions
    from kschedd.store.journal.state_dir import contains_dump
    from kschedd.store.set_aside import read_ref

    without: frozenset[Part] = options.without
    if options.frozen or _is_real(options):
        without |= {"kubelets", "controllers"}
    given = {name: value for name in OPTIONS if (value := getattr(options, name.replace("-", "_"))) is not None}
    # a dump often lacks its Secrets; without kschedd's controllers, nothing may create the objects that they create
    copied = bool(options.origin) or (options.state is not None and contains_dump(options.state))
    own = not copied and "controllers" not in without
    given.setdefault("missing-configuration", own)
    # the pods of a dump's workloads run on, because a what-if analysis must not free capacity by itself
    given.setdefault("pod-behavior", PodBehavior() if copied else DEFAULT)
    controllers = controller_options(given)
    behavior = controllers.pod_behavior
    return DaemonOptions(
        socket=None if options.socket is None else Path(options.socket),
        config_file=options.config,
        plugin_files=tuple(options.plugin),
        state_dir=options.state,
        seed=options.seed,
        log_level="debug" if options.verbosity >= _DEBUG_FROM else options.log_level,
        verbosity=max(options.verbosity, MOVES_LOGGED if options.log_level == "debug" else 0),
        version=version_of(options),
        version_by_cluster=options.kube_version is None,
        feature_gates=gates_of(options),
        unschedulable_flush_s=options.pod_max_in_unschedulable_pods_duration,
        drop_damaged=options.drop_damaged,
        record_file=options.record,
        origin=tuple(options.origin),
        copied=copied,
        default_class=own and not options.no_default_storage_class,
        keep_secrets=options.keep_secrets,
        schedulers=dict(options.scheduler),
        speed=options.time[0],
        start_s=options.time[1],
        leave_out=tuple(map(read_ref, options.leave_out)),
        max_request_body_bytes=options.max_request_body_bytes,
        max_object_bytes=options.max_object_bytes,
        controller_options=attrs.evolve(controllers, pod_behavior=None if "kubelets" in without else behavior),
        service_range=options.service_cluster_ip_range,
        webhooks=options.webhooks,
        rbac=options.authorization_mode == RBAC_MODE,
        without=without,
        mirror=_mirror(options),
        limits=read_limits(options.limit),
        audit=_audit_file(options),
        listen=_listen_settings(options),
        otlp_endpoint=options.otlp_endpoint or _endpoint_of_environment(),
        http=_http_settings(options),
        web=options.web or options.web_controls,
        web_controls=options.web_controls,
        descriptions=options.openapi_descriptions,
        enable_admission=options.enable_admission_plugins,
        disable_admission=options.disable_admission_plugins,
    )


def _audit_file(options: argparse.Namespace) -> "AuditFile | None":
    from kschedd.access.audit_log import AuditFile

    if options.audit_log is None:
        return None
    return AuditFile(options.audit_log, options.audit_log_maxsize << 20, options.audit_log_maxbackup)


def _http_settings(options: argparse.Namespace) -> "ListenSettings | None":
    """Return the settings of the REST API; None without --http and --web. Raises AccessError."""
    from kschedd.access.addresses import read_address
    from kschedd.access.credentials import ListenSettings
    from kschedd.access.errors import AccessError

    rbac = options.authorization_mode == RBAC_MODE
    cert, key, tokens, client_ca = options.http_cert, options.http_key, options.http_tokens, options.http_client_ca
    address = options.http or (DEFAULT_HTTP if options.web or options.web_controls else None)
    if address is None:
        if any((cert, key, tokens, client_ca)):
            raise AccessError("--http-cert, --http-key, --http-tokens and --http-client-ca require --http")
        return None
    return ListenSettings(read_address(address), cert, key, client_ca, tokens, rbac=rbac)


def _endpoint_of_environment() -> str:
    """Return the telemetry endpoint given by the environment variable.

    The variable may be meant for other programs, so a missing package is not an error.
    """
    endpoint = os.environ.get(OTLP_ENDPOINT, "")
    if not endpoint or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ""
    from importlib.util import find_spec

    if find_spec("opentelemetry") is None or find_spec("opentelemetry.exporter") is None:
        print(f"${OTLP_ENDPOINT} has no effect without the extra `otel`: pip install 'kschedd[otel]'", file=sys.stderr)
        return ""
    return endpoint


def _listen_settings(options: argparse.Namespace) -> "ListenSettings | None":
    """Return the settings of --listen; None without --listen. Raises AccessError."""
    from kschedd.access.addresses import SCHEME, read_address
    from kschedd.access.credentials import SOCKET_FLAGS, ListenSettings
    from kschedd.access.errors import AccessError

    files = (options.tls_cert, options.tls_key, options.client_ca, options.tokens)
    if options.listen is None:
        if any(files):
            raise AccessError("required by --tls-cert, --tls-key, --client-ca and --tokens", "--listen")
        return None
    if not options.listen.startswith(SCHEME):
        raise AccessError(f'"{options.listen}": allowed is tcp://HOST:PORT', "--listen")
    address = read_address(options.listen.removeprefix(SCHEME), "--listen", "tcp://127.0.0.1:7443")
    rbac = options.authorization_mode == RBAC_MODE
    return ListenSettings(address, *files, flags=SOCKET_FLAGS, open_locally=False, protocols=(), rbac=rbac)


def _mirror(options: argparse.Namespace) -> "MirrorOptions | None":
    """Return the settings of --mirror or --schedule; None without these flags. Raises MirrorUsageError."""
    from kschedd.startup.options import MirrorOptions

    for flag, limit in {"--kube-api-qps": options.kube_api_qps, "--kube-api-burst": options.kube_api_burst}.items():
        if limit is not None and options.schedule is None:
            raise MirrorUsageError(f"{flag} requires --schedule")

    if not _is_real(options):
        if options.kubeconfig:
            raise MirrorUsageError("--kubeconfig requires --mirror or --schedule")
        return None
    if options.mirror is not None and options.schedule is not None:
        raise MirrorUsageError("--mirror and --schedule exclude each other: --schedule includes --mirror")
    own = "--mirror" if options.schedule is None else "--schedule"
    others = {"--state": options.state, "--from": options.origin, "--record": options.record}
    for flag, value in others.items():
        if value:
            raise MirrorUsageError(f"{flag} does not go with {own}, which uses the present objects of a cluster")
    if options.descheduler:
        raise MirrorUsageError(
            f"--descheduler does not go with {own}: kschedd's descheduler evicts only pods of kschedd's own cluster; "
            "`kschedd plan deschedule -f FILE` shows the evictions in a mirror"
        )
    if options.time != (1.0, None):
        raise MirrorUsageError(f"--time does not go with {own}, which uses the real time")
    if options.schedule is None:
        return MirrorOptions(options.kubeconfig, options.mirror)
    if "scheduler" in options.without:
        raise MirrorUsageError("--schedule excludes --without scheduler")
    return MirrorOptions(
        options.kubeconfig,
        options.schedule,
        True,
        options.leader_elect,
        options.kube_api_qps,
        options.kube_api_burst,
    )


def _is_real(options: argparse.Namespace) -> bool:
    """Return whether the daemon mirrors a real cluster."""
    return options.mirror is not None or options.schedule is not None
